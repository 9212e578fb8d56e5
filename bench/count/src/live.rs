//! Operations of light threads in a run, with all that belongs to one: gate, storage, record.
//!
//! As an ordinary user, so that the same instructions are executed with and without privileges.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_linux::{Child, NoNextJob, block, clock_rate, job, next_job, spawn, this_job};
use punctual_model::{Class, CpuId, Machine, Ns, PolicyKind, Priority, Span, Task, Work};
use punctual_thread::sync::{Mutex, Queue};
use punctual_thread::{Constraint, Runtime, StartError};
use punctual_trace::Recorder;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::decisions::{LONG, RECORD_BYTES, endless};
use crate::interrupt;
use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, interrupt, mark};

/// The urgency of the first thread of a run.
const FIRST: u32 = 10;
/// Repetitions before the first window.
const WARM_UP: u32 = 50;
const WINDOWS: usize = 9;
const STACK: usize = 64 * 1024;
/// The distance of releases that preempt: none is suspiciously far from the last entry.
const RELEASES: Span<Ns> = Span::from_us(80);
/// How late the signal of a release comes.
const LATE_NS: u64 = 1_000;
/// So often a thread looks at the clock that says so.
const PROMISED_NS: u64 = 10_000_000;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let yielding = |threads: u32| {
        let row = format!("live.yield.{threads}");
        scenario(vec![row], threads, move || yields(threads))
    };
    let waking = |threads: u32| {
        let row = |operation| format!("live.{operation}.{threads}");
        scenario(vec![row("wake"), row("block")], threads, move || {
            wakes(threads)
        })
    };
    let others: [(&str, First); 5] = [
        ("live.mutex.uncontended", uncontended),
        ("live.mutex.contended", contended),
        ("live.queue.message", messages),
        ("live.queue.request_and_reply", requests),
        ("live.thread.create_and_join", create_and_join),
    ];
    let others = others.map(|(row, first)| scenario(vec![row.to_owned()], 2, first));
    let yielding = [2, 32, 1_000].map(yielding);
    let waking = [2, 32].map(waking);
    let preempting = [2, 32].map(|threads: u32| {
        let row = |way| format!("live.preemption.{way}.{threads}");
        scenario(vec![row("in"), row("back")], threads, move || {
            preempts(threads)
        })
    });
    let checkpoints = ["in", "back"].map(|way| format!("live.checkpoint.{way}.2"));
    let checkpoints = scenario(checkpoints.into(), 2, gives_way);
    let all = yielding.into_iter().chain(waking).chain(preempting);
    let all = all.chain([checkpoints]);
    all.chain(others).collect()
}

/// The work of the first thread of a run.
type First = fn() -> Result<(), String>;

fn scenario(
    rows: Vec<String>,
    threads: u32,
    first: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Scenario {
    Scenario {
        windows: rows.len() * WINDOWS,
        rows,
        reading: Reading::Mode,
        program: Box::new(move || fly(threads, first)),
    }
}

/// A recorded run on the last CPU of this process, with `first` on its first thread.
fn fly(
    threads: u32,
    first: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let cpu = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu));
    let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
    let main = Constraint::periodic(LONG, Work::from_ns(LONG.as_ns() / 2)).priority(FIRST);
    let recorder = |_: &_| {
        let bytes = RECORD_BYTES;
        Recorder::with_capacity(bytes).map_err(|_| StartError::NoRecorder { bytes })
    };
    let policy = PolicyKind::FixedPriority { preemptive: true };
    let finished = Runtime::on(cpu.ok_or("no CPU may be used")?, policy)
        .threads(threads as usize)
        .stack_bytes(STACK)
        .main(main)
        .terms(Machine::default())
        .real_time(false)
        .start_recorded(0, recorder, first);
    let finished = finished.map_err(|error| error.to_string())?;
    let none = || Err("the first thread did not come to its end".to_owned());
    finished.result.unwrap_or_else(none)
}

/// A thread of this urgency that is ready until it blocks.
fn create(urgency: u32, body: impl FnOnce() + Send + 'static) -> Result<Child<()>, String> {
    let constraint = punctual_kern::Constraint::of_task(&endless(urgency), urgency);
    spawn("partner", constraint, body).map_err(in_words)
}

fn in_words(error: impl core::fmt::Debug) -> String {
    format!("{error:?}")
}

/// All threads of the run yield in turn.
fn yields(threads: u32) -> Result<(), String> {
    let warm_up = || {
        for _ in 0..3 {
            job::yield_now();
        }
    };
    let turns = || {
        loop {
            mark(0);
            job::yield_now();
        }
    };
    for _ in 1..threads {
        let partner = move || {
            warm_up();
            turns();
        };
        let _detached = create(FIRST, partner)?;
    }
    warm_up();
    begin();
    turns();
    Ok(())
}

/// A thread wakes a more urgent one, which blocks again; all others are ready and less urgent.
fn wakes(threads: u32) -> Result<(), String> {
    for index in 2..threads {
        let _detached = create(FIRST - 1 - index % 4, || {})?;
    }
    let blocks = || {
        for _ in 0..WARM_UP {
            let _woken = block(None);
        }
        loop {
            mark(1);
            let _woken = block(None);
        }
    };
    let urgent = create(FIRST + 1, blocks)?;
    for _ in 0..WARM_UP {
        let _alive = urgent.wake();
    }
    begin();
    loop {
        mark(0);
        let _alive = urgent.wake();
    }
}

/// The signal of the timer interrupts a thread at the release of a more urgent one, whose job ends
/// at once; the others are ready and less urgent. From the first instruction of the signal's
/// handler to the first of the job, and from there back to the instruction that was interrupted.
fn preempts(threads: u32) -> Result<(), String> {
    for index in 2..threads {
        let _detached = create(FIRST - 1 - index % 4, || {})?;
    }
    let arrival = urgent_jobs(0)?;
    interrupt::prepare().map_err(|error| error.to_string())?;
    begin();
    loop {
        mark(NONE);
        let due = arrival.load(Ordering::Relaxed) + RELEASES.as_ns() + LATE_NS;
        let left = due.saturating_sub(job::now_ns().unwrap_or(due));
        interrupt(clock_rate().frequency.ticks_up(left));
    }
}

/// A thread looks at the clock itself when a more urgent one is due, whose job ends at once. From
/// its look to the first instruction of the job, and from there back to behind the look.
fn gives_way() -> Result<(), String> {
    let arrival = urgent_jobs(PROMISED_NS)?;
    job::promise_checkpoints(PROMISED_NS);
    for count in 0.. {
        mark(NONE);
        let due = arrival.load(Ordering::Relaxed) + RELEASES.as_ns() + LATE_NS;
        if count == WARM_UP {
            begin();
        }
        while job::now_ns().is_some_and(|now| now < due) {
            let left = due.saturating_sub(job::now_ns().unwrap_or(due));
            interrupt(clock_rate().frequency.ticks_up(left));
        }
        mark(0);
        job::checkpoint();
    }
    Ok(())
}

/// A periodic thread, more urgent than the first, whose jobs end at once and begin with a mark. It
/// tells the arrival of the last one, and promises to look at the clock itself so often.
fn urgent_jobs(promised_ns: u64) -> Result<Arc<AtomicU64>, String> {
    let class = Class::Periodic {
        period: RELEASES,
        wcet: Work::from_ns(RELEASES.as_ns() / 2),
        relative_deadline: RELEASES,
    };
    let mut task = Task::new("", CpuId(0), class);
    task.priority = Priority::new(FIRST + 1);
    let constraint = punctual_kern::Constraint::of_task(&task, FIRST + 1);
    let arrival = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&arrival);
    let jobs = move || {
        job::promise_checkpoints(promised_ns);
        let mut next = this_job().ok_or(NoNextJob);
        while let Ok(job) = next {
            mark(1);
            told.store(job.arrival_ns, Ordering::Relaxed);
            next = next_job();
        }
    };
    let _detached = spawn("urgent", constraint, jobs).map_err(in_words)?;
    Ok(arrival)
}

/// A mutex that nobody else wants.
fn uncontended() -> Result<(), String> {
    let mutex = Mutex::new(0_u32);
    begin();
    loop {
        mark(0);
        let mut count = mutex.lock().map_err(in_words)?;
        *count = count.wrapping_add(1);
    }
}

/// A more urgent thread wakes, wants the mutex, its holder inherits, it gets it, and waits for
/// its next turn.
fn contended() -> Result<(), String> {
    let mutex = Arc::new(Mutex::new(0_u32));
    let wanted = Arc::clone(&mutex);
    let wants = move || {
        loop {
            let _woken = block(None);
            if let Ok(mut count) = wanted.lock() {
                *count = count.wrapping_add(1);
            }
        }
    };
    let urgent = create(FIRST + 1, wants)?;
    let hand_over = || {
        let guard = mutex.lock().map_err(in_words)?;
        let _alive = urgent.wake();
        drop(guard);
        Ok::<(), String>(())
    };
    for _ in 0..WARM_UP {
        hand_over()?;
    }
    begin();
    loop {
        mark(0);
        hand_over()?;
    }
}

/// One message to a more urgent thread, which takes it at once and waits for the next.
fn messages() -> Result<(), String> {
    let there = Arc::new(Queue::new(1));
    let from = Arc::clone(&there);
    let _detached = create(FIRST + 1, move || while from.receive() == Ok(1_u32) {})?;
    for _ in 0..WARM_UP {
        there.send(1).map_err(in_words)?;
    }
    begin();
    loop {
        mark(0);
        there.send(1).map_err(in_words)?;
    }
}

/// A message to a more urgent thread and its reply.
fn requests() -> Result<(), String> {
    let there = Arc::new(Queue::new(1));
    let back = Arc::new(Queue::new(1));
    let (from, to) = (Arc::clone(&there), Arc::clone(&back));
    let replies = move || while from.receive() == Ok(1_u32) && to.send(1_u32).is_ok() {};
    let _detached = create(FIRST + 1, replies)?;
    let ask = || {
        there.send(1).map_err(in_words)?;
        back.receive().map_err(in_words)
    };
    for _ in 0..WARM_UP {
        let _reply = ask()?;
    }
    begin();
    loop {
        mark(0);
        let _reply = ask()?;
    }
}

/// A more urgent thread made, run to its end, and joined for its result.
fn create_and_join() -> Result<(), String> {
    let constraint = punctual_kern::Constraint::of_task(&endless(FIRST + 1), 0);
    let child = || {
        let child = spawn("short", constraint, || 1_u32).map_err(in_words)?;
        child.join(None).map_err(|(error, _)| in_words(error))
    };
    for _ in 0..WARM_UP {
        let _one = child()?;
    }
    begin();
    loop {
        mark(0);
        let _one = child()?;
    }
}
