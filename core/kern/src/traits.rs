//! Flags of a thread that other tables know, too.

/// Three flags, in the first line of the record of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Traits(u8);

impl Traits {
    /// Its body runs once per job ([`punctual_model::Class::runs_per_job`]).
    pub(crate) const RUNS_PER_JOB: Traits = Traits(1);
    /// It has predecessors ([`crate::precedence`]).
    pub(crate) const HAS_PREDECESSORS: Traits = Traits(2);
    /// Somebody waits for its jobs.
    pub(crate) const IS_FOLLOWED: Traits = Traits(4);

    /// Whether it has one of these.
    #[inline]
    pub(crate) fn has(self, one: Traits) -> bool {
        self.0 & one.0 != 0
    }

    /// The same with one of these, or without it.
    #[inline]
    pub(crate) fn with(self, one: Traits, is: bool) -> Traits {
        match is {
            true => Traits(self.0 | one.0),
            false => Traits(self.0 & !one.0),
        }
    }

    /// Those that the next thread of a place has, too.
    #[inline]
    pub(crate) fn of_place(self) -> Traits {
        Traits(self.0 & Traits::IS_FOLLOWED.0)
    }
}
