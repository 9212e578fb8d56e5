//! Who runs: from the root down, in each node whom its policy chooses.

use punctual_model::{Instant, ThreadId};

use super::Tree;
use super::node::ROOT;
use crate::choice::Choice;
use crate::choice::Next;
use crate::policy::{Pick, Policy};

impl<P: Policy> Tree<P> {
    /// [`Tree::choose`], out of the way of whoever calls it.
    #[inline(never)]
    pub(super) fn choose_apart(&mut self, now: Instant) -> (Option<Instant>, Next) {
        let Choice { next, until } = match self.has_one_node() {
            true => Choice::of(self.nodes[usize::from(ROOT)].pick(now)),
            false => self.choose(now),
        };
        (until, next)
    }

    /// O(depth · log n). A node whose policy idles on purpose rests, and the choice begins again
    /// without it: at most once per node.
    pub(super) fn choose(&mut self, now: Instant) -> Choice {
        loop {
            match self.descend(now) {
                Ok(choice) => return choice,
                Err((at, until)) => self.rest(now, at, until),
            }
        }
    }

    /// The choice, or the node on the way that wants nobody to run and until when.
    fn descend(&mut self, now: Instant) -> Result<Choice, (u16, Option<Instant>)> {
        let mut at = ROOT;
        // The latest instant stands for none.
        let mut end = Instant::MAX;
        let choice = |next, end: Instant, until| {
            let end = Some(end).filter(|end| *end < Instant::MAX);
            let until = Choice::earlier(end, until);
            Ok(Choice { next, until })
        };
        loop {
            let node = &mut self.nodes[usize::from(at)];
            if let Some(left) = node.budget() {
                if left.is_zero()
                    && let Some((thread, most)) = self.overdrawer(at)
                {
                    let over = now.saturating_add(most.as_span());
                    return choice(Next::Thread(thread), end, Some(over));
                }
                end = end.min(now.saturating_add(left.as_span()));
            }
            let node = &mut self.nodes[usize::from(at)];
            if node.is_own_time() {
                let answer = self.choice_of_child(now, at).map_err(|until| (at, until))?;
                return choice(answer.next, end, answer.until);
            }
            let pick = node.pick(now);
            let Some(entity) = pick.entity else {
                if at == ROOT {
                    return choice(Next::Idle, end, pick.until);
                }
                return Err((at, pick.until));
            };
            end = end.min(pick.until.unwrap_or(Instant::MAX));
            let next = match self.places.get(entity.index()) {
                Some(place) if place.at == at => Next::Thread(entity),
                // A policy that names what is not ready directly below it has nobody run.
                Some(_) => Next::Idle,
                None => match self.candidate(entity, at) {
                    Some(child) => {
                        at = child;
                        continue;
                    }
                    None => Next::Idle,
                },
            };
            return choice(next, end, None);
        }
    }

    /// The child that `entity` stands for, if the policy of `parent` may choose it.
    #[inline]
    fn candidate(&self, entity: ThreadId, parent: u16) -> Option<u16> {
        let child = u16::try_from(entity.index().checked_sub(self.capacity.threads)?).ok()?;
        let node = self.nodes.get(usize::from(child))?;
        (node.alive && node.queued && node.parent == parent).then_some(child)
    }
}

impl Choice {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn of(pick: Pick) -> Choice {
        Choice {
            next: pick.entity.map_or(Next::Idle, Next::Thread),
            until: pick.until,
        }
    }
}
