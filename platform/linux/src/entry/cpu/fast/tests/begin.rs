//! A thread that was let go on begins before its budget ends, and no later than its slot does.

use super::*;
use crate::entry::missing::note_hole;
use crate::record::local::local;
use crate::record::recovery::{Recovery, Role};
use crate::run::hook::must_not_lock;

/// INV-B1: the signal of a timer that was overdue when it was set met the closed gate.
#[test]
fn a_thread_that_was_let_go_on_begins_before_its_budget_ends() {
    let (period, slice) = (Span::from_ns(1_000_000_000), Work::from_ns(100));
    let times = [0, 500_000_000].map(|phase| {
        let class = Class::Reservation { period, slice };
        let mut task = Task::new("short", CpuId(0), class);
        task.phase = Span::from_ns(phase);
        Constraint::of_task(&task, 0).in_ticks(Frequency::NANOSECONDS)
    });
    let mut bench = Bench::new(PolicyKind::EarliestDeadlineFirst, &times, &Feeds::nothing());
    let meets = |bench: &mut Bench, now, runs: Option<usize>| {
        bench.cpu.host.gate.note_pending();
        bench.enter(at(now), Event::Tick, false);
        let id = bench.state().runs.map(|id| id.index());
        assert_eq!(id, runs, "at {now}");
    };
    meets(&mut bench, 0, Some(0));
    // Its budget ended at 100, within the entry; it goes on all the same, and once.
    bench.cpu.host.left.store(100, Ordering::Relaxed);
    meets(&mut bench, 50_000, Some(0));
    meets(&mut bench, 90_000, None);
    // The other one is released while the first, or nobody, runs: that is not put off.
    meets(&mut bench, 500_000_000, Some(1));
}

/// INV-B1 is about budgets: the slot of another begins on time.
#[test]
fn a_slot_ends_though_an_entry_took_all_of_its_rest() {
    let class = Class::Reservation {
        period: Span::from_ns(1_000_000_000),
        slice: Work::from_ns(400_000_000),
    };
    let task = Task::new("owner", CpuId(0), class);
    let constraint = Constraint::of_task(&task, 0).in_ticks(Frequency::NANOSECONDS);
    let kind = PolicyKind::Tdm {
        frame: Span::from_ticks(1_000),
        scheduling: Span::ZERO,
    };
    let mut bench = Bench::new(kind, &[constraint, constraint], &Feeds::nothing());
    for (now, runs) in [(0, 0), (600, 1), (1_100, 0)] {
        bench.cpu.host.left.store(now, Ordering::Relaxed);
        bench.cpu.host.gate.note_pending();
        bench.enter(at(now), Event::Tick, false);
        let id = bench.state().runs.map(|id| id.index());
        assert_eq!(id, Some(runs), "at {now}");
    }
}

/// INV-B1, and what the call that set the timer took is nobody's time once.
#[test]
fn a_hole_in_the_call_that_sets_the_timer_is_noted_once() {
    let mut bench = on_the_fast_path();
    let host = &mut bench.cpu.host;
    // SAFETY: lights live as long as the bench.
    let light = unsafe { host.current.get().as_ref() }.expect("it runs");
    let late = host.limits.late;
    for (due, looked) in [(100, 0), (200, 0), (10 * late, 0), (200, 100)] {
        light.looked.store(looked, Ordering::Relaxed);
        // As the call begins: armed for `due`, at 100.
        host.note_hole_in_call(at(due), at(100));
        let _ = host.take_known_missing();
        host.left.store(100, Ordering::Relaxed);
        let after = 100 + 4 * late;
        host.note_hole_in_call(at(due), at(after));
        note_hole(host, at(after + 10), host.armed_for());
        let known = host.take_known_missing();
        assert_eq!(known.ticks(), 4 * late, "due at {due}");
    }
    // Until then nobody had the time: the entry was of a later instant.
    host.last_entry.store(50 + 4 * late, Ordering::Relaxed);
    host.left.store(100, Ordering::Relaxed);
    host.note_hole_in_call(at(200), at(100 + 4 * late));
    assert_eq!(host.take_known_missing().ticks(), 50);
}

#[test]
fn a_policy_that_panics_waits_for_no_lock_of_the_program() {
    unsafe extern "C" fn nowhere(_: *mut u8) -> ! {
        std::process::abort()
    }
    let bench = on_the_fast_path();
    // SAFETY: lights live as long as the bench.
    let light = unsafe { bench.cpu.host.current.get().as_ref() }.expect("it runs");
    let _ = bench.cpu.host.gate.open();
    assert!(!must_not_lock(light));
    let recovery = Recovery {
        resume: nowhere,
        argument: core::ptr::null_mut(),
        stack: core::ptr::null(),
        role: Role::Policy,
    };
    local(|l| l.recovery.set(Some(recovery)));
    assert!(must_not_lock(light), "while it decides");
    local(|l| l.recovery.set(None));
    assert!(!must_not_lock(light));
}
