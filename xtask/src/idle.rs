//! Work that takes only the time that nobody else wants of any CPU, and no longer than it has to.
//!
//! The kernel's class for that (`SCHED_IDLE`) may get next to nothing on a busy machine. So it ends
//! with what it makes way for. An ordinary user may not leave the class as a rule, and does not get
//! into it here.

use std::fs;
use std::path::Path;
use std::process::{self, Command};

/// The class as the kernel numbers it.
pub(crate) const SCHED_IDLE: u32 = 5;

/// Gives the calling thread, and all that it starts, only time that nobody else wants; whether that
/// could be had.
pub(crate) fn begin() -> bool {
    let both_ways = "chrt --idle --pid 0 $$ && chrt --other --pid 0 $$";
    let thread = fs::read_link("/proc/thread-self").unwrap_or_default();
    let thread = thread.file_name().unwrap_or_default();
    succeeds(Command::new("sh").args(["-c", both_ways]))
        && succeeds(
            Command::new("chrt")
                .args(["--idle", "--pid", "0"])
                .arg(thread),
        )
}

/// Gives all threads of this process, and all that they have started, the ordinary class again. One
/// that is started meanwhile may be missed, so this is to be called again.
pub(crate) fn end() {
    let mut found = Vec::new();
    idle_threads(process::id(), &mut found);
    for thread in found {
        // It may have ended; else the next call tries again.
        let _ = succeeds(Command::new("chrt").args(["--other", "--pid", "0", &thread]));
    }
}

fn succeeds(command: &mut Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
}

/// The threads of that class of a process and of those below it.
fn idle_threads(process: u32, found: &mut Vec<String>) {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        if class_of(&thread.path()) == Some(SCHED_IDLE) {
            found.extend(thread.file_name().into_string());
        }
        let children = fs::read_to_string(thread.path().join("children"));
        let children = children.unwrap_or_default();
        for child in children.split_whitespace().flat_map(str::parse) {
            idle_threads(child, found);
        }
    }
}

/// The class of a thread, by its folder below `/proc`.
pub(crate) fn class_of(thread: &Path) -> Option<u32> {
    let stat = fs::read_to_string(thread.join("stat")).ok()?;
    // The name may have spaces; behind it are the fields from the third one on.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    fields.nth(38)?.parse().ok()
}
