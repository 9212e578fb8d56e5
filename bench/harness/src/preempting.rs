//! What happens without being asked: preemption, timers, wake-ups across CPUs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use punctual_linux::Body;
use punctual_linux::job::{checkpoint, now_ns, promise_checkpoints};
use punctual_model::{CpuId, Ns, PolicyKind, Span, Task, TaskId};
use punctual_rivals::{kernel, signals, timers};

use super::counting::{Counted, TWO_CPUS};
use super::figure::{Bench, Measured};
use super::live::{Live, Notebook, endless, periodic, place};
use super::switching::rival;

/// Preemptions of one figure.
const PREEMPTIONS: usize = if cfg!(debug_assertions) { 50 } else { 2_000 };

/// The distance of preemptions whose holes are measured.
const EVERY: Span<Ns> = Span::from_us(200);

/// The distance of releases whose lateness is measured.
const RELEASES: Span<Ns> = Span::from_ms(1);

/// The idle time before a thread of another CPU is woken: it sleeps for long, for a moment, or
/// looks all the while.
const IDLE: Span<Ns> = Span::from_ms(1);
const BUSY: Span<Ns> = Span::from_us(120);
const SPINNING: Span<Ns> = Span::from_us(50);

/// What a thread promises that looks at the clock itself, in nanoseconds.
const PROMISED_NS: u64 = 10_000_000;

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

pub(super) fn benches() -> Vec<Bench> {
    let bare = || signals::bare(place()?, EVERY.as_ns());
    let rearmed = || signals::rearmed(place()?, EVERY.as_ns());
    let woken = |idle: Span<Ns>, spins| {
        let idle = u32::try_from(idle.as_ns()).unwrap_or(u32::MAX);
        move || kernel::wake_other_cpu(place()?, idle, spins)
    };
    let across = |name: &str, idle| {
        let name = format!("wake.cross_cpu.{name}");
        Bench::in_cycles(name, move || wake_cross_cpu(idle)).counted(Counted::Not(TWO_CPUS))
    };
    vec![
        Bench::in_cycles("preempt.resume", || preempt_resume(false))
            .counted(Counted::Rows(&[
                "live.preemption.in.2",
                "live.preemption.back.2",
            ]))
            .against("one-shot timer set again, two switches", rearmed)
            .against("bare signal, sigreturn", bare),
        Bench::in_cycles("preempt.checkpoint", || preempt_resume(true))
            .counted(Counted::Rows(&[
                "live.checkpoint.in.2",
                "live.checkpoint.back.2",
            ]))
            .against("bare signal, sigreturn", bare),
        Bench::in_cycles("timer.latency", timer_latency)
            .counted(Counted::Rows(&["live.preemption.in.2"]))
            .against("clock_nanosleep", rival(timers::nanosleep))
            .against(
                "clock_nanosleep, a less urgent thread computes",
                rival(timers::nanosleep_busy),
            )
            .against(
                "SCHED_DEADLINE, distance off its period",
                rival(timers::deadline),
            ),
        across("idle", IDLE)
            .against("futex, as long asleep", woken(IDLE, false))
            .against("a thread that spins", woken(IDLE, true)),
        across("busy", BUSY)
            .against("futex, as long asleep", woken(BUSY, false))
            .against("futex", rival(kernel::futex_other_cpu)),
        across("spinning", SPINNING).against("a thread that spins", woken(SPINNING, true)),
    ]
}

/// The hole that an urgent job of nothing makes in a thread that computes: signal, decision, switch
/// there and back, `sigreturn`. Or what `checkpoints` cost instead of the signal: the last reading
/// of the clock, decision, and switch there and back.
fn preempt_resume(checkpoints: bool) -> Result<Measured, String> {
    let notebook = Notebook::default();
    let jobs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&jobs);
    let promise = if checkpoints { PROMISED_NS } else { 0 };
    let urgent: Body = Box::new(move |job| {
        if job.index == 0 {
            promise_checkpoints(promise);
        }
        let _ = counted.fetch_add(1, Ordering::Relaxed);
    });
    let kept = notebook.clone();
    let busy: Body = Box::new(move |_| {
        promise_checkpoints(promise);
        let holes = signals::holes(PREEMPTIONS, || {
            checkpoint();
            jobs.load(Ordering::Relaxed)
        });
        holes.into_iter().for_each(|ns| kept.push(ns));
        kept.end();
    });
    let tasks = vec![
        (delayed("urgent", EVERY), urgent),
        (endless("busy", 1, 0), busy),
    ];
    Live::of(FIXED, tasks).run(&notebook)
}

/// An urgent task that begins when all is running.
fn delayed(name: &str, period: Span<Ns>) -> Task {
    let mut task = periodic(name, period, period, 2);
    task.phase = Span::from_ms(2);
    task
}

/// From the release of an urgent job to its first instruction, while another thread computes
/// without a call.
fn timer_latency() -> Result<Measured, String> {
    let notebook = Notebook::default();
    let (kept, seen) = (notebook.clone(), notebook.clone());
    let urgent: Body = Box::new(move |job| {
        let late = now_ns().unwrap_or(0).saturating_sub(job.arrival_ns);
        kept.push(f64::from(u32::try_from(late).unwrap_or(u32::MAX)));
        if kept.len() >= PREEMPTIONS {
            kept.end();
        }
    });
    let busy: Body = Box::new(move |_| {
        while !seen.is_over() {
            std::hint::spin_loop();
        }
    });
    let tasks = vec![
        (delayed("urgent", RELEASES), urgent),
        (endless("busy", 1, 0), busy),
    ];
    Live::of(FIXED, tasks).run(&notebook)
}

/// From the last instruction of a job to the first one of its successor on another CPU. That has
/// had nothing to do for about `distance`, and sleeps if it is worth it.
fn wake_cross_cpu(distance: Span<Ns>) -> Result<Measured, String> {
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let origin = Instant::now();
    let stamp = Arc::new(AtomicU64::new(0));
    let ns = move || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let written = Arc::clone(&stamp);
    let first: Body = Box::new(move |_| written.store(ns(), Ordering::Release));
    let second: Body = Box::new(move |_| {
        let late = ns().saturating_sub(stamp.load(Ordering::Acquire));
        kept.push(f64::from(u32::try_from(late).unwrap_or(u32::MAX)));
        if kept.len() >= PREEMPTIONS {
            kept.end();
        }
    });
    let mut successor = delayed("second", distance);
    successor.cpu = CpuId(1);
    successor.after = vec![TaskId(0)];
    let tasks = vec![(delayed("first", distance), first), (successor, second)];
    Live::of(FIXED, tasks).run(&notebook)
}
