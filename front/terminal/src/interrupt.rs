//! Ctrl-C: the first ends a command with what is finished, the second at once.
//!
//! A terminal that is closed (SIGHUP) and a system that shuts down (SIGTERM) ask for the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::ending::{ENDED_BY_CTRL_C, Failure};

/// Whether the user wants the run to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP set the flag. SIGHUP stays ignored under `nohup`.
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
        let mut signals = vec![SIGINT, SIGTERM];
        signals.extend(Some(SIGHUP).filter(|_| !is_hangup_ignored()));
        for signal in signals {
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

/// Whether the process was started with SIGHUP ignored, as `nohup` does it.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}
