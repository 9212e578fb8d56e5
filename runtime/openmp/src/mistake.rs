//! A mistake of this library: one line, and the end of the program.
//!
//! `link.sh` puts [`punctual_openmp_panicked`] in the place of the standard library's own handler.
//! That one keeps the words of a panic and the name of its thread behind the thread pointer: 64
//! bytes of every thread of the program, which the loader may not have left.

use core::panic::PanicInfo;

use crate::sys;

/// The compiler's code calls it when code of this library panics.
///
/// Its one argument is an address, which both calling conventions put into the same register.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_openmp_panicked(panic: &PanicInfo<'_>) -> ! {
    sys::say(&format!(
        "punctual-openmp: a mistake of the library: {panic}"
    ));
    std::process::abort()
}
