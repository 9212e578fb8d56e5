//! The smallest period: how often a job of half a period can come without being late by our fault.
//!
//! The rest of the time belongs to a thread that never gives way by itself: it is interrupted by
//! the timer's signal, or asks at checkpoints all the time. Both do nothing but read the clock, and
//! so see what was missing. A job that missing time made late does not count; how much was missing
//! is said. No slices are given back, which would be longer than
//! most of these periods, so the kernel may take what it calls fair; that is missing time, too.

use punctual_linux::job::{burn_ns, promise_checkpoints};
use punctual_linux::{Body, GiveBack, Mode as LiveMode};
use punctual_model::{Class, CpuId, Ns, PolicyKind, Priority, Span, System, Task, Work};
use punctual_tables::Tables;
use punctual_trace::{Header, Log, Mode, TaskInfo, TaskReport};

use super::counting::Counted;
use super::figure::{Bench, Measured};
use super::live::{Flown, Live, Notebook, endless, losses};

/// What the threads promise that ask, in nanoseconds: so seldom is the timer set.
const PROMISED_NS: u64 = 10_000_000;

/// Periods that are tried, in microseconds, until one is kept by all of its jobs.
const PERIODS: &[u64] = if cfg!(debug_assertions) {
    &[5_000, 20_000]
} else {
    &[
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
    ]
};

/// Jobs of one period that is tried, if they fit into its time.
const JOBS: u64 = 100_000;

/// The longest that one period is tried, in nanoseconds.
const AT_MOST_NS: u64 = if cfg!(debug_assertions) {
    100_000_000
} else {
    2_000_000_000
};

const A_PERIOD: &str = "a period that is found by trying, and no operation";

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::with_notes("period.edge.signal", || edge(false)).counted(Counted::Not(A_PERIOD)),
        Bench::with_notes("period.edge.checkpoint", || edge(true)).counted(Counted::Not(A_PERIOD)),
    ]
}

/// The smallest periods that half of the jobs, 99 of 100, and all of them keep.
fn edge(asks: bool) -> Result<Measured, String> {
    let mut smallest = [None; 3];
    let mut measured = Measured::default();
    let mut missing_ns = 0;
    for &us in PERIODS {
        let tried = Tried::new(Span::from_ns(1_000 * us), asks)?;
        missing_ns += tried.missing_ns;
        if measured.notes.is_empty() {
            measured.notes.extend(tried.lost.iter().cloned());
        }
        measured.notes.push(tried.to_string());
        let kept = [
            tried.late * 2 <= tried.jobs,
            tried.late * 100 <= tried.jobs,
            tried.late == 0,
        ];
        for (smallest, kept) in smallest.iter_mut().zip(kept) {
            if kept && tried.jobs > 0 {
                let _ = smallest.get_or_insert(us as f64 * 1_000.0);
            }
        }
        if let [Some(half), Some(most), Some(all)] = smallest {
            // As many samples as make these the quantiles.
            measured.samples.resize(50, half);
            measured.samples.resize(99, most);
            measured.samples.push(all);
            measured.observations = usize::try_from(tried.jobs).ok();
            measured.missing_ns = Some(missing_ns);
            return Ok(measured);
        }
    }
    Err(format!("no period is kept: {}", measured.notes.join("; ")))
}

/// What became of one period.
struct Tried {
    period: Span<Ns>,
    /// Releases.
    jobs: u64,
    /// Late by our fault, or not released.
    late: u64,
    /// Late because time was missing.
    excused: u64,
    missing_ns: u64,
    lost: Vec<String>,
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let period = punctual_model::readable(self.period.as_ns());
        write!(f, "{period}: {} of {} jobs late", self.late, self.jobs)?;
        match self.excused {
            0 => Ok(()),
            excused => write!(f, ", {excused} more by missing time"),
        }
    }
}

impl Tried {
    fn new(period: Span<Ns>, asks: bool) -> Result<Tried, String> {
        let for_ns = (period.as_ns() * JOBS).min(AT_MOST_NS);
        let notebook = Notebook::default();
        let half = period.as_ns() / 2;
        let edge: Body = Box::new(move |info| {
            if asks && info.index == 0 {
                promise_checkpoints(PROMISED_NS);
            }
            burn_ns(half);
        });
        let origin = std::time::Instant::now();
        let over = notebook.clone();
        let busy: Body = Box::new(move |_| {
            promise_checkpoints(if asks { PROMISED_NS } else { 0 });
            // Half a second for the start of the run; it is stopped when its releases are over.
            while !over.is_over() && origin.elapsed().as_nanos() < u128::from(for_ns) + 500_000_000
            {
                burn_ns(1_000_000);
            }
        });
        // What is late is to be late, not throttled.
        let wcet = Work::from_ms(1_000);
        let mut task = Task::new(
            "edge",
            CpuId(0),
            Class::Sporadic {
                min_separation: period,
                wcet,
                relative_deadline: period,
            },
        );
        task.priority = Priority::new(2);
        // The first one is alone, to say what it promises.
        let regular = (0..).map(|n| Span::from_ns(2_000_000 + n * period.as_ns()));
        let regular = regular.take_while(|at| at.as_ns() < for_ns);
        let arrivals = std::iter::once(Span::from_ms(1)).chain(regular);
        let policy = PolicyKind::FixedPriority { preemptive: true };
        let live = Live {
            arrivals: arrivals.collect(),
            record_bytes: 1 << 28,
            give_back: GiveBack::Nothing,
            ..Live::of(policy, vec![(task, edge), (endless("busy", 1, 0), busy)])
        };
        let (tables, outcome) = live.fly(&notebook, for_ns)?;
        let (lost, real_time) = (losses(&outcome), outcome.mode == LiveMode::RealTime);
        let report = punctual::judge(&log(tables, outcome, real_time, for_ns));
        let task: &TaskReport = report.tasks.first().ok_or("the run has no report")?;
        if report.cpus.iter().any(|cpu| cpu.lost_from_ns.is_some()) {
            return Err("the recorder was full".into());
        }
        Ok(Tried {
            period,
            jobs: task.jobs + task.skipped + task.lost,
            late: task.misses - task.excused + task.skipped + task.lost,
            excused: task.excused,
            missing_ns: report.cpus.iter().map(|cpu| cpu.missing_time_ns).sum(),
            lost,
        })
    }
}

/// The log of a run, for its report.
fn log(tables: Tables, outcome: Flown, real_time: bool, for_ns: u64) -> Log {
    let header = Header {
        platform: "linux".into(),
        mode: if real_time {
            Mode::RealTime
        } else {
            Mode::BestEffort
        },
        duration: Span::from_ns(for_ns),
        ..Header::default()
    };
    let task = |name: &str| TaskInfo {
        name: name.into(),
        ..TaskInfo::default()
    };
    let mut log = Log::new(header, &System::default(), tables);
    log.tasks = vec![task("edge"), task("busy")];
    for cpu in outcome.cpus {
        log.add_cpu("bench0", None, cpu.sink);
    }
    log
}
