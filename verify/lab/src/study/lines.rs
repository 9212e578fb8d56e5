//! Cache lines in virtual time: a line that another CPU has changed must be fetched.
//!
//! # Assumptions
//! 1. A CPU that has a line reads it for nothing; one that has it alone writes it for nothing. What
//!    that costs is in the price of a step.
//! 2. Every other access is a fetch, and all fetches take equally long.
//! 3. A line serves one fetch after another. So a counter that n CPUs change takes n fetches, and a
//!    word that n CPUs wait for reaches the last of them n fetches after its change.

use std::collections::HashMap;

use crate::atomic::Access;

/// CPUs that may be told apart.
const MOST_CPUS: usize = 1_024;

/// The CPUs that have a line, and from when on it may be fetched again.
#[derive(Clone, Debug)]
struct Line {
    holders: [u64; MOST_CPUS / 64],
    free_at: u64,
}

impl Line {
    fn new() -> Line {
        Line {
            holders: [0; MOST_CPUS / 64],
            free_at: 0,
        }
    }

    fn only(cpu: usize) -> [u64; MOST_CPUS / 64] {
        let mut holders = [0; MOST_CPUS / 64];
        holders[cpu / 64] = 1 << (cpu % 64);
        holders
    }
}

/// All lines that somebody has touched.
#[derive(Debug)]
pub(crate) struct Lines {
    fetch: u64,
    lines: HashMap<usize, Line>,
}

impl Lines {
    /// Lines of which a fetch takes so long.
    pub(crate) fn new(fetch: u64) -> Lines {
        Lines {
            fetch,
            lines: HashMap::new(),
        }
    }

    /// The instant at which an access of a CPU that begins now is over.
    pub(crate) fn access(&mut self, cpu: usize, access: Access, now: u64) -> u64 {
        let cpu = cpu % MOST_CPUS;
        let line = self.lines.entry(access.line).or_insert_with(Line::new);
        let only = Line::only(cpu);
        let has = line.holders[cpu / 64] & only[cpu / 64] != 0;
        let is_here = if access.is_write {
            line.holders == only
        } else {
            has
        };
        if is_here {
            return now;
        }
        let end = now.max(line.free_at) + self.fetch;
        line.free_at = end;
        match access.is_write {
            true => line.holders = only,
            false => line.holders[cpu / 64] |= only[cpu / 64],
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_fetched_once_by_each_reader_and_again_after_a_write() {
        let mut lines = Lines::new(100);
        let read = |line| Access {
            line,
            is_write: false,
        };
        let write = Access {
            line: 1,
            is_write: true,
        };
        assert_eq!(lines.access(0, write, 0), 100);
        assert_eq!(lines.access(0, write, 100), 100, "it is there");
        assert_eq!(lines.access(1, read(1), 100), 200);
        assert_eq!(lines.access(2, read(1), 100), 300, "one after another");
        assert_eq!(lines.access(2, read(1), 300), 300);
        assert_eq!(lines.access(2, read(2), 300), 400, "another line");
        assert_eq!(lines.access(0, write, 400), 500, "others have it");
        assert_eq!(lines.access(1, read(1), 500), 600);
    }
}
