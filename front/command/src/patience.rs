//! Work that takes longer than a second says that it goes on, and for how long it has.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_terminal::output;

/// Says so on standard error until it is dropped: after a second, and each time that it has taken
/// twice as long as at the last time.
#[derive(Debug)]
pub(crate) struct Patience {
    done: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl Patience {
    /// Begins to wait for work that is called `what`; nothing is said when `quiet`.
    pub(crate) fn begin(what: &'static str, quiet: bool) -> Patience {
        let (done, wait) = mpsc::channel();
        let tell = move || {
            let mut passed = Duration::ZERO;
            let mut next = Duration::from_secs(1);
            while wait.recv_timeout(next - passed) == Err(RecvTimeoutError::Timeout) {
                let seconds = next.as_secs();
                output::remark(format!(
                    "{what}: {seconds} s so far; Ctrl-C ends it at once"
                ));
                (passed, next) = (next, next * 2);
            }
        };
        // Without a thread to spare it is only silent.
        let teller = thread::Builder::new().name("patience".into());
        let teller = (!quiet).then(|| teller.spawn(tell).ok()).flatten();
        Patience {
            done: Some(done),
            teller,
        }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(teller) = self.teller.take() {
            let _ = teller.join();
        }
    }
}
