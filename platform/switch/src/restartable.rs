//! Sequences that are begun again instead of being atomic (Composite §2.4, Fig. 4).
//!
//! On one processor a compare-and-exchange needs no atomic instruction, if whoever preempts it
//! sends it back to its beginning: three plain instructions, of which the last one commits.
//!
//! ```text
//!   20: cmp [word], expected   \
//!       jne 30                  | interrupted here: begins again at 20
//!       mov [word], new        /  THE COMMITMENT
//!   30: the answer lies in the flags, which the store does not touch
//! ```
//!
//! Two who can send it back: the preemption signal, by a table that the assembler makes
//! ([`roll_back`]), and the kernel, by the area that it has been told of (rseq).

use core::arch::asm;

use crate::frame::SignalFrame;

/// Stores `new` if the word is `expected`; whether it was. Atomic for those whom the preemption
/// signal takes turns between; for nobody else.
///
/// # Safety
/// * The word is valid, and only changed by threads of one processor.
/// * Whoever preempts one of them calls [`roll_back`] before another one runs.
#[inline(always)]
pub unsafe fn exchange_if(word: *mut usize, expected: usize, new: usize) -> bool {
    let done: u8;
    // SAFETY: the word is valid, as the caller vouches; no register that the beginning needs is
    // changed, and nothing is pushed.
    unsafe {
        asm!(
            ".pushsection punctual_restartable,\"aR\",@progbits",
            ".balign 4",
            ".long 20f - .",
            ".long 30f - .",
            ".popsection",
            "20:",
            "cmp [{word}], {expected}",
            "jne 30f",
            "mov [{word}], {new}",
            "30:",
            "sete {done}",
            word = in(reg) word,
            expected = in(reg) expected,
            new = in(reg) new,
            done = lateout(reg_byte) done,
            options(nostack),
        );
    }
    done != 0
}

/// [`exchange_if`], sent back by the kernel: whenever it takes the processor away or brings a
/// signal. `area` is the calling kernel thread's `struct rseq`.
///
/// # Safety
/// * The word is valid, and only changed by threads of one processor.
/// * `area` is registered with the kernel for this thread, under the signature of x86.
#[inline(always)]
pub unsafe fn exchange_if_by_kernel(
    area: *mut u8,
    word: *mut usize,
    expected: usize,
    new: usize,
) -> bool {
    let done: u8;
    // SAFETY: as above; the kernel reads the description, which the assembler made, and goes on at
    // 40, which begins again. It clears the pointer to the description when it has no use for it.
    unsafe {
        asm!(
            // struct rseq_cs: version, flags, beginning, length, where to go on.
            ".pushsection .data.rel.ro.punctual_rseq,\"aw\",@progbits",
            ".balign 32",
            "50: .long 0, 0",
            ".quad 20f, 30f - 20f, 40f",
            ".popsection",
            // The kernel wants its signature before the place where it goes on.
            ".pushsection .text.punctual_rseq,\"ax\",@progbits",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "40: jmp 19f",
            ".popsection",
            "19:",
            "lea {description}, [rip + 50b]",
            "mov [{area} + 8], {description}",
            "20:",
            "cmp [{word}], {expected}",
            "jne 30f",
            "mov [{word}], {new}",
            "30:",
            "sete {done}",
            description = out(reg) _,
            area = in(reg) area,
            word = in(reg) word,
            expected = in(reg) expected,
            new = in(reg) new,
            done = lateout(reg_byte) done,
            options(nostack),
        );
    }
    done != 0
}

/// A compare-and-exchange of the processor that other processors may come between (no `lock`): for
/// threads of one it is atomic as it is, because a signal comes before it or after it.
///
/// # Safety
/// The word is valid, and only changed by threads of one processor.
#[inline(always)]
pub unsafe fn exchange_if_on_one_processor(word: *mut usize, expected: usize, new: usize) -> bool {
    let done: u8;
    // SAFETY: the word is valid, as the caller vouches.
    unsafe {
        asm!(
            "cmpxchg [{word}], {new}",
            "sete {done}",
            word = in(reg) word,
            new = in(reg) new,
            done = out(reg_byte) done,
            inout("rax") expected => _,
            options(nostack),
        );
    }
    done != 0
}

/// Sends an interrupted [`exchange_if`] back to its beginning; whether there was one. O(copies of
/// it in the program).
///
/// # Safety
/// The frame is that of the signal being handled.
pub unsafe fn roll_back(frame: SignalFrame) -> bool {
    let instruction = frame.instruction();
    let begun = sequences().find(|&(begin, end)| begin < instruction && instruction < end);
    if let Some((begin, _)) = begun {
        // SAFETY: no instruction before the commitment changes what the beginning needs.
        unsafe { frame.set_instruction(begin) };
    }
    begun.is_some()
}

unsafe extern "C" {
    #[link_name = "__start_punctual_restartable"]
    static FIRST: [i32; 2];
    #[link_name = "__stop_punctual_restartable"]
    static AFTER_LAST: [i32; 2];
}

/// Where each copy begins, and where it is over.
fn sequences() -> impl Iterator<Item = (u64, u64)> {
    // An entry that is empty, so that there is a table in programs without a copy.
    // SAFETY: it has no instructions.
    unsafe {
        asm!(
            ".pushsection punctual_restartable,\"aR\",@progbits",
            ".balign 4",
            ".long 20f - .",
            ".long 20f - .",
            ".popsection",
            "20:",
            options(nomem, nostack, preserves_flags),
        );
    }
    let first = &raw const FIRST;
    let count = (&raw const AFTER_LAST as usize - first as usize) / size_of::<[i32; 2]>();
    (0..count).map(move |number| {
        let entry = first.wrapping_add(number).cast::<i32>();
        // SAFETY: the linker puts the entries one after the other between the two symbols.
        unsafe { (pointed_at(entry), pointed_at(entry.wrapping_add(1))) }
    })
}

/// The address that a word of the table points at, counted from its own place.
///
/// # Safety
/// `word` points into the table.
unsafe fn pointed_at(word: *const i32) -> u64 {
    // SAFETY: as the caller vouches.
    (word as u64).wrapping_add_signed(i64::from(unsafe { *word }))
}
