//! The shipped examples in virtual time, and what every log of them must be.

use std::path::{Path, PathBuf};

use punctual::{Log, SimOptions, Span, System, Workloads, simulate};
use punctual_gang_thread::bsp::BspWorkload;
use punctual_policy::AnyPolicy;
use punctual_rosace::RosaceWorkload;
use punctual_rules::check;
use punctual_spec::Description;
use punctual_trace::replay;

/// Those of composed schedulers and shared resources.
pub(crate) const COMPOSED: [&str; 11] = [
    "deferrable-server",
    "three-levels",
    "greedy-neighbour",
    "inheritance-chain",
    "composite-a",
    "composite-b",
    "composite-c",
    "composite-d",
    "compose-decoders",
    "mixed-frame",
    "nautilus-reservations",
];

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

pub(crate) fn load(path: &Path) -> Description {
    let description = punctual_spec::load(path).map_err(|error| error.to_string());
    description.unwrap()
}

/// The system of the example of this name.
pub(crate) fn example(name: &str) -> System {
    load(&folder().join(name).with_extension("toml")).system
}

pub(crate) fn workloads() -> Workloads {
    Workloads::new()
        .with(RosaceWorkload::new())
        .with(BspWorkload::new())
}

pub(crate) fn in_virtual_time(description: &Description, ms: u64) -> Log {
    let options = SimOptions {
        duration: Some(Span::from_ms(ms)),
        ..SimOptions::default()
    };
    let system = &description.system;
    simulate(system, &options, &mut workloads(), &mut |_| true).unwrap()
}

pub(crate) fn is_replayed(name: &str, log: &Log) {
    let stats = replay(log, AnyPolicy::new);
    let stats = stats.unwrap_or_else(|divergence| panic!("{name}: {divergence}"));
    // A graph that has its CPUs for itself asks the core once.
    let moves: usize = log.cpus.iter().map(|cpu| cpu.moves.len()).sum();
    // Groups that arrive once are soon over.
    let segments: u64 = log.requests.iter().map(|request| request.executed).sum();
    assert!(
        stats.decisions > 100 || moves > 100 || segments > 5,
        "{name}: {} decisions",
        stats.decisions
    );
}

pub(crate) fn obeys_the_rules(name: &str, log: &Log) {
    let violations = check(log);
    assert!(
        violations.is_empty(),
        "{name}: {} violations, first: {}",
        violations.len(),
        violations[0]
    );
}
