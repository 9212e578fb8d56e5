//! What the author of a policy claims beyond its contract.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use punctual_kern::Attributes;
use punctual_model::{Span, Work};

/// What a policy promises beyond the contract of [`punctual_kern::Policy`]. The kit holds it to
/// this, and to nothing more.
///
/// [`Claims::default`] claims what nearly every policy does: work conservation, with preemption, in
/// no particular order. As text (for the command line): words separated by commas, for example
/// `fixed-priority,release` or `turns,idles`; see [`Claims::from_str`].
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// Never idles while somebody is ready.
    pub work_conserving: bool,
    /// A more urgent thread takes over at once. Otherwise whoever has begun to execute runs until
    /// it blocks, yields, or is updated.
    pub preemptive: bool,
    /// Who is more urgent.
    pub order: Order,
    /// Who goes first among equally urgent threads.
    pub ties: Ties,
    /// Most work of each thread in each period; `None`: the policy limits nothing by itself.
    pub budget: Option<Budget>,
}

/// Who is more urgent than whom.
#[derive(Clone, Copy, Debug, Default)]
pub enum Order {
    /// Nobody: all are equal.
    #[default]
    None,
    /// The higher priority.
    FixedPriority,
    /// The earlier absolute deadline.
    Deadline,
    /// The earlier release.
    Release,
    /// Whoever is `Less`. It must be a total order of the attributes' values.
    By(fn(&Attributes, &Attributes) -> Ordering),
}

/// Who goes first among equally urgent threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ties {
    /// Anybody.
    #[default]
    Any,
    /// The earlier release, then the order in the file, as everywhere in Punctual.
    Release,
    /// In turn: nobody begins a second turn while an equal has waited since before the first.
    Turns,
}

/// A budget that comes again: at most `work` in each interval [k·period, (k+1)·period).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Most executed work of one thread.
    pub work: Work,
    /// In each interval of this length; at least one tick.
    pub period: Span,
}

impl Default for Claims {
    fn default() -> Self {
        Claims::ANY_ORDER
    }
}

impl Claims {
    /// Work conserving and preemptive, in any order.
    pub const ANY_ORDER: Claims = Claims {
        work_conserving: true,
        preemptive: true,
        order: Order::None,
        ties: Ties::Any,
        budget: None,
    };

    /// Fixed priority, ties by release: what `punctual_policy::FixedPriority` claims.
    pub const FIXED_PRIORITY: Claims = Claims {
        order: Order::FixedPriority,
        ties: Ties::Release,
        ..Claims::ANY_ORDER
    };

    /// Earliest deadline first, ties by release.
    pub const EARLIEST_DEADLINE_FIRST: Claims = Claims {
        order: Order::Deadline,
        ties: Ties::Release,
        ..Claims::ANY_ORDER
    };

    /// First come, first served, to completion.
    pub const FIFO: Claims = Claims {
        preemptive: false,
        order: Order::Release,
        ties: Ties::Release,
        ..Claims::ANY_ORDER
    };

    /// Everybody in turn.
    pub const ROUND_ROBIN: Claims = Claims {
        ties: Ties::Turns,
        ..Claims::ANY_ORDER
    };

    /// How two ready threads compare: `Less` is more urgent.
    pub(crate) fn compare(&self, a: &Attributes, b: &Attributes) -> Ordering {
        match self.order {
            Order::None => Ordering::Equal,
            Order::FixedPriority => b.priority.number().cmp(&a.priority.number()),
            Order::Deadline => a.absolute_deadline.cmp(&b.absolute_deadline),
            Order::Release => a.release.cmp(&b.release),
            Order::By(compare) => compare(a, b),
        }
    }
}

/// A word that claims nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimsError {
    word: String,
}

impl fmt::Display for ClaimsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` claims nothing; the words are fixed-priority, deadline, fifo (orders); release, \
             turns (ties); idles, non-preemptive",
            self.word
        )
    }
}

impl std::error::Error for ClaimsError {}

impl FromStr for Claims {
    type Err = ClaimsError;

    /// Reads words separated by commas: an order (`fixed-priority`, `deadline`, `fifo`), what
    /// decides ties (`release`, `turns`), `idles` (not work conserving), `non-preemptive`.
    fn from_str(text: &str) -> Result<Claims, ClaimsError> {
        let mut claims = Claims::ANY_ORDER;
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            match word {
                "fixed-priority" => claims.order = Order::FixedPriority,
                "deadline" => claims.order = Order::Deadline,
                "fifo" => claims.order = Order::Release,
                "release" => claims.ties = Ties::Release,
                "turns" => claims.ties = Ties::Turns,
                "idles" => claims.work_conserving = false,
                "non-preemptive" => claims.preemptive = false,
                _ => {
                    let word = word.to_string();
                    return Err(ClaimsError { word });
                }
            }
        }
        Ok(claims)
    }
}

impl fmt::Display for Claims {
    /// In words, as [`Claims::from_str`] reads them where it can.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::None => "any order",
            Order::FixedPriority => "fixed-priority",
            Order::Deadline => "deadline",
            Order::Release => "fifo",
            Order::By(_) => "an order of its own",
        };
        f.write_str(order)?;
        match self.ties {
            Ties::Any => {}
            Ties::Release => f.write_str(", release")?,
            Ties::Turns => f.write_str(", turns")?,
        }
        if !self.work_conserving {
            f.write_str(", idles")?;
        }
        if !self.preemptive {
            f.write_str(", non-preemptive")?;
        }
        match self.budget {
            Some(Budget { work, period }) => {
                write!(f, ", at most {} in {} ticks", work.ticks(), period.ticks())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_claims_and_claims_become_words() {
        for text in ["fixed-priority, release", "fifo, release, non-preemptive"] {
            let claims: Claims = text.parse().expect("words");
            assert_eq!(claims.to_string(), text);
        }
        let claims: Claims = "turns,idles".parse().expect("words");
        assert!(!claims.work_conserving && claims.preemptive);
        assert_eq!(claims.ties, Ties::Turns);
    }

    #[test]
    fn a_word_that_claims_nothing_is_named() {
        let error = "edf".parse::<Claims>().expect_err("no word");
        assert!(error.to_string().starts_with("`edf` claims nothing"));
    }
}
