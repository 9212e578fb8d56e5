//! From what a platform gives back to a log.

use crate::Error;
use punctual_analysis::{GangVerdict, Verdict};
use punctual_kern::{Grant, Plan};
use punctual_model::{Frequency, Ns, PolicyKind, Span, System};
use punctual_tables::CpuTables;
use punctual_thread::Workloads;
use punctual_trace::{Bound, GraphBound, Header, Log, Mode, Oracle, Recorder};

/// Records of one CPU never take more memory than this; a longer run is recorded up to there, and
/// says so.
const MAX_RECORDER_BYTES: u64 = 1 << 30;

/// Bytes that an entry with a change or two takes.
const BYTES_PER_ENTRY: u64 = 128;

/// Most that is reserved for what supply makes: much of it is never written, since slots that
/// nobody wants and budgets that nobody uses make no entries.
const MAX_SUPPLY_BYTES: u64 = 1 << 27;

/// Entries that slots and budgets can make, whatever the jobs do.
fn supply_entries(cpu: &CpuTables, ticks: u64) -> u64 {
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

/// Room for the records of a run with these changes, and so many `steps` of plans: those of its
/// jobs and its supply, half as much again, and a floor.
fn recorder_bytes(
    (cpu, plan): (&CpuTables, &Plan),
    frequency: Frequency,
    duration: Span<Ns>,
    steps: u64,
) -> usize {
    let ticks = duration.ticks_up(frequency).ticks();
    let jobs = (0_u32..)
        .zip(&cpu.threads)
        .map(|(thread, (_, constraint))| {
            let later = plan
                .constraints()
                .filter(|(id, _)| id.index() == thread as usize);
            let all = later.map(|(_, later)| later).chain([constraint]);
            // The jobs of a plan are among its steps.
            let all = all.filter(|_| !constraint.fed || cpu.agenda.room == 0);
            let separation = all.filter_map(|c| c.class.min_separation()).min();
            let jobs = separation.map_or(1, |s| ticks / s.ticks().max(1) + 1);
            let uses = cpu.uses.iter().filter(|(of, _)| *of == thread).count() as u64;
            let typical = Recorder::TYPICAL_BYTES_PER_JOB as u64;
            // A section is locked, perhaps waited for, and unlocked.
            jobs.saturating_mul(typical + 3 * uses * BYTES_PER_ENTRY)
        });
    let jobs = jobs.fold(0_u64, u64::saturating_add);
    let supply = supply_entries(cpu, ticks).saturating_mul(BYTES_PER_ENTRY);
    let supply = supply.min(MAX_SUPPLY_BYTES);
    let steps = steps.saturating_mul(2 * BYTES_PER_ENTRY);
    let bytes = jobs.saturating_add(supply).saturating_mul(3) / 2;
    let bytes = bytes.saturating_add(steps.min(MAX_SUPPLY_BYTES));
    usize::try_from(bytes.saturating_add(1 << 20).min(MAX_RECORDER_BYTES)).unwrap_or(usize::MAX)
}

/// A recorder for one CPU of a run with so many `steps` of plans, with room for twice what another
/// run has recorded.
pub(crate) fn recorder(
    cpu: (&CpuTables, &Plan),
    frequency: Frequency,
    (duration, steps): (Span<Ns>, u64),
) -> Result<Recorder, Error> {
    let bytes = recorder_bytes(cpu, frequency, duration, steps);
    Recorder::with_capacity(bytes).map_err(|_| Error::OutOfMemory { bytes })
}

/// Most bytes for the records of a run of the same policies again, which recorded so much.
pub(crate) fn room_again(recorded: usize) -> usize {
    recorded.saturating_mul(2).saturating_add(1 << 20)
}

/// Most bytes for the records of a run like one that recorded so much, under another policy, which
/// may switch more often.
pub(crate) fn room_of_answer(recorded: usize) -> usize {
    recorded.saturating_mul(16).saturating_add(96 << 20)
}

/// A recorder that is emptied while the run with so many `steps` of plans goes on: of `most` bytes,
/// or for a short run less.
pub(crate) fn recorder_within(
    most: usize,
    cpu: (&CpuTables, &Plan),
    frequency: Frequency,
    (duration, steps): (Span<Ns>, u64),
) -> Result<Recorder, Error> {
    let bytes = recorder_bytes(cpu, frequency, duration, steps).min(most);
    Recorder::with_capacity(bytes).map_err(|_| Error::OutOfMemory { bytes })
}

/// How long a run lasts and its seed: as the options say, else as the file does.
pub(crate) fn asked(
    system: &System,
    duration: Option<Span<Ns>>,
    seed: Option<u64>,
) -> Result<(Span<Ns>, u64), Error> {
    let duration = duration.or(system.run.duration);
    let seed = seed.or(system.run.seed).unwrap_or(0);
    Ok((duration.ok_or(Error::NoDuration)?, seed))
}

/// The maker that a log names.
pub(crate) fn tool() -> String {
    concat!("punctual ", env!("CARGO_PKG_VERSION")).to_string()
}

/// The header of a log of this version of the library.
pub(crate) fn header(platform: &str, mode: Mode) -> Header {
    Header {
        platform: platform.to_string(),
        mode,
        tool: tool(),
        ..Header::default()
    }
}

/// Writes the promises down in a log that has its CPUs: from the file's terms, and with the
/// machine's (absent: none were added).
pub(crate) fn set_promises(log: &mut Log, file: &Verdict, machine: Option<&Verdict>) {
    for (index, info) in (0_u32..).zip(&mut log.tasks) {
        let bound = |verdict: &Verdict| {
            let task = verdict.task(punctual_model::TaskId(index))?;
            let exactness = task.exactness.name().to_string();
            Some(Bound {
                ns: task.response_bound?.as_ns(),
                exactness,
                explanation: task.explanation.clone(),
            })
        };
        info.bound = bound(file);
        info.machine_bound = bound(machine.unwrap_or(file));
    }
    for (info, graph) in log.graphs.iter_mut().zip(&file.graphs) {
        info.bound = graph.period.map(|period| GraphBound {
            period,
            first_output: graph.first_output,
            latency: graph.latency,
            exactness: graph.exactness.name().to_string(),
        });
    }
    set_steps(log, &machine.unwrap_or(file).gangs);
    let ppm = |verdict: &Verdict, cpu: usize| Some(verdict.cpus.get(cpu)?.utilization_ppm);
    for (index, cpu) in log.cpus.iter_mut().enumerate() {
        cpu.utilization_ppm = ppm(file, index);
        cpu.machine_utilization_ppm = ppm(machine.unwrap_or(file), index);
    }
}

/// The bound of each superstep's skew, and by when it has ended where no barrier follows.
fn set_steps(log: &mut Log, gangs: &[GangVerdict]) {
    let supersteps = gangs.iter().flat_map(|gang| {
        let places = gang.supersteps.iter().enumerate();
        places.map(move |(place, skew)| {
            let mut barriers = gang.barriers.iter();
            let behind = barriers.find(|b| b.left_out && b.barrier.before == place);
            (skew, behind)
        })
    });
    for (info, (skew, behind)) in log.gangs.iter_mut().zip(supersteps) {
        info.bound = skew.bound;
        info.ends_within = behind
            .and_then(|barrier| barrier.gap)
            .map(|gap| gap.saturating_sub(info.clock_error));
        info.forced = behind.is_some_and(|barrier| barrier.forced);
    }
}

/// The findings of the workloads that compared themselves with their reference.
pub(crate) fn oracle(workloads: &mut Workloads) -> Option<Oracle> {
    let found = workloads.check()?;
    Some(Oracle {
        steps: found.steps,
        mismatches: found.mismatches,
    })
}
