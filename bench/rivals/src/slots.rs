//! Two processes in turns on one CPU: how late each slot begins when the kernel is told to switch.

use std::io;
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::Samples;
use crate::call::{check, now, sleep_until, try_read};
use crate::groups::Group;
use crate::thread::{Place, on, stand_out};

/// The frame, and in it the slots of the two: start and length, in nanoseconds. The rest is left
/// to everybody.
pub const FRAME_NS: i64 = 2_600_000;
/// See [`FRAME_NS`]. So much lies between them that late timers of a virtual machine are covered,
/// most of which are within 0.4 ms.
pub const SLOTS_NS: [(i64, i64); 2] = [(0, 700_000), (1_100_000, 700_000)];

/// Slots of the second process that count.
const SAMPLES: usize = if cfg!(debug_assertions) { 50 } else { 1_000 };
/// A process that did not execute for so long has been away until its slot.
const AWAY_NS: i64 = 500_000;
/// A process ends by itself after so long.
const LONGEST_NS: i64 = 6_000_000_000;

/// How a process is let run and kept from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// `sched_setscheduler`: SCHED_FIFO in its slot, SCHED_IDLE outside.
    Class,
    /// SIGCONT in its slot, SIGSTOP outside.
    Signal,
    /// The quota of a control group, `cpu.max` or `cpu.cfs_quota_us`: none in its slot, the least
    /// outside. It counts for ordinary processes alone, so the two are such.
    Quota,
}

/// The words that the processes share.
struct Shared {
    over: AtomicBool,
    taken: AtomicU32,
    samples: [AtomicU64; SAMPLES],
}

/// From the start of each slot of the second process to its first instruction there, in
/// nanoseconds.
///
/// # Errors
/// Without permission for SCHED_FIFO, and when the kernel refuses.
pub fn boundaries(place: Place, way: Way) -> Samples {
    on(place, move || {
        stand_out(place, 1)?;
        let shared = share()?;
        let origin = now()? / FRAME_NS * FRAME_NS;
        let mut children = Vec::new();
        let mut groups = Vec::new();
        let mut done = Ok(());
        for (at, _) in SLOTS_NS {
            match fork(shared, origin + at, at > 0) {
                Ok(child) => {
                    children.push(child);
                    if way == Way::Quota {
                        let group = Group::with_quota(&at.to_string());
                        let taken = group.and_then(|group| {
                            ordinary(child)?;
                            group.take(child).map(|()| group)
                        });
                        match taken {
                            Ok(group) => groups.push(group),
                            Err(error) => done = Err(error),
                        }
                    }
                }
                Err(error) => done = Err(error),
            }
        }
        if let ([first, second], Ok(())) = (&children[..], &done) {
            done = alternate(shared, [*first, *second], (way, &groups), origin);
        }
        shared.over.store(true, Ordering::Relaxed);
        for child in children {
            end(child);
        }
        done?;
        let taken = (shared.taken.load(Ordering::Relaxed) as usize).min(SAMPLES);
        let samples = shared.samples.iter().take(taken);
        Ok(samples
            .map(|ns| ns.load(Ordering::Relaxed) as f64)
            .collect())
    })
}

/// Memory that stays common to the processes; it is never given back, once per figure.
fn share() -> Result<&'static Shared, String> {
    // SAFETY: a new mapping, nobody else's; zero is a valid value of each word in it.
    let memory = unsafe {
        libc::mmap(
            null_mut(),
            size_of::<Shared>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err("mmap is refused".into());
    }
    // SAFETY: as long as the structure, aligned to a page, and mapped for good.
    Ok(unsafe { &*memory.cast::<Shared>() })
}

/// Starts a process that computes. One that `tells` says how late its slots begin.
fn fork(shared: &Shared, first: i64, tells: bool) -> Result<i32, String> {
    // SAFETY: it takes nothing.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child calls nothing that another thread's lock could hold up, and ends by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        if ends_with(parent) {
            compute(shared, first, tells);
        }
        // SAFETY: it ends the child without the parent's handlers.
        unsafe { libc::_exit(0) };
    }
    check("fork", child).map(|_| child)
}

/// Whether this process ends when the one that forked it does, which is still there.
fn ends_with(parent: i32) -> bool {
    // SAFETY: this process alone is concerned, and no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 && libc::getppid() == parent }
}

/// Computes on the CPU of who forked it. Nothing in here may allocate.
fn compute(shared: &Shared, first: i64, tells: bool) {
    let now = || try_read(libc::CLOCK_MONOTONIC);
    let Some(begun) = now() else { return };
    let mut last = begun;
    while let Some(at) = now() {
        if shared.over.load(Ordering::Relaxed) || at - begun > LONGEST_NS {
            return;
        }
        if tells && at - last > AWAY_NS {
            let late = (at - first).rem_euclid(FRAME_NS);
            let place = shared.taken.load(Ordering::Relaxed) as usize;
            // After the end of its slot, it is something else that begins here.
            let sample = shared.samples.get(place);
            if let Some(sample) = sample.filter(|_| is_in_slot(late)) {
                sample.store(late.unsigned_abs(), Ordering::Relaxed);
                shared.taken.fetch_add(1, Ordering::Relaxed);
            }
        }
        last = at;
    }
}

/// Whether the slot of the second process still lasts so long after its start.
fn is_in_slot(late: i64) -> bool {
    late < SLOTS_NS[1].1
}

/// Lets the two run in their slots until there are enough samples.
fn alternate(
    shared: &Shared,
    children: [i32; 2],
    (way, groups): (Way, &[Group]),
    origin: i64,
) -> Result<(), String> {
    let turn = |index: usize, runs| match groups.get(index) {
        Some(group) => group.limit(runs),
        None => turn(children[index], way, runs),
    };
    for (index, child) in children.into_iter().enumerate() {
        turn(index, false)?;
        if way == Way::Signal {
            // Stopped or not, it is above ordinary processes.
            self::turn(child, Way::Class, true)?;
        }
    }
    let begun = now()?;
    let mut frame = (begun - origin) / FRAME_NS + 1;
    while (shared.taken.load(Ordering::Relaxed) as usize) < SAMPLES {
        for (index, (at, length)) in SLOTS_NS.into_iter().enumerate() {
            let start = origin + frame * FRAME_NS + at;
            sleep_until(start)?;
            turn(index, true)?;
            sleep_until(start + length)?;
            turn(index, false)?;
        }
        let at = now()?;
        if at - begun > LONGEST_NS {
            break;
        }
        // The first that has not begun.
        frame = (at - origin) / FRAME_NS + 1;
    }
    Ok(())
}

fn turn(child: i32, way: Way, runs: bool) -> Result<(), String> {
    let answer = match (way, runs) {
        (Way::Class | Way::Quota, _) => {
            let parameter = libc::sched_param {
                sched_priority: if runs { 49 } else { 0 },
            };
            let class = if runs {
                libc::SCHED_FIFO
            } else {
                libc::SCHED_IDLE
            };
            // SAFETY: the parameter lives during the call; the process is this one's child.
            unsafe { libc::sched_setscheduler(child, class, &raw const parameter) }
        }
        // SAFETY: the process is this one's child, which has not been waited for.
        (Way::Signal, true) => unsafe { libc::kill(child, libc::SIGCONT) },
        // SAFETY: as above.
        (Way::Signal, false) => unsafe { libc::kill(child, libc::SIGSTOP) },
    };
    check("a switch of slots", answer).map(drop)
}

/// A child gives up the class of its maker.
fn ordinary(child: i32) -> Result<(), String> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter lives during the call; the process is this one's child.
    let answer =
        unsafe { libc::sched_setscheduler(child, libc::SCHED_OTHER, &raw const parameter) };
    check("an ordinary class", answer).map(drop)
}

/// Ends a child, and waits for that.
fn end(child: i32) {
    // SAFETY: the process is this one's child, which has not been waited for; a status is not asked
    // for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        while libc::waitpid(child, null_mut(), 0) == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}
