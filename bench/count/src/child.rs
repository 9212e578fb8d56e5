//! A process that steps through itself, and the windows that it tells.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::stepper::Told;

/// Starts this program with these arguments, and hears the windows that it tells: so many.
///
/// # Errors
/// A process that fails, tells something else, or has no end in that time.
pub(crate) fn told(
    arguments: &[&str],
    windows: usize,
    most: Duration,
) -> Result<Vec<Told>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() < most => thread::sleep(Duration::from_millis(5)),
            None => {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end after {} s", most.as_secs()));
            }
        }
    };
    // What it tells is less than a pipe holds.
    let mut bytes = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
    }
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words
        .iter()
        .map(|bytes| u64::from_ne_bytes(*bytes))
        .collect();
    let (told, _) = words.as_chunks();
    match status.success() && told.len() == windows {
        true => Ok(told.to_vec()),
        false => Err(format!("{} windows, and {status}", told.len())),
    }
}
