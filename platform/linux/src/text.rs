//! Where the code of the C library and its relatives lies.

use crate::sys;

/// Text ranges in which a preemption is put off: code that may hold a lock of the C library.
#[derive(Clone, Debug, Default)]
pub(crate) struct LibraryText {
    ranges: Vec<(u64, u64)>,
}

/// File names (without directory) begin with these.
const LIBRARIES: [&str; 5] = ["libc.", "libc-", "ld-linux", "libgcc_s.", "libm."];

impl LibraryText {
    /// The ranges of the objects that are loaded now.
    pub(crate) fn find() -> LibraryText {
        let ranges = sys::text_ranges(|path| {
            let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            LIBRARIES
                .iter()
                .any(|library| name.starts_with(library.as_bytes()))
        });
        LibraryText { ranges }
    }

    /// Whether the instruction lies in one of them. A handful of comparisons.
    #[inline]
    pub(crate) fn contains(&self, instruction: u64) -> bool {
        self.ranges
            .iter()
            .any(|&(begin, end)| (begin..end).contains(&instruction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_inside_and_this_program_outside() {
        let text = LibraryText::find();
        let inside = sys::next_symbol(c"getpid") as u64;
        assert!(text.contains(inside));
        assert!(!text.contains(LibraryText::find as *const () as u64));
    }
}
