//! What giving way costs between light threads, beside what the kernel offers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_kern::{NoSink, Plan};
use punctual_linux::job::yield_now;
use punctual_linux::{Body, CpuPlan, RunOptions, ThreadPlan, clock_rate, run};
use punctual_model::{Class, Cpu, CpuId, PolicyKind, Span, System, Task, ThreadId, Work};
use punctual_policy::AnyPolicy;

use super::figure::{Bench, time};
use super::rivals;

/// Yields of one sample, and as many of the other thread.
const ROUNDS: u32 = 100;
const SAMPLES: usize = if cfg!(debug_assertions) { 20 } else { 2_000 };

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::new("linux yield, two light threads", light_yield)
            .against("sched_yield", rivals::sched_yield)
            .against("futex", rivals::futex),
    ]
}

/// Nanoseconds per yield, decision and switch included, while both threads do nothing else. In the
/// ordinary scheduling class, as the rivals.
fn light_yield() -> Result<Vec<f64>, String> {
    let system = system();
    let rate = clock_rate().frequency;
    let plan = Plan::new(&system, rate);
    let cpu = plan.cpus.first().ok_or("the plan has no CPU")?;
    let policy = AnyPolicy::new(cpu.policy, cpu.capacity.threads, |ns| rate.ticks_up(ns));
    let samples = Arc::new(Mutex::new(Vec::with_capacity(SAMPLES)));
    let stop = Arc::new(AtomicBool::new(false));
    let (kept, measured) = (Arc::clone(&samples), Arc::clone(&stop));
    let (seen, mut partner_seen) = (Arc::clone(&stop), 0_u32);
    let measuring: Body = Box::new(move |_| {
        for _ in 0..SAMPLES {
            let each = time(2 * ROUNDS, || (0..ROUNDS).for_each(|_| yield_now()));
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(each);
        }
        measured.store(true, Ordering::Relaxed);
    });
    let partner: Body = Box::new(move |_| {
        while !seen.load(Ordering::Relaxed) {
            partner_seen = partner_seen.wrapping_add(1);
            yield_now();
        }
    });
    let threads = [("measuring", measuring), ("partner", partner)];
    let thread = |(index, (name, body)): (u32, (&str, Body))| ThreadPlan {
        id: ThreadId::new(index, 0),
        name: name.into(),
        body,
    };
    let plan = CpuPlan {
        host: rivals::quiet_cpu()?,
        name: "bench".into(),
        shard: cpu.build(policy).map_err(|error| error.to_string())?,
        sink: NoSink,
        threads: (0..).zip(threads).map(thread).collect(),
        arrivals: Vec::new(),
    };
    let options = RunOptions {
        real_time: false,
        stop,
        ..RunOptions::default()
    };
    run(vec![plan], &options).map_err(|error| error.to_string())?;
    let samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(samples.clone())
}

/// Two jobs of equal urgency that outlast the measurement.
fn system() -> System {
    let cpu = Cpu {
        name: "bench".into(),
        host: None,
        policy: PolicyKind::FixedPriority { preemptive: true },
    };
    let task = |name: &str| {
        let class = Class::Periodic {
            period: Span::from_ms(3_600_000),
            wcet: Work::from_ms(1_000_000),
            relative_deadline: Span::from_ms(3_600_000),
        };
        Task::new(name, CpuId(0), class)
    };
    System {
        cpus: vec![cpu],
        tasks: vec![task("measuring"), task("partner")],
        ..System::default()
    }
}
