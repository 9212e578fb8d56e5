//! The shipped policies by name, and what each claims.

use clap::ValueEnum;
use punctual_conform::{Answer, Claims, Options, check};
use punctual_kern::Policy;
use punctual_model::Span;
use punctual_policy::{EarliestDeadlineFirst, Fifo, FixedPriority, RoundRobin};

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
        }
    }
}

fn answer<P: Policy>(claims: &Claims, make: impl Fn(usize) -> P, options: &Options) -> Answer {
    match check(claims, make, options) {
        Ok(report) => Answer::Conforms(report),
        Err(broken) => Answer::Broken(broken),
    }
}
