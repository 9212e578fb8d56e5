//! Agreement with the `response-time-analysis` crate on ten thousand random sets and more
//!
//! The crate (Brandenburg, MIT) implements the bounds that Prosa proves. Where it has the same
//! model, every bound must be the same number. Its deadlines and responses count from the release,
//! ours from the arrival, so jitter is compared on interfering tasks only.

use crate::common::random::{Deadlines, Random, set};
use crate::common::{EDF, FP, NP_FP, span, sporadic, work};
use punctual_analysis::{Verdict, admit};
use punctual_model::{Ns, PolicyKind, Span, System};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::{RBF, Slice};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use response_time_analysis::{edf, fifo, fixed_priority};

/// Beyond this the crate stops searching: larger than any busy window of the sets drawn.
const LIMIT: u64 = 10_000_000;

type Rbf = RBF<Sporadic, Scalar>;

/// (C, T, D, J, longest section) of one task.
pub(crate) type Row = (u64, u64, u64, u64, u64);

fn rbf(&(c, t, _, j, _): &Row) -> Rbf {
    RBF::new(
        Sporadic::new(Duration::from(t), Duration::from(j)),
        Scalar::new(Service::from(c)),
    )
}

fn value(result: response_time_analysis::fixed_point::SearchResult) -> Option<u64> {
    result.ok().map(u64::from)
}

/// Longest section of the less urgent, less the tick in which it began.
fn blocking(rows: &[Row]) -> Service {
    Service::from(
        rows.iter()
            .map(|r| r.4)
            .max()
            .unwrap_or(0)
            .saturating_sub(1),
    )
}

pub(crate) fn their_fixed_priority(rows: &[Row], place: usize, preemptive: bool) -> Option<u64> {
    let higher: Vec<Rbf> = rows[..place].iter().map(rbf).collect();
    let limit = Duration::from(LIMIT);
    let own = rbf(&rows[place]);
    let blocking_bound = blocking(&rows[place + 1..]);
    value(if preemptive {
        let task = fixed_priority::floating_nonpreemptive::TaskUnderAnalysis {
            rbf: &own,
            blocking_bound,
        };
        fixed_priority::floating_nonpreemptive::dedicated_uniproc_rta(&task, &higher, limit)
    } else {
        let task = fixed_priority::fully_nonpreemptive::TaskUnderAnalysis {
            wcet: Scalar::new(Service::from(rows[place].0)),
            arrivals: &own.arrival_bound,
            blocking_bound,
        };
        fixed_priority::fully_nonpreemptive::dedicated_uniproc_rta(&task, &higher, limit)
    })
}

fn their_edf(rows: &[Row], place: usize) -> Option<u64> {
    use edf::floating_nonpreemptive::{InterferingTask, TaskUnderAnalysis};
    let rbfs: Vec<Rbf> = rows.iter().map(rbf).collect();
    let own = TaskUnderAnalysis {
        rbf: &rbfs[place],
        deadline: Duration::from(rows[place].2),
    };
    let others: Vec<_> = (0..rows.len())
        .filter(|&other| other != place)
        .map(|other| InterferingTask {
            rbf: &rbfs[other],
            deadline: Duration::from(rows[other].2),
            max_np_segment: Service::from(rows[other].4),
        })
        .collect();
    let limit = Duration::from(LIMIT);
    value(edf::floating_nonpreemptive::dedicated_uniproc_rta(
        &own, &others, limit,
    ))
}

fn their_unpreempted_edf(rows: &[Row], place: usize) -> Option<u64> {
    use edf::fully_nonpreemptive::Task;
    let rbfs: Vec<Rbf> = rows.iter().map(rbf).collect();
    let task = |index: usize| Task {
        wcet: Scalar::new(Service::from(rows[index].0)),
        arrivals: &rbfs[index].arrival_bound,
        deadline: Duration::from(rows[index].2),
    };
    let others: Vec<_> = (0..rows.len()).filter(|&o| o != place).map(task).collect();
    let limit = Duration::from(LIMIT);
    value(edf::fully_nonpreemptive::dedicated_uniproc_rta(
        &task(place),
        &others,
        limit,
    ))
}

pub(crate) fn their_preemptive_edf(rows: &[Row], place: usize) -> Option<u64> {
    use edf::fully_preemptive::Task;
    let rbfs: Vec<Rbf> = rows.iter().map(rbf).collect();
    let task = |index: usize| Task {
        rbf: &rbfs[index],
        deadline: Duration::from(rows[index].2),
    };
    let others: Vec<_> = (0..rows.len()).filter(|&o| o != place).map(task).collect();
    let limit = Duration::from(LIMIT);
    value(edf::fully_preemptive::dedicated_uniproc_rta(
        &task(place),
        &others,
        limit,
    ))
}

fn system(policy: PolicyKind<Ns>, rows: &[Row]) -> System {
    let triples: Vec<_> = rows.iter().map(|&(c, t, d, _, _)| (c, t, d)).collect();
    let mut system = sporadic(policy, &triples);
    for (task, row) in system.tasks.iter_mut().zip(rows) {
        task.jitter = span(row.3);
        task.non_preemptive = work(row.4);
    }
    system
}

fn judge(system: &System) -> Verdict {
    admit(system).expect("small numbers")
}

/// Draws sets, compares every bound, and sees to it that both answers are common.
fn compare(
    name: &str,
    sets: u64,
    policy: PolicyKind<Ns>,
    mut draw: impl FnMut(&mut Random) -> Vec<Row>,
    theirs: impl Fn(&[Row], usize) -> Option<u64>,
) {
    let mut admitted = 0;
    for seed in 0..sets {
        let mut random = Random::new(seed * 7_919 + 17);
        let rows = draw(&mut random);
        let system = system(policy, &rows);
        let ours = judge(&system);
        let mut all_in_time = true;
        for (place, row) in rows.iter().enumerate() {
            let expected = theirs(&rows, place);
            all_in_time &= expected.is_some_and(|r| r <= row.2);
            // Jitter on a task's own releases has another meaning there: compare without.
            if row.3 == 0 {
                let bound = ours.tasks[place].response_bound.map(Span::as_ns);
                assert_eq!(
                    bound, expected,
                    "{name}, seed {seed}, task {place} of {rows:?}"
                );
            }
        }
        if rows.iter().all(|row| row.3 == 0) {
            assert_eq!(ours.admitted, all_in_time, "{name}, seed {seed}: {rows:?}");
        }
        admitted += u64::from(ours.admitted);
    }
    let share = admitted * 100 / sets;
    println!("{name}: {sets} sets, {share} % admitted");
    assert!(
        (30..=70).contains(&share),
        "{name}: {share} % of the sets are admitted"
    );
}

pub(crate) fn plain(random: &mut Random, load: (f64, f64), deadlines: Deadlines) -> Vec<Row> {
    let n = usize::try_from(random.within(2, 6)).expect("small");
    let utilization = load.0 + (load.1 - load.0) * random.unit();
    let set = set(random, n, utilization, (10.0, 1_000.0), deadlines);
    set.into_iter().map(|(c, t, d)| (c, t, d, 0, 0)).collect()
}

fn with_sections(random: &mut Random, mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        // Shorter than the job: a whole job is another model.
        row.4 = random.within(0, row.0 / 3);
    }
    rows
}

#[test]
fn preemptive_fixed_priority_agrees() {
    for (deadlines, load) in [
        (Deadlines::Implicit, (0.8, 1.1)),
        (Deadlines::Constrained, (0.65, 1.05)),
        (Deadlines::Arbitrary, (0.8, 1.1)),
    ] {
        compare(
            "fixed priority",
            2_000,
            FP,
            |random| plain(random, load, deadlines),
            |rows, place| their_fixed_priority(rows, place, true),
        );
    }
}

#[test]
fn fixed_priority_with_sections_agrees() {
    let draw = |random: &mut Random| {
        let rows = plain(random, (0.5, 0.95), Deadlines::Arbitrary);
        with_sections(random, rows)
    };
    compare("sections", 2_000, FP, draw, |rows, place| {
        their_fixed_priority(rows, place, true)
    });
}

#[test]
fn fixed_priority_with_jitter_of_others_agrees() {
    let draw = |random: &mut Random| {
        let mut rows = plain(random, (0.4, 0.9), Deadlines::Arbitrary);
        for row in &mut rows {
            row.3 = if random.within(0, 1) == 0 {
                0
            } else {
                random.within(0, row.1 * 2)
            };
        }
        if let Some(last) = rows.last_mut() {
            last.3 = 0;
        }
        rows
    };
    compare("jitter", 2_000, FP, draw, |rows, place| {
        their_fixed_priority(rows, place, true)
    });
}

#[test]
fn non_preemptive_fixed_priority_agrees() {
    let draw = |random: &mut Random| {
        let mut rows = plain(random, (0.2, 0.8), Deadlines::Arbitrary);
        for row in &mut rows {
            row.4 = row.0;
        }
        rows
    };
    let theirs = |rows: &[Row], place: usize| their_fixed_priority(rows, place, false);
    compare("non-preemptive", 2_000, NP_FP, draw, theirs);
}

#[test]
fn edf_agrees() {
    for (deadlines, load) in [
        (Deadlines::Constrained, (0.8, 1.08)),
        (Deadlines::Arbitrary, (0.9, 1.08)),
    ] {
        let draw = |random: &mut Random| plain(random, load, deadlines);
        compare("edf", 1_500, EDF, draw, their_preemptive_edf);
    }
}

#[test]
fn edf_with_sections_agrees() {
    let draw = |random: &mut Random| {
        let rows = plain(random, (0.55, 0.95), Deadlines::Constrained);
        with_sections(random, rows)
    };
    compare("edf sections", 1_500, EDF, draw, their_edf);
}

#[test]
fn edf_of_jobs_that_nobody_preempts_agrees() {
    let draw = |random: &mut Random| {
        let mut rows = plain(random, (0.15, 0.6), Deadlines::Constrained);
        for row in &mut rows {
            row.4 = row.0;
        }
        rows
    };
    compare("edf, whole jobs", 1_500, EDF, draw, their_unpreempted_edf);
}

#[test]
fn the_last_in_the_order_has_the_fifo_bound_of_all() {
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let rows = plain(&mut random, (0.3, 0.98), Deadlines::Arbitrary);
        let rbfs: Vec<Rbf> = rows.iter().map(rbf).collect();
        let all = Slice::of(&rbfs);
        let theirs = value(fifo::dedicated_uniproc_rta(&all, Duration::from(LIMIT)));
        let ours = judge(&system(PolicyKind::Fifo, &rows));
        let bounds = ours.tasks.iter().map(|t| t.response_bound.map(Span::as_ns));
        assert_eq!(
            bounds.clone().next_back(),
            Some(theirs),
            "seed {seed}: {rows:?}"
        );
        assert_eq!(bounds.max(), Some(theirs), "seed {seed}: {rows:?}");
    }
}
