//! A scheduler that decides on its own supply, as virtual time executes it.
//!
//! Its code looks, takes its time, and answers. One that misbehaves does what such code may do: it
//! never answers, says that nobody shall run, lies, or panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_child::ChildScheduler;
use punctual_kern::{ChildPick, Decision, Event, NodeId, Policy, Refusal, Request, Shard};
use punctual_model::{Instant, Span, ThreadId, Work};
use punctual_tables::CpuTables;

use crate::RATE;
use crate::faults::{Faults, Misconduct};

/// A scheduler that was not believed waits on its own supply before it looks again, twice as long
/// after each such answer up to the longest: no instant holds an endless quarrel, and no recorder.
const LOOK_AGAIN_NS: u64 = 1_000;
const MOST_WAIT_NS: u64 = 1_000_000;

pub(crate) struct Child {
    node: NodeId,
    /// `None`: there is no such code, so it never answers.
    code: Option<ChildScheduler>,
    misconduct: Option<Misconduct>,
    /// Its policy has panicked.
    failed: bool,
    cost: Work,
    /// What is left of the decision under way.
    left: Option<Work>,
    /// Refused answers in a row.
    refused: u32,
    /// Something changed while it decided, and no answer has been accepted since.
    was_overtaken: bool,
    lies: u32,
}

/// The children of a CPU, each with its code among `codes`, if it is there.
pub(crate) fn children(
    tables: &CpuTables,
    mut codes: Vec<ChildScheduler>,
    faults: &Faults,
) -> Vec<Child> {
    let nodes = (1_u16..).zip(&tables.nodes);
    let own_time = nodes.filter(|(_, node)| node.terms.trust == punctual_model::Trust::OwnTime);
    let children = own_time.map(|(place, row)| {
        let node = NodeId::new(place, 0);
        let code = codes.iter().position(|code| code.node() == node);
        let fault = faults.children.iter().find(|f| f.0 == row.scheduler);
        Child {
            node,
            code: code.map(|at| codes.swap_remove(at)),
            misconduct: fault.map(|f| f.1),
            failed: false,
            cost: faults.decision_cost.ticks_up(RATE),
            left: None,
            refused: 0,
            was_overtaken: false,
            lies: 0,
        }
    });
    children.collect()
}

impl Child {
    /// Whether it decides for this scheduler. One that comes again in a change has its place of
    /// before under a later id.
    pub(crate) fn is(&self, node: NodeId) -> bool {
        self.node.index() == node.index()
    }

    /// The next of the policies that it was made with decides from its next look on, also where the
    /// one before has panicked.
    pub(crate) fn take_next(&mut self) {
        self.failed = false;
        if let Some(code) = &mut self.code {
            code.take_next();
        }
    }

    /// It decides for this scheduler, which may have ended since and come again.
    pub(crate) fn decides_for(&mut self, node: NodeId) {
        if self.node == node {
            return;
        }
        self.node = node;
        (self.left, self.refused, self.was_overtaken) = (None, 0, false);
        if let Some(code) = &mut self.code {
            code.come_again(node);
        }
    }

    /// Begins to decide, or goes on with it; when it will have decided.
    pub(crate) fn resume<P: Policy>(&mut self, now: Instant, shard: &Shard<P>) -> Option<Instant> {
        let code = self.code.as_mut()?;
        if self.misconduct == Some(Misconduct::Loops) {
            return None;
        }
        let left = match self.left {
            Some(left) => left,
            None => {
                code.look(shard);
                self.cost.max(self.wait())
            }
        };
        self.left = Some(left);
        Some(now.saturating_add(left.as_span()))
    }

    /// It is interrupted with so much of its decision left.
    pub(crate) fn pause(&mut self, left: Span) {
        self.left = Some(left.as_work());
    }

    /// The answer, at the end of its decision, or that its policy has panicked.
    pub(crate) fn answer(&mut self, now: Instant) -> Option<Event> {
        self.left = None;
        let code = self.code.as_mut()?;
        let is_silent = matches!(
            self.misconduct,
            Some(Misconduct::Silent | Misconduct::Loops)
        );
        if is_silent || self.failed {
            return Some(Event::ChildPicked(code.decline()));
        }
        let Ok(pick) = catch_unwind(AssertUnwindSafe(|| code.decide(now))) else {
            self.failed = true;
            return Some(Event::ChildFailed(self.node));
        };
        let pick = match self.misconduct {
            Some(Misconduct::Lies) => {
                self.lies = self.lies.wrapping_add(1);
                lie(self.lies, pick)
            }
            _ => pick,
        };
        Some(Event::ChildPicked(pick))
    }

    /// Why its answer was refused, if it was. Its ready threads may have changed while it decided
    /// (`overtaken`): then it looks again at once, one time until an answer is accepted.
    pub(crate) fn hear(&mut self, refused: Option<Refusal>, overtaken: bool) {
        match refused {
            None => (self.refused, self.was_overtaken) = (0, false),
            Some(_) if overtaken && !self.was_overtaken => self.was_overtaken = true,
            Some(_) => self.refused = self.refused.saturating_add(1),
        }
    }

    /// What looking again costs it after refused answers.
    fn wait(&self) -> Work {
        let Some(before) = self.refused.checked_sub(1) else {
            return Work::ZERO;
        };
        let wait = LOOK_AGAIN_NS
            .checked_shl(before.min(32))
            .unwrap_or(MOST_WAIT_NS);
        Work::from_ticks(wait.min(MOST_WAIT_NS))
    }
}

/// After an event of a plan: a scheduler that decides on its own supply has other code.
pub(crate) fn recode(children: &mut [Child], event: &Event, decision: &Decision) {
    if let Event::Manage { request, .. } = event
        && let Request::Replace { node, .. } = request
        && decision.refused.is_none()
        && let Some(child) = children.iter_mut().find(|child| child.is(*node))
    {
        child.take_next();
    }
}

/// One lie after the other: threads of others or its own that are not ready, threads that ended or
/// never were, and a choice made on what was long ago.
fn lie(number: u32, truth: ChildPick) -> ChildPick {
    let round = number / 4;
    let liar = |thread| ChildPick {
        thread: Some(thread),
        ..truth
    };
    match number % 4 {
        0 => liar(ThreadId::new(round % 16, 0)),
        1 => liar(ThreadId::new(round % 16, 1 + round)),
        2 => liar(ThreadId::new(4_000 + round, 0)),
        _ => ChildPick {
            epoch: truth.epoch.wrapping_sub(1 + round),
            ..truth
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_is_free_until_an_answer_is_accepted() {
        let node = NodeId::new(1, 0);
        let mut child = Child {
            node,
            code: None,
            misconduct: None,
            failed: false,
            cost: Work::ZERO,
            left: None,
            refused: 0,
            was_overtaken: false,
            lies: 0,
        };
        let gone = || Some(Refusal::NotReady(ThreadId::new(0, 0)));
        for _ in 0..2 {
            child.hear(gone(), true);
            assert_eq!(child.wait(), Work::ZERO);
            for (wait, overtaken) in [(LOOK_AGAIN_NS, true), (2 * LOOK_AGAIN_NS, false)] {
                child.hear(gone(), overtaken);
                assert_eq!(child.wait(), Work::from_ticks(wait));
            }
            child.hear(None, false);
            assert_eq!(child.wait(), Work::ZERO);
            child.hear(gone(), false);
            assert_eq!(child.wait(), Work::from_ticks(LOOK_AGAIN_NS));
            child.hear(None, false);
        }
    }
}
