//! Other programs with an end: none runs longer than the user allows, or after Ctrl-C.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use punctual_terminal::ending::Failure;
use punctual_terminal::interrupt::Interrupt;

/// How often a program is looked at while it runs.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The end of all that a command waits for.
#[derive(Debug)]
pub(super) struct Limit {
    within: Duration,
    end: Option<Instant>,
    interrupt: Interrupt,
}

impl Limit {
    pub(super) fn new(within: Duration, interrupt: Interrupt) -> Limit {
        Limit {
            within,
            end: Instant::now().checked_add(within),
            interrupt,
        }
    }

    /// Time that is left.
    pub(super) fn left(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.end.map_or(self.within, left)
    }

    /// Fails when the time is over, or the user has had enough.
    pub(super) fn hold(&self, what: &str) -> Result<(), Failure> {
        if self.interrupt.is_wanted() {
            return Err(Failure::stopped(format!("stopped by request: {what}")));
        }
        if self.left().is_zero() {
            let limit = self.within.as_secs_f64();
            let message = format!("not done within {limit} s: {what}");
            return Err(Failure::run(message).with_help("give it longer with --within"));
        }
        Ok(())
    }

    /// Runs a program to its end. It has a process group of its own, so that nothing that it has
    /// started stays behind.
    pub(super) fn run(&self, command: &mut Command, what: &str) -> Result<ExitStatus, Failure> {
        let mut child = command.process_group(0).spawn().map_err(|error| {
            let program = command.get_program().display();
            let failure = Failure::run(format!("`{program}` does not start: {error}"));
            failure.with_help("the policy is built with cargo: is it installed, and on the PATH?")
        })?;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => {
                    end(&mut child);
                    return Err(Failure::run(format!("lost sight of a program: {error}")));
                }
            }
            if let Err(failure) = self.hold(what) {
                end(&mut child);
                return Err(failure);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Ends a program with all that it has started. One that is gone already is no failure.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}
