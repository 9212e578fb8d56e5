//! Where the code of the C library and its relatives lies.

use core::ffi::CStr;

use crate::sys;

/// Text ranges in which a preemption is put off: code that may hold a lock of the C library.
#[derive(Clone, Debug, Default)]
pub(crate) struct LibraryText {
    ranges: Vec<(u64, u64)>,
    spinning: Vec<(u64, u64)>,
}

/// File names (without directory) begin with these.
const LIBRARIES: [&str; 5] = ["libc.", "libc-", "ld-linux", "libgcc_s.", "libm."];

/// Functions of the C library that may wait for another thread without a system call.
const SPINNING: [&CStr; 4] = [
    c"pthread_rwlock_rdlock",
    c"pthread_rwlock_wrlock",
    c"pthread_spin_lock",
    c"pthread_mutex_lock",
];

impl LibraryText {
    /// The ranges of the objects that are loaded now.
    pub(crate) fn find() -> LibraryText {
        let ranges = sys::text_ranges(|path| {
            let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            LIBRARIES
                .iter()
                .any(|library| name.starts_with(library.as_bytes()))
        });
        let spinning = SPINNING.iter().filter_map(|name| sys::function_range(name));
        LibraryText {
            ranges,
            spinning: spinning.collect(),
        }
    }

    /// Whether the instruction lies in a function that may wait by looking again and again.
    #[inline]
    pub(crate) fn spins(&self, instruction: u64) -> bool {
        has(&self.spinning, instruction)
    }

    /// Whether the instruction lies in one of them. A handful of comparisons.
    #[inline]
    pub(crate) fn contains(&self, instruction: u64) -> bool {
        has(&self.ranges, instruction)
    }
}

fn has(ranges: &[(u64, u64)], instruction: u64) -> bool {
    let mut ranges = ranges.iter();
    ranges.any(|&(begin, end)| (begin..end).contains(&instruction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_inside_and_this_program_outside() {
        let text = LibraryText::find();
        let inside = punctual_linux_io::sys::next_symbol(c"getpid") as u64;
        assert!(text.contains(inside));
        assert!(!text.contains(LibraryText::find as *const () as u64));
    }

    #[test]
    fn functions_that_spin_are_known_from_their_first_instruction_to_their_last() {
        let text = LibraryText::find();
        assert_eq!(text.spinning.len(), SPINNING.len());
        let function = sys::symbol(c"pthread_rwlock_wrlock") as u64;
        assert!(text.spins(function) && text.spins(function + 64));
        assert!(!text.spins(function.wrapping_sub(1)) && !text.spins(function + 0x4000));
        assert!(text.spinning.iter().all(|&(begin, _)| text.contains(begin)));
    }
}
