//! What giving way costs between light threads, beside what the kernel offers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_kern::{NoSink, Plan};
use punctual_linux::job::{now_ns, yield_now};
use punctual_linux::{Body, CpuPlan, RunOptions, ThreadPlan, clock_rate, run};
use punctual_model::{Class, Cpu, CpuId, PolicyKind, Priority, Span, System, Task, ThreadId};
use punctual_policy::AnyHierarchy;

use super::figure::{Bench, time};
use super::rivals;

/// Yields of one sample, and as many of the other thread.
const ROUNDS: u32 = 100;
const SAMPLES: usize = if cfg!(debug_assertions) { 20 } else { 2_000 };

/// Preemptions, one in each millisecond.
const PREEMPTIONS: u64 = if cfg!(debug_assertions) { 50 } else { 2_000 };

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::new("linux yield, two light threads", light_yield)
            .against("sched_yield", rivals::sched_yield)
            .against("futex", rivals::futex),
        Bench::new("linux preemption, from release to body", preemption)
            .against("nanosleep in the ordinary class", rivals::nanosleep),
    ]
}

/// Nanoseconds per yield, decision and switch included, while both threads do nothing else.
fn light_yield() -> Result<Vec<f64>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let samples = Samples::default();
    let (kept, measured) = (samples.clone(), Arc::clone(&stop));
    let measuring: Body = Box::new(move |_| {
        for _ in 0..SAMPLES {
            kept.push(time(2 * ROUNDS, || (0..ROUNDS).for_each(|_| yield_now())));
        }
        measured.store(true, Ordering::Relaxed);
    });
    let seen = Arc::clone(&stop);
    let partner: Body = Box::new(move |_| {
        while !seen.load(Ordering::Relaxed) {
            yield_now();
        }
    });
    let task = |name: &str| Task::new(name, CpuId(0), endless(Span::from_ms(3_600_000)));
    run_tasks(
        vec![(task("measuring"), measuring), (task("partner"), partner)],
        false,
        stop,
    )?;
    Ok(samples.take())
}

/// Nanoseconds from the release of an urgent job to its first instruction, while another thread
/// computes without a call.
fn preemption() -> Result<Vec<f64>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let samples = Samples::default();
    let (kept, measured) = (samples.clone(), Arc::clone(&stop));
    let urgent: Body = Box::new(move |job| {
        let late = now_ns().unwrap_or(0).saturating_sub(job.arrival_ns);
        kept.push(f64::from(u32::try_from(late).unwrap_or(u32::MAX)));
        if job.index + 1 >= PREEMPTIONS {
            measured.store(true, Ordering::Relaxed);
        }
    });
    let seen = Arc::clone(&stop);
    let busy: Body = Box::new(move |_| {
        while !seen.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let mut first = Task::new("urgent", CpuId(0), endless(Span::from_ms(1)));
    first.priority = Priority::new(1);
    // The first release would be before anything runs.
    first.phase = Span::from_ms(2);
    let second = Task::new("busy", CpuId(0), endless(Span::from_ms(3_600_000)));
    run_tasks(vec![(first, urgent), (second, busy)], true, stop)?;
    Ok(samples.take())
}

/// What a body measures, kept where the measurement can be read afterwards.
#[derive(Clone)]
struct Samples(Arc<Mutex<Vec<f64>>>);

impl Default for Samples {
    fn default() -> Samples {
        Samples(Arc::new(Mutex::new(Vec::with_capacity(SAMPLES))))
    }
}

impl Samples {
    fn push(&self, sample: f64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sample);
    }

    fn take(&self) -> Vec<f64> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs the tasks until one of them stops the run: under SCHED_FIFO where that is permitted and
/// wanted, else in the ordinary class, as the rivals.
fn run_tasks(
    tasks: Vec<(Task, Body)>,
    real_time: bool,
    stop: Arc<AtomicBool>,
) -> Result<(), String> {
    let (tasks, bodies): (Vec<Task>, Vec<Body>) = tasks.into_iter().unzip();
    let cpu = Cpu {
        name: "bench".into(),
        host: None,
        policy: PolicyKind::FixedPriority { preemptive: true },
    };
    let system = System {
        cpus: vec![cpu],
        tasks,
        ..System::default()
    };
    let plan = Plan::new(&system, clock_rate().frequency);
    let cpu = plan.cpus.first().ok_or("the plan has no CPU")?;
    let thread = |((index, task), body): ((u32, &Task), Body)| ThreadPlan {
        id: ThreadId::new(index, 0),
        name: task.name.clone(),
        body,
    };
    let plan = CpuPlan {
        host: rivals::quiet_cpu()?,
        name: "bench".into(),
        shard: cpu
            .build(AnyHierarchy::new(cpu))
            .map_err(|error| error.to_string())?,
        sink: NoSink,
        threads: (0..).zip(&system.tasks).zip(bodies).map(thread).collect(),
        children: Vec::new(),
        resources: Vec::new(),
        arrivals: Vec::new(),
    };
    let options = RunOptions {
        real_time,
        stop,
        ..RunOptions::default()
    };
    run(vec![plan], &options)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// A job whose budget no measurement exhausts.
fn endless(period: Span) -> Class {
    Class::Periodic {
        period,
        wcet: period.as_work(),
        relative_deadline: period,
    }
}
