//! The shipped policies by name, and what each claims.

use clap::ValueEnum;
use punctual_conform::{Answer, Claims, Options, check};
use punctual_kern::{Policy, SlotTerms};
use punctual_model::Span;
use punctual_policy::{EarliestDeadlineFirst, Fifo, FixedPriority, RoundRobin, Tdm};

/// Turns of round robin here, in ticks: short against the times of most histories.
const TURN: Span = Span::from_ticks(100);

/// A shipped policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Builtin {
    /// First come, first served
    Fifo,
    /// In turn
    RoundRobin,
    /// By priority
    FixedPriority,
    /// By priority, without preemption
    FixedPriorityNonPreemptive,
    /// By deadline
    Edf,
    /// A slot for each thread in a frame that repeats
    Tdm,
}

impl Builtin {
    /// As on the command line.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn claims(self) -> Claims {
        match self {
            Builtin::Fifo => Claims::FIFO,
            Builtin::RoundRobin => Claims::ROUND_ROBIN,
            Builtin::FixedPriority => Claims::FIXED_PRIORITY,
            Builtin::FixedPriorityNonPreemptive => Claims {
                preemptive: false,
                ..Claims::FIXED_PRIORITY
            },
            Builtin::Edf => Claims::EARLIEST_DEADLINE_FIRST,
            Builtin::Tdm => Claims {
                work_conserving: false,
                ..Claims::ANY_ORDER
            },
        }
    }

    /// Checks it; `claims` replace its own.
    pub(super) fn check(self, claims: Option<Claims>, options: &Options) -> Answer {
        let claims = &claims.unwrap_or_else(|| self.claims());
        match self {
            Builtin::Fifo => answer(claims, Fifo::new, options),
            Builtin::RoundRobin => answer(claims, |n| RoundRobin::new(n, TURN), options),
            Builtin::FixedPriority => answer(claims, FixedPriority::new, options),
            Builtin::FixedPriorityNonPreemptive => {
                answer(claims, FixedPriority::non_preemptive, options)
            }
            Builtin::Edf => answer(claims, EarliestDeadlineFirst::new, options),
            Builtin::Tdm => answer(claims, slots, options),
        }
    }
}

/// A slot as long as a turn for each of so many threads.
fn slots(capacity: usize) -> Tdm {
    let length = TURN.ticks();
    let slot = |entity: u32| SlotTerms {
        node: 0,
        entity,
        at: Span::from_ticks(length * u64::from(entity)),
        length: TURN,
    };
    let entities = u32::try_from(capacity).unwrap_or(u32::MAX);
    let frame = Span::from_ticks(length * u64::from(entities));
    let slots: Vec<SlotTerms> = (0..entities).map(slot).collect();
    Tdm::new(capacity, frame, &slots)
}

fn answer<P: Policy + 'static>(
    claims: &Claims,
    make: impl Fn(usize) -> P,
    options: &Options,
) -> Answer {
    match check(claims, make, options) {
        Ok(report) => Answer::Conforms(report),
        Err(broken) => Answer::Broken(broken),
    }
}
