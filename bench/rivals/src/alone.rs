//! Rivals that are measured in a process of their own: this program, started again.
//!
//! A program that has such figures asks [`answered`] before anything else.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Samples;
use crate::thread::fifo_if;

/// In the environment of such a process: the rival.
const RIVAL: &str = "PUNCTUAL_RIVAL";
/// In the environment of such a process, if it is to ask for real time.
const REAL_TIME: &str = "PUNCTUAL_RIVAL_REAL_TIME";
/// No rival takes longer, on however busy a machine.
const MOST: Duration = Duration::from_secs(30);

/// A process to be.
pub(crate) struct Alone {
    /// Its name.
    pub(crate) rival: String,
    /// Whether to ask for SCHED_FIFO.
    pub(crate) real_time: bool,
    /// For its libraries.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// A program that starts it, with its arguments.
    pub(crate) starter: Option<(&'static str, Vec<&'static str>)>,
}

/// Starts the process and takes its samples.
///
/// # Errors
/// Its own, and when it does not start or end.
pub(crate) fn ask(alone: &Alone) -> Samples {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = match &alone.starter {
        None => Command::new(program),
        Some((starter, arguments)) => {
            let mut command = Command::new(starter);
            command.args(arguments).arg(program);
            command
        }
    };
    command
        .env(RIVAL, &alone.rival)
        .envs(alone.environment.iter().map(|(name, value)| (name, value)));
    if alone.real_time {
        command.env(REAL_TIME, "1");
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let starter = alone.starter.as_ref().map_or("it", |(starter, _)| starter);
    let mut child = command
        .spawn()
        .map_err(|error| format!("{starter} does not start: {error}"))?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    // What it tells may be more than a pipe holds.
    let told = std::thread::spawn(move || {
        let mut text = String::new();
        let read = out.as_mut().map(|out| out.read_to_string(&mut text));
        drop(read);
        text
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() < MOST => sleep(Duration::from_millis(5)),
            None => {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end after {} s", MOST.as_secs()));
            }
        }
    };
    let text = told.join().map_err(|_| "its answer is lost")?;
    let mut why = String::new();
    if let Some(err) = &mut err {
        // Without its words the status has to do.
        let _ = err.read_to_string(&mut why);
    }
    match (status.success(), why.lines().next()) {
        (true, _) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        (false, Some(line)) => Err(line.to_owned()),
        (false, None) => Err(format!("it ended with {status}")),
    }
}

/// Whether this process was started to measure a rival: `measure` does so, by its name, and the
/// process should end with this success.
pub(crate) fn answered(measure: impl FnOnce(&str) -> Samples) -> Option<bool> {
    let rival = env::var(RIVAL).ok()?;
    fifo_if(env::var_os(REAL_TIME).is_some());
    match measure(&rival) {
        Ok(samples) => {
            let lines: Vec<String> = samples.iter().map(f64::to_string).collect();
            println!("{}", lines.join("\n"));
            Some(true)
        }
        Err(why) => {
            eprintln!("{why}");
            Some(false)
        }
    }
}
