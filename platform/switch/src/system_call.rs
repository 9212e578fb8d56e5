//! The system call instruction itself: no error variable, nothing of the C library around it.

use core::arch::asm;

/// Makes a system call and returns what the kernel returns: a result, or a negative error number.
///
/// The scheduler makes its own calls through here, because they happen inside signal handlers on
/// stacks of threads whose `errno` must not change.
///
/// # Safety
/// Whatever the call number and its arguments require.
#[inline]
pub unsafe fn system_call(number: i64, a: [u64; 6]) -> i64 {
    let result: i64;
    // SAFETY: the kernel changes rax, rcx and r11, and memory as the caller vouches for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a[0],
            in("rsi") a[1],
            in("rdx") a[2],
            in("r10") a[3],
            in("r8") a[4],
            in("r9") a[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const GETPID: i64 = 39;
    const NO_SUCH_CALL: i64 = 9_999;

    #[test]
    fn results_and_errors_come_back_in_one_number() {
        // SAFETY: neither call touches memory.
        let (pid, error) = unsafe {
            (
                system_call(GETPID, [0; 6]),
                system_call(NO_SUCH_CALL, [0; 6]),
            )
        };
        assert_eq!(pid, i64::from(std::process::id()));
        assert_eq!(error, -38, "ENOSYS");
    }
}
