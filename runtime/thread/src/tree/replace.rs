//! A policy of a running tree is replaced: by a built-in one, or by the program's own.

use punctual_kern::{MAX_PLACES_PER_ENTRY, Policy, Refusal};
use punctual_linux::{ManageError, OwnCode, clock_rate, replace_own};
use punctual_model::{Ns, PolicyKind};
use punctual_policy::AnyPolicy;

use super::{Scheduler, ids_of};
use crate::thread::SpawnError;

impl Scheduler {
    /// Another policy orders what this scheduler orders, from this instant on, if everybody is on
    /// time under it. Jobs, budgets, and what threads hold, inherit or are lent stay as they are;
    /// turns and yields start anew.
    ///
    /// No window of work may be ordered by two policies. So the threads with a guarantee must be
    /// between their jobs: those of the CPU, or of the closest server around this scheduler where
    /// the terms of the machine are all zero. A background thread of the root finds them so
    /// whenever no budget is awaited. Nobody executes before the new policy knows everything:
    /// O(places of the CPU · log), which the admission counts ([note 0035]).
    ///
    /// # Errors
    /// See [`SpawnError`]; then nothing has changed. [`SpawnError::HasJob`] and
    /// [`SpawnError::Contended`]: ask again. [`punctual_kern::Refusal::NotReplaceable`] to or from
    /// a table of slots, and where another order would hand on what its threads share.
    ///
    /// A scheduler that decides on its own supply has this policy there, as by
    /// [`Scheduler::replace_with`].
    ///
    /// [note 0035]: ../../../doc/design/0035-a-policy-after-another.md
    pub fn replace(&self, policy: PolicyKind<Ns>) -> Result<(), SpawnError> {
        let room = self.0.place()?.entities();
        let kind = policy.in_ticks(clock_rate().frequency);
        let decides = self.recode(policy, |_| AnyPolicy::new(kind, room, &[]))?;
        if decides {
            Ok(())
        } else {
            self.reorder(policy)
        }
    }

    /// A policy of the program's own orders the threads of this scheduler from its next decision
    /// on, if everybody is on time under the order of `claims`. It takes the place of the one that
    /// decides on the scheduler's supply now ([`punctual_model::Trust::OwnTime`]). `claims` is the
    /// order by which the scheduler is analysed. `make` is called once, with a number that all
    /// indices of threads are below. The policy hears of all that are ready as if they had just
    /// become so; jobs, budgets, and what threads hold, inherit or are lent stay.
    ///
    /// The answers of the one before count no more from this instant on. One that is in the midst
    /// of a decision ends it on its own supply before the new one is asked; for one that never
    /// does, the scheduler's `fallback` goes on. One that has panicked or crashed is followed at
    /// once ([note 0099]). O(threads of the CPU), on the caller's and the scheduler's supply.
    ///
    /// # Errors
    /// See [`SpawnError`]; then nothing has changed. [`SpawnError::HasJob`]: ask again, as for
    /// [`Scheduler::replace`]. [`punctual_kern::Refusal::NotReplaceable`] where the core decides
    /// for the scheduler: nothing ends a policy there that loops.
    ///
    /// [note 0099]: ../../../doc/design/0099-one-program-s-policy-after-another.md
    pub fn replace_with<P: Policy + Send + 'static>(
        &self,
        claims: PolicyKind<Ns>,
        make: impl FnOnce(usize) -> P,
    ) -> Result<(), SpawnError> {
        match self.recode(claims, make)? {
            true => Ok(()),
            false => Err(SpawnError::Refused(Refusal::NotReplaceable(self.0.node))),
        }
    }

    /// A number that all indices of threads of this CPU are below.
    ///
    /// # Errors
    /// [`SpawnError::NoRun`]; [`SpawnError::NotHere`].
    #[doc(hidden)]
    pub fn most_threads(&self) -> Result<usize, SpawnError> {
        Ok(self.0.place()?.entities())
    }

    /// Other code for a scheduler that decides on its own supply; `false`: the core decides for it.
    fn recode<P: Policy + Send + 'static>(
        &self,
        claims: PolicyKind<Ns>,
        make: impl FnOnce(usize) -> P,
    ) -> Result<bool, SpawnError> {
        let (place, node) = (self.0.place()?, self.0.node);
        if !place.ask(|admission, _| Ok(admission.decides_itself(node)))? {
            return Ok(false);
        }
        // Made and freed here: not in an entry.
        let mut made = OwnCode::new(Box::new(make(place.entities())));
        let kind = claims.in_ticks(clock_rate().frequency);
        place.ask(|admission, now| {
            let divides = matches!(claims, PolicyKind::Tdm { .. });
            if divides || admission.divides_time(node) {
                return Err(SpawnError::Refused(Refusal::NotReplaceable(node)));
            }
            let moved = admission.reorders(node, (claims, 1), now)?;
            match replace_own((node, kind), &mut made, &ids_of(&moved.threads)?) {
                // It has fallen back to its policy in the core.
                Err(ManageError::Refused(Refusal::NothingShelved(_))) => return Ok(false),
                done => done?,
            }
            admission.accept(Some(moved), crate::thread::now().unwrap_or(now));
            admission.has_policy(node, claims);
            Ok(true)
        })
    }

    /// Another built-in policy inside the core.
    fn reorder(&self, policy: PolicyKind<Ns>) -> Result<(), SpawnError> {
        let (place, node) = (self.0.place()?, self.0.node);
        let divides = matches!(policy, PolicyKind::Tdm { .. });
        let kind = policy.in_ticks(clock_rate().frequency);
        let room = place.entities();
        // Made and freed here: not in the entry.
        let mut made = Some(AnyPolicy::new(kind, room, &[]));
        let entries = room.div_ceil(MAX_PLACES_PER_ENTRY);
        let entries = u64::try_from(entries).unwrap_or(u64::MAX);
        place.ask(|admission, now| {
            if divides || admission.divides_time(node) {
                return Err(SpawnError::Refused(Refusal::NotReplaceable(node)));
            }
            let moved = admission.reorders(node, (policy, entries), now)?;
            punctual_linux::replace((node, kind), &mut made, &ids_of(&moved.threads)?)?;
            admission.accept(Some(moved), crate::thread::now().unwrap_or(now));
            admission.has_policy(node, policy);
            Ok(())
        })
    }
}
