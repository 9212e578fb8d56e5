//! Sequences that begin again, preempted at each of their instructions by somebody who is quicker.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::{ALONE, PREEMPTION};
use crate::{SignalFrame, exchange_if, roll_back, stepping};

static WORD: AtomicUsize = AtomicUsize::new(0);
/// The preemption found the word free, and took it.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the preemption sends sequences back.
static SENDS_BACK: AtomicBool = AtomicBool::new(true);
static SENT_BACK: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn takes_the_word(_: i32, _: *mut u8, context: *mut u8) {
    if WORD.load(Relaxed) == 0 {
        WORD.store(9, Relaxed);
        TAKEN.store(true, Relaxed);
    }
    if SENDS_BACK.load(Relaxed) {
        // SAFETY: the kernel's third argument, used here alone.
        let frame = unsafe { SignalFrame::new(context) };
        // SAFETY: the frame of this signal.
        SENT_BACK.fetch_add(usize::from(unsafe { roll_back(frame) }), Relaxed);
    }
}

/// Rounds in which both the interrupted code and the preemption had the word, of those in which
/// each of its instructions was interrupted once; and how many rounds there were.
fn had_by_two(sends_back: bool) -> (u32, u32) {
    // SAFETY: the handler touches its own words and the frame; one test at a time uses the signals.
    let taken = unsafe {
        stepping::install(PREEMPTION, takes_the_word, 0) && stepping::prepare(PREEMPTION)
    };
    assert!(taken);
    stepping::forget();
    SENDS_BACK.store(sends_back, Relaxed);
    let (mut both, mut rounds) = (0, 0);
    loop {
        WORD.store(0, Relaxed);
        TAKEN.store(false, Relaxed);
        let (before, _) = stepping::sent();
        // SAFETY: prepared above.
        unsafe { stepping::begin(0, 0) };
        // SAFETY: the word is changed by this thread alone, whose preemptions send it back, or are
        // seen not to.
        let mine = unsafe { exchange_if(WORD.as_ptr(), 0, 5) };
        stepping::end();
        // Somebody who came after the commitment found the word taken.
        both += u32::from(mine && TAKEN.load(Relaxed));
        assert!(mine || TAKEN.load(Relaxed), "somebody has it");
        rounds += 1;
        if stepping::sent().0 == before {
            return (both, rounds);
        }
    }
}

#[test]
fn a_sequence_that_is_sent_back_is_never_had_by_two_and_one_that_is_not_is() {
    let _alone = ALONE.lock().expect("no test panics with the lock");
    let before = SENT_BACK.load(Relaxed);
    let (both, rounds) = had_by_two(true);
    assert_eq!(both, 0, "in {rounds} rounds");
    assert!(SENT_BACK.load(Relaxed) >= before + 2, "the jump, the store");
    let (both, rounds) = had_by_two(false);
    assert!(both > 0, "in {rounds} rounds: the test sees nothing");
}
