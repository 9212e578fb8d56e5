//! One member's steps through a round

use core::mem;
use core::ops::Deref;

use crate::gang::{Broken, Form, Gang, JoinError, Mark, Ring, Wait, Why, Word};

/// One thing that all members do together. All name the same one, with the same root.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Nobody goes on before all have come. The value is 0.
    Barrier,
    /// As a barrier; the value is the release order, 0 first. In the tree that is the order in
    /// which the news goes down.
    Order,
    /// The place with the highest bid is elected, the first of them among equals; the value is that
    /// place.
    Elect {
        /// This member's bid.
        bid: u32,
    },
    /// The value is that of all, folded in any order: `fold` is associative and commutative.
    Reduce {
        /// This member's value.
        value: u64,
        /// The same for all.
        fold: fn(u64, u64) -> u64,
    },
    /// The value is that of one member.
    Broadcast {
        /// The place whose value everyone gets.
        root: usize,
        /// This member's value; only that of `root` counts.
        value: u64,
    },
}

impl Operation {
    /// A number that is the same for all members of a round.
    fn tag(self) -> u32 {
        match self {
            Operation::Barrier => 1,
            Operation::Order => 2,
            Operation::Elect { .. } => 3,
            Operation::Reduce { .. } => 4,
            // At most `MOST`.
            Operation::Broadcast { root, .. } => 5 + u32::try_from(root).unwrap_or(0),
        }
    }

    /// The contribution of `place`, if there is one.
    fn own(self, place: usize) -> Option<u64> {
        match self {
            Operation::Barrier | Operation::Order => None,
            // Of equal bids the lowest place has the highest number.
            Operation::Elect { bid } => {
                Some(u64::from(bid) << 32 | (u64::from(u32::MAX) - place as u64))
            }
            Operation::Reduce { value, .. } => Some(value),
            Operation::Broadcast { root, value } => (root == place).then_some(value),
        }
    }

    /// Whether its members learn a value.
    fn has_value(self) -> bool {
        !matches!(self, Operation::Barrier | Operation::Order)
    }

    fn fold(self) -> Option<fn(u64, u64) -> u64> {
        match self {
            Operation::Elect { .. } => Some(u64::max),
            Operation::Reduce { fold, .. } => Some(fold),
            Operation::Barrier | Operation::Order | Operation::Broadcast { .. } => None,
        }
    }
}

/// The end of an operation, the same for all members that reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is over, with this value.
    Done(u64),
    /// It never will be, and neither will another one of this gang.
    Broken(Broken),
}

/// The answer to a step.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Something was done; take the next step.
    More,
    /// Nothing can be done before this word changes.
    Wait(Wait),
    /// The operation has ended.
    End(Outcome),
}

/// Where a member is in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Begin,
    Contribute,
    /// Linear: be counted.
    Count,
    /// Tree: wait for the children.
    Gather,
    /// Tell that everyone below has come.
    Tell,
    /// Tree: ring at the parent.
    RingAbove,
    /// The last one, or the root.
    Publish,
    Decide,
    Await,
    /// Tree: pass the value on to this child.
    AnswerBelow(usize),
    /// Tree: ring at this child.
    RingBelow(usize),
    /// Linear: take a number on the way out.
    Leave,
}

/// One member of a gang, in the hands of one thread.
///
/// To drop it is to leave: the gang is broken then, unless it is already.
#[derive(Debug)]
pub struct Member<G: Deref<Target = Gang>> {
    gang: G,
    place: usize,
    round: u32,
    at: At,
    why: Why,
    /// The member that was rung in vain, in this round (tree).
    suspect: Option<usize>,
    /// Alarms of its bell that it has heard (tree).
    alarms: u64,
    /// It looks at `state`, alarm or not (tree).
    looks: bool,
    /// The value of the round that is over.
    result: u64,
}

impl<G: Deref<Target = Gang>> Member<G> {
    /// Takes the next free place of a gang. A place is taken once in the life of a gang. O(1).
    ///
    /// # Errors
    /// [`JoinError::Full`], [`JoinError::Broken`].
    pub fn join(gang: G) -> Result<Member<G>, JoinError> {
        let place = gang.take_place()?;
        Ok(Member {
            gang,
            place,
            round: 0,
            at: At::Begin,
            why: Why::Left,
            suspect: None,
            alarms: 0,
            looks: false,
            result: 0,
        })
    }

    /// Its gang.
    pub fn gang(&self) -> &Gang {
        &self.gang
    }

    /// Its place, from 0, in the order of joining.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Leaves, for a reason that the others are told. O(members).
    pub fn leave(mut self, why: Why) {
        self.why = why;
    }

    /// Says for which reason it leaves when it is dropped.
    pub fn set_reason(&mut self, why: Why) {
        self.why = why;
    }

    /// One step of `operation`; the same operation until [`Step::End`]. At most one shared store;
    /// O(1), but O(members) once a round for the last member (linear), and O(members) where
    /// members began different operations.
    pub fn step(&mut self, operation: Operation) -> Step {
        let (place, tag) = (self.place, operation.tag());
        match self.at {
            At::Begin => {
                self.mark(tag, false);
                self.at = match (operation.own(place), self.gang.form()) {
                    (Some(_), _) => At::Contribute,
                    (None, form) => Self::come(form),
                };
            }
            At::Contribute => {
                if let Some(value) = operation.own(place) {
                    self.gang.set_value(place, value);
                }
                self.at = Self::come(self.gang.form());
            }
            At::Count => {
                let is_last = self.gang.arrive() + 1 == self.gang.members();
                self.at = if is_last { At::Publish } else { At::Tell };
            }
            At::Gather => return self.gather(operation),
            At::Tell => {
                self.mark(tag, true);
                self.at = match self.gang.form() {
                    Form::Linear => At::Await,
                    Form::Tree => At::RingAbove,
                };
            }
            At::RingAbove => {
                Gang::parent(place)
                    .into_iter()
                    .for_each(|above| self.gang.ring(above, Ring::Came));
                self.at = At::Await;
            }
            At::Publish => return self.publish(operation),
            At::Decide => {
                self.gang.release(self.round);
                (self.at, self.looks) = (At::Await, true);
            }
            At::Await => return self.wait(operation),
            At::AnswerBelow(child) => {
                self.gang.set_answer(child, self.result);
                self.at = At::RingBelow(child);
            }
            At::RingBelow(child) => {
                self.gang.ring(child, Ring::Told);
                let is_last = child + 1 == self.gang.children(place).end;
                if is_last {
                    return self.end(operation, place as u64);
                }
                self.at = Self::below(operation, child + 1);
            }
            At::Leave => {
                let order = self.gang.depart() as u64;
                return self.end(operation, order);
            }
        }
        Step::More
    }

    /// After the driver's limit: ends the gang in the name of the member that the rest waits for.
    /// `None`: step on, and wait for another limit. In a tree the last news of a member may be lost
    /// with it: so the missing one is rung first, and named after a second limit. O(members).
    pub fn accuse(&mut self) -> Option<Broken> {
        // The next step finds what the news was lost about.
        self.looks = true;
        if self.gang.decided(self.round).0.is_some() {
            return None;
        }
        let member = self.gang.missing(self.round)?;
        if member == self.place {
            return None;
        }
        if self.gang.form() == Form::Tree && self.suspect.replace(member) != Some(member) {
            self.gang.ring(member, Ring::Alarm);
            return None;
        }
        let broken = Broken {
            member,
            why: Why::Late,
        };
        self.gang.break_by(broken);
        Some(broken)
    }

    fn come(form: Form) -> At {
        match form {
            Form::Linear => At::Count,
            Form::Tree => At::Gather,
        }
    }

    /// The first step of news for a child: the value goes before the bell, if there is one.
    fn below(operation: Operation, child: usize) -> At {
        match operation.has_value() {
            true => At::AnswerBelow(child),
            false => At::RingBelow(child),
        }
    }

    /// Whether `state` is to be looked at, with this word of the bell. The one above tells the
    /// decision about a round, so that not all members look at one word: only alarms make them.
    fn is_alarmed(&mut self, bell: u64) -> bool {
        let alarms = Ring::alarms(bell);
        let is_new = mem::replace(&mut self.alarms, alarms) != alarms;
        mem::take(&mut self.looks) || is_new
    }

    fn expected(&self, tag: u32, is_in: bool) -> Mark {
        Mark {
            round: self.round,
            tag,
            is_in,
        }
    }

    fn mark(&self, tag: u32, is_in: bool) {
        self.gang.set_mark(self.place, self.expected(tag, is_in));
    }

    fn mismatch(&mut self, member: usize) -> Step {
        let why = Why::Mismatch;
        self.gang.break_by(Broken { member, why });
        (self.at, self.looks) = (At::Await, true);
        Step::More
    }

    /// The subtree's value, when all children have come.
    fn gather(&mut self, operation: Operation) -> Step {
        let (place, expected) = (self.place, self.expected(operation.tag(), true));
        let seen = self.gang.bell(place);
        for child in self.gang.children(place) {
            match self.gang.mark_is(child, expected) {
                Ok(true) => {}
                Ok(false) => {
                    if self.is_alarmed(seen) && self.gang.decided(self.round).0.is_some() {
                        (self.at, self.looks) = (At::Await, true);
                        return Step::More;
                    }
                    let word = Word::Bell(place);
                    return Step::Wait(Wait { word, seen });
                }
                Err(()) => return self.mismatch(child),
            }
        }
        if let (Some(fold), Some(own)) = (operation.fold(), operation.own(place)) {
            let below = self
                .gang
                .children(place)
                .map(|child| self.gang.value(child));
            self.gang.set_value(place, below.fold(own, fold));
        }
        self.at = match place {
            0 => At::Publish,
            _ => At::Tell,
        };
        Step::More
    }

    /// Everyone has come: the value of all.
    fn publish(&mut self, operation: Operation) -> Step {
        let gang = &self.gang;
        if gang.form() == Form::Linear {
            let begun = self.expected(operation.tag(), false);
            let other = (0..gang.members()).find(|place| gang.mark_is(*place, begun) == Err(()));
            if let Some(other) = other {
                return self.mismatch(other);
            }
        }
        let value = match (operation, operation.fold()) {
            (Operation::Broadcast { root, .. }, _) => gang.value(root.min(gang.members() - 1)),
            (_, Some(_)) if gang.form() == Form::Tree => gang.value(0),
            (_, Some(fold)) => {
                let others = (1..gang.members()).map(|place| gang.value(place));
                others.fold(gang.value(0), fold)
            }
            (_, None) => 0,
        };
        gang.set_result(value);
        self.at = At::Decide;
        Step::More
    }

    fn wait(&mut self, operation: Operation) -> Step {
        match self.gang.form() {
            Form::Linear => self.wait_for_state(operation),
            Form::Tree => self.wait_for_bell(operation),
        }
    }

    fn wait_for_state(&mut self, operation: Operation) -> Step {
        match self.gang.decided(self.round) {
            (Some(Err(broken)), _) => Step::End(Outcome::Broken(broken)),
            (None, seen) => Step::Wait(Wait {
                word: Word::State,
                seen,
            }),
            (Some(Ok(())), _) => {
                self.result = self.gang.result();
                if matches!(operation, Operation::Order) {
                    self.at = At::Leave;
                    return Step::More;
                }
                self.end(operation, self.place as u64)
            }
        }
    }

    fn wait_for_bell(&mut self, operation: Operation) -> Step {
        let (place, round) = (self.place, self.round);
        let seen = self.gang.bell(place);
        if place > 0 && Ring::has_told(seen, round) {
            if operation.has_value() {
                self.result = self.gang.answer(place);
            }
            return self.go_below(operation);
        }
        let decided = match self.is_alarmed(seen) {
            true => self.gang.decided(round).0,
            false => None,
        };
        match decided {
            Some(Err(broken)) => {
                // Also the steps behind this one say so.
                self.looks = true;
                Step::End(Outcome::Broken(broken))
            }
            Some(Ok(())) => {
                // The alarm may have been about a round that comes later.
                self.looks = true;
                self.result = self.gang.result();
                self.go_below(operation)
            }
            None => Step::Wait(Wait {
                word: Word::Bell(place),
                seen,
            }),
        }
    }

    /// This round is over: those below are told.
    fn go_below(&mut self, operation: Operation) -> Step {
        let below = self.gang.children(self.place);
        match below.is_empty() {
            true => self.end(operation, self.place as u64),
            false => {
                self.at = Self::below(operation, below.start);
                Step::More
            }
        }
    }

    /// This round is over: the next may begin.
    fn end(&mut self, operation: Operation, order: u64) -> Step {
        self.round = self.round.wrapping_add(1);
        (self.at, self.suspect) = (At::Begin, None);
        let result = self.result;
        Step::End(Outcome::Done(match operation {
            Operation::Order => order,
            Operation::Elect { .. } => u64::from(u32::MAX) - (result & u64::from(u32::MAX)),
            Operation::Barrier => 0,
            _ => result,
        }))
    }
}

impl<G: Deref<Target = Gang>> Drop for Member<G> {
    fn drop(&mut self) {
        let (member, why) = (self.place, self.why);
        self.gang.break_by(Broken { member, why });
    }
}
