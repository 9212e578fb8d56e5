//! Sporadic server: used budget comes back one period after its use began.
//!
//! Source: Sprunt, Sha and Lehoczky 1989, with the corrections of Stanovich, Baker, Wang and
//! Gonzalez Harbour 2010. Each replenishment carries the instant from which it may be used. The
//! used part comes back one period after that. To the work below it, it is a periodic task. At most
//! [`MOST`] replenishments are kept; where work begins with so many, the two latest are merged at
//! the later instant, which may lose time and never gains any. Gives up: nothing but that.

use crate::server::Server;
use punctual_model::{Instant, Span, Work};

/// Most replenishments kept.
const MOST: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Replenishment {
    /// From when it may be used.
    at: Instant,
    amount: Work,
}

const NOTHING: Replenishment = Replenishment {
    at: Instant::ZERO,
    amount: Work::ZERO,
};

/// A budget in pieces, each with its own instant.
///
/// INV-SPORADIC: the pieces are in order of time, and their sum is the capacity.
///
/// INV-MERGE: waiting pieces are merged when work begins, and not again while there is work, where
/// the budget is used within the period. So what is used while there is work comes back one period
/// after it could be used, and what was used before one period after the last use, at the latest.
/// The bounds of the analysis count on it. (A part of the first piece that is used needs a piece
/// more, and its last part gives one back: one free place is enough.)
#[derive(Clone, Copy, Debug)]
pub struct Sporadic {
    capacity: Work,
    period: Span,
    pieces: [Replenishment; MOST],
    len: usize,
    /// How many at the front may be used already.
    usable: usize,
    awake: bool,
}

impl Sporadic {
    fn remove_first(&mut self) {
        self.pieces.copy_within(1..self.len, 0);
        self.len -= 1;
        self.usable = self.usable.saturating_sub(1);
    }

    /// Merges piece `index` into the one behind it, at the later instant.
    fn merge_into_next(&mut self, index: usize) {
        let amount = self.pieces[index].amount;
        let next = &mut self.pieces[index + 1];
        next.amount = next.amount.saturating_add(amount);
        self.pieces.copy_within(index + 1..self.len, index);
        self.len -= 1;
        if index < self.usable {
            self.usable -= 1;
        }
    }

    /// Has what was used come back at an instant, which is never before the last one so far.
    fn replenish(&mut self, at: Instant, amount: Work) {
        if self.len > self.usable && self.pieces[self.len - 1].at == at {
            let last = &mut self.pieces[self.len - 1];
            last.amount = last.amount.saturating_add(amount);
            return;
        }
        if self.len == MOST && self.len > self.usable {
            let last = &mut self.pieces[MOST - 1];
            last.at = at;
            last.amount = last.amount.saturating_add(amount);
            return;
        }
        if self.len == MOST {
            self.merge_into_next(MOST - 2);
        }
        self.pieces[self.len] = Replenishment { at, amount };
        self.len += 1;
    }

    /// Takes `work` from the pieces in order. Execution beyond them, after a late timer, is taken
    /// from the next ones, so it comes back so much later.
    fn take(&mut self, mut work: Work) {
        while !work.is_zero() {
            let first = self.pieces[0];
            let taken = first.amount.min(work);
            work = work.saturating_sub(taken);
            if taken == first.amount {
                self.remove_first();
            } else {
                self.pieces[0].amount = first.amount.saturating_sub(taken);
            }
            self.replenish(first.at.saturating_add(self.period), taken);
        }
    }

    fn ripen(&mut self, now: Instant) {
        while self.usable < self.len && self.pieces[self.usable].at <= now {
            self.usable += 1;
        }
    }
}

impl Server for Sporadic {
    fn new(terms: &punctual_model::Server) -> Self {
        let mut pieces = [NOTHING; MOST];
        pieces[0].amount = terms.budget;
        Sporadic {
            capacity: terms.budget,
            period: terms.period,
            pieces,
            len: 1,
            usable: 1,
            awake: false,
        }
    }

    /// Activation: usable budget is used from now on.
    fn wake(&mut self, now: Instant, _since: Instant) {
        self.awake = true;
        self.ripen(now);
        while self.usable > 1 {
            self.merge_into_next(0);
        }
        if self.usable == 1 {
            self.pieces[0].at = now;
        }
        if self.len == MOST {
            self.merge_into_next(MOST - 2);
        }
    }

    fn idle(&mut self, _at: Instant) {
        self.awake = false;
    }

    fn charge(&mut self, _now: Instant, work: Work) {
        if self.capacity.is_zero() {
            return;
        }
        if work < self.capacity {
            return self.take(work);
        }
        // Using the whole capacity once moves every piece by one period.
        let rounds = work.ticks() / self.capacity.ticks();
        if rounds > 1 {
            let shift = (rounds - 1).saturating_mul(self.period.ticks());
            for piece in &mut self.pieces[..self.len] {
                piece.at = piece.at.saturating_add(Span::from_ticks(shift));
            }
        }
        let whole = self.capacity.ticks() * rounds.saturating_sub(1);
        self.take(work.saturating_sub(Work::from_ticks(whole)));
    }

    /// As a rule the used part comes back with the piece that came last.
    fn spend(&mut self, now: Instant, work: Work) -> Option<Work> {
        let before = (self.next(), self.deadline());
        self.charge(now, work);
        let is_same = before == (self.next(), self.deadline());
        Some(self.budget()).filter(|left| is_same && !left.is_zero())
    }

    fn timer(&mut self, now: Instant) {
        self.ripen(now);
    }

    fn budget(&self) -> Work {
        let usable = self.pieces[..self.usable].iter();
        usable.fold(Work::ZERO, |sum, piece| sum.saturating_add(piece.amount))
    }

    fn capacity(&self) -> Work {
        self.capacity
    }

    fn next(&self) -> Option<Instant> {
        let waiting = self.pieces[self.usable..self.len].first();
        waiting.filter(|_| self.awake).map(|piece| piece.at)
    }

    /// One period after the use of its first piece began.
    fn deadline(&self) -> Instant {
        self.pieces[0].at.saturating_add(self.period)
    }

    fn check(&self) -> Result<(), &'static str> {
        let pieces = &self.pieces[..self.len];
        let sum = pieces.iter().map(|piece| piece.amount);
        if sum.fold(Work::ZERO, Work::saturating_add) != self.capacity {
            return Err("T3: the replenishments of a sporadic server are its capacity");
        }
        if !pieces.is_sorted_by_key(|piece| piece.at) {
            return Err("T3: the replenishments of a sporadic server are in order");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(ticks: u64) -> Instant {
        Instant::from_ticks(ticks)
    }

    fn server(budget: u64, period: u64) -> Sporadic {
        Sporadic::new(&punctual_model::Server {
            kind: punctual_model::ServerKind::Sporadic,
            budget: Work::from_ticks(budget),
            period: Span::from_ticks(period),
        })
    }

    fn pieces(server: &Sporadic) -> Vec<(u64, u64)> {
        let pieces = server.pieces[..server.len].iter();
        pieces.map(|p| (p.at.ticks(), p.amount.ticks())).collect()
    }

    /// Takes `work` from a list without bound.
    fn take(pieces: &mut Vec<(u64, u64)>, mut work: u64, period: u64) {
        while work > 0 {
            let used = pieces[0].1.min(work);
            let back = pieces[0].0 + period;
            work -= used;
            pieces[0].1 -= used;
            pieces.retain(|piece| piece.1 > 0);
            match pieces.last_mut().filter(|last| last.0 == back) {
                Some(last) => last.1 += used,
                None => pieces.push((back, used)),
            }
        }
    }

    /// Seven short uses, and a rest that is used in one piece while the list is full.
    #[test]
    fn what_is_used_first_comes_back_after_a_period_however_full_the_list_is() {
        let mut server = server(13, 1_000);
        for (start, work) in [(0, 2), (10, 1), (20, 1), (30, 1), (40, 1), (50, 1), (60, 1)] {
            server.wake(at(start), at(start));
            server.charge(at(start + work), Work::from_ticks(work));
            server.idle(at(start + work));
        }
        server.wake(at(900), at(900));
        server.charge(at(905), Work::from_ticks(5));
        // A part of what comes next, in an entry of its own, and the rest of it.
        server.timer(at(1_000));
        server.charge(at(1_001), Work::from_ticks(1));
        server.timer(at(1_060));
        server.charge(at(1_067), Work::from_ticks(7));
        assert_eq!(server.budget(), Work::ZERO);
        server.timer(at(1_900));
        assert_eq!(server.budget(), Work::from_ticks(5));
    }

    #[test]
    fn pieces_are_merged_where_work_begins_and_never_while_there_is_work() {
        let mut state = 7_u64;
        let mut below = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        let (mut full, mut steps) = (0, 0);
        for _ in 0..300 {
            let capacity = 5 + below(30);
            let period = 4 * capacity + below(100);
            let mut server = server(capacity, period);
            let (mut now, mut last_use) = (0, 0);
            for _ in 0..60 {
                let before = server.len;
                server.wake(at(now), at(now));
                full += u64::from(before == MOST);
                let mut exact = pieces(&server);
                assert!(
                    exact
                        .iter()
                        .all(|piece| piece.0 <= now.max(last_use + period))
                );
                for _ in 0..below(12) {
                    match server.budget().ticks() {
                        0 => now = server.next().map_or(now, Instant::ticks),
                        left => {
                            let work = 1 + below(left);
                            now += work + below(3);
                            last_use = now;
                            server.charge(at(now), Work::from_ticks(work));
                            take(&mut exact, work, period);
                        }
                    }
                    server.timer(at(now));
                    assert_eq!(pieces(&server), exact);
                    assert_eq!(server.check(), Ok(()));
                    steps += 1;
                }
                server.idle(at(now));
                now += below(period / 8);
            }
        }
        assert!(
            full > 500 && steps > 50_000,
            "{full} full lists, {steps} steps"
        );
    }
}
