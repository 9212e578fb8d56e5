//! What threads of one CPU pay for what they share: a mutex that somebody wants, messages.
//!
//! Every message and every hand-over is counted; a figure of ones that did not happen is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_linux::{Body, SpawnError, block, spawn};
use punctual_rivals::{contended as taken, kernel};
use punctual_thread::sync::{Mutex, Queue};

use super::counting;
use super::figure::{Bench, Measured, time};
use super::live::{Live, Notebook, constraint, endless};
use super::switching::rival;

/// Messages or hand-overs of one sample.
const ROUNDS: u32 = 50;
const SAMPLES: usize = if cfg!(debug_assertions) { 10 } else { 500 };

/// The priority of the thread that measures.
const MEASURING: u32 = 10;

pub(super) fn benches() -> Vec<Bench> {
    let queue = |name: &str, partner: u32, replies: bool| {
        Bench::in_cycles(name, move || messages(partner, replies))
            .against("POSIX message queue", rival(kernel::message_queue))
            .against("pipe", rival(kernel::pipe_same_cpu))
            .against("futex", rival(kernel::futex_same_cpu))
    };
    vec![
        Bench::in_cycles("mutex.contended", contended)
            .against("pthread mutex", rival(taken::pthread_mutex))
            .against("pthread mutex, inheriting", rival(taken::inheriting_mutex)),
        queue("queue.low_to_high", MEASURING + 1, false),
        queue("queue.high_to_low", MEASURING - 1, false),
        queue("queue.one_to_one", MEASURING + 1, true),
    ]
}

/// Repeats `round` in a light thread, until there are enough samples of so many `units` each.
fn measure(
    units: u32,
    notebook: &Notebook,
    mut round: impl FnMut() -> Result<(), String> + Send + 'static,
) -> Result<Measured, String> {
    let kept = notebook.clone();
    let measuring: Body = Box::new(move |_| {
        kept.take_all(SAMPLES, || {
            let mut done = Ok(());
            let ns = time(units, || done = round());
            done.map(|()| ns)
        });
    });
    let live = Live {
        pool: 1,
        record_bytes: 64 << 20,
        ..Live::measuring(MEASURING, measuring)
    };
    live.run(notebook)
}

/// One message: to a more urgent thread that waits for it, to a less urgent one through a line of
/// one place, or one way of a message and its reply.
fn messages(partner: u32, replies: bool) -> Result<Measured, String> {
    let notebook = Notebook::default();
    let there = Arc::new(Queue::new(1));
    let back = Arc::new(Queue::new(1));
    let received = Arc::new(AtomicU32::new(0));
    let mut is_there = false;
    let rounds = counting::units(ROUNDS);
    let units = if replies { 2 * rounds } else { rounds };
    let over = notebook.clone();
    let round = move || {
        if !is_there {
            is_there = true;
            let (from, to) = (Arc::clone(&there), Arc::clone(&back));
            let (counted, over) = (Arc::clone(&received), over.clone());
            let thread = constraint(&endless("partner", partner, 2));
            let answering = move || {
                while !over.is_over() && from.receive() == Ok(1_u32) {
                    let _ = counted.fetch_add(1, Ordering::Relaxed);
                    if replies && to.send(1_u32).is_err() {
                        return;
                    }
                }
            };
            let _detached = spawn("partner", thread, answering).map_err(unmade)?;
        }
        let before = received.load(Ordering::Relaxed);
        for _ in 0..rounds {
            there.send(1_u32).map_err(|error| error.to_string())?;
            if replies {
                let _reply = back.receive().map_err(|error| error.to_string())?;
            }
        }
        // A less urgent thread may have the last message still before it.
        match received.load(Ordering::Relaxed).wrapping_sub(before) {
            n if n + 2 >= rounds => Ok(()),
            n => Err(format!("{n} of {rounds} messages arrived")),
        }
    };
    measure(units, &notebook, round)
}

/// A more urgent thread wakes, wants the mutex, its holder inherits, it gets it, and waits for its
/// next turn.
fn contended() -> Result<Measured, String> {
    let notebook = Notebook::default();
    let mutex = Arc::new(Mutex::new(0_u32));
    let mut urgent = None;
    let over = notebook.clone();
    let mut expected = 0_u32;
    let rounds = counting::units(ROUNDS);
    let round = move || {
        if urgent.is_none() {
            let (wanted, over) = (Arc::clone(&mutex), over.clone());
            let wants = move || {
                while !over.is_over() {
                    let _woken = block(None);
                    if let Ok(mut count) = wanted.lock() {
                        *count = count.wrapping_add(1);
                    }
                }
            };
            let thread = constraint(&endless("urgent", MEASURING + 1, 2));
            let spawned = spawn("urgent", thread, wants).map_err(unmade)?;
            urgent = Some(spawned);
        }
        for _ in 0..rounds {
            let guard = mutex.lock().map_err(|error| error.to_string())?;
            let _woken = urgent.as_ref().map(|thread| thread.wake());
            drop(guard);
        }
        expected = expected.wrapping_add(rounds);
        let count = mutex.lock().map_or(0, |count| *count);
        match count == expected {
            true => Ok(()),
            false => Err(format!("{count} hand-overs, not {expected}")),
        }
    };
    measure(rounds, &notebook, round)
}

fn unmade(error: SpawnError) -> String {
    format!("no second thread: {error:?}")
}
