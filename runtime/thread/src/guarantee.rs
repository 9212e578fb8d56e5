//! A guarantee that a thread asks for itself, and gives back.
//!
//! [`Guarantee::ask`] is the question to the analysis, in the context of the thread that asks
//! (Nautilus §3.2); [`Guarantee::begin`] puts the constraint in force, from an instant that the
//! caller chooses. Between both others may be asked, too: members of a gang are admitted together.

use core::cell::RefCell;
use core::marker::PhantomData;

use punctual_linux::{Who, change_own, own_lag_until, own_priority};
use punctual_model::{Instant, Ns, Priority, Span, Work};

use crate::admission::Grant;
use crate::constraint::Constraint;
use crate::place::{Place, place};
use crate::thread::{Granted, SpawnError, current_name, now};

/// Room for the calling thread under a constraint. It belongs to the thread that asked, and ends
/// with this value: the thread is background work then, as urgent as when it last was that.
#[derive(Debug)]
pub struct Guarantee {
    place: Place,
    grant: Grant,
    constraint: Constraint,
    /// The thread had this priority as background work last, and has it again then.
    background: Priority,
    /// The constraint that it had before an exchange that has not begun.
    former: Option<Constraint>,
    is_in_force: bool,
    /// It belongs to the thread that asked.
    stays: PhantomData<*const ()>,
}

thread_local! {
    /// Guarantees of a thread that was unwound out of them and may go on: until it ends.
    static KEPT: RefCell<Vec<Granted>> = const { RefCell::new(Vec::new()) };
}

impl Guarantee {
    /// Asks the analysis for room on this CPU for the calling thread, beside what it was created
    /// with. Nothing has changed for it yet.
    ///
    /// # Errors
    /// [`SpawnError::NotAdmitted`] with the verdict; [`SpawnError::NoRun`].
    pub fn ask(constraint: Constraint) -> Result<Guarantee, SpawnError> {
        let place = place().ok_or(SpawnError::NoRun)?;
        let home = punctual_linux::home().ok_or(SpawnError::NoRun)?;
        let name = current_name().ok_or(SpawnError::NoRun)?;
        let grant = place.ask(|admission, now| {
            let grant = admission.add((&name, home), &constraint, now)?;
            admission.bind(grant, Who::this());
            Ok(grant)
        })?;
        Ok(Guarantee {
            place,
            grant,
            constraint,
            background: own_priority().unwrap_or(Priority::LOWEST),
            former: None,
            is_in_force: false,
            stays: PhantomData,
        })
    }

    /// Asks for another constraint in place of this one. The former is in force until
    /// [`Guarantee::begin`], and its room is kept for `hold`, by when that is done.
    ///
    /// # Errors
    /// As [`Guarantee::ask`]; nothing has changed then.
    pub fn exchange(&mut self, constraint: Constraint, hold: Span<Ns>) -> Result<(), SpawnError> {
        self.place
            .ask(|admission, now| Ok(admission.exchange(self.grant, &constraint, now, hold)?))?;
        let former = core::mem::replace(&mut self.constraint, constraint);
        let _ = self.former.get_or_insert(former);
        Ok(())
    }

    /// Back to the constraint that is in force, after an exchange that is not to begin. `false`:
    /// its room is gone; the thread is background work from now on.
    pub fn go_back(&mut self) -> bool {
        let Some(former) = self.former.take() else {
            return true;
        };
        let back = self.place.ask(|admission, now| {
            admission.exchange(self.grant, &former, now, Span::ZERO)?;
            admission.settle(self.grant, now);
            Ok(())
        });
        self.constraint = former;
        if back.is_err() {
            self.end();
        }
        back.is_ok()
    }

    /// Puts the constraint in force, with its first arrival at `at`, or at the zero-lag instant of
    /// the former where that is later. Returns in its first job: that one's arrival.
    ///
    /// # Errors
    /// [`SpawnError::Refused`] by the core; [`SpawnError::NoRun`] on another thread than that of
    /// the pool which asked.
    pub fn begin(&mut self, at: Instant<Ns>) -> Result<Instant<Ns>, SpawnError> {
        let overhead = self.place.overhead();
        change_own(self.constraint.in_core(overhead), at)?;
        (self.former, self.is_in_force) = (None, true);
        // It fails only when the run is over.
        let _ = self.place.ask(|admission, now| {
            admission.settle(self.grant, now);
            Ok(())
        });
        let job = punctual_linux::this_job().ok_or(SpawnError::NoRun)?;
        Ok(Instant::from_ns(job.arrival_ns))
    }

    /// The constraint that was asked for last.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The response bound of its jobs beside all that is admitted on this CPU now; `None`: the
    /// analysis has none.
    ///
    /// # Errors
    /// As [`crate::thread::verdict`].
    pub fn response_bound(&self) -> Result<Option<Span<Ns>>, SpawnError> {
        self.place
            .ask(|admission, _| Ok(admission.response_bound(self.grant)?))
    }

    /// The earliest instant for [`Guarantee::begin`]: the zero-lag instant of what is in force.
    pub fn earliest() -> Option<Instant<Ns>> {
        own_lag_until()
    }

    fn end(&mut self) {
        if core::mem::take(&mut self.is_in_force) {
            let background = Constraint::aperiodic(self.background.number());
            let background = background.in_core(Work::ZERO);
            let _ = change_own(background, now().unwrap_or(Instant::ZERO));
        }
    }
}

impl Drop for Guarantee {
    /// The thread is background work from its zero-lag instant on. One that is being unwound keeps
    /// its guarantee until it ends.
    fn drop(&mut self) {
        let granted = Granted {
            place: self.place.clone(),
            grant: self.grant,
        };
        if self.is_in_force && std::thread::panicking() {
            let _ = KEPT.try_with(|kept| kept.borrow_mut().push(granted));
            return;
        }
        self.end();
    }
}
