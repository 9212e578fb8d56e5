//! For tests: runs that go without what keeps light threads from stopping in the C library.
//!
//! A test that nothing breaks says little until the same test is seen to break without what it is
//! about. What is forgone is a word of the process, read once when a CPU is set up: a run that
//! forgoes nothing does not pay for it.

use core::sync::atomic::{AtomicBool, Ordering};

static WITHOUT_DEFERRAL: AtomicBool = AtomicBool::new(false);

/// Later runs of this process preempt inside the allocator and the C library wherever the signal
/// comes, and a light thread that waits for one of their locks keeps its CPU.
///
/// # Safety
/// Such runs end in a deadlock or worse; whoever calls this means to watch, in a process that
/// nothing else depends on.
pub unsafe fn forgo_deferral() {
    WITHOUT_DEFERRAL.store(true, Ordering::Relaxed);
}

/// Whether preemptions wait until the C library is left.
pub(crate) fn keeps_deferral() -> bool {
    !WITHOUT_DEFERRAL.load(Ordering::Relaxed)
}
