//! Urgency and value: two orders that are never compared with each other.

/// How urgent a task is under fixed priorities. A larger number is more urgent; the comparison has
/// a name because half of the world numbers the other way round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Priority(u32);

/// The value of work in overload: independent of urgency. A larger number is kept longer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Importance(pub u32);

impl Priority {
    /// The least urgent priority.
    pub const LOWEST: Priority = Priority(0);

    /// The priority with this number (as in the file).
    #[inline]
    pub const fn new(number: u32) -> Priority {
        Priority(number)
    }

    /// The number (as in the file).
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether this is more urgent than `other`.
    #[inline]
    pub const fn is_higher_than(self, other: Priority) -> bool {
        self.0 > other.0
    }
}
