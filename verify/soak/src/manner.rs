//! How schedulers that decide on their own supply behave: many not as they should.

use core::hint::black_box;
use std::panic::resume_unwind;

use punctual_generate::Random;
use punctual_kern::{Attributes, Pick, Policy};
use punctual_linux::clock_rate;
use punctual_model::{Instant, PolicyKind, Span, ThreadId, Work};
use punctual_policy::AnyPolicy;

/// The message of a child that panics as it was meant to.
pub(crate) const LAST_WORDS: &str = "out of ideas";

/// The way in which a child decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    Honest,
    /// Now and then it computes for long, or names somebody by chance, or nobody for a while.
    Moody,
    /// After some decisions it does one of these for good: it needs a fallback.
    Loops,
    Lies,
    IsSilent,
    Panics,
}

impl Manner {
    pub(crate) const ALL: [Manner; 6] = [
        Manner::Honest,
        Manner::Moody,
        Manner::Loops,
        Manner::Lies,
        Manner::IsSilent,
        Manner::Panics,
    ];

    /// In a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Manner::Honest => "honest",
            Manner::Moody => "moody",
            Manner::Loops => "loops",
            Manner::Lies => "lies",
            Manner::IsSilent => "silent",
            Manner::Panics => "panics",
        }
    }

    /// Of one that comes while the run goes on: for good nothing goes wrong without a fallback.
    pub(crate) fn of_newcomer(has_fallback: bool, dice: &mut Random) -> Manner {
        let all = match has_fallback && dice.happens(300) {
            true => &Manner::ALL[..],
            false => &[Manner::Honest, Manner::Moody],
        };
        *dice.pick(all).unwrap_or(&Manner::Honest)
    }

    /// Whether its threads go on only under another policy.
    pub(crate) fn ends(self) -> bool {
        !matches!(self, Manner::Honest | Manner::Moody)
    }
}

/// A policy in the hands of a child.
#[derive(Debug)]
pub(crate) struct Child {
    order: AnyPolicy,
    manner: Manner,
    dice: Random,
    /// Decisions before it goes wrong for good.
    left: u32,
    /// Ticks for which it names nobody.
    pause: Span,
}

impl Child {
    /// One that keeps the order of `policy` as long as nothing goes wrong.
    pub(crate) fn new(
        (policy, entities): (PolicyKind, usize),
        manner: Manner,
        mut dice: Random,
    ) -> Child {
        let pause = Span::from_us(dice.within(20, 500));
        Child {
            order: AnyPolicy::new(policy, entities, &[]),
            manner,
            left: u32::try_from(dice.below(2_000)).unwrap_or(0),
            pause: pause.ticks_up(clock_rate().frequency),
            dice,
        }
    }

    fn any(&mut self) -> Pick {
        let index = u32::try_from(self.dice.below(40)).unwrap_or(0);
        let generation = u32::try_from(self.dice.below(3)).unwrap_or(0);
        Pick::run(ThreadId::new(index, generation))
    }

    fn nobody_until(&self, now: Instant) -> Pick {
        Pick {
            entity: None,
            until: Some(now.saturating_add(self.pause)),
        }
    }
}

impl Policy for Child {
    fn attach(&mut self, thread: ThreadId) {
        self.order.attach(thread);
    }
    fn detach(&mut self, thread: ThreadId) {
        self.order.detach(thread);
    }
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.order.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.order.block(thread);
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.order.update(thread, attributes);
    }
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.order.renew(thread, attributes);
    }
    fn yield_now(&mut self, thread: ThreadId) {
        self.order.yield_now(thread);
    }
    fn charge(&mut self, thread: ThreadId, work: Work) {
        self.order.charge(thread, work);
    }

    fn pick(&mut self, now: Instant) -> Pick {
        self.left = self.left.saturating_sub(1);
        match self.manner {
            Manner::Moody => match self.dice.below(20) {
                0 => {
                    let steps = self.dice.below(200_000);
                    (0..steps).for_each(|step| {
                        let _ = black_box(step);
                    });
                    self.order.pick(now)
                }
                1 => self.any(),
                2 => self.nobody_until(now),
                _ => self.order.pick(now),
            },
            _ if self.left > 0 => self.order.pick(now),
            Manner::Honest => self.order.pick(now),
            Manner::Loops => loop {
                core::hint::spin_loop();
            },
            Manner::Lies => self.any(),
            Manner::IsSilent => Pick::NOBODY,
            Manner::Panics => resume_unwind(Box::new(LAST_WORDS)),
        }
    }
}
