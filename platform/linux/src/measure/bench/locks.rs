//! What it costs to take and give back a word that nobody else wants, in several ways.
//!
//! A word of one CPU could be taken without an atomic instruction (design note 0017). All are
//! compiled the same way, into loops of their own, on the calling kernel thread outside of any run.

use core::sync::atomic::{AtomicUsize, Ordering};

use punctual_switch::instructions::{read_thread_pointer, read_time_stamp};
use punctual_switch::{exchange_if, exchange_if_by_kernel, exchange_if_on_one_processor};

use crate::sys::locals::rseq_offset;

/// Pairs of one batch.
const PAIRS: u32 = 500;

/// How a word is taken; it is given back by a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// A compare-and-exchange of the processor.
    CompareExchange,
    /// The same without the prefix that keeps other processors out.
    OnOneProcessor,
    /// A sequence that our preemption signal sends back to its beginning.
    Restartable,
    /// One that the kernel sends back (rseq).
    KernelRestartable,
}

/// TSC cycles per pair, one figure per batch. Empty: this C library has registered no area with the
/// kernel.
pub fn take_and_give_back(batches: usize, taking: Taking) -> Vec<f64> {
    let word = AtomicUsize::new(0);
    let measure = |pair: &dyn Fn() -> f64| {
        let warm_up = batches / 10 + 1;
        let all = (0..warm_up + batches).map(|_| pair());
        all.skip(warm_up).collect()
    };
    match taking {
        Taking::CompareExchange => measure(&|| {
            batch(&word, |word| {
                let order = Ordering::Acquire;
                let taken = word.compare_exchange(0, 1, order, Ordering::Relaxed);
                taken.is_ok()
            })
        }),
        Taking::OnOneProcessor => measure(&|| {
            batch(&word, |word| {
                // SAFETY: this thread alone knows the word.
                unsafe { exchange_if_on_one_processor(word.as_ptr(), 0, 1) }
            })
        }),
        Taking::Restartable => measure(&|| {
            // SAFETY: this thread alone knows the word.
            batch(&word, |word| unsafe { exchange_if(word.as_ptr(), 0, 1) })
        }),
        Taking::KernelRestartable => {
            let Some(offset) = rseq_offset() else {
                return Vec::new();
            };
            let area = (read_thread_pointer() as *mut u8).wrapping_offset(offset);
            measure(&|| {
                batch(&word, |word| {
                    // SAFETY: this thread alone knows the word; the area is where its C library
                    // says, and stays registered while the thread lives.
                    unsafe { exchange_if_by_kernel(area, word.as_ptr(), 0, 1) }
                })
            })
        }
    }
}

#[inline(always)]
fn batch(word: &AtomicUsize, take: impl Fn(&AtomicUsize) -> bool) -> f64 {
    let before = read_time_stamp();
    for _ in 0..PAIRS {
        let word = core::hint::black_box(word);
        if take(word) {
            word.store(0, Ordering::Release);
        }
    }
    let cycles = read_time_stamp().wrapping_sub(before);
    // A batch of less than 2^32 cycles; a longer one was not executed in one piece.
    f64::from(u32::try_from(cycles).unwrap_or(u32::MAX)) / f64::from(PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_takes_a_free_word_once() {
        let word = AtomicUsize::new(0);
        // SAFETY: this thread alone knows the word.
        assert!(unsafe { exchange_if(word.as_ptr(), 0, 5) });
        // SAFETY: as above.
        assert!(!unsafe { exchange_if(word.as_ptr(), 0, 6) });
        assert_eq!(word.load(Ordering::Relaxed), 5);
        // SAFETY: as above.
        assert!(unsafe { exchange_if_on_one_processor(word.as_ptr(), 5, 4) });
        // SAFETY: as above.
        assert!(!unsafe { exchange_if_on_one_processor(word.as_ptr(), 5, 6) });
        word.store(5, Ordering::Relaxed);
        let Some(offset) = rseq_offset() else {
            return;
        };
        let area = (read_thread_pointer() as *mut u8).wrapping_offset(offset);
        // SAFETY: as above; the area is where the C library says.
        assert!(unsafe { exchange_if_by_kernel(area, word.as_ptr(), 5, 7) });
        // SAFETY: as above.
        assert!(!unsafe { exchange_if_by_kernel(area, word.as_ptr(), 5, 8) });
        assert_eq!(word.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn every_way_is_measured_where_the_c_library_allows_it() {
        for taking in [
            Taking::CompareExchange,
            Taking::OnOneProcessor,
            Taking::Restartable,
        ] {
            let cycles = take_and_give_back(20, taking);
            assert_eq!(cycles.len(), 20);
            assert!(cycles.iter().all(|&cycles| cycles > 0.0));
        }
        let by_kernel = take_and_give_back(20, Taking::KernelRestartable);
        assert_eq!(by_kernel.is_empty(), rseq_offset().is_none());
    }
}
