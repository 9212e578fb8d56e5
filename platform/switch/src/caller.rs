//! Entries that know who called them.
//!
//! ```text
//!   caller --call--> entry:  register := return address, at [rsp]
//!                            jump to the body, which finds it as one more argument
//! ```
//!
//! The body returns to the caller itself: the entry leaves no frame, so debuggers and unwinders see
//! none.

/// Defines a function of the C ABI under its plain name that goes on in `$body`, which takes the
/// same arguments and, behind them, the address that it will return to. `$register` is where the
/// ABI passes that further argument: `"rsi"`, `"rdx"`, `"rcx"` behind one, two, three.
#[macro_export]
macro_rules! entry_with_caller {
    (
        $(#[$attribute:meta])*
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? => $body:path, $register:literal
    ) => {
        $(#[$attribute])*
        // Miri has functions of its own under such names.
        #[cfg_attr(not(miri), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            ::core::arch::naked_asm!(
                ".cfi_startproc",
                ::core::concat!("mov ", $register, ", [rsp]"),
                "jmp {body}",
                ".cfi_endproc",
                body = sym $body,
            )
        }
    };
}

#[cfg(test)]
mod tests {
    extern "C" fn body(first: u64, second: u64, caller: usize) -> usize {
        assert_eq!((first, second), (40, 2));
        caller
    }

    entry_with_caller! {
        punctual_test_of_callers(first: u64, second: u64) -> usize => body, "rdx"
    }

    #[inline(never)]
    fn call(first: u64) -> usize {
        // SAFETY: the entry has no obligations.
        std::hint::black_box(unsafe { punctual_test_of_callers(first, 2) })
    }

    #[test]
    fn the_body_gets_the_arguments_and_the_address_it_returns_to() {
        let begin = call as fn(u64) -> usize as usize;
        let caller = call(40);
        assert!(
            (begin..begin + 512).contains(&caller),
            "{caller:#x} is not in the function at {begin:#x}"
        );
    }
}
