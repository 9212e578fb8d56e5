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
    group: &'static ThreadGroup,
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
    let group = ThreadGroup::to_stay(priority - 1, low);
    let mut program = Program {
        child,
        group,
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

    /// It is to have nothing of its CPU's idle time. From its first turn on the idle CPU stays
    /// awake, but for slices that it gives back to the machine. Before the run.
    /// It has its share all the same where the kernel does not let it be SCHED_IDLE, or the
    /// carriers SCHED_FIFO.
    pub fn keep_out_of_idle_time(&self) {
        self.group.kept_out.store(true, Ordering::Relaxed);
    }

    /// The processor time that it has had, with all processes that it started, in nanoseconds.
    /// The kernel tells it to a hundredth of a second per process. A process whose parent left it
    /// to the kernel is missing when it has ended. `None`: the program is gone.
    pub fn processor_ns(&self) -> Option<u64> {
        let processes = processes_of(self.child.id());
        let times = processes.into_iter().filter_map(processor_ns);
        times.reduce(u64::saturating_add)
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
    for_each_process(leader, |_, threads| {
        let room = MOST - found.len();
        found.extend(threads.iter().take(room));
    });
    found
}

/// A process and its descendants, as far as the kernel knows them.
fn processes_of(leader: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for_each_process(leader, |process, _| found.push(process));
    found
}

/// Calls `f` with each process of a tree, and its threads; none if it has ended.
fn for_each_process(leader: u32, mut f: impl FnMut(u32, &[i32])) {
    let mut processes = vec![leader];
    while let Some(process) = processes.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        let mut threads = Vec::new();
        for task in tasks.flatten() {
            let number = task.file_name();
            threads.extend(number.to_str().and_then(|n| n.parse::<i32>().ok()));
            let children = fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            processes.extend(children.split(' ').filter_map(|n| n.parse::<u32>().ok()));
        }
        // One that has ended only waits to be asked how.
        let state = status(process).into_iter().next();
        let has_ended = matches!(state.as_deref(), Some("Z" | "X") | None);
        f(process, if has_ended { &[] } else { &threads });
    }
}

/// The kernel counts processor time for everybody to read in hundredths of a second.
const TICK_NS: u64 = 10_000_000;

/// The processor time of a process and of its children that it has asked how they ended.
fn processor_ns(process: u32) -> Option<u64> {
    // The state and ten others; then utime, stime, cutime and cstime.
    let times = status(process).into_iter().skip(11).take(4);
    let ticks: Vec<u64> = times.filter_map(|n| n.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum::<u64>() * TICK_NS)
}

/// The words of the kernel about a process, from its state on.
fn status(process: u32) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything, parentheses included.
    let behind = status.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().map(str::to_owned).collect()
}
