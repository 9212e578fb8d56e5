//! How late slots begin in a frame of time division: of light threads, and of kernel threads.
//!
//! All slots are one figure. Below it stand those without missing time, which the goals are about.
//! They are told apart once more, as the run noted it: in time, or by a late timer.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use punctual_linux::job::now_ns;
use punctual_linux::{Backed, Body, HeldUp, HeldUpBy, Member};
use punctual_model::{Ns, PolicyKind, Slot, Span, Task};
use punctual_rivals::slots::{FRAME_NS, SLOTS_NS, Way, boundaries};

use super::counting::{Counted, LATENESS};
use super::figure::{Bench, Measured};
use super::live::{Live, MOST_NS, Notebook, endless, place};

/// Slots that count.
const SAMPLES: usize = if cfg!(debug_assertions) { 50 } else { 1_000 };

/// The row that the goals are about: all slots but those that missing time held up.
const NO_MISSING_TIME: &str = "in time and late timer";

/// A thread that did not execute for so long has been away until its slot.
const AWAY_NS: u64 = 500_000;

pub(super) fn benches() -> Vec<Bench> {
    let rival = |way: Way| move || boundaries(place()?, way);
    let flips = "sched_setscheduler, two processes";
    let stops = "SIGSTOP and SIGCONT, two processes";
    let quotas = "cgroup quota (cpu.max), two processes";
    vec![
        Bench::in_cycles("tdm.boundary.light", light)
            .counted(Counted::Not(LATENESS))
            .against(flips, rival(Way::Class))
            .against(stops, rival(Way::Signal))
            .against(quotas, rival(Way::Quota)),
        Bench::in_cycles("tdm.boundary.program", || backed(early()))
            .counted(Counted::Not(LATENESS))
            .against(flips, rival(Way::Class))
            .against(stops, rival(Way::Signal))
            .against(quotas, rival(Way::Quota)),
        // Without time in front of its slot a program is not woken early.
        Bench::in_cycles("tdm.boundary.program.touching", || backed(0))
            .counted(Counted::Not(LATENESS)),
    ]
}

fn ns(value: i64) -> u64 {
    value.unsigned_abs()
}

/// The time between the rivals' slots, in nanoseconds.
fn early() -> u64 {
    ns(SLOTS_NS[1].0 - SLOTS_NS[0].1)
}

fn policy(early: u64) -> PolicyKind<Ns> {
    PolicyKind::Tdm {
        frame: Span::from_ns(ns(FRAME_NS)),
        scheduling: Span::from_ns(early),
    }
}

/// The owner of one of the rivals' slots, of which the first ends so long before the second.
fn owner(index: usize, early: u64) -> Task {
    let mut task = endless(["first", "second"][index], 1, 1);
    let (at, length) = SLOTS_NS[index];
    let longer = if index == 0 { self::early() - early } else { 0 };
    task.slots = vec![Slot {
        at: Span::from_ns(ns(at)),
        length: Span::from_ns(ns(length) + longer),
    }];
    task
}

/// How late slots began: their starts, and by how much, in nanoseconds.
type Starts = Arc<Mutex<Vec<(u64, u64)>>>;

/// When the second owner has the processor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// In its slot alone.
    InSlot,
    /// Also in time that nobody else wants, at the end of the other's slot.
    OrIdle,
}

impl Owner {
    /// Whether going on so late after the start of its slot is no start of it.
    fn is_idle_time(self, late: u64) -> bool {
        self == Owner::OrIdle && late >= ns(SLOTS_NS[1].1)
    }
}

/// The lateness of slots as the run's own notes tell it apart.
fn told_apart(
    mut measured: Measured,
    all: &[(u64, u64)],
    owner: Owner,
    cpu: &[HeldUp],
) -> Measured {
    let (idle, slots): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, late)| owner.is_idle_time(*late));
    let by = |start: u64| {
        // Ticks and nanoseconds are rounded apart.
        let mut held = cpu.iter();
        let held = held.find(|held| held.start_ns.abs_diff(start) < 1_000);
        held.map(|held| held.by)
    };
    let of = |those: &[Option<HeldUpBy>]| {
        let those = slots
            .iter()
            .filter(|(start, _)| those.contains(&by(*start)));
        those.map(|&(_, late)| late as f64).collect()
    };
    let (late, missing) = (Some(HeldUpBy::LateTimer), Some(HeldUpBy::MissingTime));
    measured.parts = vec![
        (NO_MISSING_TIME, of(&[None, late])),
        ("  of these in time", of(&[None])),
        ("  of these late timer", of(&[late])),
        ("missing time", of(&[missing])),
    ];
    let note = format!("the goal is about the row `{NO_MISSING_TIME}`: late timers are in it");
    measured.notes.push(note);
    if owner == Owner::OrIdle {
        let idle = idle.iter().map(|&(_, late)| late as f64).collect();
        measured.parts.push(("idle time, no slot, left out", idle));
        let note = "the owner's clock is the kernel's, set by the run's at the start: they may drift \
                    apart by some 20 ns in a millisecond";
        measured.notes.push(note.into());
    } else if slots.iter().any(|&(_, late)| late >= ns(SLOTS_NS[1].1)) {
        let note = "the second owner went on outside of its slot: its samples are in the figure";
        measured.notes.push(note.into());
    }
    measured
}

/// Runs the two owners, the second of which keeps the starts of its slots.
fn fly(
    (notebook, starts): (&Notebook, &Starts),
    (early, owner): (u64, Owner),
    owners: Vec<(Task, Body)>,
) -> Result<Measured, String> {
    let (_, outcome) = Live::of(policy(early), owners).fly(notebook, MOST_NS)?;
    let held_up = outcome.cpus.first().map_or(&[][..], |cpu| &cpu.held_up);
    let measured = notebook.measured(&outcome)?;
    let starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(told_apart(measured, &starts, owner, held_up))
}

/// Computes, and tells how late its slots begin, until there are enough. `clock`: the run's, in
/// nanoseconds.
fn watch(
    (notebook, starts): (&Notebook, &Starts),
    owner: Owner,
    clock: impl Fn() -> u64,
    is_over: impl Fn() -> bool,
) {
    let mut last = clock();
    while !notebook.is_over() && !is_over() {
        let now = clock();
        if now.saturating_sub(last) > AWAY_NS {
            let late = now.saturating_sub(ns(SLOTS_NS[1].0)) % ns(FRAME_NS);
            if !owner.is_idle_time(late) {
                notebook.push(f64::from(u32::try_from(late).unwrap_or(u32::MAX)));
            }
            let mut starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
            starts.push((now - late, late));
            if notebook.len() >= SAMPLES {
                notebook.end();
            }
        }
        last = now;
    }
}

/// Two light threads.
fn light() -> Result<Measured, String> {
    let (notebook, starts) = (Notebook::default(), Starts::default());
    let (kept, seen, all) = (notebook.clone(), notebook.clone(), Arc::clone(&starts));
    let first: Body = Box::new(move |_| {
        while !seen.is_over() {
            std::hint::spin_loop();
        }
    });
    let clock = || now_ns().unwrap_or(0);
    let second: Body = Box::new(move |_| watch((&kept, &all), Owner::InSlot, clock, || false));
    let owners = vec![(owner(0, early()), first), (owner(1, early()), second)];
    fly((&notebook, &starts), (early(), Owner::InSlot), owners)
}

/// Two kernel-backed threads: each slot is a change of class, as for whole programs. `early`: time
/// in front of each slot that is nobody's, in which its program is woken.
fn backed(early: u64) -> Result<Measured, String> {
    let (notebook, starts) = (Notebook::default(), Starts::default());
    let (kept, seen, all) = (notebook.clone(), notebook.clone(), Arc::clone(&starts));
    // When the clock of the run was zero.
    let origin = Arc::new(OnceLock::new());
    let known = Arc::clone(&origin);
    let first = Backed::try_new("first", move |member: &Member| {
        while !member.is_over() && !seen.is_over() {
            std::hint::spin_loop();
        }
    });
    let second = Backed::try_new("second", move |member: &Member| {
        let Some(&(then, at)): Option<&(Instant, u64)> = known.get() else {
            return;
        };
        let clock = || at + u64::try_from(then.elapsed().as_nanos()).unwrap_or(0);
        watch((&kept, &all), Owner::OrIdle, clock, || member.is_over());
    });
    let (first, second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
    };
    let first: Body = once(move || drop(first.run()));
    let second: Body = once(move || {
        let at = now_ns().unwrap_or(0);
        let _ = origin.set((Instant::now(), at));
        drop(second.run());
    });
    let owners = vec![(owner(0, early), first), (owner(1, early), second)];
    fly((&notebook, &starts), (early, Owner::OrIdle), owners)
}

/// A body of one job.
fn once(work: impl FnOnce() + Send + 'static) -> Body {
    let mut work = Some(work);
    Box::new(move |_| {
        if let Some(work) = work.take() {
            work();
        }
    })
}
