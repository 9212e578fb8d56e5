//! What a call answers: one code for each way in which it can go.

use core::ffi::{CStr, c_char};

use ::punctual_thread::sync::WaitError;
use ::punctual_thread::thread::SpawnError;
use punctual_kern::Refusal;
use punctual_linux::JoinError;

/// What a call answers. Only `PUNCTUAL_OK` means that it has happened.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_status {
    /// It has happened.
    PUNCTUAL_OK = 0,
    /// Admission says no: somebody could be late. `punctual_why` says who, by how much, and what
    /// would mend it.
    PUNCTUAL_REFUSED = 1,
    /// An argument means nothing: a null or misaligned pointer, an unknown number, a period of 0.
    PUNCTUAL_INVALID = 2,
    /// The handle names nothing: it was never made, or what it named has been destroyed or joined.
    PUNCTUAL_STALE = 3,
    /// The caller is on no thread of a run.
    PUNCTUAL_NO_RUN = 4,
    /// The thing belongs to another CPU, or to a run that is over.
    PUNCTUAL_OTHER_CPU = 5,
    /// It did not happen in time; with a time of 0: not at once.
    PUNCTUAL_TIMED_OUT = 6,
    /// Its holder waits for the caller, along a chain of holders; or a thread would wait for its
    /// own end.
    PUNCTUAL_DEADLOCK = 7,
    /// The caller holds it already.
    PUNCTUAL_ALREADY_HELD = 8,
    /// The caller does not hold it.
    PUNCTUAL_NOT_HELD = 9,
    /// Somebody else waits for it, and only one may.
    PUNCTUAL_TAKEN = 10,
    /// It is in use: held, waited for, or in the middle of another call; or a run is on already.
    PUNCTUAL_BUSY = 11,
    /// The run ended before its first thread did, or that thread failed. Only `punctual_run` says
    /// it: a call in which the end of the run finds a thread does not come back.
    PUNCTUAL_OVER = 12,
    /// The calling thread or its job is to end: clean up and return from the body. Every call that
    /// waits answers so from then on.
    PUNCTUAL_CANCELLED = 13,
    /// As many threads as the run was started for exist already.
    PUNCTUAL_NO_THREAD_LEFT = 14,
    /// The text does not fit into the buffer; what fits is there.
    PUNCTUAL_TRUNCATED = 15,
    /// The calling thread has one job only: its constraint is neither periodic, nor sporadic, nor a
    /// reservation.
    PUNCTUAL_NO_NEXT_JOB = 16,
    /// The machine refused something that a run cannot do without. `punctual_why` says what.
    PUNCTUAL_CANNOT_RUN = 17,
    /// Nothing of that name is there: no task of this CPU uses such a resource, or no such gang
    /// lives.
    PUNCTUAL_UNKNOWN = 18,
    /// The scheduler does not allow it now, or not for this kind of thread. `punctual_why` says
    /// more.
    PUNCTUAL_NOT_ALLOWED = 19,
    /// There is nothing to say: no refusal, no run.
    PUNCTUAL_NOTHING = 20,
    /// There is no memory or no number left for another one.
    PUNCTUAL_NO_MEMORY = 21,
    /// A mistake inside Punctual, which has said more on standard error. Please report it.
    PUNCTUAL_INTERNAL = 22,
    /// The thread that is joined said that it could not go on (`punctual_fail`). `punctual_why` has
    /// its words.
    PUNCTUAL_FAILED = 23,
    /// The processor was taken from the thread for good.
    PUNCTUAL_ABANDONED = 24,
    /// The queue of work of this CPU is full.
    PUNCTUAL_FULL = 25,
    /// As many schedulers as the run was started for exist already.
    PUNCTUAL_NO_SCHEDULER_LEFT = 26,
    /// A child of this scheduler would be deeper than a tree may be.
    PUNCTUAL_TOO_DEEP = 27,
    /// The scheduler or one above it has as many threads as its quota allows.
    PUNCTUAL_QUOTA = 28,
    /// The scheduler that asks has no power over this thread or scheduler.
    PUNCTUAL_NOT_YOURS = 29,
    /// The scheduler has not that much budget left to lend.
    PUNCTUAL_NO_BUDGET = 30,
    /// A more trusted scheduler has blocked the thread for itself.
    PUNCTUAL_BLOCKED = 31,
    /// The thread has nothing to run, so it cannot be blocked.
    PUNCTUAL_NOT_READY = 32,
    /// A thread with a guarantee changes its scheduler, or what orders it, between two jobs, and it
    /// is in the middle of one: ask again.
    PUNCTUAL_HAS_JOB = 33,
    /// The policy of this scheduler cannot be replaced by that one: it decides on its own supply,
    /// divides time into slots, or hands on declared resources in another order.
    PUNCTUAL_NOT_REPLACEABLE = 34,
    /// A member of the gang is no more, so none of its rounds ends any more. `punctual_why` names
    /// the member and the reason.
    PUNCTUAL_BROKEN = 35,
}

use punctual_status as Status;

/// A result for C.
pub(crate) type Answer = Result<(), Status>;

impl Status {
    const ALL: [(Status, &'static CStr); 36] = {
        use punctual_status::*;
        [
            (PUNCTUAL_OK, c"it has happened"),
            (PUNCTUAL_REFUSED, c"not admitted: somebody could be late"),
            (PUNCTUAL_INVALID, c"an argument means nothing"),
            (PUNCTUAL_STALE, c"the handle names nothing"),
            (PUNCTUAL_NO_RUN, c"the caller is on no thread of a run"),
            (
                PUNCTUAL_OTHER_CPU,
                c"it belongs to another CPU, or to a run that is over",
            ),
            (PUNCTUAL_TIMED_OUT, c"it did not happen in time"),
            (PUNCTUAL_DEADLOCK, c"its holder waits for the caller"),
            (PUNCTUAL_ALREADY_HELD, c"the caller holds it already"),
            (PUNCTUAL_NOT_HELD, c"the caller does not hold it"),
            (PUNCTUAL_TAKEN, c"somebody else waits for it already"),
            (PUNCTUAL_BUSY, c"it is in use"),
            (PUNCTUAL_OVER, c"the run is over"),
            (PUNCTUAL_CANCELLED, c"the calling thread is to end"),
            (
                PUNCTUAL_NO_THREAD_LEFT,
                c"the run has no thread left: start it for more",
            ),
            (PUNCTUAL_TRUNCATED, c"the text does not fit into the buffer"),
            (PUNCTUAL_NO_NEXT_JOB, c"the calling thread has one job only"),
            (PUNCTUAL_CANNOT_RUN, c"the machine refuses what a run needs"),
            (PUNCTUAL_UNKNOWN, c"nothing of that name is there"),
            (PUNCTUAL_NOT_ALLOWED, c"the scheduler does not allow it now"),
            (PUNCTUAL_NOTHING, c"there is nothing to say"),
            (PUNCTUAL_NO_MEMORY, c"no memory, or no number, is left"),
            (PUNCTUAL_INTERNAL, c"a mistake inside Punctual"),
            (PUNCTUAL_FAILED, c"the thread could not go on"),
            (
                PUNCTUAL_ABANDONED,
                c"the processor was taken from the thread",
            ),
            (PUNCTUAL_FULL, c"the queue of work is full"),
            (
                PUNCTUAL_NO_SCHEDULER_LEFT,
                c"the run has no scheduler left: start it for more",
            ),
            (
                PUNCTUAL_TOO_DEEP,
                c"a scheduler would be deeper than a tree may be",
            ),
            (
                PUNCTUAL_QUOTA,
                c"the scheduler has as many threads as it may",
            ),
            (
                PUNCTUAL_NOT_YOURS,
                c"the scheduler has no power over what was named",
            ),
            (
                PUNCTUAL_NO_BUDGET,
                c"the scheduler has not that much budget left",
            ),
            (
                PUNCTUAL_BLOCKED,
                c"a more trusted scheduler has blocked the thread",
            ),
            (PUNCTUAL_NOT_READY, c"the thread has nothing to run"),
            (
                PUNCTUAL_HAS_JOB,
                c"the thread is in the middle of a job: ask again",
            ),
            (
                PUNCTUAL_NOT_REPLACEABLE,
                c"the policy cannot be replaced by that one",
            ),
            (
                PUNCTUAL_BROKEN,
                c"the gang is broken: a member of it is no more",
            ),
        ]
    };
}

impl From<WaitError> for Status {
    fn from(error: WaitError) -> Status {
        match error {
            WaitError::NoRun => Status::PUNCTUAL_NO_RUN,
            WaitError::OtherCpu => Status::PUNCTUAL_OTHER_CPU,
            WaitError::TimedOut => Status::PUNCTUAL_TIMED_OUT,
            WaitError::Deadlock => Status::PUNCTUAL_DEADLOCK,
            WaitError::AlreadyHeld => Status::PUNCTUAL_ALREADY_HELD,
            WaitError::NotHeld => Status::PUNCTUAL_NOT_HELD,
            WaitError::Taken => Status::PUNCTUAL_TAKEN,
            WaitError::Over => Status::PUNCTUAL_OVER,
            _ => Status::PUNCTUAL_INTERNAL,
        }
    }
}

impl From<JoinError> for Status {
    fn from(error: JoinError) -> Status {
        match error {
            JoinError::TimedOut => Status::PUNCTUAL_TIMED_OUT,
            JoinError::Taken => Status::PUNCTUAL_TAKEN,
            JoinError::Itself => Status::PUNCTUAL_DEADLOCK,
            JoinError::NotHere => Status::PUNCTUAL_OTHER_CPU,
            JoinError::Cancelled => Status::PUNCTUAL_CANCELLED,
            JoinError::Abandoned => Status::PUNCTUAL_ABANDONED,
            _ => Status::PUNCTUAL_INTERNAL,
        }
    }
}

impl From<SpawnError> for Status {
    /// The code alone; `admission` keeps the reason.
    fn from(error: SpawnError) -> Status {
        use punctual_thread::NotAdmitted;
        match error {
            SpawnError::NoRun => Status::PUNCTUAL_NO_RUN,
            SpawnError::PoolIsEmpty => Status::PUNCTUAL_NO_THREAD_LEFT,
            SpawnError::NotAdmitted(NotAdmitted::Meaningless(_)) => Status::PUNCTUAL_INVALID,
            SpawnError::NotAdmitted(_) => Status::PUNCTUAL_REFUSED,
            SpawnError::Busy(error) => error.into(),
            SpawnError::Refused(refusal) => refusal.into(),
            SpawnError::NotHere => Status::PUNCTUAL_OTHER_CPU,
            SpawnError::HasJob => Status::PUNCTUAL_HAS_JOB,
            SpawnError::Asks | SpawnError::Contended => Status::PUNCTUAL_BUSY,
            SpawnError::NotItsRoot => Status::PUNCTUAL_NOT_YOURS,
            _ => Status::PUNCTUAL_NOT_ALLOWED,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        match refusal {
            Refusal::StaleThread(_) | Refusal::NoSuchNode(_) => Status::PUNCTUAL_STALE,
            Refusal::NobodyRuns => Status::PUNCTUAL_NO_RUN,
            Refusal::NoThreadLeft => Status::PUNCTUAL_NO_THREAD_LEFT,
            Refusal::NoNodeLeft => Status::PUNCTUAL_NO_SCHEDULER_LEFT,
            Refusal::InvalidConstraint | Refusal::NotGrantable(_) => Status::PUNCTUAL_INVALID,
            Refusal::AlreadyHeld(_) => Status::PUNCTUAL_ALREADY_HELD,
            Refusal::NotHeld(_) => Status::PUNCTUAL_NOT_HELD,
            Refusal::Deadlock(_) => Status::PUNCTUAL_DEADLOCK,
            Refusal::TooDeep(_) => Status::PUNCTUAL_TOO_DEEP,
            Refusal::QuotaExhausted(_) => Status::PUNCTUAL_QUOTA,
            Refusal::NotItsOwn(_)
            | Refusal::NotItsChild(_)
            | Refusal::NotASibling(_)
            | Refusal::OnlyRootCreates(_) => Status::PUNCTUAL_NOT_YOURS,
            Refusal::TooLittleBudget(_) => Status::PUNCTUAL_NO_BUDGET,
            Refusal::BlockedByTrusted(_) => Status::PUNCTUAL_BLOCKED,
            Refusal::NotReady(_) => Status::PUNCTUAL_NOT_READY,
            Refusal::NotReplaceable(_) => Status::PUNCTUAL_NOT_REPLACEABLE,
            Refusal::NotPlannable => Status::PUNCTUAL_BUSY,
            Refusal::BeingReplaced(_) => Status::PUNCTUAL_BUSY,
            Refusal::NotSporadic(_)
            | Refusal::NoSuchSlot(_)
            | Refusal::NotDeclared(_)
            | Refusal::NestedTooDeep(_)
            | Refusal::UsesResources(_)
            | Refusal::NotAParent(_)
            | Refusal::NotDeciding(_)
            | Refusal::StalePick(_)
            | Refusal::NothingShelved(_)
            | Refusal::NotIdle(_)
            | Refusal::NotAScheduler(_) => Status::PUNCTUAL_NOT_ALLOWED,
        }
    }
}

/// A code in words, never null: text that lasts as long as the program. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_strerror(status: i32) -> *const c_char {
    let place = usize::try_from(status).ok();
    let text = place.and_then(|place| Status::ALL.get(place));
    text.map_or(c"no code of Punctual's", |(_, text)| *text)
        .as_ptr()
}

/// The version of the library, for example "0.1.0": text that lasts as long as the program. Legal
/// everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_text_at_its_place() {
        for (place, (status, text)) in (0..).zip(Status::ALL) {
            assert_eq!(status as i32, place);
            // SAFETY: a literal.
            let found = unsafe { CStr::from_ptr(punctual_strerror(place)) };
            assert_eq!(found, text);
        }
        for unknown in [-1, 36, i32::MAX, i32::MIN] {
            // SAFETY: a literal.
            let found = unsafe { CStr::from_ptr(punctual_strerror(unknown)) };
            assert_eq!(found, c"no code of Punctual's");
        }
    }

    /// The refusal that the enumeration has next: a new one does not compile until it is here.
    fn next(refusal: Refusal) -> Option<Refusal> {
        use Refusal::*;
        let (t, n) = (
            punctual_model::ThreadId::new(1, 0),
            punctual_kern::NodeId::new(1, 0),
        );
        match refusal {
            StaleThread(_) => Some(NobodyRuns),
            NobodyRuns => Some(NoThreadLeft),
            NoThreadLeft => Some(NotSporadic(t)),
            NotSporadic(_) => Some(NoSuchSlot(0)),
            NoSuchSlot(_) => Some(InvalidConstraint),
            InvalidConstraint => Some(NotDeclared(0)),
            NotDeclared(_) => Some(AlreadyHeld(0)),
            AlreadyHeld(_) => Some(NotHeld(0)),
            NotHeld(_) => Some(NestedTooDeep(0)),
            NestedTooDeep(_) => Some(Deadlock(0)),
            Deadlock(_) => Some(UsesResources(t)),
            UsesResources(_) => Some(NoSuchNode(n)),
            NoSuchNode(_) => Some(NoNodeLeft),
            NoNodeLeft => Some(TooDeep(n)),
            TooDeep(_) => Some(NotAParent(n)),
            NotAParent(_) => Some(QuotaExhausted(n)),
            QuotaExhausted(_) => Some(NotDeciding(n)),
            NotDeciding(_) => Some(StalePick(n)),
            StalePick(_) => Some(NotItsOwn(t)),
            NotItsOwn(_) => Some(NotReady(t)),
            NotReady(_) => Some(NotItsChild(n)),
            NotItsChild(_) => Some(NotASibling(n)),
            NotASibling(_) => Some(TooLittleBudget(n)),
            TooLittleBudget(_) => Some(OnlyRootCreates(n)),
            OnlyRootCreates(_) => Some(BlockedByTrusted(t)),
            BlockedByTrusted(_) => Some(NotGrantable(n)),
            NotGrantable(_) => Some(NotReplaceable(n)),
            NotReplaceable(_) => Some(NothingShelved(n)),
            NothingShelved(_) => Some(NotPlannable),
            NotPlannable => Some(BeingReplaced(n)),
            BeingReplaced(_) => Some(NotIdle(n)),
            NotIdle(_) => Some(NotAScheduler(n)),
            NotAScheduler(_) => None,
        }
    }

    #[test]
    fn every_refusal_of_the_core_has_its_words_and_its_code() {
        let first = Refusal::StaleThread(punctual_model::ThreadId::new(1, 0));
        let all: Vec<Refusal> = core::iter::successors(Some(first), |r| next(*r)).collect();
        let mut words = std::collections::BTreeSet::new();
        for refusal in &all {
            let said = refusal.to_string();
            assert!(said.len() > 10 && words.insert(said.clone()), "{said}");
            let error = SpawnError::Refused(*refusal);
            assert!(error.to_string().ends_with(&said));
            let code = Status::from(error);
            assert!(code != Status::PUNCTUAL_OK && code != Status::PUNCTUAL_INTERNAL);
        }
        assert_eq!(all.len(), 33);
    }
}
