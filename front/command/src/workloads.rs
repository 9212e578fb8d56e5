//! The workloads that come with the command, in the registry that every program uses.

use punctual::Workloads;
use punctual_gang_thread::bsp::BspWorkload;
use punctual_rosace::RosaceWorkload;

/// A registry of everything shipped, fresh: its state serves one run.
pub(crate) fn shipped() -> Workloads {
    Workloads::new()
        .with(RosaceWorkload::new())
        .with(BspWorkload::new())
}
