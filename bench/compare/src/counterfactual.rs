//! The judge of a rival: its own run again in virtual time (note 0028).
//!
//! ```text
//!   low    |===|              |==|      |====|      executed between two readings of its clock
//!   high       .  |=====|     .  .      .
//!              .  .     .     .  .      .
//!              |--|     |-----|  |------|           nobody's: a switch, a switch, a gap
//! ```
//!
//! A thread of the kernel sees gaps between two readings of its clock. The parts of a gap in which
//! no job of another thread was under way were nobody's. Next to another job they are a switch of
//! the kernel first: that much is not called missing. A late wake-up has no observer.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::kern::MissingCause;
use punctual::model::Frequency;
use punctual::trace::{Header, Log, Mode, Recorder};
use punctual::{Instant, Ns, Span, Work};
use punctual_policy::AnyPolicy;
use punctual_rivals::periodic::{GAP_NS, Job, Seen};
use punctual_sim::{Act, CpuInput, Gap, RecordedThread, Recording};
use punctual_tables::{CpuTables, Tables};

use crate::subject::{Periodic, Subject};

/// Releases that were missed, in order.
pub(crate) type Missed = Vec<u64>;

/// A switch of the kernel to or from another thread may take this of a gap.
const SWITCH_NS: u64 = 10_000;

/// An idle CPU wakes a thread within this, or somebody may have had it.
const WAKE_NS: u64 = 100_000;

/// A budget that no job uses up: threads of the kernel have none.
const NO_BUDGET_NS: u64 = 1 << 50;

/// The judgement of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Judged {
    /// By task.
    pub(crate) excused: Vec<u64>,
    /// The same if late wake-ups of an idle CPU were missing time, too.
    pub(crate) excused_at_most: Vec<u64>,
    /// Time that was nobody's, as far as threads saw it.
    pub(crate) missing_ns: u64,
}

/// Judges threads under SCHED_FIFO: a miss is excused if it is one in virtual time with the missing
/// time, too, and none without it.
pub(crate) fn judge(
    subject: &Subject,
    seen: &[Seen],
    missed: &[Missed],
    (duration, stop): (u64, &AtomicBool),
) -> Result<Judged, String> {
    let system = subject.as_threads();
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    tables.set_duration(&system, Span::from_ns(duration));
    for (_, constraint) in tables.cpus.iter_mut().flat_map(|cpu| &mut cpu.threads) {
        *constraint = constraint.with_budget(Work::from_ticks(NO_BUDGET_NS));
    }
    let recordings: Vec<Recording> = (tables.cpus.iter())
        .map(|cpu| recording(cpu, subject, seen))
        .collect();
    let gaps = recordings.iter().flat_map(|recording| &recording.gaps);
    let missing_ns = gaps.map(|gap| gap.length.ticks()).sum();
    let mut with_late = recordings.clone();
    for (cpu, recording) in tables.cpus.iter().zip(&mut with_late) {
        recording.gaps.extend(late_wake_ups(cpu, seen));
        recording.gaps.sort_unstable_by_key(|gap| gap.at);
    }
    let mut verdicts = Vec::new();
    for recordings in [recordings, with_late] {
        let stolen = recordings
            .iter()
            .any(|recording| !recording.gaps.is_empty());
        if !stolen || missed.iter().all(Vec::is_empty) {
            verdicts.push(vec![0; missed.len()]);
            continue;
        }
        let log = play(subject, &system, tables.clone(), recordings, duration)?;
        let report = punctual::judge_while(&log, &mut || !stop.load(Ordering::Relaxed));
        verdicts.push(excused(report, missed)?);
    }
    let [excused, excused_at_most] = <[Vec<u64>; 2]>::try_from(verdicts).unwrap_or_default();
    Ok(Judged {
        excused,
        excused_at_most,
        missing_ns,
    })
}

/// By task: releases that were missed, and that the judge excuses.
fn excused(report: punctual::RunReport, missed: &[Missed]) -> Result<Vec<u64>, String> {
    let mut excused = vec![0; missed.len()];
    if let Some(why) = report.unexcused {
        return Err(why);
    }
    for miss in report.misses.iter().filter(|miss| miss.excused) {
        let Some(at) = miss.task_index.map(punctual::TaskId::index) else {
            continue;
        };
        if let Some((missed, count)) = missed.get(at).zip(excused.get_mut(at))
            && missed.binary_search(&miss.release_ns).is_ok()
        {
            *count += 1;
        }
    }
    Ok(excused)
}

/// The log of the rival's run in virtual time, with the missing time.
fn play(
    subject: &Subject,
    system: &punctual::System,
    tables: Tables,
    recordings: Vec<Recording>,
    duration: u64,
) -> Result<Log, String> {
    let jobs: u64 = subject
        .tasks
        .iter()
        .map(|task| task.releases(duration))
        .sum();
    let gaps: usize = recordings
        .iter()
        .map(|recording| recording.gaps.len())
        .sum();
    let bytes = usize::try_from(jobs).unwrap_or(0) + gaps;
    let bytes = bytes.saturating_mul(2 * Recorder::TYPICAL_BYTES_PER_JOB) + (1 << 20);
    let mut inputs = Vec::new();
    for cpu in &tables.cpus {
        inputs.push(CpuInput {
            shard: cpu.build(AnyPolicy::new).map_err(|why| why.to_string())?,
            sink: Recorder::with_capacity(bytes).map_err(|why| why.to_string())?,
        });
    }
    let horizon = Instant::from_ticks(duration);
    let outcome =
        punctual_sim::run_recorded(&tables, recordings, inputs, Vec::new(), horizon, &mut ())
            .map_err(|why| why.to_string())?;
    let header = Header {
        platform: "sim".into(),
        mode: Mode::Virtual,
        duration: Span::<Ns>::from_ns(duration),
        end: outcome.end,
        ..Header::default()
    };
    let mut log = Log::new(header, system, tables);
    for (cpu, of_system) in outcome.cpus.into_iter().zip(&system.cpus) {
        let _ = log.add_cpu(&of_system.name, None, cpu.sink);
    }
    Ok(log)
}

/// The work of the threads of one CPU, and the time that was nobody's.
fn recording(cpu: &CpuTables, subject: &Subject, seen: &[Seen]) -> Recording {
    let ids: Vec<usize> = cpu.threads.iter().map(|(task, _)| task.index()).collect();
    let mut gaps: Vec<(u64, u64)> = Vec::new();
    let mut threads = Vec::new();
    for &id in &ids {
        let (task, mine) = (&subject.tasks[id], &seen[id]);
        let others: Vec<&[Job]> = ids
            .iter()
            .filter(|other| **other != id && subject.tasks[**other].priority >= task.priority)
            .map(|other| &seen[*other].jobs[..])
            .collect();
        gaps.extend(nobodys(mine, &others));
        threads.push(thread(task, mine, &others));
    }
    gaps.sort_unstable();
    Recording {
        threads,
        gaps: gaps.into_iter().map(gap).collect(),
        ..Recording::default()
    }
}

/// The time from a release to the first instruction while the whole CPU was idle, beyond what a
/// wake-up takes. Nobody saw whether the machine stood still then, or the kernel was slow.
fn late_wake_ups(cpu: &CpuTables, seen: &[Seen]) -> Vec<Gap> {
    let jobs = cpu
        .threads
        .iter()
        .map(|(task, _)| &seen[task.index()].jobs[..]);
    let jobs: Vec<&[Job]> = jobs.collect();
    let waits = jobs.iter().copied().flatten();
    let mut idle: Vec<(u64, u64)> = Vec::new();
    for (release, start) in waits.map(|job| (job.release, job.start)) {
        let mut from = release;
        for (busy, over) in within(&jobs, release, start) {
            idle.push((from, busy));
            from = over;
        }
        idle.push((from, start));
    }
    idle.retain(|(from, to)| from + WAKE_NS < *to);
    let long = joined(idle).into_iter();
    long.map(|(from, to)| gap((from + WAKE_NS, to - from - WAKE_NS)))
        .collect()
}

fn gap((at, length): (u64, u64)) -> Gap {
    Gap {
        at: Instant::from_ticks(at),
        length: Span::from_ticks(length),
        cause: MissingCause::Stolen,
    }
}

/// The work of each job: from its beginning to its end, without its gaps and without the jobs of
/// others in between.
fn thread(task: &Periodic, seen: &Seen, others: &[&[Job]]) -> RecordedThread {
    let mut recorded = RecordedThread {
        unknown: Some(Work::from_ticks(task.declared())),
        ..RecordedThread::default()
    };
    let sees_gaps = matches!(task.work, crate::subject::Work::Burn(_));
    let mut gaps = &seen.gaps[..];
    for job in &seen.jobs {
        let Some(end) = job.end else { continue };
        let mine = gaps.partition_point(|gap| gap.at < end);
        let lost: u64 = match sees_gaps {
            true => gaps[..mine].iter().map(|gap| gap.length).sum(),
            false => within(others, job.start, end)
                .iter()
                .map(|(from, to)| to - from)
                .sum(),
        };
        gaps = &gaps[mine..];
        let work = (end - job.start).saturating_sub(lost);
        let number = (job.release - task.phase) / task.period.max(1);
        let steps = vec![(Work::from_ticks(work), Act::Complete)];
        let _ = recorded.jobs.insert(number, steps);
    }
    recorded
}

/// The parts of a thread's gaps in which no job of the others was under way, without the switches
/// to and from these: when each begins, and how long it is.
fn nobodys(seen: &Seen, others: &[&[Job]]) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    for gap in &seen.gaps {
        let (mut from, end) = (gap.at, gap.at + gap.length);
        let taken = within(others, from, end);
        let mut switches = 0;
        for (start, over) in taken {
            parts.push((from, start.saturating_sub(from), switches + 1));
            (from, switches) = (over, 1);
        }
        parts.push((from, end.saturating_sub(from), switches));
    }
    let rest = parts.into_iter().filter_map(|(at, length, switches)| {
        let length = length.saturating_sub(switches * SWITCH_NS);
        (length > GAP_NS).then_some((at, length))
    });
    rest.collect()
}

/// The jobs of others in [`from`, `to`), cut to it, joined where they overlap, in order.
fn within(others: &[&[Job]], from: u64, to: u64) -> Vec<(u64, u64)> {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for jobs in others {
        let first = jobs.partition_point(|job| job.end.is_some_and(|end| end <= from));
        let inside = jobs[first..].iter().take_while(|job| job.start < to);
        parts.extend(inside.map(|job| (job.start.max(from), job.end.unwrap_or(to).min(to))));
    }
    joined(parts)
}

/// Stretches of time in order, those that overlap as one.
fn joined(mut parts: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    parts.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in parts {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_rivals::periodic::Gap as Seen1;

    /// Two tasks of 10 ms and 20 ms with deadlines of 5 ms and 20 ms; times are microseconds here.
    fn subject() -> Subject {
        let text = "[system]\ncpus = [0]\n[cpu.0]\npolicy = \"fixed-priority\"\n\
            [task.fast]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"10ms\"\nwcet = \"2ms\"\n\
            deadline = \"5ms\"\npriority = 2\nwork = { burn = \"1ms\" }\n\
            [task.slow]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"20ms\"\nwcet = \"8ms\"\n\
            priority = 1\nwork = { burn = \"6ms\" }\n";
        let description = punctual_spec::parse(text, "test.toml").expect("a system");
        Subject::of(&description, &[]).expect("a subject")
    }

    const US: u64 = 1_000;

    fn job(release: u64, start: u64, end: u64) -> Job {
        Job {
            release: release * US,
            start: start * US,
            end: Some(end * US),
        }
    }

    fn gap(at: u64, length: u64) -> Seen1 {
        Seen1 {
            at: at * US,
            length: length * US,
        }
    }

    fn seen(jobs: Vec<Job>, gaps: Vec<Seen1>) -> Seen {
        Seen {
            jobs,
            gaps,
            ..Seen::default()
        }
    }

    /// One period of the slow task, of whose two fast jobs the second is late.
    fn judged(late: Job, gaps: Vec<Seen1>) -> Judged {
        let fast = seen(vec![job(0, 5, 1_005), late], gaps);
        let slow = seen(vec![job(0, 1_010, 7_010)], vec![]);
        let missed = [vec![10_000 * US], vec![]];
        let goes_on = AtomicBool::new(false);
        judge(&subject(), &[fast, slow], &missed, (20_000 * US, &goes_on)).expect("it is played")
    }

    #[test]
    fn a_miss_with_a_gap_that_makes_it_late_is_excused() {
        let judged = judged(job(10_000, 10_005, 16_005), vec![gap(10_100, 5_000)]);
        assert_eq!(
            (judged.excused, judged.missing_ns),
            (vec![1, 0], 5_000 * US)
        );
    }

    #[test]
    fn a_miss_without_a_gap_is_not() {
        // It executed for six milliseconds, and a moment was taken elsewhere.
        let gaps = vec![gap(100, 20)];
        let judged = judged(job(10_000, 10_005, 16_005), gaps);
        assert_eq!((judged.excused, judged.missing_ns), (vec![0, 0], 20 * US));
    }

    #[test]
    fn a_late_wake_up_has_no_observer_and_is_not_excused() {
        let judged = judged(job(10_000, 15_000, 16_000), vec![gap(15_500, 20)]);
        assert_eq!(judged.excused, [0, 0]);
        // The CPU was idle: it may have been the machine.
        assert_eq!(judged.excused_at_most, [1, 0]);
    }

    #[test]
    fn a_wake_up_beside_a_thread_that_computes_is_late_by_itself() {
        let fast = seen(vec![job(0, 5, 1_005), job(10_000, 15_000, 16_000)], vec![]);
        // The slow job executes all the time until then, and sees no gap but the preemption.
        let slow = seen(vec![job(0, 9_000, 16_500)], vec![gap(14_990, 1_015)]);
        let missed = [vec![10_000 * US], vec![]];
        let goes_on = AtomicBool::new(false);
        let until = (20_000 * US, &goes_on);
        let judged = judge(&subject(), &[fast, slow], &missed, until).expect("played");
        assert_eq!(judged.excused_at_most, [0, 0]);
    }

    #[test]
    fn a_gap_delays_others_too() {
        // The gap lies in the slow job; the fast one of 10 ms begins after it and is in time only
        // without it.
        let fast = seen(vec![job(0, 5, 1_005), job(10_000, 15_510, 16_510)], vec![]);
        let slow_gaps = vec![gap(6_500, 10_500 - 500)];
        // From 6.5 ms to 16.5 ms it did not run: 5.5 ms to 6.5 ms of that are left after the fast
        // job and its switches.
        let slow = seen(vec![job(0, 1_010, 17_010)], slow_gaps);
        let missed = [vec![10_000 * US], vec![]];
        let goes_on = AtomicBool::new(false);
        let judged =
            judge(&subject(), &[fast, slow], &missed, (20_000 * US, &goes_on)).expect("played");
        assert_eq!(judged.excused, [1, 0]);
        // Ten milliseconds without the fast job's one and a switch there.
        let expected = (15_510 - 6_500 - 10) * US;
        assert_eq!(judged.missing_ns, expected);
    }

    #[test]
    fn being_preempted_is_neither_missing_time_nor_work() {
        let slow = seen(vec![job(0, 1_010, 8_030)], vec![gap(3_000, 1_020)]);
        let fast = seen(vec![job(0, 5, 1_005), job(3_000, 3_010, 4_010)], vec![]);
        let others = [&fast.jobs[..]];
        assert_eq!(nobodys(&slow, &others), []);
        let recorded = thread(&subject().tasks[1], &slow, &others);
        let steps = recorded.jobs.get(&0).expect("the job");
        assert_eq!(steps[0].0, Work::from_ticks(6_000 * US));
    }
}
