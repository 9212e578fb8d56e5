//! Bodies from shared objects: `int f(uint64_t job, uint64_t arrival_ns)`.

use core::ffi::c_int;
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::record::body::Body;

/// The form of a task's function in C. It returns 0; other values are reserved.
type TaskFunction = unsafe extern "C" fn(job: u64, arrival_ns: u64) -> c_int;

/// A shared object or its function could not be had.
#[derive(Debug)]
pub struct ForeignError {
    library: PathBuf,
    symbol: Option<String>,
    cause: libloading::Error,
}

impl fmt::Display for ForeignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = self.library.display();
        match &self.symbol {
            Some(symbol) => write!(f, "`{library}` has no function `{symbol}`: {}", self.cause),
            None => write!(f, "cannot load `{library}`: {}", self.cause),
        }
    }
}

impl std::error::Error for ForeignError {}

/// The body that calls `symbol` of the shared object at `path` once per job. The object stays
/// loaded for the rest of the process: its threads or exit handlers may live on.
///
/// The function is outside of Rust's guarantees: it must have the form above, and share data with
/// other tasks only where precedence or atomics order the accesses. The one who names a shared
/// object in a system file vouches for that, as for a program that is started.
///
/// # Errors
/// When the object cannot be loaded or has no such symbol.
pub fn foreign_body(path: &Path, symbol: &str) -> Result<Body, ForeignError> {
    // SAFETY: the one who names the object vouches that the function has this form.
    let function = unsafe { foreign_symbol::<TaskFunction>(path, symbol)? };
    Ok(Box::new(move |job| {
        // SAFETY: a function of this form, in an object that stays loaded.
        let _reserved = unsafe { function(job.index, job.arrival_ns) };
    }))
}

/// A function of the shared object at `path`, which is never unloaded, so it stays valid.
///
/// # Safety
/// The symbol is a function of type `F`, and the object's initialisers are sound.
///
/// # Errors
/// When the object cannot be loaded or has no such symbol.
pub unsafe fn foreign_symbol<F: Copy>(path: &Path, symbol: &str) -> Result<F, ForeignError> {
    let failed = |symbol: Option<&str>, cause| ForeignError {
        library: path.to_owned(),
        symbol: symbol.map(str::to_owned),
        cause,
    };
    // SAFETY: as the caller vouches.
    let library = unsafe { Library::new(path) }.map_err(|cause| failed(None, cause))?;
    // SAFETY: as the caller vouches.
    let function = unsafe { library.get::<F>(symbol.as_bytes()) };
    let function = *function.map_err(|cause| failed(Some(symbol), cause))?;
    core::mem::forget(library);
    Ok(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_loaded_is_named() {
        let missing = foreign_body(Path::new("/no/such/lib.so"), "f").err();
        let text = missing.map(|e| e.to_string()).unwrap_or_default();
        assert!(text.starts_with("cannot load `/no/such/lib.so`"), "{text}");
        let wrong = foreign_body(Path::new("libc.so.6"), "no_such_function").err();
        let text = wrong.map(|e| e.to_string()).unwrap_or_default();
        assert!(
            text.contains("has no function `no_such_function`"),
            "{text}"
        );
    }
}
