//! Ctrl-C: the first ends a command with what is finished, the second at once.
//!
//! A terminal that is closed (SIGHUP) and a system that shuts down (SIGTERM) ask for the same.
//!
//! A process may begin with SIGHUP ignored (`nohup`), or with SIGINT: a script has that for a job
//! behind `&`, which a Ctrl-C is not meant for. Then it stays so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::ending::{ENDED_BY_CTRL_C, Failure};

/// Whether the user wants the run to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGTERM sets the flag, and so do SIGINT and SIGHUP where they are not ignored.
    pub fn listen() -> Result<Interrupt, Failure> {
        let wanted = Arc::new(AtomicBool::new(false));
        let listen = |signal| {
            // In this order: the flag is still down when the first signal asks whether to exit.
            flag::register_conditional_shutdown(
                signal,
                ENDED_BY_CTRL_C.into(),
                Arc::clone(&wanted),
            )?;
            flag::register(signal, Arc::clone(&wanted))
        };
        let ignored = ignored();
        let stays_so = |signal: i32| signal != SIGTERM && ignored & 1 << (signal - 1) != 0;
        let signals = [SIGINT, SIGTERM, SIGHUP].into_iter();
        for signal in signals.filter(|signal| !stays_so(*signal)) {
            let _ = listen(signal)
                .map_err(|error| Failure::run(format!("cannot listen for Ctrl-C: {error}")))?;
        }
        Ok(Interrupt(wanted))
    }

    /// The flag itself, for those who look at it from elsewhere.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it has come.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Forgets one that has come and was obeyed: the next one asks for the end of what follows.
    pub fn rearm(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Ends the process as the first Ctrl-C ends a program that does not listen: a shell reports
/// [`ENDED_BY_CTRL_C`], and a script that calls the program in a loop ends with it.
pub fn end_as_ctrl_c_does() -> ! {
    let _ = low_level::emulate_default_handler(SIGINT);
    std::process::exit(ENDED_BY_CTRL_C.into())
}

/// The signals that are ignored now, signal 1 in the lowest bit; none where the kernel does not
/// tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
