//! Child processes that a light thread makes by `fork(2)`.
//!
//! A child has one thread, the caller, on the stack and the storage of the light thread that it
//! was. Nobody schedules there: it is no light thread any more, so its calls are made as those of
//! every other thread, and the kernel thread behind it becomes what the program's own were before
//! the run. It may do what a child of a program with several threads may do, and ends by `exec` or
//! by an exit. If it returns from the body of the light thread instead, the process ends here.

use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};

use punctual_linux_io::Asked;

use crate::record::light::Light;
use crate::record::local::local;
use crate::record::per_cpu::PerCpu;
use crate::sys::end_process;
use crate::sys::remark::Remark;

/// This process is such a child, or a child of one.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Its exit code when it goes on as a light thread.
const GOES_ON: i32 = 1;

/// Whether this process was made by a light thread of a run: it cannot have a run of its own.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

fn host(light: &Light) -> &PerCpu {
    // SAFETY: the host outlives its threads; only its cells and atomics are used through this.
    unsafe { &*light.host() }
}

/// The calling process is the child.
pub(crate) fn begin_child(light: &Light) {
    FORKED.store(true, Ordering::Relaxed);
    let host = host(light);
    local(|l| {
        l.host.set(core::ptr::null());
        l.light.set(core::ptr::null());
        l.recovery.set(None);
    });
    // SAFETY: nobody else executes in this process, and the thread is in no call of the ring.
    drop(unsafe { (*host.ring.get()).take() });
    host.shared.origin.adopt(Asked::default());
}

/// The body of a light thread has been left. In a child of a fork there is nothing to go on with.
pub(crate) fn end_child(light: &Light) {
    if !is_forked() || !local(|l| l.host.get()).is_null() {
        return;
    }
    let mut line = Remark::new();
    // What does not fit is cut off.
    let _ = writeln!(
        line,
        "punctual: a child of a fork returned from the body of '{}': it has no run to go on with; \
         end it by exec, exit or _exit",
        light.name(),
    );
    line.say();
    end_process(GOES_ON)
}
