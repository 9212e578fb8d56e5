//! The dispatch: from one thread to another in some twenty instructions.
//!
//! ```text
//!   20: begin     from.ip, rbx, rbp, control words <- here          \
//!                 from.sp <- rsp                                     | interrupted here:
//!                 epoch as decided upon?      no -> 50: stale        | rolled back to 20
//!                 to.sp = 0?                 yes -> 40: slow path    |
//!                 current <- to               THE COMMITMENT        /
//!                 fs <- to, if it differs                           \ interrupted here:
//!                 rsp <- to.sp, jump to.ip                           | `current` is in store,
//!   30: resume    sp <- 0                                           / the frame is dead
//!                 rbx, rbp, control words <- here                     an ordinary preemption
//!
//!   40: slow      to.frame = 0? yes -> 60: unavailable
//!                 current <- to               THE COMMITMENT
//!                 rsp <- to.frame, frame <- 0, return from its signal
//! ```
//!
//! The signal handler knows the ranges `20..30` by a table that the assembler makes
//! ([`crate::recover`]). Nothing before the commitment changes a register that the beginning needs,
//! so a thread that was interrupted there starts over, and finds the new epoch.
//!
//! Nothing is pushed: the stack pointer is the same throughout, so what the compiler tells
//! debuggers and profilers about the caller's frame holds at every instruction.

use core::arch::naked_asm;

use crate::record::{
    DispatchRecord, FRAME, INSTRUCTION, KEEPS_CONTROL, MXCSR, RBP, RBX, STACK_POINTER,
    THREAD_POINTER, X87_CONTROL,
};
use crate::scheduler::{CURRENT, EPOCH, SchedulerRecord};

/// What became of a dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
#[must_use = "a stale decision must be taken again"]
pub enum Dispatched {
    /// The caller was in store and has been restored from there: the other thread ran. (Or a
    /// second signal came before the first could recover, and restored the caller at once; then
    /// the epoch has changed. So look at what you waited for, do not infer it.)
    Away,
    /// Somebody was preempted since the epoch was read, so the decision may be wrong: nothing was
    /// done.
    Stale,
    /// The other thread is neither in its record nor in a signal frame: nothing was done.
    Unavailable,
}

impl Dispatched {
    #[inline(always)]
    pub(crate) const fn from_register(value: u64) -> Dispatched {
        match value {
            0 => Dispatched::Away,
            1 => Dispatched::Stale,
            _ => Dispatched::Unavailable,
        }
    }
}

/// One instruction, noted in the table of all instructions of the protocol (for the test that
/// preempts at each of them; four bytes that no program reads). The `R` makes linkers keep it.
macro_rules! step {
    ($text:literal) => {
        step!("punctual_steps"; $text)
    };
    ($table:literal; $text:literal) => {
        concat!(
            "70: ",
            $text,
            "\n.pushsection ",
            $table,
            ",\"aR\",@progbits\n.balign 4\n.long 70b - .\n.popsection"
        )
    };
}
#[cfg(test)]
pub(crate) use step;

/// The protocol as a function body. Its variable parts: how the thread pointer is set, whether it
/// asks first what two threads share (1), and the order of the two stores around the commitment,
/// which a test turns round.
macro_rules! protocol {
    (
        [$from:expr, $to:expr, $scheduler:expr, $epoch:expr],
        table: $table:literal,
        pointer: [$($pointer:literal),*],
        asks: $asks:literal,
        publish: $publish:literal,
        commit: $commit:literal,
        take: [$($take:literal),*]
    ) => {{
        let outcome: u64;
        core::arch::asm!(
            // The copy's entry in the table: begin, resume.
            ".pushsection punctual_dispatch,\"aR\",@progbits",
            // Else the linker puts the table anywhere, and it is read as words.
            ".balign 4",
            ".long 20f - .",
            ".long 30f - .",
            ".popsection",
            "20:",
            step!($table; "lea rax, [rip + 30f]"),
            step!($table; "mov [rdi + {instruction}], rax"),
            step!($table; "mov [rdi + {rbx}], rbx"),
            step!($table; "mov [rdi + {rbp}], rbp"),
            ".if {asks}",
            step!($table; "cmp word ptr [rdi + {keeps}], 0"),
            step!($table; "je 22f"),
            ".endif",
            step!($table; "stmxcsr [rdi + {mxcsr}]"),
            step!($table; "fnstcw [rdi + {x87}]"),
            "22:",
            step!($table; $publish),
            step!($table; "cmp [rdx + {epoch}], rcx"),
            step!($table; "jne 50f"),
            step!($table; "mov r8, [rsi + {stack}]"),
            step!($table; "test r8, r8"),
            step!($table; "jz 40f"),
            step!($table; $commit),
            step!($table; "mov rax, [rsi + {pointer}]"),
            ".if {asks}",
            step!($table; "cmp rax, [rdi + {pointer}]"),
            step!($table; "je 23f"),
            ".endif",
            $(step!($table; $pointer),)*
            "23:",
            $(step!($table; $take),)*
            // Out of line: the slow path, and what is not done.
            "40:",
            step!($table; "mov r8, [rsi + {frame}]"),
            step!($table; "test r8, r8"),
            step!($table; "jz 60f"),
            step!($table; "mov [rdx + {current}], rsi"),
            step!($table; "mov rax, [rsi + {pointer}]"),
            ".if {asks}",
            step!($table; "cmp rax, [rdi + {pointer}]"),
            step!($table; "je 41f"),
            ".endif",
            $(step!($table; $pointer),)*
            "41:",
            step!($table; "mov rsp, r8"),
            step!($table; "mov qword ptr [rsi + {frame}], 0"),
            step!($table; "mov eax, 15"),
            step!($table; "syscall"),
            "50:",
            step!($table; "mov qword ptr [rdi + {stack}], 0"),
            step!($table; "mov eax, 1"),
            step!($table; "jmp 61f"),
            "60:",
            step!($table; "mov qword ptr [rdi + {stack}], 0"),
            step!($table; "mov eax, 2"),
            step!($table; "jmp 61f"),
            // Where the thread goes on; `rsi` is its own record, by whoever jumped here.
            "30:",
            step!($table; "mov qword ptr [rsi + {stack}], 0"),
            step!($table; "mov rbx, [rsi + {rbx}]"),
            step!($table; "mov rbp, [rsi + {rbp}]"),
            ".if {asks}",
            step!($table; "cmp word ptr [rsi + {keeps}], 0"),
            step!($table; "je 32f"),
            ".endif",
            step!($table; "ldmxcsr [rsi + {mxcsr}]"),
            step!($table; "fldcw [rsi + {x87}]"),
            "32:",
            step!($table; "xor eax, eax"),
            "61:",
            instruction = const INSTRUCTION,
            stack = const STACK_POINTER,
            pointer = const THREAD_POINTER,
            rbx = const RBX,
            rbp = const RBP,
            keeps = const KEEPS_CONTROL,
            mxcsr = const MXCSR,
            x87 = const X87_CONTROL,
            frame = const FRAME,
            current = const CURRENT,
            epoch = const EPOCH,
            asks = const $asks,
            inlateout("rdi") $from => _,
            inlateout("rsi") $to => _,
            inlateout("rdx") $scheduler => _,
            inlateout("rcx") $epoch => _,
            lateout("rax") outcome,
            lateout("r12") _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            clobber_abi("C"),
        );
        Dispatched::from_register(outcome)
    }};
}
#[cfg(test)]
pub(crate) use protocol;

/// Leaves the running thread `from` for `to`, if nobody was preempted since `epoch` was read.
///
/// Inlined into its caller: the compiler saves what is alive there and nothing else.
///
/// # Safety
/// * `from` is the record of the running thread, `to` of another one of this scheduler and of this
///   processor; both are what `scheduler` governs (INV-6), and all three outlive the call.
/// * Either a gate is closed that keeps the preemption signal out (INV-7), or the signal handler
///   recovers this scheduler by [`crate::recover`].
/// * No reference into state that `to` may touch is alive across the call.
/// * The processor and the kernel allow WRFSBASE, or both threads have the same thread pointer.
#[inline(always)]
pub unsafe fn dispatch(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: (1) the records are valid, as the caller vouches; (2) all registers but rbx, rbp and
    // rsp are declared as changed, and those three are restored from the record and by the jump;
    // (3) `to` is resumed by what its own dispatch or the kernel saved (INV-2, INV-5).
    unsafe {
        protocol!(
            [from, to, scheduler, epoch],
            table: "punctual_steps",
            pointer: ["wrfsbase rax"],
            asks: 1,
            publish: "mov [rdi + {stack}], rsp",
            commit: "mov [rdx + {current}], rsi",
            take: ["mov rsp, r8", "jmp [rsi + {instruction}]"]
        )
    }
}

/// [`dispatch`] between threads with storage and control words of their own: it sets and keeps
/// them without asking whether the two share them.
///
/// # Safety
/// As for [`dispatch`]; the processor and the kernel allow WRFSBASE.
#[inline(always)]
pub unsafe fn dispatch_to_own(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: as in `dispatch`. The words that `from` keeps are loaded where this copy goes on with
    // it; to set a thread pointer that is set changes nothing.
    unsafe {
        protocol!(
            [from, to, scheduler, epoch],
            table: "punctual_steps",
            pointer: ["wrfsbase rax"],
            asks: 0,
            publish: "mov [rdi + {stack}], rsp",
            commit: "mov [rdx + {current}], rsi",
            take: ["mov rsp, r8", "jmp [rsi + {instruction}]"]
        )
    }
}

/// [`dispatch`] as one function with a calling convention, for those who choose at run time.
///
/// # Safety
/// As for [`dispatch`].
#[inline(never)]
pub unsafe extern "C" fn dispatch_call(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: as the caller vouches.
    unsafe { dispatch(scheduler, from, to, epoch) }
}

/// [`dispatch_call`] for processors or kernels without WRFSBASE: sets the thread pointer by a
/// system call, which makes a dispatch between storages some twenty times dearer.
///
/// # Safety
/// As for [`dispatch`], except for the last point.
#[inline(never)]
pub unsafe extern "C" fn dispatch_by_system_call(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: as in `dispatch`; the steps between keep rsi and r8 in registers that are declared
    // as changed, and arch_prctl(ARCH_SET_FS) cannot fail for the pointer of a live thread.
    unsafe {
        protocol!(
            [from, to, scheduler, epoch],
            table: "punctual_steps",
            pointer: [
                "mov r12, rsi",
                "mov rsi, rax",
                "mov edi, 0x1002",
                "mov eax, 158",
                // A processor that steps does not stop right after `syscall`; hence the `nop`.
                "syscall\n nop",
                "mov rsi, r12"
            ],
            asks: 1,
            publish: "mov [rdi + {stack}], rsp",
            commit: "mov [rdx + {current}], rsi",
            take: ["mov rsp, r8", "jmp [rsi + {instruction}]"]
        )
    }
}

/// Gives the processor to a thread in store without keeping anything of the code that calls: for a
/// signal handler whose frame is dead, or has been kept by [`DispatchRecord::set_preempted`].
///
/// # Safety
/// * `to` is resumable, `current` of its scheduler is `to`, and it belongs to this processor.
/// * Nothing on the present stack below the saved stack pointers is needed any more.
/// * The processor and the kernel allow WRFSBASE, or the thread pointer is already that of `to`.
#[unsafe(naked)]
pub unsafe extern "C" fn abandon_to(to: *mut DispatchRecord) -> ! {
    naked_asm!(
        "mov rsi, rdi",
        step!("mov rax, [rsi + {pointer}]"),
        step!("cmp rax, fs:[0x10]"),
        step!("je 2f"),
        step!("wrfsbase rax"),
        "2:",
        step!("mov r8, [rsi + {stack}]"),
        step!("test r8, r8"),
        step!("jz 3f"),
        step!("mov rsp, r8"),
        step!("jmp [rsi + {instruction}]"),
        "3:",
        step!("mov rsp, [rsi + {frame}]"),
        step!("mov qword ptr [rsi + {frame}], 0"),
        step!("mov eax, 15"),
        step!("syscall"),
        "ud2",
        pointer = const THREAD_POINTER,
        stack = const STACK_POINTER,
        instruction = const INSTRUCTION,
        frame = const FRAME,
    )
}

/// Where a fresh thread starts; `rsi` is its own record. An unwinder that comes here is told to
/// stop. Calls `entry(argument)`, which were left in `rbp` and `rbx`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn start() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        step!("mov qword ptr [rsi + {stack}], 0"),
        step!("ldmxcsr [rsi + {mxcsr}]"),
        step!("fldcw [rsi + {x87}]"),
        step!("mov rdi, [rsi + {rbx}]"),
        step!("mov rax, [rsi + {rbp}]"),
        step!("xor ebp, ebp"),
        step!("call rax"),
        // `Entry` does not return.
        "ud2",
        ".cfi_endproc",
        stack = const STACK_POINTER,
        mxcsr = const MXCSR,
        x87 = const X87_CONTROL,
        rbx = const RBX,
        rbp = const RBP,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::{read_mxcsr, read_thread_pointer, write_mxcsr};
    use crate::record::{Control, MXCSR_DEFAULT};
    use crate::scheduler::RecordCell;

    struct Pair {
        main: RecordCell,
        other: RecordCell,
        scheduler: SchedulerRecord,
        log: Vec<u32>,
        switch: Switch,
        // What the other thread runs on, alive as long as its record.
        stack: Vec<u8>,
    }

    type Switch = unsafe extern "C" fn(
        *const SchedulerRecord,
        *mut DispatchRecord,
        *mut DispatchRecord,
        u64,
    ) -> Dispatched;

    impl Pair {
        fn new(switch: Switch) -> Box<Pair> {
            let pointer = read_thread_pointer();
            let record = || RecordCell::new(DispatchRecord::running(pointer, Control::Kept));
            let mut pair = Box::new(Pair {
                main: record(),
                other: record(),
                scheduler: SchedulerRecord::new(core::ptr::null_mut()),
                log: Vec::new(),
                switch,
                stack: vec![0; 64 * 1024],
            });
            let top = pair.stack.as_mut_ptr_range().end;
            let argument = (&raw mut *pair).cast();
            // SAFETY: the stack is large, ours, and outlives the last dispatch; the thread pointer
            // is that of the running thread, which waits while the other one runs.
            let record =
                unsafe { DispatchRecord::prepare(top, pointer, Control::Kept, ping, argument) };
            pair.other = RecordCell::new(record);
            pair.scheduler.set_current(pair.main.get());
            pair
        }

        /// Dispatches to the other thread, which comes back at once.
        fn visit(&mut self) {
            let pair: *mut Pair = self;
            // SAFETY: (1) no signal is set up in this test; (2) the records are in store or run as
            // they must, and nothing of the pair is borrowed across the call.
            let away = unsafe { go(pair, (*pair).main.get(), (*pair).other.get()) };
            assert_eq!(away, Dispatched::Away);
        }
    }

    /// # Safety
    /// As for [`dispatch`].
    unsafe fn go(
        pair: *mut Pair,
        from: *mut DispatchRecord,
        to: *mut DispatchRecord,
    ) -> Dispatched {
        // SAFETY: as the caller vouches.
        unsafe {
            let scheduler = &raw const (*pair).scheduler;
            let (switch, epoch) = ((*pair).switch, (*scheduler).epoch());
            switch(scheduler, from, to, epoch)
        }
    }

    unsafe extern "C" fn ping(argument: *mut u8) -> ! {
        let pair = argument.cast::<Pair>();
        for round in 0.. {
            // SAFETY: the test waits inside `visit` while this thread runs: nobody else uses it.
            unsafe { (*pair).log.push(round) };
            // SAFETY: as in `visit`, with the roles exchanged.
            let _ = unsafe { go(pair, (*pair).other.get(), (*pair).main.get()) };
        }
        unreachable!()
    }

    #[test]
    fn a_saved_stack_pointer_is_zero_exactly_while_its_thread_runs() {
        // INV-1, INV-2, INV-3, INV-4
        let mut pair = Pair::new(dispatch_call);
        let says = |cell: &RecordCell| {
            // SAFETY: the other thread is not running, and this one only reads its own.
            unsafe { (*cell.get()).says() }
        };
        assert_ne!(says(&pair.other).1, 0);
        for _ in 0..3 {
            pair.visit();
            assert!(crate::is_entry(says(&pair.other).0));
            assert_ne!(says(&pair.other).1, 0);
            assert_eq!(says(&pair.main).1, 0);
            assert_eq!(pair.scheduler.current(), pair.main.get(), "INV-6");
        }
        assert_eq!(pair.log, [0, 1, 2]);
    }

    #[test]
    fn a_stale_decision_and_a_thread_that_is_nowhere_change_nothing() {
        let pair = Pair::new(dispatch_call);
        let (main, other) = (pair.main.get(), pair.other.get());
        let epoch = pair.scheduler.epoch();
        pair.scheduler.advance();
        // SAFETY: as in `visit`; the dispatch is refused.
        let stale = unsafe { dispatch_call(&raw const pair.scheduler, main, other, epoch) };
        assert_eq!(stale, Dispatched::Stale);
        let nobody = RecordCell::new(DispatchRecord::running(0, Control::Default));
        let epoch = pair.scheduler.epoch();
        // SAFETY: as above; the record says that its thread runs (INV-5).
        let gone = unsafe { dispatch_call(&raw const pair.scheduler, main, nobody.get(), epoch) };
        assert_eq!(gone, Dispatched::Unavailable);
        assert_eq!(pair.scheduler.current(), main);
        // SAFETY: this thread's own record.
        assert!(!unsafe { (*main).is_resumable() }, "INV-1");
        assert!(pair.log.is_empty());
    }

    #[test]
    fn both_kinds_of_dispatch_keep_the_thread_pointer_with_the_stack() {
        // INV-9: the fallback sets the same base.
        for switch in [dispatch_call as Switch, dispatch_by_system_call] {
            let mut pair = Pair::new(switch);
            let before = read_thread_pointer();
            pair.visit();
            assert_eq!(read_thread_pointer(), before);
            assert_eq!(pair.log, [0]);
        }
    }

    #[test]
    fn rounding_modes_belong_to_their_thread() {
        // INV-10: this thread rounds up; a fresh thread starts with the default.
        let mut pair = Pair::new(dispatch_call);
        let upwards = 0x1f80 | 0x4000;
        write_mxcsr(upwards);
        pair.visit();
        let after = read_mxcsr();
        write_mxcsr(MXCSR_DEFAULT);
        assert_eq!(after & 0xffc0, upwards);
    }
}
