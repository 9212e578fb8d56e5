//! Children that decide on their own supply: what is kept for them, and what is believed of them.
//!
//! Kept is the set of ready threads and how often it has changed. Believed is a choice of a thread
//! that is the child's own and ready, made on the present set by the child that was let run to make
//! it. Anything else is refused with its reason, and the child goes on being charged: whatever it
//! does, it wastes only its own supply.

use punctual_model::{Instant, Span, ThreadId};

use super::Tree;
use super::node::{Answer, NONE, ROOT};
use crate::choice::ChildPick;
use crate::choice::Choice;
use crate::choice::Next;
use crate::node::NodeId;
use crate::policy::Policy;
use crate::refusal::Refusal;

impl<P: Policy> Tree<P> {
    /// Takes in the choice of a child that was let run.
    ///
    /// # Errors
    /// Why it is not believed; nothing has changed then.
    pub fn child_picked(&mut self, now: Instant, pick: &ChildPick) -> Result<(), Refusal> {
        let at = self.node(pick.child)?;
        let node = &self.nodes[usize::from(at)];
        if !node.is_own_time() {
            return Err(Refusal::NotDeciding(pick.child));
        }
        if let Some(thread) = pick.thread {
            let place = self.places.get(thread.index());
            let place = place.ok_or(Refusal::StaleThread(thread))?;
            if place.home != at {
                return Err(Refusal::NotItsOwn(thread));
            }
            if place.at != at {
                return Err(Refusal::NotReady(thread));
            }
        }
        if node.epoch != pick.epoch {
            return Err(Refusal::StalePick(pick.child));
        }
        // Nobody, and until nothing is known: that is no decision.
        if pick.thread.is_some() || pick.until.is_some() {
            self.asks_no_more(at);
        }
        let soon = now.saturating_add(Span::from_ticks(1));
        self.nodes[usize::from(at)].answer = Some(Answer {
            thread: pick.thread,
            // A turn that is over has no end: it has just decided. A child that wanted nobody for a
            // while, which has passed, is asked again, though not at the same instant.
            until: match pick.thread {
                Some(_) => pick.until.filter(|until| *until > now),
                None => pick.until.map(|until| until.max(soon)),
            },
        });
        Ok(())
    }

    /// A child decides nothing any more: nobody runs until its ready threads change.
    pub(super) fn give_up(&mut self, at: u16) {
        self.nodes[usize::from(at)].answer = Some(Answer {
            thread: None,
            until: None,
        });
    }

    /// The ready threads of a child have changed: it decides again.
    pub(super) fn ready_changed(&mut self, at: u16) {
        let node = &mut self.nodes[usize::from(at)];
        node.epoch = node.epoch.wrapping_add(1);
        node.answer = None;
    }

    /// Who runs of a child that decides on its own supply: the one it chose, or the child itself,
    /// to choose. `Err`: nobody, until then.
    pub(super) fn choice_of_child(
        &mut self,
        now: Instant,
        at: u16,
    ) -> Result<Choice, Option<Instant>> {
        let node = &mut self.nodes[usize::from(at)];
        if let Some(held) = node.held {
            let next = Next::Thread(held);
            return Ok(Choice { next, until: None });
        }
        let over = |answer: &Answer| answer.until.is_some_and(|until| until <= now);
        if node.answer.as_ref().is_some_and(over) {
            self.ready_changed(at);
        }
        let node = &self.nodes[usize::from(at)];
        match node.answer {
            None => {
                let next = Next::RunChild(node.id(at));
                self.asks(now, at);
                Ok(Choice { next, until: None })
            }
            Some(Answer {
                thread: Some(thread),
                until,
            }) => {
                let next = Next::Thread(thread);
                Ok(Choice { next, until })
            }
            Some(Answer {
                thread: None,
                until,
            }) => Err(until),
        }
    }

    /// How often the ready threads of a child have changed, or its choice has run out.
    pub fn epoch(&self, child: NodeId) -> Option<u32> {
        let at = self.node(child).ok()?;
        Some(self.nodes[usize::from(at)].epoch)
    }

    /// Whether a thread is ready in the care of this child.
    pub fn is_ready_in(&self, thread: ThreadId, child: NodeId) -> bool {
        let (Ok(at), Some(place)) = (self.node(child), self.places.get(thread.index())) else {
            return false;
        };
        place.at == at && at != NONE && at != ROOT
    }
}
