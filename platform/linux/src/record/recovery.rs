//! Where a thread goes on if the code that it calls crashes.

/// A place to go on at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// The function there, which does not return.
    pub(crate) resume: unsafe extern "C" fn(*mut u8) -> !,
    /// Its argument.
    pub(crate) argument: *mut u8,
    /// Where an address on the thread's stack stands: all frames below it belong to the call alone.
    pub(crate) stack: *const u64,
    /// The code that may crash.
    pub(crate) role: Role,
}

/// The code that a thread recovers from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The policy of a scheduler that decides on its own supply.
    Policy,
    /// A function in C of an application.
    Function,
}
