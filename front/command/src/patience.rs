//! Work that has no result before its end: it says that it goes on, and Ctrl-C ends it at once.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use punctual_terminal::ending::Failure;
use punctual_terminal::interrupt::{Interrupt, end_as_ctrl_c_does};
use punctual_terminal::output;

/// How often it looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(10);

/// Waits beside the work until it is dropped. It speaks on standard error after a second, and each
/// time that the work has taken twice as long as at the last time.
#[derive(Debug)]
pub(crate) struct Patience {
    done: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl Patience {
    /// Begins to wait for work that is called `what`. When `quiet`, it only listens. After the
    /// drop the same Ctrl-C is for others to obey.
    pub(crate) fn begin(
        what: &'static str,
        quiet: bool,
        interrupt: &Interrupt,
    ) -> Result<Patience, Failure> {
        let (done, wait) = mpsc::channel();
        let interrupt = interrupt.clone();
        let tell = move || {
            let began = Instant::now();
            let mut next = Duration::from_secs(1);
            while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if interrupt.is_wanted() {
                    let failure = Failure::stopped("stopped by request, before the end");
                    output::remark(failure.render(output::colour_stderr()));
                    end_as_ctrl_c_does();
                }
                if !quiet && began.elapsed() >= next {
                    let seconds = next.as_secs();
                    output::remark(format!(
                        "{what}: {seconds} s so far; Ctrl-C ends it at once"
                    ));
                    next *= 2;
                }
            }
        };
        let teller = thread::Builder::new().name("patience".into()).spawn(tell);
        let teller = teller.map_err(|error| Failure::run(format!("no thread to wait: {error}")))?;
        Ok(Patience {
            done: Some(done),
            teller: Some(teller),
        })
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
