//! From what a platform gives back to a log.

use crate::Error;
use punctual_analysis::Verdict;
use punctual_kern::{CpuPlan, Grant, Plan};
use punctual_model::{Frequency, Instant, Ns, PolicyKind, Span, System};
use punctual_trace::{Bound, Counters, CpuLog, Header, Log, Mode, Oracle, Recorder, TaskInfo};

/// Records of one CPU never take more memory than this; a longer run is recorded up to there, and
/// says so.
const MAX_RECORDER_BYTES: u64 = 1 << 30;

/// Bytes that an entry with a change or two takes.
const BYTES_PER_ENTRY: u64 = 128;

/// Most that is reserved for what supply makes: much of it is never written, since slots that
/// nobody wants and budgets that nobody uses make no entries.
const MAX_SUPPLY_BYTES: u64 = 1 << 27;

/// Entries that slots and budgets can make, whatever the jobs do.
fn supply_entries(cpu: &CpuPlan, ticks: u64) -> u64 {
    let times = |period: Span, each: u64| (ticks / period.ticks().max(1) + 1).saturating_mul(each);
    let policies = cpu.nodes.iter().map(|node| node.policy).chain([cpu.policy]);
    let slots = policies.map(|policy| match policy {
        // Each slot begins and ends, whoever is ready.
        PolicyKind::Tdm { frame, .. } => times(frame, 2 * cpu.slots.len() as u64),
        _ => 0,
    });
    let budgets = cpu.nodes.iter().map(|node| match node.terms.supply {
        Grant::Server(server) => times(server.period, 4),
        Grant::Shared | Grant::Slots => 0,
    });
    slots.chain(budgets).fold(0, u64::saturating_add)
}

/// Room for the records of a run: those of its jobs and its supply, half as much again, and a
/// floor.
fn recorder_bytes(cpu: &CpuPlan, frequency: Frequency, duration: Span<Ns>) -> usize {
    let ticks = duration.ticks_up(frequency).ticks();
    let jobs = (0_u32..)
        .zip(&cpu.threads)
        .map(|(thread, (_, constraint))| {
            let separation = constraint.class.min_separation();
            let jobs = separation.map_or(1, |s| ticks / s.ticks().max(1) + 1);
            let uses = cpu.uses.iter().filter(|(of, _)| *of == thread).count() as u64;
            let typical = Recorder::TYPICAL_BYTES_PER_JOB as u64;
            // A section is locked, perhaps waited for, and unlocked.
            jobs.saturating_mul(typical + 3 * uses * BYTES_PER_ENTRY)
        });
    let jobs = jobs.fold(0_u64, u64::saturating_add);
    let supply = supply_entries(cpu, ticks).saturating_mul(BYTES_PER_ENTRY);
    let supply = supply.min(MAX_SUPPLY_BYTES);
    let bytes = jobs.saturating_add(supply).saturating_mul(3) / 2;
    usize::try_from(bytes.saturating_add(1 << 20).min(MAX_RECORDER_BYTES)).unwrap_or(usize::MAX)
}

/// A recorder for one CPU of a run, with room for twice what another run has recorded.
pub(crate) fn recorder(
    cpu: &CpuPlan,
    frequency: Frequency,
    duration: Span<Ns>,
    other: usize,
) -> Result<Recorder, Error> {
    let bytes = recorder_bytes(cpu, frequency, duration).max(other.saturating_mul(2));
    Recorder::with_capacity(bytes).map_err(|_| Error::OutOfMemory { bytes })
}

/// The maker that a log names.
pub(crate) fn tool() -> String {
    concat!("punctual ", env!("CARGO_PKG_VERSION")).to_string()
}

/// A log in the making.
pub(crate) struct Assembly {
    pub(crate) header: Header,
    plan: Plan,
    tasks: Vec<TaskInfo>,
    schedulers: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    cpus: Vec<CpuLog>,
}

impl Assembly {
    pub(crate) fn new(system: &System, plan: Plan, platform: &str, mode: Mode) -> Assembly {
        let task = |name: &String| TaskInfo {
            name: name.clone(),
            ..TaskInfo::default()
        };
        Assembly {
            header: Header {
                platform: platform.to_string(),
                mode,
                lost: Vec::new(),
                tool: tool(),
                source: String::new(),
                machine: Vec::new(),
                seed: 0,
                duration: Span::ZERO,
                end: Instant::ZERO,
                stopped: None,
                faults: Vec::new(),
            },
            tasks: system.tasks.iter().map(|t| task(&t.name)).collect(),
            schedulers: system.schedulers.iter().map(|s| s.name.clone()).collect(),
            resources: system.resources.iter().map(|r| r.name.clone()).collect(),
            names: system.cpus.iter().map(|cpu| cpu.name.clone()).collect(),
            plan,
            cpus: Vec::new(),
        }
    }

    /// The promises: from the file's terms, and with the machine's (absent: none were added).
    pub(crate) fn bounds(&mut self, file: &Verdict, machine: Option<&Verdict>) {
        for (index, info) in (0_u32..).zip(&mut self.tasks) {
            let bound = |verdict: &Verdict| {
                let task = verdict.task(punctual_model::TaskId(index))?;
                let exactness = task.exactness.name().to_string();
                Some(Bound {
                    ns: task.response_bound?.as_ns(),
                    exactness,
                })
            };
            info.bound = bound(file);
            info.machine_bound = bound(machine.unwrap_or(file));
        }
    }

    /// The next CPU, in the order of the plan.
    pub(crate) fn cpu(&mut self, recorder: Recorder, host: Option<u32>, counters: Counters) {
        let (records, lost_from) = recorder.finish();
        let name = self.names.get(self.cpus.len()).cloned().unwrap_or_default();
        self.cpus.push(CpuLog {
            name,
            host,
            counters,
            lost_from,
            created: Vec::new(),
            records,
        });
    }

    pub(crate) fn finish(self, oracle: Option<punctual_thread::Oracle>) -> Log {
        let oracle = oracle.map(|o| Oracle {
            steps: o.steps,
            mismatches: o.mismatches,
        });
        let Assembly {
            header,
            plan,
            tasks,
            schedulers,
            resources,
            cpus,
            ..
        } = self;
        Log {
            header,
            plan,
            tasks,
            schedulers,
            resources,
            cpus,
            oracle,
        }
    }
}
