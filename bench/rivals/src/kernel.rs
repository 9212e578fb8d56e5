//! Threads of the kernel that hand the processor, or a message, to each other.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::Samples;
use crate::batch::batches;
use crate::call::{check, futex, now, sleep_until};
use crate::thread::{Place, finish, on, start};

/// Round trips of one batch.
const ROUNDS: u32 = 50;

/// A switch between two threads of one CPU by `sched_yield`.
///
/// # Errors
/// When a thread cannot be started.
pub fn sched_yield(place: Place) -> Samples {
    let done = Arc::new(AtomicBool::new(false));
    let yields = Arc::new(AtomicU64::new(0));
    let (finished, counted) = (Arc::clone(&done), Arc::clone(&yields));
    let (ready, is_ready) = channel();
    let other = start(place, place.cpu, move || {
        let _main_waits = ready.send(());
        while !finished.load(Ordering::Relaxed) {
            thread::yield_now();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    // A thread in real time would keep the other from becoming one.
    is_ready.recv().map_err(|error| error.to_string())?;
    let ours = start(place, place.cpu, move || {
        let mut before = yields.load(Ordering::Relaxed);
        let mut switches = Vec::new();
        let samples = batches(1, || {
            (0..ROUNDS).for_each(|_| thread::yield_now());
            let now = yields.load(Ordering::Relaxed);
            // Each yield of the other thread is a switch there and back.
            switches.push(2.0 * f64::from(u32::try_from(now - before).unwrap_or(u32::MAX)));
            before = now;
        });
        done.store(true, Ordering::Relaxed);
        // The first batch has warmed up, and has no sample.
        let all = samples.into_iter().zip(switches.into_iter().skip(1));
        let each = all.filter(|(_, switches)| *switches > 0.0);
        each.map(|(ns, switches)| ns / switches).collect()
    })?;
    let samples = finish(ours)?;
    finish(other)?;
    Ok(samples)
}

/// A hand-over between two threads of one CPU by futex, one way.
///
/// # Errors
/// When a thread cannot be started.
pub fn futex_same_cpu(place: Place) -> Samples {
    ping_pong(place, place.cpu)
}

/// The same between two CPUs.
///
/// # Errors
/// When there is only one.
pub fn futex_other_cpu(place: Place) -> Samples {
    let other = place.other.ok_or("only one CPU may be used")?;
    ping_pong(place, other)
}

/// Wake-ups of one figure.
const WAKES: u32 = if cfg!(debug_assertions) { 20 } else { 500 };
/// Nobody wakes for longer.
const LONGEST_NS: i64 = 5_000_000_000;

/// A thread of another CPU is woken after both have had nothing to do for `idle_ns`: from a word
/// that is written to its first instruction. It sleeps until it is woken by a futex, or `spins`.
///
/// # Errors
/// When there is only one CPU, and when a thread cannot be started.
pub fn wake_other_cpu(place: Place, idle_ns: u32, spins: bool) -> Samples {
    let other = place.other.ok_or("only one CPU may be used")?;
    let word = Arc::new(WakeWord::default());
    let theirs = Arc::clone(&word);
    let waits = start(place, other, move || theirs.wait(spins))?;
    let wakes = start(place, place.cpu, move || {
        let done = word.wake(idle_ns, spins);
        word.set(GONE, spins);
        done
    })?;
    finish(wakes)??;
    finish(waits)?
}

/// Nobody wakes any more.
const GONE: u32 = u32::MAX;

/// By what a thread is woken.
#[derive(Default)]
struct WakeWord {
    /// Which wake-up this is.
    turn: AtomicU32,
    /// When it was written.
    stamp: AtomicI64,
    /// The last one that was heard: none is written before.
    heard: AtomicU32,
}

impl WakeWord {
    fn set(&self, turn: u32, spins: bool) {
        self.turn.store(turn, Ordering::Release);
        if !spins {
            let _woken = futex(&self.turn, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
        }
    }

    /// How late each wake-up is heard.
    fn wait(&self, spins: bool) -> Samples {
        let mut late = Vec::new();
        for next in 1..=WAKES {
            loop {
                match self.turn.load(Ordering::Acquire) {
                    now if now == next => break,
                    GONE => return Err("nobody wakes it any more".to_owned()),
                    _ if spins => std::hint::spin_loop(),
                    now => {
                        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                        let _woken = futex(&self.turn, wait, now);
                    }
                }
            }
            late.push((now()? - self.stamp.load(Ordering::Relaxed)) as f64);
            self.heard.store(next, Ordering::Release);
        }
        Ok(late)
    }

    /// Wakes again and again, each time after `idle_ns`.
    fn wake(&self, idle_ns: u32, spins: bool) -> Result<(), String> {
        let idle = i64::from(idle_ns);
        let (mut at, end) = (now()?, now()? + LONGEST_NS);
        for next in 1..=WAKES {
            at = now()?.max(at + idle);
            sleep_until(at)?;
            while self.heard.load(Ordering::Acquire) != next - 1 {
                at = now()? + idle;
                if at > end {
                    return Err("it does not hear".to_owned());
                }
                sleep_until(at)?;
            }
            self.stamp.store(now()?, Ordering::Relaxed);
            self.set(next, spins);
        }
        // The last one is heard before the word changes again.
        while self.heard.load(Ordering::Acquire) != WAKES && now()? < end {
            sleep_until(now()? + idle)?;
        }
        Ok(())
    }
}

/// Whose turn it is, and 2 when the game is over.
fn ping_pong(place: Place, other: usize) -> Samples {
    let turn = Arc::new(AtomicU32::new(0));
    let theirs = Arc::clone(&turn);
    let partner = start(place, other, move || while hand(&theirs, 1) {})?;
    let ours = start(place, place.cpu, move || {
        let samples = batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                hand(&turn, 0);
            }
        });
        // It is ours now: the partner waits.
        await_turn(&turn, 0);
        turn.store(2, Ordering::Release);
        let _woken = futex(&turn, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
        samples
    })?;
    let samples = finish(ours)?;
    finish(partner)?;
    Ok(samples)
}

/// Waits for its turn and gives it to the other; `false` when the game is over.
fn hand(turn: &AtomicU32, mine: u32) -> bool {
    if !await_turn(turn, mine) {
        return false;
    }
    turn.store(1 - mine, Ordering::Release);
    let _woken = futex(turn, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    true
}

fn await_turn(turn: &AtomicU32, mine: u32) -> bool {
    loop {
        match turn.load(Ordering::Acquire) {
            2 => return false,
            now if now == mine => return true,
            now => {
                let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                let _woken = futex(turn, wait, now);
            }
        }
    }
}

/// A thread made and joined.
///
/// # Errors
/// When a thread cannot be started.
pub fn create_join(place: Place) -> Samples {
    on(place, || {
        let mut samples = Ok(());
        let all = batches(1, || {
            let joined = thread::Builder::new().spawn(|| {});
            if let Err(error) = joined.map(thread::JoinHandle::join) {
                samples = Err(error.to_string());
            }
        });
        samples.map(|()| all)
    })
}

/// A byte through a pipe to a thread of the same CPU, and one back: half of it, one way.
///
/// # Errors
/// When there is no pipe.
pub fn pipe_same_cpu(place: Place) -> Samples {
    let new = || pipe().map_err(|error| format!("pipe: {error}"));
    let ((mut there, write_there), (back, mut write_back)) = (new()?, new()?);
    let partner = start(place, place.cpu, move || {
        let mut byte = [0];
        // It ends when the other end is closed.
        while there.read_exact(&mut byte).is_ok() && write_back.write_all(&byte).is_ok() {}
    })?;
    let ends: (PipeWriter, PipeReader) = (write_there, back);
    let samples = on(place, move || {
        let (mut write, mut read) = ends;
        let mut byte = [0];
        let mut failed = None;
        let samples = batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                let sent = write
                    .write_all(&byte)
                    .and_then(|()| read.read_exact(&mut byte));
                failed = failed.take().or(sent.err());
            }
        });
        failed.map_or(Ok(samples), |error| Err(format!("pipe: {error}")))
    });
    finish(partner)?;
    samples
}

/// A message through a POSIX queue to a thread of the same CPU, and one back: half of it, one way.
///
/// # Errors
/// When the kernel has no queues to give.
pub fn message_queue(place: Place) -> Samples {
    let (there, back) = (Queue::open("there")?, Queue::open("back")?);
    let (there, back) = (Arc::new(there), Arc::new(back));
    let (from, to) = (Arc::clone(&there), Arc::clone(&back));
    let partner = start(place, place.cpu, move || {
        // An empty message ends it.
        while from.receive().is_ok_and(|length| length > 0) && to.send(1).is_ok() {}
    })?;
    let (out, home) = (Arc::clone(&there), back);
    let samples = on(place, move || {
        let mut failed = None;
        let samples = batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                let sent = out.send(1).and_then(|()| home.receive());
                failed = failed.take().or(sent.err());
            }
        });
        failed.map_or(Ok(samples), Err)
    });
    there.send(0)?;
    finish(partner)?;
    samples
}

/// A queue that nobody else can find: its name is gone at once.
struct Queue(OwnedFd);

/// Bytes of the longest message.
const MESSAGE: usize = 8;

impl Queue {
    fn open(what: &str) -> Result<Queue, String> {
        let name = format!("/punctual-{what}-{}\0", std::process::id());
        // SAFETY: attributes are plain numbers.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        (attributes.mq_maxmsg, attributes.mq_msgsize) = (1, MESSAGE as _);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the name ends with zero, and the attributes live during the call.
        let opened =
            unsafe { libc::mq_open(name.as_ptr().cast(), flags, 0o600, &raw const attributes) };
        let queue = check("mq_open", opened)?;
        // SAFETY: as above.
        let _gone = unsafe { libc::mq_unlink(name.as_ptr().cast()) };
        let number = i32::try_from(queue).map_err(|error| error.to_string())?;
        // SAFETY: a queue is a descriptor on Linux, and nobody else has this one.
        Ok(Queue(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    fn number(&self) -> libc::mqd_t {
        use std::os::fd::AsRawFd;
        self.0.as_raw_fd()
    }

    fn send(&self, length: usize) -> Result<(), String> {
        let message = [0_u8; MESSAGE];
        let length = length.min(MESSAGE);
        // SAFETY: the message is at least as long.
        let sent = unsafe { libc::mq_send(self.number(), message.as_ptr().cast(), length, 0) };
        check("mq_send", sent).map(drop)
    }

    fn receive(&self) -> Result<i64, String> {
        let mut message = [0_u8; MESSAGE];
        let (to, length) = (message.as_mut_ptr().cast(), message.len());
        // SAFETY: the buffer is that long, and nobody asks for the priority.
        let received = unsafe { libc::mq_receive(self.number(), to, length, std::ptr::null_mut()) };
        check("mq_receive", i64::try_from(received).unwrap_or(-1))
    }
}
