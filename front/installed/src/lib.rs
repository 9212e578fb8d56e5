//! libpunctual as it is installed: the C interface, and the command behind one more name.
//!
//! Both have the core, the analysis and the platform in common, which are there once so (note
//! 0111). `src/punctual.c` is the program that calls it.

use core::ffi::c_int;
use std::panic::catch_unwind;

pub use punctual_capi::*;

/// Of a program in Rust that panicked.
const PANICKED: u8 = 101;

/// The command, with the arguments of this process: the code for the shell.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_command() -> c_int {
    c_int::from(catch_unwind(punctual_tools::command).unwrap_or(PANICKED))
}
