//! Algorithm 1 of the paper: group admission control, in its order and with its names

use core::ops::Deref;

use crate::gang::{Attached, Broken, Gang, Wait};
use crate::member::{Member, Operation, Outcome, Step};

/// The scheduler of a member's CPU, as a member sees it.
pub trait LocalScheduler {
    /// Local admission control: from now on this member has the constraint, or nothing has changed.
    ///
    /// # Errors
    /// The number of the reason.
    fn admit(&mut self, constraint: &Attached) -> Result<(), u32>;

    /// Readmits this member, which was admitted, under its former constraint, else as aperiodic.
    /// It cannot fail.
    fn readmit(&mut self);

    /// Corrects the phase of this member, which was the `order`-th of `members` to be released.
    fn correct_phase(&mut self, order: usize, members: usize);
}

/// A step of Algorithm 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Conduct leader election.
    Election,
    /// The elected member locks the gang and attaches the constraint to it.
    LockAndAttach,
    /// Execute group barrier.
    Barrier,
    /// Conduct local admission control.
    LocalAdmission,
    /// Execute group reduction over errors.
    Reduction,
    /// Some local admission failed: readmit.
    Readmission,
    /// Then execute group barrier.
    FailureBarrier,
    /// All succeeded: execute group barrier and get the release order.
    FinalBarrier,
    /// Correct the phase by the release order.
    PhaseCorrection,
    /// The elected member unlocks the gang.
    Unlock,
    /// It has ended.
    Over,
}

/// A local admission that failed. Of several the one with the highest number is named, and the
/// lowest place among equals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The place of the member.
    pub member: usize,
    /// The number of the reason.
    pub error: u32,
}

/// The end of an admission: the same for all members that reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// All are admitted. The order in which this one was released.
    All {
        /// From 0.
        order: usize,
    },
    /// None is: each is where it was before, or aperiodic.
    None(Refusal),
    /// None is, since a member is no more.
    Broken(Broken),
}

/// The answer to a step of an admission.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Take the next step.
    More,
    /// Nothing can be done before this word changes.
    Wait(Wait),
    /// It has ended, with this result.
    End(Admitted),
}

/// One member's part in the admission of a gang.
///
/// The members are admitted when the final barrier is over, and that is one decision for all. Until
/// then each of them goes back when another one dies.
#[derive(Clone, Debug)]
pub struct Admission {
    constraint: Attached,
    stage: Stage,
    is_elected: bool,
    /// It is admitted locally, and all of the gang is not yet.
    goes_back: bool,
    error: u32,
    refusal: Option<Refusal>,
    order: usize,
    /// Words of the constraint that are attached.
    attached: usize,
}

impl Admission {
    /// To be admitted under `constraint`, encoded by the caller. That of the elected member counts.
    pub fn new(constraint: Attached) -> Admission {
        Admission {
            constraint,
            stage: Stage::Election,
            is_elected: false,
            goes_back: false,
            error: 0,
            refusal: None,
            order: 0,
            attached: 0,
        }
    }

    /// The constraint: its own, and that of the elected member from the local admission on.
    pub fn constraint(&self) -> &Attached {
        &self.constraint
    }

    /// The step of the algorithm that comes next or goes on.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// One step. As [`Member::step`], and one call of `local` at most.
    pub fn step<G: Deref<Target = Gang>>(
        &mut self,
        member: &mut Member<G>,
        local: &mut impl LocalScheduler,
    ) -> Progress {
        match self.stage {
            Stage::Election => match self.round(member, local, Operation::Elect { bid: 0 }) {
                Ok(elected) => {
                    self.is_elected = elected == member.place() as u64;
                    self.stage = match self.is_elected {
                        true => Stage::LockAndAttach,
                        false => Stage::Barrier,
                    };
                }
                Err(progress) => return progress,
            },
            Stage::LockAndAttach => {
                if member.gang().attach(&self.constraint, self.attached) {
                    self.stage = Stage::Barrier;
                }
                self.attached += 1;
            }
            Stage::Barrier => match self.round(member, local, Operation::Barrier) {
                Ok(_) => self.stage = Stage::LocalAdmission,
                Err(progress) => return progress,
            },
            Stage::LocalAdmission => {
                self.constraint = member.gang().being_attached();
                match local.admit(&self.constraint) {
                    Ok(()) => self.goes_back = true,
                    Err(error) => self.error = error.max(1),
                }
                self.stage = Stage::Reduction;
            }
            Stage::Reduction => return self.reduce_errors(member, local),
            Stage::Readmission => {
                self.go_back(local);
                self.stage = Stage::FailureBarrier;
            }
            Stage::FailureBarrier => match self.round(member, local, Operation::Barrier) {
                Ok(_) => self.stage = Stage::Unlock,
                Err(progress) => return progress,
            },
            Stage::FinalBarrier => match self.round(member, local, Operation::Order) {
                Ok(order) => {
                    self.order = usize::try_from(order).unwrap_or(0);
                    self.goes_back = false;
                    self.stage = Stage::PhaseCorrection;
                }
                Err(progress) => return progress,
            },
            Stage::PhaseCorrection => {
                local.correct_phase(self.order, member.gang().members());
                self.stage = Stage::Unlock;
            }
            Stage::Unlock => {
                if self.is_elected {
                    member.gang().unlock();
                }
                self.stage = Stage::Over;
            }
            Stage::Over => {
                let order = self.order;
                let admitted = Admitted::All { order };
                return Progress::End(self.refusal.map_or(admitted, Admitted::None));
            }
        }
        Progress::More
    }

    fn reduce_errors<G: Deref<Target = Gang>>(
        &mut self,
        member: &mut Member<G>,
        local: &mut impl LocalScheduler,
    ) -> Progress {
        // Of equal errors the lowest place has the highest number.
        let behind = u64::from(u32::MAX) - member.place() as u64;
        let operation = Operation::Reduce {
            value: u64::from(self.error) << 32 | behind,
            fold: u64::max,
        };
        match self.round(member, local, operation) {
            Ok(worst) => {
                let error = u32::try_from(worst >> 32).unwrap_or(0);
                let place = u64::from(u32::MAX) - (worst & u64::from(u32::MAX));
                let member = usize::try_from(place).unwrap_or(0);
                self.refusal = (error != 0).then_some(Refusal { member, error });
                self.stage = match self.refusal {
                    Some(_) => Stage::Readmission,
                    None => Stage::FinalBarrier,
                };
                Progress::More
            }
            Err(progress) => progress,
        }
    }

    /// A step of an operation: its value, or the answer of the whole step.
    fn round<G: Deref<Target = Gang>>(
        &mut self,
        member: &mut Member<G>,
        local: &mut impl LocalScheduler,
        operation: Operation,
    ) -> Result<u64, Progress> {
        match member.step(operation) {
            Step::More => Err(Progress::More),
            Step::Wait(wait) => Err(Progress::Wait(wait)),
            Step::End(Outcome::Done(value)) => Ok(value),
            Step::End(Outcome::Broken(broken)) => {
                self.go_back(local);
                let refused = self.refusal.map(Admitted::None);
                Err(Progress::End(refused.unwrap_or(Admitted::Broken(broken))))
            }
        }
    }

    /// Back to the former constraint: also called when a member is cancelled or panics in the
    /// middle, if that can be. O(1) beside `local`.
    pub fn go_back(&mut self, local: &mut impl LocalScheduler) {
        if self.goes_back {
            self.goes_back = false;
            local.readmit();
        }
    }
}
