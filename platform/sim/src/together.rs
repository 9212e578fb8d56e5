//! CPUs that are simulated together: the earliest instant of all of them, again and again.

use std::collections::VecDeque;

use punctual_kern::{Policy, Sink};
use punctual_model::{Clock, Instant};

use crate::NEVER;
use crate::agendas::{Order, Planner};
use crate::cpu::Cpu;
use crate::parts::{Observer, STEPS_PER_QUESTION};

/// CPUs that are simulated together.
pub(crate) struct Group<'g, 'a, P, S> {
    members: &'g mut [(usize, Cpu<'a, P, S>)],
    horizon: Instant,
    limit: Instant,
    pub(crate) now: Instant,
    /// The clocks of all CPUs, if any of them is wrong. Every CPU lives by its own; the order of
    /// what happens between them is that of true time.
    clocks: &'g [Clock],
    /// The last instant of each member, by its own clock.
    seen: Vec<Instant>,
    /// The planner of groups, if it plans for these members.
    pub(crate) planner: Option<Planner<'g>>,
}

impl<'g, 'a, P: Policy, S: Sink> Group<'g, 'a, P, S> {
    /// CPUs that are to be simulated up to the horizon, or the limit behind it. `clocks`: of all
    /// CPUs of the system.
    pub(crate) fn new(
        members: &'g mut [(usize, Cpu<'a, P, S>)],
        (horizon, limit): (Instant, Instant),
        clocks: &'g [Clock],
    ) -> Group<'g, 'a, P, S> {
        // Alone, a CPU knows no time but its own.
        let all_true = clocks.iter().all(|clock| clock.is_true()) || members.len() < 2;
        Group {
            seen: vec![Instant::ZERO; members.len()],
            members,
            horizon,
            limit,
            now: Instant::ZERO,
            clocks: if all_true { &[] } else { clocks },
            planner: None,
        }
    }

    /// Returns `false` when the observer ended it.
    pub(crate) fn run(&mut self, observer: &mut impl Observer) -> bool {
        match self.members.len() == 1 && self.planner.is_none() {
            true => self.run_as::<true>(observer),
            false => self.run_as::<false>(observer),
        }
    }

    /// `ALONE`: there is one CPU, whose clock is the only one, and no planner.
    fn run_as<const ALONE: bool>(&mut self, observer: &mut impl Observer) -> bool {
        let mut steps = 0_u32;
        loop {
            let (now, at) = match ALONE {
                true => (self.members[0].1.next_instant(), 0),
                false => self.earliest(),
            };
            if !ALONE && self.planner.is_some() && self.plan(now) {
                continue;
            }
            if now > self.limit || now == NEVER || (now >= self.horizon && self.is_done()) {
                break;
            }
            let (_, member) = &mut self.members[at];
            if member.stand_still(now) {
                continue;
            }
            match ALONE || self.clocks.is_empty() {
                true => self.now = now,
                // By its own clock. Another may have been ahead of it.
                false => (self.now, self.seen[at]) = (self.now.max(now), now),
            }
            let completion = member.step(now);
            if member.has_news() {
                self.deliver_messages(at, now);
                self.deliver_nudges(at, now);
            }
            if !ALONE && self.planner.is_some() {
                self.tell_planner(at, now);
            }
            if let Some(completion) = completion {
                observer.completed(completion);
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_PER_QUESTION) && !observer.goes_on(now) {
                return false;
            }
        }
        true
    }

    /// The planner of groups does its part, when all members have gone on to the instant at which
    /// that is due; `false`: nothing is.
    fn plan(&mut self, members: Instant) -> bool {
        let Some(planner) = &mut self.planner else {
            return false;
        };
        let due = planner.planning.next_instant();
        let due = due
            .map(|due| due.max(self.now))
            .filter(|&due| due <= self.limit);
        let Some(due) = due.filter(|&due| due < members) else {
            return false;
        };
        let obeyed = |&member: &usize| self.members[member].1.has_obeyed();
        if planner.planning.begins(due) && !planner.members.iter().all(obeyed) {
            return false;
        }
        self.now = due;
        let orders = planner.planning.act(due);
        let places = &planner.members;
        deliver(self.members, (places, due), orders);
        true
    }

    /// The planner sees how far a member is, and what follows.
    #[inline]
    fn tell_planner(&mut self, member: usize, now: Instant) {
        let Some(planner) = &mut self.planner else {
            return;
        };
        let cpu = planner.members.iter().position(|&at| at == member);
        if let Some(cpu) = cpu
            && let Some(orders) = planner
                .planning
                .see(cpu, now, self.members[member].1.agenda())
        {
            let places = &planner.members;
            deliver(self.members, (places, now), orders);
        }
    }

    /// The next instant and the member to which it belongs; equal instants in the order of CPUs.
    /// [`NEVER`]: nothing happens any more.
    #[inline]
    fn earliest(&self) -> (Instant, usize) {
        if !self.clocks.is_empty() {
            return self.truly_earliest();
        }
        let instants = self.members.iter().enumerate();
        let instants = instants.map(|(i, (_, cpu))| (cpu.next_instant(), i));
        instants.min().unwrap_or((NEVER, 0))
    }

    /// The same where clocks differ.
    #[cold]
    fn truly_earliest(&self) -> (Instant, usize) {
        let instants = self.members.iter().enumerate();
        let instants = instants.map(|(i, (_, cpu))| (cpu.next_instant(), i));
        let instants = instants.filter(|&(instant, _)| instant < NEVER);
        let first = instants.min_by_key(|&(instant, i)| (self.truly(i, instant), i));
        first.unwrap_or((NEVER, 0))
    }

    /// The true time of an instant of a member.
    fn truly(&self, member: usize, at: Instant) -> i64 {
        let reads = i64::try_from(at.ticks()).unwrap_or(i64::MAX);
        let clock = self.clocks.get(self.members[member].0);
        clock.map_or(reads, |clock| clock.truly(reads))
    }

    /// The instant of member `to` at which it is `now` for member `from`.
    fn instant_of(&self, to: usize, (from, now): (usize, Instant)) -> Instant {
        let Some(clock) = self.clocks.get(self.members[to].0) else {
            return now;
        };
        let reads = clock.reads(self.truly(from, now));
        let reads = Instant::from_ticks(u64::try_from(reads).unwrap_or(0));
        reads.max(self.seen[to])
    }

    /// A job that was due before the horizon is still to come when its release is delayed past it.
    fn is_done(&self) -> bool {
        let plans = self.planner.as_ref();
        plans.is_none_or(|planner| planner.planning.is_idle())
            && self.members.iter().all(|(_, cpu)| {
                !cpu.unsettled()
                    && !cpu.has_arrivals()
                    && cpu.has_obeyed()
                    && !cpu.owes_timer_before(self.horizon)
            })
    }

    #[inline]
    fn deliver_nudges(&mut self, from: usize, now: Instant) {
        while let Some(task) = self.members[from].1.nudges.pop() {
            for to in 0..self.members.len() {
                let now = self.instant_of(to, (from, now));
                self.members[to].1.be_nudged(task, now);
            }
        }
    }

    fn deliver_messages(&mut self, from: usize, now: Instant) {
        while let Some(message) = self.members[from].1.take_message() {
            let to = self
                .members
                .iter()
                .position(|(cpu, _)| *cpu == message.to.index());
            if let Some(to) = to {
                let now = self.instant_of(to, (from, now));
                self.members[to].1.hear(now, message);
            }
        }
    }
}

/// Orders for the members at these places.
fn deliver<P: Policy, S: Sink>(
    members: &mut [(usize, Cpu<'_, P, S>)],
    (places, now): (&[usize], Instant),
    orders: Vec<VecDeque<Order>>,
) {
    for (&member, orders) in places.iter().zip(orders) {
        for order in orders {
            members[member].1.tell(now, order);
        }
    }
}
