//! Whole programs as the work of a task: started before a run, ended after it.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

use crate::record::body::Body;
use crate::record::thread_group::{MOST, ThreadGroup};
use crate::run::stand_in::{body, lowest};
use crate::sys::program::{Standing, confine, kill_group};

/// New threads and children of a program are found this often.
const LOOK: Duration = Duration::from_millis(10);

/// A program that could not be started.
#[derive(Debug)]
pub struct ProgramError {
    command: Vec<String>,
    cause: io::Error,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot start `{}`: {}",
            self.command.join(" "),
            self.cause
        )
    }
}

impl std::error::Error for ProgramError {}

/// A program that runs in place of a light thread. Dropping it ends it, with all its children that
/// stayed in its process group.
#[derive(Debug)]
pub struct Program {
    child: Child,
    over: Arc<AtomicBool>,
    finder: Option<JoinHandle<()>>,
}

/// Starts a program for the CPU `host`: there it waits, last of all where an ordinary user's
/// threads come back from that, for the light thread of the body. What it prints goes to standard
/// error. `priority` is that of the run's carriers.
///
/// It starts at once, so it has the idle time of its CPU before the run, too. A few hundred bytes
/// per program stay allocated for good.
///
/// # Errors
/// When there is no such program, or no thread to watch it.
pub fn start_program(
    command: &[String],
    folder: &Path,
    host: u32,
    priority: i32,
) -> Result<(Body, Program), ProgramError> {
    let failed = |cause| ProgramError {
        command: command.to_vec(),
        cause,
    };
    let Some((name, arguments)) = command.split_first() else {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    };
    let in_folder = folder.join(name);
    let program = if name.contains('/') {
        in_folder.as_os_str()
    } else {
        name.as_ref()
    };
    let mut prepared = Command::new(program);
    prepared.args(arguments).stdin(Stdio::null());
    prepared.stdout(io::stderr());
    let low = lowest().map_err(failed)?;
    confine(&mut prepared, host, low == Standing::Idle);
    let child = prepared.spawn().map_err(failed)?;
    // Light threads that are abandoned in the middle of a job keep looking at it.
    let group: &'static ThreadGroup = Box::leak(Box::new(ThreadGroup::new(priority - 1, low)));
    let mut program = Program {
        child,
        over: Arc::default(),
        finder: None,
    };
    let (leader, over) = (program.child.id(), Arc::clone(&program.over));
    group.set_members(&threads_of(leader));
    let finder = Builder::new().name("punctual/program".to_owned());
    let find = move || {
        while !over.load(Ordering::Relaxed) {
            let threads = threads_of(leader);
            if threads.is_empty() {
                group.end();
                return;
            }
            group.set_members(&threads);
            park_timeout(LOOK);
        }
    };
    program.finder = Some(finder.spawn(find).map_err(failed)?);
    Ok((body(group), program))
}

impl Program {
    /// The number of its first process, which leads its process group.
    pub fn leader(&self) -> u32 {
        self.child.id()
    }

    /// How it ended of its own; `None`: it has not.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(status.to_string())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        kill_group(self.child.id());
        // It has been told to end; what it answers does not matter any more.
        let _ = self.child.wait();
        if let Some(finder) = self.finder.take() {
            finder.thread().unpark();
            let _ = finder.join();
        }
    }
}

/// The threads of a process and of its descendants; at most as many as a group has places.
fn threads_of(leader: u32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut processes = vec![leader];
    while let Some(process) = processes.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        if is_dead(process) {
            continue;
        }
        for task in tasks.flatten() {
            let number = task.file_name();
            let Some(number) = number.to_str().and_then(|n| n.parse::<i32>().ok()) else {
                continue;
            };
            if found.len() < MOST {
                found.push(number);
            }
            let children = fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            processes.extend(children.split(' ').filter_map(|n| n.parse::<u32>().ok()));
        }
    }
    found
}

/// Whether a process has ended and only waits to be asked how.
fn is_dead(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything, parentheses included.
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    matches!(state, Some('Z' | 'X') | None)
}
