//! The room that the threads of a run take: looked at before anything is made.

use crate::record::input::{RunError, RunOptions};
use crate::storage::stack::Stack;
use crate::sys;

/// The largest number of threads that a CPU may have at a time.
pub const MOST_THREADS: usize = 1 << 20;
/// The largest stack of a thread, in bytes.
pub const MOST_STACK_BYTES: usize = 1 << 30;

/// The largest part of the address space for stacks, which has 2^47 bytes.
const MOST_MAPPED: u64 = 1 << 45;
/// A stack and its guard are a mapping each; so many are left to the program.
const MAPPINGS_OF_OTHERS: u64 = 4_096;
/// Bytes of a thread beside its stack: its record and its thread-local storage.
const BESIDE: u64 = 16 * 1024;

/// Whether a run of so many CPUs, each with so many threads in all, has room. O(1), and reads two
/// small files of the kernel's.
///
/// # Errors
/// [`RunError::TooLarge`], with the number and the limit.
pub fn check_room(cpus: usize, threads: usize, options: &RunOptions) -> Result<(), RunError> {
    let limit = |what, asked: u64, most: u64| match asked <= most {
        true => Ok(()),
        false => Err(RunError::TooLarge { what, asked, most }),
    };
    limit("threads of a CPU", threads as u64, MOST_THREADS as u64)?;
    let stack = options.stack_bytes;
    limit("bytes of a stack", stack as u64, MOST_STACK_BYTES as u64)?;
    let all = (threads as u64).saturating_mul(cpus as u64);
    let area = Stack::area_bytes(stack) as u64;
    limit(
        "bytes of address space for all stacks",
        all.saturating_mul(area),
        MOST_MAPPED,
    )?;
    if let Some(most) = sys::most_mappings() {
        let most = most.saturating_sub(MAPPINGS_OF_OTHERS) / 2;
        limit(
            "threads (vm.max_map_count gives a stack two mappings)",
            all,
            most,
        )?;
    }
    let first = match options.lock_stacks {
        true => area,
        false => area.min(Stack::first_bytes(stack) as u64),
    };
    match sys::available_bytes() {
        Some(most) => limit(
            "bytes of memory for all threads",
            all.saturating_mul(first + BESIDE),
            most,
        ),
        None => Ok(()),
    }
}
