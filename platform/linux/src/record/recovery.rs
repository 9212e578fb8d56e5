//! Where a thread goes on if the code that it calls crashes.

/// A place to go on at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// The function there, which does not return.
    pub(crate) resume: unsafe extern "C" fn(*mut u8) -> !,
    /// Its argument.
    pub(crate) argument: *mut u8,
    /// An address on the thread's stack: all frames below it belong to the call alone.
    pub(crate) stack: u64,
}
