//! How late slots begin in a frame of time division: of light threads, and of kernel threads.
//!
//! All slots are one figure. Below it stand those in time, those whose timer was late, and those at
//! whose boundary time was missing, as the run noted it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use punctual_linux::job::now_ns;
use punctual_linux::{Backed, Body, HeldUp, HeldUpBy, Member};
use punctual_model::{Ns, PolicyKind, Slot, Span, Task};
use punctual_rivals::slots::{FRAME_NS, SLOTS_NS, Way, boundaries};

use super::figure::{Bench, Measured};
use super::live::{Live, MOST_NS, Notebook, endless, place};

/// Slots that count.
const SAMPLES: usize = if cfg!(debug_assertions) { 50 } else { 1_000 };

/// A thread that did not execute for so long has been away until its slot.
const AWAY_NS: u64 = 500_000;

pub(super) fn benches() -> Vec<Bench> {
    let rival = |way: Way| move || boundaries(place()?, way);
    let flips = "sched_setscheduler, two processes";
    let stops = "SIGSTOP and SIGCONT, two processes";
    let quotas = "cgroup quota (cpu.max), two processes";
    vec![
        Bench::in_cycles("tdm.boundary.light", light)
            .against(flips, rival(Way::Class))
            .against(stops, rival(Way::Signal))
            .against(quotas, rival(Way::Quota)),
        Bench::in_cycles("tdm.boundary.program", || backed(early()))
            .against(flips, rival(Way::Class))
            .against(stops, rival(Way::Signal))
            .against(quotas, rival(Way::Quota)),
        // Without time in front of its slot a program is not woken early.
        Bench::in_cycles("tdm.boundary.program.touching", || backed(0)),
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

/// Whether the second owner is in its slot so late after the start of it. A program also has time
/// that nobody else wants, at the end of the other's slot.
fn is_in_slot(late: u64) -> bool {
    late < ns(SLOTS_NS[1].1)
}

/// The lateness of slots as the run's own notes tell it apart.
fn told_apart(mut measured: Measured, starts: &Starts, cpu: &[HeldUp]) -> Measured {
    let starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
    let (inside, outside): (Vec<_>, Vec<_>) = starts
        .iter()
        .copied()
        .partition(|&(_, late)| is_in_slot(late));
    let of = |by: Option<HeldUpBy>| {
        let is_of = |start: u64| {
            // Ticks and nanoseconds are rounded apart.
            let held = cpu
                .iter()
                .find(|held| held.start_ns.abs_diff(start) < 1_000);
            held.map(|held| held.by) == by
        };
        let those = inside.iter().filter(|(start, _)| is_of(*start));
        those.map(|&(_, late)| late as f64).collect()
    };
    measured.parts = vec![
        ("in time", of(None)),
        ("late timer", of(Some(HeldUpBy::LateTimer))),
        ("missing time", of(Some(HeldUpBy::MissingTime))),
    ];
    if !outside.is_empty() {
        let times = outside.len();
        let note = format!("{times} times the second owner went on in idle time, not in its slot");
        measured.notes.push(note);
    }
    measured
}

/// Runs the two owners, the second of which keeps the starts of its slots.
fn fly(
    (notebook, starts): (&Notebook, &Starts),
    early: u64,
    owners: Vec<(Task, Body)>,
) -> Result<Measured, String> {
    let (_, outcome) = Live::of(policy(early), owners).fly(notebook, MOST_NS)?;
    let held_up = outcome.cpus.first().map_or(&[][..], |cpu| &cpu.held_up);
    Ok(told_apart(notebook.measured(&outcome)?, starts, held_up))
}

/// Computes, and tells how late its slots begin, until there are enough. `clock`: the run's, in
/// nanoseconds.
fn watch(
    (notebook, starts): (&Notebook, &Starts),
    clock: impl Fn() -> u64,
    is_over: impl Fn() -> bool,
) {
    let mut last = clock();
    while !notebook.is_over() && !is_over() {
        let now = clock();
        if now.saturating_sub(last) > AWAY_NS {
            let late = now.saturating_sub(ns(SLOTS_NS[1].0)) % ns(FRAME_NS);
            if is_in_slot(late) {
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
    let second: Body = Box::new(move |_| watch((&kept, &all), clock, || false));
    let owners = vec![(owner(0, early()), first), (owner(1, early()), second)];
    fly((&notebook, &starts), early(), owners)
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
        watch((&kept, &all), clock, || member.is_over());
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
    fly((&notebook, &starts), early, owners)
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
