//! What comes from outside while a round is flown: signals, stops, and processes that want the CPU.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use punctual_generate::Random;
use rustix::process::{Pid, Signal, kill_process};

/// What is done to a round.
#[derive(Debug)]
pub(crate) struct Chaos {
    victim: Pid,
    random: Random,
    hogs: Vec<Child>,
    pub(crate) signals: u64,
    pub(crate) stops: u64,
}

impl Chaos {
    /// Draws what will happen to the process, and begins with hogs.
    pub(crate) fn new(victim: Pid, mut random: Random) -> Chaos {
        let hogs = (0..random.below(3)).filter_map(|_| hog()).collect();
        Chaos {
            victim,
            random,
            hogs,
            signals: 0,
            stops: 0,
        }
    }

    /// Ends the hogs: what follows is not to be disturbed. Kept for its counts.
    pub(crate) fn end_hogs(&mut self) {
        for mut hog in self.hogs.drain(..) {
            // One that has ended needs no end.
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }

    /// Does one thing, or nothing for a while.
    pub(crate) fn act(&mut self) {
        match self.random.below(8) {
            0..3 => self.burst(),
            3 => self.stop(),
            _ => {}
        }
        std::thread::sleep(Duration::from_micros(self.random.within(500, 20_000)));
    }

    /// Signals to every kernel thread of the process, also those that carry CPUs.
    fn burst(&mut self) {
        if !self.is_listening() {
            return;
        }
        let tasks = format!("/proc/{}/task", self.victim.as_raw_nonzero());
        let Ok(tasks) = std::fs::read_dir(tasks) else {
            return;
        };
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            Pid::from_raw(task.ok()?.file_name().to_str()?.parse().ok()?)
        };
        let tasks: Vec<Pid> = tasks.filter_map(name).collect();
        for _ in 0..self.random.within(1, 40) {
            let signal = *self
                .random
                .pick(&[Signal::USR1, Signal::USR2])
                .unwrap_or(&Signal::USR1);
            if let Some(&task) = self.random.pick(&tasks)
                && kill_process(task, signal).is_ok()
            {
                self.signals += 1;
            }
        }
    }

    /// Whether the process has its handlers: before, a signal would end it.
    fn is_listening(&self) -> bool {
        let status = format!("/proc/{}/status", self.victim.as_raw_nonzero());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0);
        let both = [Signal::USR1, Signal::USR2].map(|signal| 1 << (signal.as_raw() - 1));
        both.iter().all(|bit: &u64| caught & bit != 0)
    }

    /// Stops the whole process for up to five milliseconds.
    fn stop(&mut self) {
        if kill_process(self.victim, Signal::STOP).is_ok() {
            self.stops += 1;
            std::thread::sleep(Duration::from_micros(self.random.within(50, 5_000)));
        }
        let _ = kill_process(self.victim, Signal::CONT);
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        let _ = kill_process(self.victim, Signal::CONT);
        self.end_hogs();
    }
}

/// A process that wants a CPU, for two minutes of its time at most. It is one process: killed, it
/// leaves no child behind.
fn hog() -> Option<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -t 120; while :; do :; done"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().ok()
}
