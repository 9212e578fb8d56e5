//! `cargo xtask bench analysis`, second part: our tests beside a foreign crate's, on the same sets.
//!
//! The rival is the `response-time-analysis` crate (Brandenburg), whose tests Prosa proves. Both
//! answer the same question of the same set in the same process: is every response within its
//! deadline? Where the rival takes too long for a whole set it is asked about some of its tasks,
//! and its time is scaled up; the table says so. Sets on which the answers differ are a failure.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use punctual_generate::{Deadlines, Generator, Periods, Random, Row, SetParameters, one_cpu};
use punctual_model::{Ns, PolicyKind};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration as Theirs, Service};
use response_time_analysis::wcet::Scalar;
use response_time_analysis::{edf, fixed_priority};

/// Tasks per set, and how many sets.
const SIZES: [(usize, u64); 3] = [(10, 50), (100, 20), (1_000, 5)];
/// What the rival may take for one set before only some of its tasks are asked about.
const PATIENCE: Duration = Duration::from_secs(10);
/// Beyond this the rival stops searching: a hundred of the longest periods.
const LIMIT: u64 = 100_000_000_000;

type Rbf = RBF<Sporadic, Scalar>;

/// What one set took, in milliseconds.
struct Sample {
    ours: f64,
    theirs: f64,
    /// How many of its tasks the rival was asked about.
    asked: usize,
    /// The rival was asked about all, and says otherwise.
    disagrees: bool,
}

fn main() -> ExitCode {
    let fixed = PolicyKind::FixedPriority { preemptive: true };
    let mut out = String::from(
        "our test / response-time-analysis 0.3.2, medians of one set (75 % utilization)\n\
         policy          tasks  sets    ours ms   theirs ms    ratio  remark\n",
    );
    let mut disagree = 0;
    for policy in [fixed, PolicyKind::EarliestDeadlineFirst] {
        for (tasks, sets) in SIZES {
            let samples: Vec<Sample> = (0..sets).map(|set| measure(policy, tasks, set)).collect();
            disagree += samples.iter().filter(|s| s.disagrees).count();
            out += &row(policy, tasks, &samples);
        }
    }
    out += &format!("{disagree} sets on which the answers differ");
    if writeln!(std::io::stdout(), "{out}").is_err() {
        return ExitCode::from(3);
    }
    ExitCode::from(u8::from(disagree > 0))
}

fn row(policy: PolicyKind<Ns>, tasks: usize, samples: &[Sample]) -> String {
    let ours = median(samples.iter().map(|s| s.ours));
    let theirs = median(samples.iter().map(|s| s.theirs));
    let asked = samples.iter().map(|s| s.asked).min().unwrap_or(0);
    let remark = if asked < tasks {
        format!("the rival was asked about {asked} tasks of a set, its time is scaled")
    } else {
        String::new()
    };
    let (name, sets, ratio) = (policy.name(), samples.len(), theirs / ours);
    format!("{name:<15} {tasks:>5} {sets:>5} {ours:>10.3} {theirs:>11.3} {ratio:>8.1}  {remark}\n")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn measure(policy: PolicyKind<Ns>, tasks: usize, set: u64) -> Sample {
    let parameters = SetParameters {
        generator: Generator::UUniFastDiscard,
        tasks,
        utilization_ppm: 750_000,
        largest_share_ppm: 1_000_000,
        periods: Periods::log_uniform_ms(10, 1_000),
        deadlines: Deadlines::Constrained,
    };
    // They are constants that can be drawn.
    let rows = parameters
        .draw(&mut Random::at(1, &[tasks as u64, set]))
        .unwrap_or_default();
    let system = one_cpu(&rows, policy);
    let start = Instant::now();
    let answer = punctual_analysis::is_admitted(&system);
    let ours = start.elapsed().as_secs_f64() * 1e3;
    let (theirs, asked, admits) = rival(policy, &rows);
    Sample {
        ours,
        theirs,
        asked,
        disagrees: asked == tasks && answer != Ok(admits),
    }
}

/// The time of a whole set in milliseconds, how many tasks were asked about, and the answer.
fn rival(policy: PolicyKind<Ns>, rows: &[Row]) -> (f64, usize, bool) {
    let mut rows = rows.to_vec();
    // The order that priorities follow.
    rows.sort_by_key(|row| row.relative_deadline);
    let start = Instant::now();
    let rbfs: Vec<Rbf> = rows.iter().map(rbf).collect();
    let mut asked = 0;
    let mut admits = true;
    // From the last: most urgent tasks see nobody else, and would make a scaled time too small.
    for place in (0..rows.len()).rev() {
        let bound = match policy {
            PolicyKind::FixedPriority { .. } => fixed(&rbfs, place),
            _ => deadline_first(&rows, &rbfs, place),
        };
        admits &= bound.is_some_and(|bound| bound <= rows[place].relative_deadline.as_ns());
        asked += 1;
        if !admits || start.elapsed() > PATIENCE {
            break;
        }
    }
    let spent = start.elapsed().as_secs_f64() * 1e3;
    if admits {
        let scale = rows.len() as f64 / f64::from(u32::try_from(asked).unwrap_or(1));
        (spent * scale, asked, admits)
    } else {
        // One late task is an answer.
        (spent, rows.len(), admits)
    }
}

fn rbf(row: &Row) -> Rbf {
    RBF::new(
        Sporadic::new(Theirs::from(row.period.as_ns()), Theirs::from(0)),
        Scalar::new(Service::from(row.wcet.as_ns())),
    )
}

fn fixed(rbfs: &[Rbf], place: usize) -> Option<u64> {
    let (own, more_urgent, limit) = (&rbfs[place], &rbfs[..place], Theirs::from(LIMIT));
    fixed_priority::fully_preemptive::dedicated_uniproc_rta(own, more_urgent, limit)
        .ok()
        .map(u64::from)
}

fn deadline_first(rows: &[Row], rbfs: &[Rbf], place: usize) -> Option<u64> {
    let task = |index: usize| edf::fully_preemptive::Task {
        rbf: &rbfs[index],
        deadline: Theirs::from(rows[index].relative_deadline.as_ns()),
    };
    let others: Vec<_> = (0..rows.len()).filter(|o| *o != place).map(task).collect();
    let limit = Theirs::from(LIMIT);
    edf::fully_preemptive::dedicated_uniproc_rta(&task(place), &others, limit)
        .ok()
        .map(u64::from)
}
