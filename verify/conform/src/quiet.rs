//! Panics of a policy as values, without a message for each history that is tried.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Panics of this thread are findings, not accidents.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Calls `work`; a panic in it comes back as its message. Panics elsewhere are reported as before.
pub(crate) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                before(info);
            }
        }));
    });
    EXPECTED.set(true);
    // Whatever `work` leaves half done is dropped with the history that it belongs to.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(false);
    result.map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("something that is no text").to_owned()
}
