//! Panics where nothing may be waited for: said in one line, by one write.
//!
//! A panic hook locks: standard error, backtraces, whatever a program's own hook locks. Who holds
//! such a lock may be a light thread that was preempted: it goes on as soon as who wants
//! the lock waits, unless that one has its gate closed, in the use of a spinning mutex or because
//! its run is over. So a hook is not called there. The panic is said all the same, and unwinds.

use core::fmt::Write;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

use crate::record::light::Light;
use crate::record::local::current_light;
use crate::sys::remark::Remark;

static INSTALLED: Once = Once::new();

/// Puts itself before the hook of the program, once: a hook that is set later is called everywhere.
pub(crate) fn install() {
    if std::thread::panicking() {
        // Hooks cannot be changed in the middle of a panic.
        return;
    }
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            match current_light().filter(|light| light.has_gate_closed()) {
                Some(light) => say(light, panic),
                None => before(panic),
            }
        }));
    });
}

fn say(light: &Light, panic: &PanicHookInfo<'_>) {
    let mut line = Remark::new();
    let message = panic.payload_as_str().unwrap_or("no message");
    // What does not fit is cut off.
    let _ = write!(line, "punctual: thread '{}' panicked", light.name());
    if let Some(place) = panic.location() {
        let _ = write!(line, " at {place}");
    }
    let _ = writeln!(line, ": {message}");
    line.say();
}
