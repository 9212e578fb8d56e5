//! Single instructions for which the language has no word.

use core::arch::asm;

/// The time-stamp counter, in cycles of its own constant rate. About 20 cycles; not ordered with
/// the instructions around it, which moves a reading by a few nanoseconds at most.
#[inline(always)]
pub fn read_time_stamp() -> u64 {
    // The upper halves of both are cleared.
    let (low, high): (u64, u64);
    // SAFETY: RDTSC reads a counter and has no other effect. Where the system forbids it (CR4.TSD),
    // the clock has been found unusable before anybody calls this.
    unsafe {
        asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags));
    }
    high << 32 | low
}

/// The thread pointer: the word at `fs:0x10` is the address of the thread's own control block
/// (System V ABI for TLS, "self" in glibc and musl), so no privileged instruction is needed.
#[inline]
pub fn read_thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: every thread of a process with a C library has a control block with this word.
    unsafe {
        asm!(
            "mov {}, fs:[0x10]",
            out(reg) pointer,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    pointer
}

/// Tells the processor that this is a loop that waits.
#[inline(always)]
pub fn pause() {
    core::hint::spin_loop();
}

/// Makes the processor stop after every instruction from the next one on, or no more: for tests
/// that preempt at each of them. The kernel turns every stop into SIGTRAP.
///
/// # Safety
/// Somebody handles SIGTRAP.
#[inline(always)]
pub unsafe fn step_instructions(on: bool) {
    if on {
        // SAFETY: changes the trap flag alone; the stack is left as it was.
        unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    } else {
        // SAFETY: as above.
        unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    }
}

/// Control and status of the vector unit.
#[inline]
pub fn read_mxcsr() -> u32 {
    let mut value = 0_u32;
    // SAFETY: stores four bytes to a local.
    unsafe {
        asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
    }
    value
}

/// Sets control and status of the vector unit, for tests of what survives a switch.
#[cfg(test)]
pub(crate) fn write_mxcsr(value: u32) {
    // SAFETY: the tests set valid bits only, and set the default again before other code computes.
    unsafe {
        asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_stamp_does_not_go_back() {
        let mut last = 0;
        for _ in 0..1_000 {
            let now = read_time_stamp();
            assert!(now >= last);
            last = now;
        }
    }
}
