//! Prices of the primitive steps on a machine: measured here, or by somebody else in a file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use punctual_model::{Machine, Span, Work};
use punctual_terminal::ending::Failure;

use crate::crew::Rates;

/// Prices of a machine. Picoseconds and nanoseconds, so that they do not depend on a clock's rate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Costs {
    /// Where and when they were measured, for people.
    pub(crate) machine: String,
    /// One way of a message through a cache line: half of there and back, median.
    pub(crate) line_ps: u64,
    /// A step of a member whose lines are all in its cache, median.
    pub(crate) step_ps: u64,
    /// A local admission: least, nine deciles, greatest of the observations below the last
    /// hundredth.
    pub(crate) admission_ns: [u64; 11],
    /// A computation on one element of a domain, median.
    pub(crate) element_ps: u64,
    /// An entry of a timer, median: its cost in virtual time.
    pub(crate) entry_ns: u64,
    /// Terms that admission counts with.
    pub(crate) switch_ns: u64,
    pub(crate) timer_ns: u64,
    pub(crate) preemption_ns: u64,
    /// From p50 to p99 of the distance between the instant that a timer is set to and the first
    /// instruction of the thread that it releases.
    pub(crate) late_ns: u64,
    /// The most by which the clocks of two CPUs were seen to differ, with the error of that.
    pub(crate) clock_error_ns: u64,
}

impl Costs {
    /// Those of a file.
    pub(crate) fn read(path: &Path) -> Result<Costs, Failure> {
        let text = punctual_terminal::input::text(path)?;
        let costs: Costs = toml::from_str(&text).map_err(|error| {
            let error = error.to_string();
            Failure::input(format!("{}: {}", path.display(), error.trim()))
                .with_help("`punctual study costs > FILE` writes one")
        })?;
        costs
            .check()
            .map_err(|what| Failure::input(format!("{}: {what}", path.display())))?;
        Ok(costs)
    }

    /// Prices that a day is long enough for, so that no sum of them overflows.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ns = [
            self.entry_ns,
            self.switch_ns,
            self.timer_ns,
            self.preemption_ns,
            self.late_ns,
            self.clock_error_ns,
        ];
        let ps = [self.line_ps, self.step_ps, self.element_ps];
        let most_ns = ns.iter().chain(&self.admission_ns).max();
        let most = most_ns.copied().max(ps.iter().map(|ps| ps / 1_000).max());
        match most {
            Some(most) if most > 1_000_000_000 => Err("no price is above a second".into()),
            _ if self.line_ps == 0 || self.step_ps == 0 || self.element_ps == 0 => {
                Err("a line, a step and an element cost something".into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn rates(&self) -> Rates {
        Rates {
            step: self.step_ps,
            line: self.line_ps,
            switch: 1_000 * self.switch_ns,
        }
    }

    /// The terms that an analysis counts with.
    pub(crate) fn terms(&self) -> Machine {
        Machine {
            switch: Work::from_ns(self.switch_ns),
            timer: Work::from_ns(self.timer_ns),
            preemption: Work::from_ns(self.preemption_ns),
            clock_error: Span::from_ns(self.clock_error_ns),
            ..Machine::default()
        }
    }
}

/// The smallest prices, for questions that are looked at before anything is measured.
pub(crate) fn smallest() -> Costs {
    Costs {
        machine: String::new(),
        line_ps: 1,
        step_ps: 1,
        admission_ns: [0; 11],
        element_ps: 1,
        entry_ns: 0,
        switch_ns: 0,
        timer_ns: 0,
        preemption_ns: 0,
        late_ns: 0,
        clock_error_ns: 0,
    }
}

/// Those of a study that has none.
pub(crate) fn none() -> Costs {
    Costs {
        machine: "any: this study has no prices".into(),
        ..smallest()
    }
}

#[cfg(test)]
pub(crate) fn sample() -> Costs {
    Costs {
        machine: "a machine of tests".into(),
        line_ps: 90_000,
        step_ps: 5_000,
        admission_ns: [40_000; 11],
        element_ps: 2_000,
        entry_ns: 500,
        switch_ns: 50,
        timer_ns: 1_000,
        preemption_ns: 5_000,
        late_ns: 2_000,
        clock_error_ns: 100,
    }
}
