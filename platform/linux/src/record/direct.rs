//! The hook of direct schedulers: what the platform asks a scheduler inside a light thread.

use punctual_switch::DispatchRecord;

/// A scheduler that a light thread carries, with threads of its own that it switches by itself.
///
/// To the platform these threads are that one light thread. The preemption signal asks the
/// scheduler which of them it has interrupted; tests ask it whether its records are coherent.
/// Everything here is called in signal handlers, with the gate of the CPU closed: an implementation
/// neither allocates nor locks nor panics.
///
/// # Safety
/// The platform goes on with the record that [`DirectScheduler::preempted`] returns.
pub unsafe trait DirectScheduler {
    /// The preemption signal has interrupted one of the threads. Finds out which, calls `enter`
    /// once, in which the light thread may lose the processor for a while, and returns the record
    /// that goes on, which is then `current` and in store; `None`: the interrupted thread goes on.
    ///
    /// # Safety
    /// `context` is that of the signal being handled, which interrupted this light thread; its
    /// handler has not returned, and the gate is closed.
    unsafe fn preempted(
        &self,
        context: *mut u8,
        enter: &mut dyn FnMut(),
    ) -> Option<*mut DispatchRecord>;

    /// Whether a stack pointer lies in the stack of one of the threads. O(threads).
    fn owns(&self, stack_pointer: u64) -> bool;

    /// The number of an invariant of `punctual_switch` that a record breaks, or 0, where the signal
    /// being handled has found this stack pointer. `executes`: the light thread has the processor.
    /// O(threads).
    fn broken_invariant(&self, executes: bool, stack_pointer: u64) -> u32;
}
