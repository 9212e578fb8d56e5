//! Libraries that light threads cannot be beside: looked for before anything is made.
//!
//! A sanitizer knows the threads that the C library makes, with one stack and one storage each. An
//! allocator in the place of the C library's is preempted with its locks held, because its calls
//! pass by the entries in which preemption waits (`punctual_linux_io`). A run beside one of them
//! would crash or stand still somewhere, so it does not begin.

use core::ffi::CStr;

use crate::record::input::RunError;
use crate::sys::{self, is_stub, object_of};

/// Functions that tell a sanitizer, and its name.
const SANITIZERS: [(&CStr, &str); 4] = [
    (c"__asan_init", "the address sanitizer"),
    (c"__hwasan_init", "the address sanitizer"),
    (c"__tsan_init", "the thread sanitizer"),
    (c"__msan_init", "the memory sanitizer"),
];

/// An allocator has all of them. Where one is a stub of the program, another tells.
const ALLOCATES: [&CStr; 4] = [c"malloc", c"calloc", c"posix_memalign", c"aligned_alloc"];

/// # Errors
/// [`RunError::Beside`] names the library, and what to do.
pub(crate) fn check_libraries() -> Result<(), RunError> {
    for (function, name) in SANITIZERS {
        let found = sys::symbol(function);
        if !found.is_null() {
            return Err(RunError::Beside {
                what: name,
                file: object_of(found.cast()).map_or_else(String::new, |object| object.file),
                advice: "it knows no threads that are switched in user space: build the program \
                         without it, or test what its threads do outside of a run",
            });
        }
    }
    let functions = ALLOCATES.map(|name| sys::symbol(name).cast());
    let mut functions = functions.into_iter().filter(|function| !is_stub(*function));
    let malloc = functions.find_map(|function| object_of(function));
    let Some(malloc) = malloc else { return Ok(()) };
    let own = object_of(check_libraries as *const ());
    let library = object_of(sys::symbol(c"__libc_malloc").cast());
    let may_be = [own, library];
    if may_be.iter().flatten().any(|may| may.begin == malloc.begin) {
        return Ok(());
    }
    Err(RunError::Beside {
        what: "an allocator in the place of the C library's",
        file: malloc.file,
        advice: "a thread would be preempted while it has its locks: start the program without \
                 it (LD_PRELOAD), or link it under names of its own",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_s_own_allocator_is_no_stranger() {
        assert!(check_libraries().is_ok());
        let own = object_of(check_libraries as *const ()).expect("this program");
        let library = object_of(sys::symbol(c"getpid").cast()).expect("the C library");
        assert_ne!(own.begin, library.begin);
        assert!(library.file.contains("libc"), "{library:?}");
        assert!(object_of(core::ptr::null()).is_none());
    }
}
