//! What a visitor of a monitor may do to those that wait in it.

use core::fmt;

use punctual_kern::Ceiling;
use punctual_model::{Instant, Ns, Span};

use crate::record::host::Host;
use crate::record::light::Light;
use crate::record::post::Kicks;
use crate::record::seat::Line;
use crate::wait::who::Who;

/// What a visitor may do to those that wait.
pub struct Desk<'a> {
    host: &'a Host,
    me: &'a Light,
    lines: &'a [Line],
    /// Threads of several CPUs visit.
    between: bool,
    also: *const Light,
    kicks: Kicks,
    handed: Option<&'static Light>,
    lowered: bool,
}

/// What is to be done when a visit is over.
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

impl fmt::Debug for Desk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl<'a> Desk<'a> {
    #[inline(always)]
    pub(crate) const fn new(
        host: &'a Host,
        me: &'a Light,
        lines: &'a [Line],
        between: bool,
    ) -> Desk<'a> {
        Desk {
            host,
            me,
            lines,
            between,
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

    /// How many wait in a line. O(them).
    pub fn count(&self, line: usize) -> usize {
        self.lines[line].iter().count()
    }

    /// Whether nobody waits in a line.
    pub fn is_empty(&self, line: usize) -> bool {
        self.lines[line].iter().next().is_none()
    }

    /// The most urgent of a line, the first come among equals and between CPUs, with what it asked.
    /// O(waiters).
    #[inline]
    pub fn most_urgent(&self, line: usize) -> Option<(Who, u64)> {
        let found = self.most_urgent_of(line, Some)?;
        Some((Who::of(found.0), found.1))
    }

    /// The most urgent of a line among those whose ask is `wanted`. O(waiters).
    pub fn most_urgent_if(&self, line: usize, wanted: impl Fn(u64) -> bool) -> Option<Who> {
        let found = self.most_urgent_of(line, |ask| wanted(ask).then_some(ask))?;
        Some(Who::of(found.0))
    }

    /// Answers the most urgent of a line among those for whom `answer` gives one, and returns what
    /// that one asked; `None`: there is none. O(waiters).
    pub fn answer_if(&mut self, line: usize, answer: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let (light, answer) = self.most_urgent_of(line, answer)?;
        let ask = light.seat.ask.get();
        self.go_on(light, answer, true);
        Some(ask)
    }

    /// As [`Desk::answer_if`]; a CPU that executes somebody is not interrupted for that: it hears
    /// of it at its next entry.
    pub fn answer_idly(&mut self, line: usize, answer: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let (light, answer) = self.most_urgent_of(line, answer)?;
        let ask = light.seat.ask.get();
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
        self.me.seat.ceiling.set(ceiling);
        self.lowered |= self.me.seat.told.get().is_some();
    }

    /// What [`Desk::set_ceiling`] said last.
    #[inline]
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.me.seat.ceiling.get()
    }

    /// The instant `span` (nanoseconds) from now, on the timeline of the core.
    pub fn after(&self, span: Span<Ns>) -> Instant {
        let clock = self.host.clock();
        let ticks = clock.frequency().ticks_down(span.as_ns());
        clock.now().saturating_add(Span::from_ticks(ticks))
    }

    /// Urgencies of different CPUs do not compare: there the first come goes first.
    fn is_before(&self, a: &Light, b: &Light) -> bool {
        !self.between && self.host.goes_before(a.id(), b.id())
    }

    fn most_urgent_of(
        &self,
        line: usize,
        answer: impl Fn(u64) -> Option<u64>,
    ) -> Option<(&'static Light, u64)> {
        let waiters = self.lines[line].iter();
        let wanted = waiters.filter_map(|light| Some((light, answer(light.seat.ask.get())?)));
        let most = |first: (&'static Light, u64), other: (&'static Light, u64)| match self
            .is_before(other.0, first.0)
        {
            true => other,
            false => first,
        };
        wanted.reduce(most)
    }

    /// Answers one that waits, which goes on when the visit is over.
    pub fn answer(&mut self, who: Who, answer: u64) {
        if let Some(light) = self.waiter(who) {
            self.go_on(light, answer, true);
        }
    }

    /// The thread, if it waits here. O(waiters).
    fn waiter(&self, who: Who) -> Option<&'static Light> {
        if !self.between {
            let light = who.light(self.host)?;
            let here = self.lines.iter().any(|line| light.seat.stands_in(line));
            return here.then_some(light);
        }
        let mut all = self.lines.iter().flat_map(Line::iter);
        all.find(|light| who == Who::of(light))
    }

    /// As [`Desk::answer`]; it holds from now on what the caller held, and whoever waits for that
    /// lends to it. One visit hands over once.
    pub fn hand_over(&mut self, who: Who, answer: u64) {
        if let Some(light) = self.waiter(who) {
            light.seat.leave();
            light.seat.answer.set(Some(answer));
            self.handed = Some(light);
        }
    }

    fn go_on(&mut self, light: &Light, answer: u64, soon: bool) {
        light.seat.leave();
        light.seat.answer.set(Some(answer));
        if self.between && !core::ptr::eq(light.host(), self.host) {
            // SAFETY: a host outlives its threads, and its place among the CPUs does not change.
            let cpu = unsafe { (*light.host()).index };
            self.host.shared.post.call(cpu, light);
            self.kicks.add(cpu, soon);
            return;
        }
        light.seat.also.set(self.also);
        self.also = light;
    }
}
