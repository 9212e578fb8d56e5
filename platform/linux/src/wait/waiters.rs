//! What a section of a monitor may do to those that wait in it.

use core::fmt;

use punctual_kern::Ceiling;
use punctual_model::{Instant, Ns, Span};

use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;
use crate::record::post::Kicks;
use crate::record::wait_queue::WaitQueue;
use crate::wait::who::Who;

/// What a section may do to those that wait.
pub struct Waiters<'a> {
    host: &'a PerCpu,
    me: &'a Light,
    queues: &'a [WaitQueue],
    /// The monitor is one of several CPUs.
    cross_cpu: bool,
    also: *const Light,
    kicks: Kicks,
    handed: Option<&'static Light>,
    lowered: bool,
}

/// What is to be done when a critical section is over.
pub(crate) struct After {
    /// Those of this CPU that go on.
    pub(crate) also: *const Light,
    /// The CPUs of the others.
    pub(crate) kicks: Kicks,
    /// Who holds from now on what the caller held.
    pub(crate) handed: Option<&'static Light>,
    /// The caller may be less urgent than the core thinks.
    pub(crate) lowered: bool,
}

impl fmt::Debug for Waiters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").finish_non_exhaustive()
    }
}

impl<'a> Waiters<'a> {
    #[inline(always)]
    pub(crate) const fn new(
        host: &'a PerCpu,
        me: &'a Light,
        queues: &'a [WaitQueue],
        cross_cpu: bool,
    ) -> Waiters<'a> {
        Waiters {
            host,
            me,
            queues,
            cross_cpu,
            also: core::ptr::null(),
            kicks: Kicks::NONE,
            handed: None,
            lowered: false,
        }
    }

    #[inline(always)]
    pub(crate) fn close(self) -> After {
        After {
            also: self.also,
            kicks: self.kicks,
            handed: self.handed,
            lowered: self.lowered,
        }
    }

    /// The caller.
    #[inline]
    pub fn me(&self) -> Who {
        Who::of(self.me)
    }

    /// How many wait in a queue. O(them).
    pub fn count(&self, queue: usize) -> usize {
        self.queues[queue].iter().count()
    }

    /// Whether nobody waits in a queue.
    #[inline]
    pub fn is_empty(&self, queue: usize) -> bool {
        self.queues[queue].is_empty()
    }

    /// The most urgent of a queue, the first come among equals and between CPUs, with what it
    /// asked. O(waiters).
    #[inline]
    pub fn most_urgent(&self, queue: usize) -> Option<(Who, u64)> {
        let found = self.most_urgent_of(queue, Some)?;
        Some((Who::of(found.0), found.1))
    }

    /// The most urgent of a queue among those whose ask is `wanted`. O(waiters).
    pub fn most_urgent_if(&self, queue: usize, wanted: impl Fn(u64) -> bool) -> Option<Who> {
        let found = self.most_urgent_of(queue, |ask| wanted(ask).then_some(ask))?;
        Some(Who::of(found.0))
    }

    /// Answers the most urgent of a queue among those for whom `answer` gives one, and returns what
    /// that one asked; `None`: there is none. O(waiters).
    #[inline(always)]
    pub fn answer_if(&mut self, queue: usize, answer: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let (light, answer) = self.most_urgent_of(queue, answer)?;
        let ask = light.wait_node.ask.get();
        self.go_on(light, answer, true);
        Some(ask)
    }

    /// As [`Waiters::answer_if`]; a CPU that executes somebody is not interrupted for that: it
    /// hears of it at its next entry.
    pub fn answer_idly(
        &mut self,
        queue: usize,
        answer: impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let (light, answer) = self.most_urgent_of(queue, answer)?;
        let ask = light.wait_node.ask.get();
        self.go_on(light, answer, false);
        Some(ask)
    }

    /// Whether the caller is more urgent than one that waits.
    pub fn goes_before(&self, who: Who) -> bool {
        self.waiter(who)
            .is_none_or(|other| self.is_before(self.me, other))
    }

    /// How urgent the caller is at least from now on; `None`: as urgent as by itself. The core is
    /// told when it is entered next, and not at all if that comes to nothing before.
    #[inline]
    pub fn set_ceiling(&mut self, ceiling: Option<Ceiling>) {
        self.lowered |= self.me.set_ceiling(ceiling);
    }

    /// What [`Waiters::set_ceiling`] said last.
    #[inline]
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.me.wait_node.ceiling()
    }

    /// The instant `span` (nanoseconds) from now, on the timeline of the core.
    pub fn after(&self, span: Span<Ns>) -> Instant {
        let clock = self.host.clock();
        let ticks = clock.frequency().ticks_down(span.as_ns());
        clock.now().saturating_add(Span::from_ticks(ticks))
    }

    /// Urgencies of different CPUs do not compare: there the first come goes first.
    #[inline]
    fn is_before(&self, a: &Light, b: &Light) -> bool {
        is_before((self.host, self.cross_cpu), a, b)
    }

    /// Nearly always one waits, who is the most urgent.
    #[inline(always)]
    fn most_urgent_of(
        &self,
        queue: usize,
        answer: impl Fn(u64) -> Option<u64>,
    ) -> Option<(&'static Light, u64)> {
        let queue = &self.queues[queue];
        match queue.first()? {
            (only, true) => Some((only, answer(only.wait_node.ask.get())?)),
            _ => most_urgent_of_several((self.host, self.cross_cpu), queue, answer),
        }
    }

    /// Answers one that waits, which goes on when the section is over.
    pub fn answer(&mut self, who: Who, answer: u64) {
        if let Some(light) = self.waiter(who) {
            self.go_on(light, answer, true);
        }
    }

    /// The thread, if it waits here. O(waiters).
    fn waiter(&self, who: Who) -> Option<&'static Light> {
        if !self.cross_cpu {
            let light = who.light(self.host)?;
            let here = self
                .queues
                .iter()
                .any(|queue| light.wait_node.stands_in(queue));
            return here.then_some(light);
        }
        let mut all = self.queues.iter().flat_map(WaitQueue::iter);
        all.find(|light| who == Who::of(light))
    }

    /// As [`Waiters::answer`]; it holds from now on what the caller held, and inherits from those
    /// that wait for that. One section hands over once.
    pub fn hand_over(&mut self, who: Who, answer: u64) {
        if let Some(light) = self.waiter(who) {
            self.hand_to(light, answer);
        }
    }

    /// [`Waiters::hand_over`] to the most urgent of a queue, if anybody waits there. O(waiters).
    #[inline]
    pub fn hand_on(&mut self, queue: usize, answer: u64) -> Option<Who> {
        let (light, _) = self.most_urgent_of(queue, Some)?;
        self.hand_to(light, answer);
        Some(Who::of(light))
    }

    #[inline]
    fn hand_to(&mut self, light: &'static Light, answer: u64) {
        light.wait_node.leave();
        light.wait_node.answer.set(Some(answer));
        self.handed = Some(light);
    }

    #[inline]
    fn go_on(&mut self, light: &Light, answer: u64, soon: bool) {
        light.wait_node.leave();
        light.wait_node.answer.set(Some(answer));
        if self.cross_cpu && !core::ptr::eq(light.host(), self.host) {
            self.kicks = go_on_elsewhere(self.host, light, (self.kicks, soon));
            return;
        }
        light.wait_node.also.set(self.also);
        self.also = light;
    }
}

/// Apart from [`Waiters`], whose address nobody needs then: a section has it in registers.
#[inline(never)]
fn most_urgent_of_several(
    among: (&PerCpu, bool),
    queue: &WaitQueue,
    answer: impl Fn(u64) -> Option<u64>,
) -> Option<(&'static Light, u64)> {
    let waiters = queue.iter();
    let wanted = waiters.filter_map(|light| Some((light, answer(light.wait_node.ask.get())?)));
    let most = |first: (&'static Light, u64), other: (&'static Light, u64)| match is_before(
        among, other.0, first.0,
    ) {
        true => other,
        false => first,
    };
    wanted.reduce(most)
}

/// Whether one thread goes before another, on this CPU; the second: between CPUs none does.
#[inline]
fn is_before((host, cross_cpu): (&PerCpu, bool), a: &Light, b: &Light) -> bool {
    !cross_cpu && host.goes_before(a.id(), b.id())
}

/// One that waits on another CPU goes on: the CPUs to be called when the section is over.
#[cold]
fn go_on_elsewhere(host: &PerCpu, light: &Light, (mut kicks, soon): (Kicks, bool)) -> Kicks {
    // SAFETY: a host outlives its threads, and its place among the CPUs does not change.
    let cpu = unsafe { (*light.host()).index };
    host.shared.post.wake(cpu, light);
    kicks.add(cpu, soon);
    kicks
}
