//! What one CPU counts of what its core tells.

use punctual_kern::{Decision, Event, Sink, TraceEvent};
use punctual_model::{Instant, ThreadId};

/// Counts what passes by on the way to the recorder.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) decisions: u64,
    pub(super) switches: u64,
    pub(super) preemptions: u64,
    /// Jobs with a deadline that were released before the horizon and are not over.
    pub(super) outstanding: u64,
    pub(super) horizon: Instant,
}

pub(super) struct Counting<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) tally: &'a mut Tally,
    /// The entry is a yield: whom it takes the processor from gave it, and was not preempted.
    pub(super) yields: bool,
}

impl<S: Sink> Sink for Counting<'_, S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn event(&mut self, now: Instant, event: &Event) {
        self.yields = matches!(event, Event::Yield);
        self.sink.event(now, event);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        let counts = |arrival: Instant, deadline: Instant| {
            u64::from(arrival < self.tally.horizon && deadline != Instant::MAX)
        };
        match event {
            TraceEvent::Switched { preempted, .. } => {
                self.tally.switches += 1;
                self.tally.preemptions += u64::from(preempted && !self.yields);
            }
            TraceEvent::Released {
                arrival, deadline, ..
            } => {
                self.tally.outstanding += counts(arrival, deadline);
            }
            TraceEvent::Completed {
                arrival, deadline, ..
            } => {
                let done = counts(arrival, deadline);
                self.tally.outstanding = self.tally.outstanding.saturating_sub(done);
            }
            _ => {}
        }
        self.sink.trace(now, event);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decision(&mut self, now: Instant, decision: &Decision) {
        self.tally.decisions += 1;
        self.sink.decision(now, decision);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn entry(
        &mut self,
        now: Instant,
        event: &Event,
        left: Option<ThreadId>,
        chosen: (ThreadId, Option<Instant>),
    ) {
        self.tally.decisions += 1;
        if left.is_some() {
            self.tally.switches += 1;
            // Who yields gave the processor.
            self.tally.preemptions += u64::from(!matches!(event, Event::Yield));
        }
        self.sink.entry(now, event, left, chosen);
    }
}

#[cfg(test)]
mod tests {
    use punctual_kern::NoSink;

    use super::*;

    /// What one switch away from somebody ready adds, on the long way and on the short one.
    fn counted(event: Event) -> [u64; 2] {
        let [one, other] = [ThreadId::new(0, 0), ThreadId::new(1, 0)];
        let switched = TraceEvent::Switched {
            from: Some(one),
            to: Some(other),
            preempted: true,
        };
        let now = Instant::from_ticks(7);
        let mut tallies = [Tally::default(); 2];
        for (short, tally) in [false, true].into_iter().zip(&mut tallies) {
            let mut counting = Counting {
                sink: &mut NoSink,
                tally,
                yields: false,
            };
            if short {
                counting.entry(now, &event, Some(one), (other, None));
            } else {
                counting.event(now, &event);
                counting.trace(now, switched);
            }
        }
        assert!(tallies.iter().all(|tally| tally.switches == 1));
        tallies.map(|tally| tally.preemptions)
    }

    #[test]
    fn a_switch_is_a_preemption_unless_it_was_given() {
        assert_eq!(counted(Event::Yield), [0, 0]);
        assert_eq!(counted(Event::Tick), [1, 1]);
    }
}
