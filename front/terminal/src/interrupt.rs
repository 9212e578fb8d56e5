//! Ctrl-C: the first ends a command with what is finished, the second at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::ending::{ENDED_BY_CTRL_C, Failure};

/// Whether the user wants the run to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM set the flag.
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
        match listen(SIGINT).and_then(|_| listen(SIGTERM)) {
            Ok(_) => Ok(Interrupt(wanted)),
            Err(error) => Err(Failure::run(format!("cannot listen for Ctrl-C: {error}"))),
        }
    }

    /// The flag itself, for those who look at it from elsewhere.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it has come.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
