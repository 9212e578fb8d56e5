//! Counters of the processor.

use std::io;

use super::{address, call, check, word};

/// Whether the kernel would count executed cycles of the calling thread (the counter is closed
/// again). The structure of `perf_event_open(2)` is passed as its first words; the rest is zero.
pub(crate) fn try_cycle_counter() -> io::Result<()> {
    const SIZE: u64 = 64; // PERF_ATTR_SIZE_VER0
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;
    // type (hardware) and size; config (cycles); period; sample type; read format; flags; the rest.
    let attributes: [u64; 8] = [SIZE << 32, 0, 0, 0, 0, EXCLUDE_KERNEL_AND_HYPERVISOR, 0, 0];
    let anywhere = word(-1_i64);
    let arguments = [address(attributes.as_ptr()), 0, anywhere, anywhere];
    // SAFETY: the kernel reads SIZE bytes, which is the size of the array.
    let descriptor = check(unsafe { call(libc::SYS_perf_event_open, arguments) })?;
    // SAFETY: the descriptor was just opened by us.
    unsafe { call(libc::SYS_close, [word(descriptor)]) };
    Ok(())
}
