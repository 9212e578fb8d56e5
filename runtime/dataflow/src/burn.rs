//! Actors without a function: they burn their work

use punctual_linux::job;
use punctual_model::{Ns, Work};

use crate::actor::{Duty, Firing};
use crate::meter::Meter;

/// Longer between two readings, and the thread did not execute in between.
const GAP: Work<Ns> = Work::from_us(4);

/// The rest of a firing after its function, with a reading of the clock: a firing that burns all of
/// its wcet would take longer.
const REST: Work<Ns> = Work::from_ns(250);

/// Burns as long as the phase says, and fills every token with the number of its firing.
pub(crate) struct Burn {
    meter: Meter,
    /// Of each phase, in ticks.
    work: Vec<u64>,
    gap: u64,
}

impl Burn {
    pub(crate) fn new(work: &[Work<Ns>]) -> Burn {
        let meter = Meter::new();
        let ticks = |work: &Work<Ns>| meter.ticks(work.saturating_sub(REST));
        Burn {
            work: work.iter().map(ticks).collect(),
            gap: meter.ticks(GAP),
            meter,
        }
    }
}

impl Duty for Burn {
    fn fire(&mut self, firing: &mut Firing<'_>) {
        let mut last = self.meter.read().executed.ticks();
        let mut left = self.work[firing.phase % self.work.len()];
        for input in 0..firing.inputs.count() {
            core::hint::black_box(firing.inputs.tokens(input).first());
        }
        for output in 0..firing.outputs.count() {
            firing
                .outputs
                .tokens(output)
                .fill(firing.number.to_le_bytes()[0]);
        }
        while left > 0 {
            job::checkpoint();
            let now = self.meter.read().executed.ticks();
            let passed = now.saturating_sub(last);
            if passed <= self.gap {
                left = left.saturating_sub(passed);
            }
            last = now;
        }
    }
}
