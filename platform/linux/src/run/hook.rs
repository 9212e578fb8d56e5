//! Panics where nothing may be waited for: said in one line, by one write.
//!
//! A panic hook locks: standard error, backtraces, whatever a program's own hook locks. Such a lock
//! may be held by a light thread that was preempted. That one goes on as soon as another one waits
//! for the lock. A thread with its gate closed cannot wait: in the use of a spinning mutex, or
//! because its run is over. The policy of a child may never go on itself: its supply ends, or the
//! core does not ask it again, and the lock would be held for good. A thread with a contained panic
//! goes on for ever in slots that may be few: its run may end in the middle of the hook. So a hook
//! is not called in any of them. The panic is said all the same, and unwinds.

use core::fmt::Write;
use core::sync::atomic::Ordering;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

use crate::record::light::Light;
use crate::record::local::{current_light, local};
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
            match current_light().filter(|light| must_not_lock(light)) {
                Some(light) => say(light, panic),
                None => before(panic),
            }
        }));
    });
}

/// Whether nobody could wait for a lock that this thread takes, or it for theirs.
pub(crate) fn must_not_lock(light: &Light) -> bool {
    light.has_gate_closed()
        || local(|l| l.recovery.get()).is_some()
        || light.contains.load(Ordering::Relaxed) > 0
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
