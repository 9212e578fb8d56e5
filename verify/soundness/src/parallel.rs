//! Many independent pieces of work over all cores, with the same sum whoever did which.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tally::Tally;

/// Pieces that a thread takes at a time.
const CHUNK: u64 = 16;

/// Does pieces 0 to `count` - 1 on every core and adds up what they find. Progress goes to
/// standard error when that is a terminal.
pub fn over_all_cores(count: u64, work: impl Fn(u64, &mut Tally) + Sync) -> Tally {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    let mut sum = Tally::default();
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| {
                    let mut tally = Tally::default();
                    loop {
                        let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                        if first >= count {
                            return tally;
                        }
                        show(first, count);
                        for piece in first..count.min(first + CHUNK) {
                            work(piece, &mut tally);
                        }
                    }
                })
            })
            .collect();
        for helper in helpers {
            match helper.join() {
                Ok(tally) => sum.add(tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    clear();
    sum
}

fn show(done: u64, count: u64) {
    let mut out = std::io::stderr();
    if out.is_terminal() && done.is_multiple_of(CHUNK * 8) {
        // Progress that cannot be shown is no reason to stop.
        let _ = write!(out, "\r{done} of {count} systems");
        let _ = out.flush();
    }
}

fn clear() {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r{:40}\r", "");
    }
}
