//! Every server by hand, at its seam: the instants and the amounts of its budget, all conserved.

use punctual_model::{Instant, ServerKind, Span, Work};
use punctual_order::{AnyServer, Server};

fn terms(kind: ServerKind, budget: u64, period: u64) -> punctual_model::Server {
    punctual_model::Server {
        kind,
        budget: Work::from_ticks(budget),
        period: Span::from_ticks(period),
    }
}

/// A server under test: every step checks conservation.
struct Probe(AnyServer);

fn t(ticks: u64) -> Instant {
    Instant::from_ticks(ticks)
}

impl Probe {
    fn new(kind: ServerKind, budget: u64, period: u64) -> Probe {
        Probe(AnyServer::new(&terms(kind, budget, period)))
    }

    fn left(&self) -> u64 {
        assert_eq!(self.0.check(), Ok(()));
        self.0.budget().ticks()
    }

    fn wake(&mut self, now: u64) -> u64 {
        self.0.wake(t(now), t(now));
        self.left()
    }

    fn idle(&mut self, at: u64) -> u64 {
        self.0.idle(t(at));
        self.left()
    }

    fn charge(&mut self, now: u64, work: u64) -> u64 {
        self.0.charge(t(now), Work::from_ticks(work));
        self.left()
    }

    fn timer(&mut self, now: u64) -> u64 {
        self.0.timer(t(now));
        assert!(self.0.next().is_none_or(|next| next > t(now)));
        self.left()
    }

    fn next(&self) -> Option<u64> {
        self.0.next().map(Instant::ticks)
    }
}

#[test]
fn a_polling_server_loses_what_it_does_not_use_at_once() {
    let mut s = Probe::new(ServerKind::Polling, 4, 10);
    assert_eq!(s.left(), 0, "before anything is pending");
    assert_eq!(s.wake(0), 4);
    assert_eq!(s.charge(1, 1), 3);
    assert_eq!(s.idle(1), 0);
    assert_eq!(s.wake(5), 0, "used, so lost for this period");
    assert_eq!(s.next(), Some(10));
    assert_eq!(s.timer(10), 4);
    assert_eq!(s.idle(10), 0);
    assert_eq!(s.next(), None, "an idle server needs no timer");
    assert_eq!(s.wake(73), 0);
    assert_eq!(s.timer(80), 4);
}

#[test]
fn a_polling_server_counts_what_was_pending_at_the_start_however_late_it_is_told() {
    let mut s = Probe::new(ServerKind::Polling, 4, 10);
    s.0.wake(t(21), t(20));
    assert_eq!(s.left(), 4, "pending since 20, told at 21");
    let mut s = Probe::new(ServerKind::Polling, 4, 10);
    s.0.wake(t(32), t(29));
    assert_eq!(s.left(), 4, "pending since 29, so also at 30");
    let mut s = Probe::new(ServerKind::Polling, 4, 10);
    s.0.wake(t(32), t(31));
    assert_eq!(s.left(), 0);
}

#[test]
fn a_polling_server_grants_a_period_once() {
    let mut s = Probe::new(ServerKind::Polling, 4, 10);
    assert_eq!(s.wake(10), 4);
    assert_eq!(s.charge(12, 2), 2);
    assert_eq!(s.idle(12), 0);
    // An arrival at 10 that is told at 13 does not bring the budget again.
    s.0.wake(t(13), t(10));
    assert_eq!(s.left(), 0);
}

#[test]
fn a_deferrable_server_is_full_at_each_start_and_keeps_it() {
    let mut s = Probe::new(ServerKind::Deferrable, 4, 10);
    assert_eq!(s.wake(8), 4);
    assert_eq!(s.charge(10, 2), 2);
    assert_eq!(s.timer(10), 4);
    assert_eq!(s.0.deadline(), t(20));
    assert_eq!(s.charge(14, 4), 0);
    assert_eq!(s.idle(14), 0);
    assert_eq!(s.wake(19), 0);
    assert_eq!(s.timer(20), 4);
}

#[test]
fn a_periodic_resource_passes_with_time() {
    let mut s = Probe::new(ServerKind::PeriodicResource, 4, 10);
    assert_eq!(s.wake(3), 1, "3 of the first 4 have passed");
    assert_eq!(s.charge(4, 1), 0);
    assert_eq!(s.timer(10), 4);
    assert_eq!(s.idle(10), 4);
    assert_eq!(s.wake(12), 2);
    assert_eq!(s.idle(12), 2);
    assert_eq!(s.wake(47), 0);
    assert_eq!(s.next(), Some(50));
}

#[test]
fn a_sporadic_server_gets_back_each_piece_one_period_after_its_use_began() {
    let mut s = Probe::new(ServerKind::Sporadic, 4, 10);
    assert_eq!(s.wake(1), 4);
    assert_eq!(s.charge(2, 1), 3);
    assert_eq!(s.idle(2), 3);
    assert_eq!(s.wake(5), 3);
    assert_eq!(s.charge(8, 3), 0);
    assert_eq!(s.next(), Some(11));
    assert_eq!(s.timer(11), 1);
    assert_eq!(s.charge(12, 1), 0, "used from 11 on, so back at 21");
    assert_eq!(s.next(), Some(15));
    assert_eq!(s.timer(15), 3);
    assert_eq!(s.timer(21), 4);
}

#[test]
fn a_sporadic_server_merges_late_and_never_gains() {
    let (budget, period) = (20, 100);
    let mut s = Probe::new(ServerKind::Sporadic, budget, period);
    // Twelve uses of 1, each an activation of its own: more than it keeps apart.
    for n in 0..12 {
        let _ = s.wake(n * 2);
        let _ = s.charge(n * 2 + 1, 1);
        let _ = s.idle(n * 2 + 1);
    }
    assert_eq!(s.wake(30), 8);
    let mut back = Vec::new();
    while let Some(next) = s.next() {
        back.push((next, s.timer(next) - 8));
    }
    // Use n began at 2n and is due at 100 + 2n. What could not be kept apart comes with a later
    // one, at the latest with the last, at 122.
    assert_eq!(back.first(), Some(&(100, 1)));
    assert_eq!(back.last(), Some(&(122, 12)));
    for (at, sum) in &back {
        let due = (0..12).filter(|n| 100 + 2 * n <= *at).count();
        assert!(*sum <= u64::try_from(due).expect("small"), "at {at}: {sum}");
    }
    assert!(back.len() < 12, "merged: {back:?}");
}

#[test]
fn a_constant_bandwidth_server_keeps_its_rate_by_its_deadline() {
    let mut s = Probe::new(ServerKind::ConstantBandwidth, 4, 10);
    assert_eq!(s.wake(3), 4);
    assert_eq!(s.0.deadline(), t(13));
    assert_eq!(s.charge(6, 3), 1);
    assert_eq!(s.idle(6), 1);
    // 1 in the 5 up to 13 is below 4 in 10: it goes on with that.
    assert_eq!(s.wake(8), 1);
    assert_eq!(s.0.deadline(), t(13));
    assert_eq!(s.idle(8), 1);
    // 1 in the 2 up to 13 is above: a new deadline.
    assert_eq!(s.wake(11), 4);
    assert_eq!(s.0.deadline(), t(21));
    assert_eq!(s.charge(15, 4), 0);
    assert_eq!(s.next(), Some(21), "hard: throttled until its deadline");
    assert_eq!(s.timer(21), 4);
    assert_eq!(s.0.deadline(), t(31));
}

#[test]
fn what_a_late_timer_let_run_is_paid_from_the_next_budget() {
    for kind in ServerKind::ALL {
        let mut s = Probe::new(kind, 4, 10);
        assert_eq!(s.wake(0), 4, "{kind:?}");
        assert_eq!(s.charge(6, 6), 0, "{kind:?}: 2 more than it had");
        assert_eq!(s.timer(10), 2, "{kind:?}");
        assert_eq!(s.charge(12, 2), 0, "{kind:?}");
    }
}

#[test]
fn an_endless_overrun_is_paid_back_in_constant_time() {
    for kind in ServerKind::ALL {
        let mut s = Probe::new(kind, 1, 2);
        let _ = s.wake(0);
        let now = 1 << 40;
        assert!(s.charge(now, now) <= 1, "{kind:?}");
        assert!(s.timer(now) <= 1, "{kind:?}");
    }
}

/// Random use, with exact timers and late ones: in any window the server gives at most one budget
/// per period, one for the window's ends, and what was overdrawn before it.
#[test]
fn no_use_of_a_server_gains_time() {
    let mut x = 1_u64;
    let mut dice = move |n: u64| {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % n
    };
    for round in 0..5_000 {
        let kind = ServerKind::ALL[usize::try_from(round % 5).expect("small")];
        let period = 2 + dice(30);
        let budget = 1 + dice(period);
        let mut s = Probe::new(kind, budget, period);
        let (mut now, mut used, mut awake) = (0, 0, false);
        for _ in 0..200 {
            if !awake {
                now += dice(2 * period);
                let _ = s.wake(now);
                awake = true;
            }
            let ran = dice(s.left() + 1);
            now += ran + dice(4);
            if ran > 0 {
                let _ = s.charge(now, ran);
                used += ran;
            }
            let _ = s.timer(now);
            if dice(3) == 0 {
                let _ = s.idle(now);
                awake = false;
            }
        }
        let most = (now / period + 2) * budget;
        assert!(used <= most, "{kind:?} {budget}/{period}: {used} in {now}");
    }
}
