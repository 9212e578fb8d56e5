//! Control groups of the kernel: made and ended, and their quota as a switch.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::time::Instant;

use crate::Samples;
use crate::thread::{Place, on};

/// Groups that are made.
const ROUNDS: u32 = 200;

/// A control group of this process; it ends with the value.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
}

impl Group {
    /// An empty one in the unified hierarchy.
    pub(crate) fn make(name: &str) -> Result<Group, String> {
        let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let mut roots = root.into_iter();
        let root = roots.find(|root| root.join("cgroup.procs").exists());
        let root = root.ok_or("there is no unified hierarchy of control groups")?;
        let folder = root.join(format!("punctual-{}-{name}", process::id()));
        fs::create_dir(&folder).map_err(|error| format!("no control group: {error}"))?;
        Ok(Group { folder })
    }

    /// Takes a process in, which must have a quota then.
    pub(crate) fn take(&self, process: i32) -> Result<(), String> {
        if !self.folder.join("cpu.max").exists() {
            return Err("control groups have no cpu.max here".into());
        }
        self.write("cgroup.procs", &process.to_string())
    }

    /// All the time, or the least that there is.
    pub(crate) fn limit(&self, runs: bool) -> Result<(), String> {
        self.write("cpu.max", if runs { "max 1000000" } else { "1000 1000000" })
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        fs::write(self.folder.join(file), text).map_err(|error| format!("{file}: {error}"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes may not have ended yet: then it stays, empty, until the machine does.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A control group made, in nanoseconds; each is ended at once.
///
/// # Errors
/// Where this process may make none.
pub fn make(place: Place) -> Samples {
    on(place, || {
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            let begun = Instant::now();
            let group = Group::make(&round.to_string())?;
            all.push(begun.elapsed().as_nanos() as f64);
            drop(group);
        }
        Ok(all)
    })
}
