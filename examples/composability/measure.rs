//! Two runs of one application, iteration by iteration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual::kern::MissingCause;
use punctual::model::SchedulerId;
use punctual::trace::Behavior;
use punctual::{Instant, LiveOptions, Log, Span, System, Workloads, run, without_missing_time};

use crate::Series;

/// What changed for one iteration of the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// Of its start and of its finish, in nanoseconds: how much later they came.
    pub(crate) start_ns: i64,
    pub(crate) finish_ns: i64,
    /// Of its finish in the same two runs played again without the time that the machine took:
    /// same arrivals, same work of each job, in virtual time.
    pub(crate) over_ns: i64,
    /// The machine stood still in one of the two, for more than it always does.
    pub(crate) disturbed: bool,
}

/// Less than this is taken from every iteration, by the interrupts of the host.
const NOISE_NS: i64 = 200_000;

/// One iteration: all jobs of the application with one number.
#[derive(Clone, Copy, Debug)]
struct Iteration {
    start_ns: i64,
    finish_ns: i64,
    /// Its finish over missing time.
    over_ns: i64,
    disturbed: bool,
}

/// Runs both systems and compares what both did of the application.
///
/// # Errors
/// As [`run`] and [`without_missing_time`].
pub(crate) fn compare(
    one: &System,
    other: &System,
    observed: SchedulerId,
    seconds: u64,
) -> Result<Vec<Difference>, Box<dyn std::error::Error>> {
    let one = iterations(one, observed, seconds)?;
    let other = iterations(other, observed, seconds)?;
    let pairs = one
        .iter()
        .filter_map(|(index, a)| Some((a, other.get(index)?)));
    let difference = |(a, b): (&Iteration, &Iteration)| Difference {
        start_ns: b.start_ns - a.start_ns,
        finish_ns: b.finish_ns - a.finish_ns,
        over_ns: b.over_ns - a.over_ns,
        disturbed: a.disturbed || b.disturbed,
    };
    Ok(pairs.map(difference).collect())
}

fn iterations(
    system: &System,
    observed: SchedulerId,
    seconds: u64,
) -> Result<BTreeMap<u64, Iteration>, Box<dyn std::error::Error>> {
    let options = LiveOptions {
        duration: Some(Span::from_ms(seconds * 1_000)),
        // Without slots one application can starve the other: that is what is to be seen.
        force: true,
        ..LiveOptions::default()
    };
    let log = run(system, &options, &mut Workloads::new(), &mut |_| true)?;
    let mut seen = read(system, &log, observed);
    let again = without_missing_time(&log)?.log;
    let over = read(system, &again, observed);
    // Jobs that were not done in both have no difference.
    seen.retain(|index, _| over.contains_key(index));
    for (index, iteration) in &mut seen {
        iteration.over_ns = over[index].finish_ns;
    }
    Ok(seen)
}

fn read(system: &System, log: &Log, observed: SchedulerId) -> BTreeMap<u64, Iteration> {
    let behavior = Behavior::new(log, 0);
    let ns = |ticks: u64| i64::try_from(log.tables.frequency.ns_down(ticks)).unwrap_or(i64::MAX);
    let mut iterations: BTreeMap<u64, Iteration> = BTreeMap::new();
    // When each job first had the processor.
    let mut starts = vec![None; behavior.jobs.len()];
    for segment in &behavior.segments {
        if let Some(job) = segment.job {
            let _ = starts[job].get_or_insert(segment.start);
        }
    }
    for (job, start) in behavior.jobs.iter().zip(starts) {
        let (task, _) = &log.tables.cpus[0].threads[job.thread.index()];
        let (Some(start), Some(end)) = (start, job.ended) else {
            continue;
        };
        if system.tasks[task.index()].scheduler != Some(observed) {
            continue;
        }
        let missing = behavior.missing.iter();
        let inside = missing.filter(|m| m.start < end && m.end > job.arrival);
        let stolen = inside.filter(|m| m.cause == MissingCause::Stolen);
        let ticks: u64 = stolen.map(|m| m.end.since(m.start).ticks()).sum();
        let disturbed = ns(ticks) > NOISE_NS;
        let since = |at: Instant| ns(at.since(job.arrival).ticks());
        let new = Iteration {
            start_ns: since(start),
            finish_ns: since(end),
            over_ns: since(end),
            disturbed,
        };
        let kept = iterations.entry(job.index).or_insert(new);
        kept.start_ns = kept.start_ns.min(new.start_ns);
        kept.finish_ns = kept.finish_ns.max(new.finish_ns);
        kept.disturbed |= new.disturbed;
    }
    iterations
}

/// The distributions, for people.
pub(crate) fn table(all: &[Series]) -> String {
    let mut text = format!(
        "{:26} {:11} {:7} {:>6} {:>10} {:>10} {:>10}\n",
        "difference (us)", "sharing by", "of", "n", "p50", "p99", "max"
    );
    let mut line = |series: &Series, of: &str, values: Vec<i64>| {
        let mut sizes: Vec<i64> = values.into_iter().map(i64::abs).collect();
        sizes.sort_unstable();
        let at = |percent: usize| {
            let place = (sizes.len() * percent).div_ceil(100).max(1) - 1;
            sizes
                .get(place)
                .map_or("-".into(), |&ns| format!("{:.1}", ns as f64 / 1e3))
        };
        let _ = writeln!(
            text,
            "{:26} {:11} {of:7} {:>6} {:>10} {:>10} {:>10}",
            series.scenario,
            series.sharing,
            sizes.len(),
            at(50),
            at(99),
            at(100)
        );
    };
    for series in all {
        let quiet = || series.differences.iter().filter(|d| !d.disturbed);
        line(
            series,
            "start",
            series.differences.iter().map(|d| d.start_ns).collect(),
        );
        line(
            series,
            "finish",
            series.differences.iter().map(|d| d.finish_ns).collect(),
        );
        line(
            series,
            "finish~",
            series.differences.iter().map(|d| d.over_ns).collect(),
        );
        line(series, "start*", quiet().map(|d| d.start_ns).collect());
        line(series, "finish*", quiet().map(|d| d.finish_ns).collect());
    }
    text.push_str("~ over missing time: both runs played again without it\n");
    text.push_str("* iterations in which the machine did not stand still");
    text
}
