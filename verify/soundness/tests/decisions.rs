//! A digest of decisions: the core decides today as it did when the golden values were taken.
//!
//! Random systems of every feature and the examples run in virtual time, some with faults. Each
//! decision and each completed job goes into a hash, as numbers. `DECISIONS=10000` in the
//! environment prints a hash per 1,000 systems instead; compare them before and after a change that
//! is not to change decisions. A change that does gives its reason beside the new golden values.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use punctual::{Faults, MissingTime, Overrun, SimOptions, Workloads, simulate_unjudged};
use punctual_analysis::funding;
use punctual_generate::Feature;
use punctual_kern::{Next, TraceEvent};
use punctual_model::{Instant, Ns, PolicyKind, Span, Supply, System, TaskId, Work, WorkSource};
use punctual_soundness::{Judge, analysis};
use punctual_trace::Record;

/// Systems of one hash.
const PER_HASH: u64 = 1_000;
/// What the first systems and the examples hash to.
const SYSTEMS: (u64, u64) = (300, 0x106c_6dd2_f349_33de);
/// With the example `transfer`: without it they hash to `0x52fc_c7e2_5975_affe`, as
/// before.
const EXAMPLES: u64 = 0x99f9_3e16_c2ce_4ce2;

/// FNV-1a over words.
struct Digest(u64);

impl Digest {
    fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn instant(&mut self, at: Option<Instant>) {
        self.add(u64::from(at.is_some()));
        self.add(at.map_or(0, Instant::ticks));
    }

    fn run(&mut self, system: &System, options: &SimOptions) {
        let log = simulate_unjudged(system, options, &mut Workloads::new(), &mut |_| true);
        let Ok(log) = log else {
            return self.add(u64::MAX);
        };
        for (cpu, records) in (0..).zip(&log.cpus) {
            assert_eq!(records.lost_from, None, "the recorder was full");
            self.add(cpu);
            for (now, record) in &records.records {
                self.record(now, &record);
            }
        }
    }

    fn record(&mut self, now: Instant, record: &Record) {
        match *record {
            Record::Decision(decision) => {
                self.add(now.ticks());
                match decision.next {
                    Next::Thread(id) => {
                        self.add(1 + u64::try_from(id.index()).unwrap());
                        self.add(u64::from(id.generation()));
                    }
                    Next::RunChild(node) => {
                        self.add(1 << 40 | u64::try_from(node.index()).unwrap());
                        self.add(u64::from(node.generation()));
                    }
                    _ => self.add(0),
                }
                self.instant(decision.arm);
                self.add(u64::from(decision.refused.is_some()));
            }
            Record::Trace(TraceEvent::Completed {
                thread,
                job,
                arrival,
                deadline,
                received,
                ..
            }) => {
                self.add(now.ticks());
                self.add(u64::try_from(thread.index()).unwrap());
                self.add(job);
                self.instant(Some(arrival));
                self.instant(Some(deadline));
                self.add(received.ticks());
            }
            _ => {}
        }
    }
}

/// About so many releases and budgets are simulated of a system.
const RELEASES: u64 = 200;

/// Some of its periods, and faults for every other system.
fn options(system: &System, index: u64) -> SimOptions {
    let tasks = system.tasks.iter().filter_map(|t| t.class.min_separation());
    let servers = system.schedulers.iter().filter_map(|s| match &s.supply {
        Supply::Server(server) => Some(server.period),
        _ => None,
    });
    let policies = system.cpus.iter().map(|cpu| cpu.policy);
    let turns = policies.filter_map(|policy| match policy {
        PolicyKind::Tdm { frame, .. } => Some(frame),
        PolicyKind::RoundRobin { timeslice } => Some(timeslice),
        _ => None,
    });
    let per_second = |every: Span<Ns>| 1_000_000_000 / every.as_ns().max(1);
    let rate: u64 = tasks.chain(servers).chain(turns).map(per_second).sum();
    let length = RELEASES * 1_000_000_000 / rate.max(1_000);
    let mut faults = Faults::default();
    match index % 6 {
        1 => {
            faults.missing = vec![MissingTime {
                cpu: None,
                length: Span::from_us(30),
                every: Span::from_us(700),
            }];
        }
        3 => {
            faults.late_timer = Span::from_us(20);
            faults.jitter = true;
            faults.decision_cost = Work::from_us(3);
        }
        5 => {
            let task =
                TaskId(u32::try_from(index).unwrap() % u32::try_from(system.tasks.len()).unwrap());
            faults.overruns = vec![Overrun {
                task,
                per_mille: 2_500,
            }];
            faults.cache_delay = Work::from_us(1);
        }
        _ => {}
    }
    SimOptions {
        duration: Some(Span::from_ns(length)),
        seed: Some(index),
        faults,
        ..SimOptions::default()
    }
}

fn of_systems(from: u64, to: u64) -> u64 {
    let judge = Judge {
        seed: 20_260_101,
        // Slices came later, of which the examples have one, and so did locks in servers.
        features: Feature::ALL
            .into_iter()
            .filter(|feature| !matches!(feature, Feature::Slices | Feature::ServerLocks))
            .collect(),
        analysis,
        fund: funding,
    };
    let mut digest = Digest::new();
    for index in from..to {
        let system = judge.draw(index).system;
        digest.run(&system, &options(&system, index));
    }
    digest.0
}

fn of_examples() -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(files.len() > 10);
    let mut digest = Digest::new();
    for path in files {
        let mut system = punctual_spec::load(&path).unwrap().system;
        // Without the threads that execute them there is nothing to decide.
        if !system.graphs.is_empty() || !system.groups.is_empty() {
            continue;
        }
        for task in &mut system.tasks {
            // What a function computes decides nothing: its cost is the declared one.
            if let Some(WorkSource::Function(_)) = task.work {
                task.work = None;
            }
        }
        digest.run(&system, &options(&system, 0));
    }
    digest.0
}

#[test]
fn the_core_decides_as_it_did() {
    if let Some(count) = std::env::var("DECISIONS").ok().and_then(|n| n.parse().ok()) {
        let cores = 2;
        let hashes = std::thread::scope(|scope| {
            let part = |first: u64| {
                scope.spawn(move || {
                    let starts = (0..count).step_by(usize::try_from(PER_HASH).unwrap());
                    let mine = starts.filter(move |at| at / PER_HASH % cores == first);
                    mine.map(|at| (at, of_systems(at, count.min(at + PER_HASH))))
                        .collect::<Vec<_>>()
                })
            };
            let parts: Vec<_> = (0..cores).map(part).collect();
            let mut all: Vec<_> = parts.into_iter().flat_map(|p| p.join().unwrap()).collect();
            all.sort_unstable();
            all
        });
        for (from, hash) in hashes {
            println!("systems from {from}: {hash:#018x}");
        }
        println!("examples: {:#018x}", of_examples());
        return;
    }
    assert_eq!(of_examples(), EXAMPLES, "the examples");
    assert_eq!(of_systems(0, SYSTEMS.0), SYSTEMS.1, "the random systems");
}
