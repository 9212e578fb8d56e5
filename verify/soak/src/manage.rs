//! A thread that changes the tree of its CPU: every request, in the names of all its schedulers.
//!
//! Nobody admits what it asks for. The core answers, the book of the manager knows many of the
//! answers, and the checker and the replay judge the rest. A thread that is blocked for a scheduler
//! alone does not take a step until that scheduler, or one above it, wakes it.

use punctual_generate::Random;
use punctual_kern::{Grant, NodeId, NodeTerms, Refusal, Request};
use punctual_linux::{ManageError, OwnCode, at_ns, clock_rate, manage, replace, replace_own};
use punctual_model::{Ns, PolicyKind, Priority, Server, ServerKind, Span, ThreadId, Trust, Work};
use punctual_policy::AnyPolicy;
use punctual_thread::thread;

use crate::book::{Book, Held};
use crate::draw::leaf;
use crate::field::{Field, now};
use crate::manner::{Child, Manner};

/// Threads that may wait for their manager at any one time.
const MOST_HELD: usize = 3;

/// One manager.
#[derive(Debug)]
pub(crate) struct Manager {
    pub(crate) book: Book,
    /// Threads and schedulers that a policy of this CPU has room for.
    pub(crate) entities: usize,
}

impl Manager {
    /// Changes the tree until the field is closed, and then lets everybody go.
    pub(crate) fn work(mut self, field: &Field, dice: &mut Random) {
        while !field.is_over() {
            field.step();
            for _ in 0..dice.within(1, 3) {
                self.change(field, dice);
            }
            thread::sleep(Span::from_us(dice.within(10, 300)));
        }
        while let Some(thread) = self.held(0) {
            if !self.wake(NodeId::ROOT, thread, field) {
                self.book.threads.retain(|kept| kept.id != thread);
            }
        }
        let made = |book: &Book| book.nodes.iter().find(|node| !node.stays).map(|n| n.id);
        while let Some(node) = made(&self.book) {
            let parent = self.book.node(node).map_or(NodeId::ROOT, |n| n.parent);
            if !self.ask(parent, Request::Demote(node), field) {
                return;
            }
        }
    }

    fn change(&mut self, field: &Field, dice: &mut Random) {
        let by = self.scheduler(dice);
        match dice.below(16) {
            0..2 => self.promote(by, dice, field),
            2 => self.delegate(by, dice, field),
            3..6 => self.grant(by, dice, field),
            6 => self.revoke(by, dice, field),
            7 => self.demote(by, dice, field),
            8 => self.supply(by, dice, field),
            9 => self.lend(by, dice, field),
            10..13 => self.block(by, dice, field),
            13 => self.swap(by, dice, field),
            _ => match self.held(dice.index(MOST_HELD)) {
                Some(thread) => {
                    let _ = self.wake(by, thread, field);
                }
                None => self.block(by, dice, field),
            },
        }
    }

    /// Asks the core, and notes the answer; whether it was done.
    fn ask(&mut self, by: NodeId, request: Request, field: &Field) -> bool {
        let expected = self.book.expects(by, &request);
        let answer = manage(by, request, &[]);
        field.asked(answer.is_ok());
        let done = match answer {
            Ok(made) => {
                self.book.note(by, &request, made);
                true
            }
            Err(ManageError::Refused(Refusal::StaleThread(gone))) => {
                self.book.threads.retain(|thread| thread.id != gone);
                return false;
            }
            Err(ManageError::Refused(_) | ManageError::HeldAlive) => false,
            Err(error) => {
                field.note(format!("{request:?} by {by:?}: {error:?}"));
                return false;
            }
        };
        if expected.is_some_and(|expected| expected != done) {
            field.note(format!(
                "{request:?} by {by:?}: expected {expected:?}, the answer was {answer:?}"
            ));
        }
        done
    }

    fn scheduler(&self, dice: &mut Random) -> NodeId {
        let node = dice.pick(&self.book.nodes);
        node.map_or(NodeId::ROOT, |node| node.id)
    }

    fn thread(&self, dice: &mut Random) -> Option<ThreadId> {
        dice.pick(&self.book.threads).map(|thread| thread.id)
    }

    /// Whether only its slots give time to what this scheduler has.
    fn divides(&self, node: NodeId) -> bool {
        self.book.node(node).is_some_and(|node| node.divides)
    }

    fn promote(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let server = dice.happens(700).then(|| server(dice));
        let terms = NodeTerms {
            quota: dice.happens(200).then(|| some(dice, 5)),
            ..terms(server, dice)
        };
        let _ = self.ask(by, Request::Promote(terms), field);
    }

    fn delegate(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let receiver = Some(self.scheduler(dice));
        let server = Some(server(dice));
        let terms = NodeTerms {
            receiver: receiver.filter(|to| self.is_scheduler(*to)),
            ..terms(server, dice)
        };
        let _ = self.ask(by, Request::Promote(terms), field);
    }

    fn is_scheduler(&self, id: NodeId) -> bool {
        let node = self.book.node(id);
        node.is_some_and(|node| node.receiver.is_none())
    }

    /// Mostly one of its own goes to a child or onto a slice; now and then any to anywhere.
    fn grant(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let to = self.scheduler(dice);
        let lawful = self.book.node(to).map(|n| n.receiver.unwrap_or(n.parent));
        let by = lawful.filter(|_| dice.happens(800)).unwrap_or(by);
        let own = |t: &&crate::book::Kept| t.care == by;
        let own: Vec<ThreadId> = self.book.threads.iter().filter(own).map(|t| t.id).collect();
        let any = self.thread(dice);
        let thread = dice.pick(&own).copied().or(any);
        // What has no slot gets no time there.
        if let Some(thread) = thread.filter(|_| !self.divides(to)) {
            let _ = self.ask(by, Request::Grant { thread, to }, field);
        }
    }

    fn revoke(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        if let Some(thread) = self.thread(dice).filter(|_| !self.divides(by)) {
            let _ = self.ask(by, Request::Revoke { thread }, field);
        }
    }

    fn demote(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let node = self.scheduler(dice);
        let found = self.book.node(node);
        // Those that stay are asked for by someone who may not.
        if let Some(found) = found
            && (!found.stays || !self.book.is_below(node, by))
        {
            let _ = self.ask(by, Request::Demote(node), field);
        }
    }

    fn supply(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let node = self.scheduler(dice);
        let supply = Grant::Server(server(dice).in_ticks(clock_rate().frequency));
        let above = self.book.node(node).map_or(by, |node| node.parent);
        let by = if dice.happens(700) { above } else { by };
        let _ = self.ask(by, Request::Supply { node, supply }, field);
    }

    fn lend(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let to = self.scheduler(dice);
        let work = Work::from_us(dice.within(1, 100));
        let work = work.ticks_up(clock_rate().frequency);
        let _ = self.ask(by, Request::Lend { to, work }, field);
    }

    fn block(&mut self, by: NodeId, dice: &mut Random, field: &Field) {
        let Some(thread) = self.thread(dice) else {
            return;
        };
        let exclusive = dice.happens(500);
        let held = self.book.threads.iter().filter(|t| t.held.is_some());
        let may_hold = held.count() < MOST_HELD && dice.happens(300);
        let while_ = Span::from_us(dice.within(5, 800));
        let until = match may_hold {
            true => None,
            false => at_ns(now().saturating_add(while_).as_ns()),
        };
        let request = Request::Block {
            thread,
            exclusive,
            until,
        };
        if !self.ask(by, request, field) {
            return;
        }
        let steps = field.steps(thread.index());
        let kept = self.book.threads.iter_mut().find(|t| t.id == thread);
        if let Some(kept) = kept {
            let former = kept.held.take();
            // Who has it for itself keeps it so when another only has it wait.
            let alone = former.filter(|held| held.exclusive && !exclusive);
            let by = alone.map_or(by, |held| held.by);
            let exclusive = exclusive || alone.is_some();
            // Any other thread may wake it on behalf of its own scheduler.
            kept.perhaps |= exclusive && (by == kept.care || until.is_some());
            let exclusive = exclusive && by != kept.care;
            if until.is_none() {
                kept.held = Some(Held {
                    by,
                    exclusive,
                    steps,
                });
            }
        }
    }

    /// A thread that waits for its manager.
    fn held(&self, nth: usize) -> Option<ThreadId> {
        let held = self.book.threads.iter().filter(|t| t.held.is_some());
        held.map(|thread| thread.id).nth(nth)
    }

    fn wake(&mut self, by: NodeId, thread: ThreadId, field: &Field) -> bool {
        let steps = field.steps(thread.index());
        let held = self.book.thread(thread).and_then(|kept| kept.held);
        if let Some(held) = held.filter(|held| held.exclusive && held.steps != steps) {
            field.note(format!(
                "{thread:?} took {} steps while it was blocked for {:?} alone",
                steps - held.steps,
                held.by
            ));
        }
        let done = self.ask(by, Request::Wake(thread), field);
        let kept = self.book.threads.iter_mut().find(|t| t.id == thread);
        if let Some(kept) = kept.filter(|_| done) {
            (kept.held, kept.perhaps) = (None, false);
        }
        done
    }

    /// Another policy for a scheduler: often for one that decides on its own supply, if any does.
    fn swap(&mut self, node: NodeId, dice: &mut Random, field: &Field) {
        let own = self.book.nodes.iter().filter(|node| node.decides);
        let own: Vec<NodeId> = own.map(|node| node.id).collect();
        let node = match dice.pick(&own) {
            Some(&own) if dice.happens(400) => own,
            _ => node,
        };
        let falls = self.book.node(node).filter(|node| node.decides);
        if let Some(falls) = falls.map(|node| node.falls) {
            return self.swap_own(node, falls, dice, field);
        }
        let kind = leaf(dice).in_ticks(clock_rate().frequency);
        let mut made = Some(AnyPolicy::new(kind, self.entities, &[]));
        let answer = replace((node, kind), &mut made, &[]);
        field.asked(answer.is_ok());
        let found = self.book.node(node);
        let stays = found.is_some_and(|node| node.divides);
        let may_refuse = stays || found.is_none();
        match answer {
            Ok(()) if stays => field.note(format!("{node:?} divides time, and was replaced")),
            Ok(()) | Err(ManageError::Contended) => {}
            Err(_) if may_refuse => {}
            Err(error) => field.note(format!("{node:?} is not replaced: {error:?}")),
        }
    }
}

impl Manager {
    /// Other code for a scheduler that decides on its own supply: it may refuse only where it may
    /// have fallen back.
    fn swap_own(&mut self, node: NodeId, falls: bool, dice: &mut Random, field: &Field) {
        let kind = match leaf(dice) {
            PolicyKind::FixedPriority { .. } => PolicyKind::FixedPriority { preemptive: true },
            other => other.in_ticks(clock_rate().frequency),
        };
        let manner = Manner::of_newcomer(falls, dice);
        let child = Child::new((kind, self.entities), manner, Random::at(dice.bits(), &[]));
        let mut made = OwnCode::new(Box::new(child));
        let answer = replace_own((node, kind), &mut made, &[]);
        field.asked(answer.is_ok());
        match answer {
            Ok(()) => field.replaced(),
            Err(ManageError::Contended) => {}
            Err(ManageError::Refused(Refusal::NothingShelved(of) | Refusal::BeingReplaced(of)))
                if falls && of == node => {}
            Err(error) => field.note(format!("the code of {node:?} is not replaced: {error:?}")),
        }
    }
}

fn some(dice: &mut Random, most: u64) -> u32 {
    u32::try_from(dice.within(1, most)).unwrap_or(1)
}

fn terms(server: Option<Server<Ns>>, dice: &mut Random) -> NodeTerms {
    let frequency = clock_rate().frequency;
    NodeTerms {
        supply: server.map_or(Grant::Shared, |s| Grant::Server(s.in_ticks(frequency))),
        priority: Priority::new(20 + some(dice, 40)),
        order: u32::MAX,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
    }
}

/// A tenth to a half of a period.
fn server(dice: &mut Random) -> Server<Ns> {
    let period = dice.within(3, 20) * 100;
    Server {
        kind: *dice.pick(&ServerKind::ALL).unwrap_or(&ServerKind::Polling),
        budget: Work::from_us(period * dice.within(10, 50) / 100),
        period: Span::from_us(period),
    }
}
