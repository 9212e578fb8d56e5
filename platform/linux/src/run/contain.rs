//! Calls from code that cannot be unwound: what would unwind it comes back as a value.
//!
//! Frames of C have no destructors, and nothing says that they can be unwound at all. A thread that
//! is cancelled is told so, and returns by itself. A thread that the end of the run finds in such a
//! call is ended there, as the threads of a process are when its main function returns: the call
//! does not come back, and its stack is given back with the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::entry::request::leave;
use crate::record::body::{StopJob, describe};
use crate::record::local::current_light;

/// Why a contained call has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// The thread or its job is to end: it was cancelled, or its overrun rule stops it.
    Cancelled,
    /// It panicked, and this is what it said.
    Panicked(String),
}

/// Does `call` for a caller that cannot be unwound. Values that live in frames below on the same
/// stack may never be dropped: the run may end here, and this does not return then.
///
/// # Errors
/// See [`Left`].
pub fn contained<R>(call: impl FnOnce() -> R) -> Result<R, Left> {
    let result = catch_unwind(AssertUnwindSafe(call));
    if let Some(light) = current_light().filter(|light| light.quit.get()) {
        // Both may own something.
        drop(result);
        leave(light);
    }
    result.map_err(|payload| match payload.is::<StopJob>() {
        true => Left::Cancelled,
        false => Left::Panicked(describe(payload.as_ref())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::resume_unwind;

    #[test]
    fn what_would_unwind_the_caller_is_a_value() {
        assert_eq!(contained(|| 7), Ok(7));
        let stopped = contained(|| resume_unwind(Box::new(StopJob)));
        assert_eq!(stopped, Err::<(), Left>(Left::Cancelled));
        let broken = contained(|| resume_unwind(Box::new("broken")));
        assert_eq!(broken, Err::<(), Left>(Left::Panicked("broken".to_owned())));
    }
}
