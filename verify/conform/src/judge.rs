//! What the reference makes of a pick.

use std::cmp::Ordering;

use punctual_kern::Pick;
use punctual_model::{Instant, ThreadId};

use crate::claims::Ties;
use crate::reference::{Hold, Reference, name};
use crate::symptom::{Symptom, Violation, Why};

impl Reference {
    /// Judges a pick and takes it for what stands.
    ///
    /// # Errors
    /// What is wrong with it. [`Symptom::Idle`] may yet turn out to be [`Symptom::Lost`].
    pub(crate) fn judge(&mut self, now: Instant, pick: Pick) -> Result<(), Violation> {
        self.count(pick);
        self.picked = pick.entity;
        self.picked_at = now;
        self.until = pick.until;
        self.executed = Default::default();
        if let Some(until) = pick.until
            && until <= now
        {
            return Err(Violation::new(
                Symptom::TurnEnd,
                format!(
                    "at {} it wants to be asked again at {}",
                    now.ticks(),
                    until.ticks()
                ),
            ));
        }
        match pick.entity {
            None => self.judge_idling(pick),
            Some(thread) => {
                self.judge_readiness(thread)?;
                if !self.judge_hold(thread)? {
                    self.judge_order(thread)?;
                }
                self.judge_turns(thread, pick)
            }
        }
    }

    fn count(&mut self, pick: Pick) {
        let ready = self.ready_threads().count();
        let coverage = &mut self.coverage;
        coverage.picks += 1;
        coverage.contested += u64::from(ready > 1);
        coverage.idle += u64::from(pick.entity.is_none());
        coverage.preemptions += u64::from(self.picked.is_some() && pick.entity != self.picked);
    }

    fn judge_idling(&self, pick: Pick) -> Result<(), Violation> {
        let Some((thread, _)) = self.ready_threads().next() else {
            return Ok(());
        };
        if !self.claims.work_conserving && pick.until.is_some() {
            return Ok(());
        }
        let ready = name(thread);
        let detail = if self.claims.work_conserving {
            format!("nobody runs although `{ready}` is ready")
        } else {
            format!("nobody runs although `{ready}` is ready, and it does not say until when")
        };
        Err(Violation::new(Symptom::Idle, detail))
    }

    pub(crate) fn judge_readiness(&self, thread: ThreadId) -> Result<(), Violation> {
        if self.ready(thread).is_some() {
            return Ok(());
        }
        let place = self.places.get(thread.index());
        let why = match place.filter(|place| place.thread == Some(thread)) {
            Some(place) => place.why,
            None => Why::Foreign,
        };
        let reason = match (why, place.and_then(|place| place.thread)) {
            (Why::Left, _) => "it has blocked".to_owned(),
            (Why::Exhausted, _) => "it has no budget".to_owned(),
            (Why::Foreign, Some(other)) if other != thread => {
                format!("it has ended, and its place is `{}`'s now", name(other))
            }
            (Why::Foreign, Some(_)) => "it never woke".to_owned(),
            (Why::Foreign, None) if place.is_none() => "there is no such thread".to_owned(),
            (Why::Foreign, None) => "it has ended, or never was".to_owned(),
        };
        let detail = format!("`{}` is picked, but {reason}", name(thread));
        Err(Violation::new(Symptom::NotReady(why), detail))
    }

    /// Whether the pick is one that has begun, so that the order does not matter.
    fn judge_hold(&mut self, thread: ThreadId) -> Result<bool, Violation> {
        if self.claims.preemptive {
            return Ok(false);
        }
        match self.hold {
            Hold::Keeps(held) if held != thread => {
                let detail = format!(
                    "`{}` has begun, and `{}` takes over",
                    name(held),
                    name(thread)
                );
                Err(Violation::new(Symptom::Preempted, detail))
            }
            Hold::Keeps(_) => Ok(true),
            Hold::May(held) if held == thread => Ok(true),
            Hold::May(_) | Hold::Nobody => {
                self.hold = Hold::Nobody;
                Ok(false)
            }
        }
    }

    fn judge_order(&self, thread: ThreadId) -> Result<(), Violation> {
        let Some(chosen) = self.ready(thread) else {
            return Ok(());
        };
        for (other, ready) in self.ready_threads() {
            let urgency = self.claims.compare(&ready.attributes, &chosen.attributes);
            if urgency == Ordering::Less {
                let detail = format!("`{}` runs, `{}` is more urgent", name(thread), name(other));
                return Err(Violation::new(Symptom::Order, detail));
            }
            let tied = urgency == Ordering::Equal && self.claims.ties == Ties::Release;
            if tied && !(ready.yielded || chosen.yielded) {
                let (a, b) = (&ready.attributes, &chosen.attributes);
                let (other, thread) = (name(other), name(thread));
                if a.release < b.release {
                    let detail =
                        format!("`{thread}` runs, its equal `{other}` was released before");
                    return Err(Violation::new(Symptom::Tie, detail));
                }
                if a.release == b.release && a.order < b.order {
                    let detail =
                        format!("`{thread}` runs, its equal `{other}` comes first in the file");
                    return Err(Violation::new(Symptom::Tie, detail));
                }
            }
        }
        Ok(())
    }

    fn judge_turns(&mut self, thread: ThreadId, pick: Pick) -> Result<(), Violation> {
        if self.claims.ties != Ties::Turns {
            return Ok(());
        }
        let claims = self.claims;
        let Some(chosen) = self.ready(thread).map(|ready| ready.attributes) else {
            return Ok(());
        };
        let equals: Vec<ThreadId> = self
            .ready_threads()
            .filter(|(other, ready)| {
                *other != thread && claims.compare(&ready.attributes, &chosen).is_eq()
            })
            .map(|(other, _)| other)
            .collect();
        let Some(first) = equals.first() else {
            self.turns.pick(thread.index(), [].into_iter());
            return Ok(());
        };
        if pick.until.is_none() {
            let (thread, first) = (name(thread), name(*first));
            let detail =
                format!("`{thread}` has a turn without end while its equal `{first}` waits");
            return Err(Violation::new(Symptom::Turns, detail));
        }
        let indices = equals.iter().map(|other| other.index());
        let Some(overtaken) = self.turns.pick(thread.index(), indices) else {
            return Ok(());
        };
        let waiting = equals.iter().find(|other| other.index() == overtaken);
        let detail = format!(
            "`{}` begins a second turn while its equal `{}` waits for its first",
            name(thread),
            name(*waiting.unwrap_or(first)),
        );
        Err(Violation::new(Symptom::Turns, detail))
    }
}

#[cfg(test)]
mod tests {
    use punctual_kern::Attributes;
    use punctual_model::{Priority, Work};

    use super::*;
    use crate::claims::Claims;

    const A: ThreadId = ThreadId::new(0, 0);

    fn with_a_ready_thread() -> Reference {
        let mut reference = Reference::new(&Claims::ANY_ORDER, 2, false);
        reference.attach(A);
        let attributes = Attributes {
            priority: Priority::new(0),
            absolute_deadline: Instant::MAX,
            release: Instant::ZERO,
            order: 0,
        };
        reference.wake(A, &attributes);
        reference
    }

    fn symptom(result: Result<(), Violation>) -> Option<Symptom> {
        result.err().map(|violation| violation.symptom)
    }

    #[test]
    fn who_has_no_budget_is_told_from_who_has_blocked() {
        let mut reference = with_a_ready_thread();
        assert_eq!(symptom(reference.judge(Instant::ZERO, Pick::run(A))), None);
        reference.block(A);
        let picked = symptom(reference.judge(Instant::ZERO, Pick::run(A)));
        assert_eq!(picked, Some(Symptom::NotReady(Why::Left)));
        reference.exhausted(A);
        let picked = symptom(reference.judge(Instant::ZERO, Pick::run(A)));
        assert_eq!(picked, Some(Symptom::NotReady(Why::Exhausted)));
    }

    #[test]
    fn work_beyond_what_was_granted_is_seen() {
        let mut reference = with_a_ready_thread();
        reference.grant(A, Some(Work::from_ticks(5)));
        reference.charge(A, Work::from_ticks(5));
        assert_eq!(reference.violation, None);
        reference.charge(A, Work::from_ticks(1));
        let seen = reference.violation.map(|violation| violation.symptom);
        assert_eq!(seen, Some(Symptom::BeyondBudget));
    }
}
