//! Standard output for results, standard error for remarks; neither may panic.
//!
//! A reader that went away is no failure: what it wanted to see has been seen. Everything else that
//! keeps a result from being written is one, and ends the command with exit code 3.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::ending::Failure;

/// The version of every JSON that this tool prints.
pub const JSON_FORMAT: u32 = 1;

/// Writes a result to standard output and makes sure that it has arrived.
pub fn print(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::run(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a value as JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::run(format!("cannot write this result as JSON: {error}")))?;
    print(text)
}

/// Says something beside the result. A standard error that is closed or full loses it.
pub fn remark(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether results may be coloured.
pub fn colour_stdout() -> bool {
    colour(io::stdout().is_terminal())
}

/// Whether remarks may be coloured.
pub fn colour_stderr() -> bool {
    colour(io::stderr().is_terminal())
}

/// Colours are for terminals that know them, unless the user wants none (<https://no-color.org>).
fn colour(is_terminal: bool) -> bool {
    let unset = |name| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == OsStr::new("dumb"));
    is_terminal && unset("NO_COLOR") && !dumb
}

/// `text` as the terminal shows it in `style`, when `coloured`.
pub fn styled(text: &str, style: anstyle::Style, coloured: bool) -> String {
    if coloured {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// A file that a command promises to write: opened before the work starts, so that a wrong path is
/// told in the first second and not after an hour. A file that was made in vain disappears.
#[derive(Debug)]
pub struct PromisedFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// Made by this command, and nothing was written yet.
    in_vain: bool,
    /// Somebody else writes it while the work goes on.
    streamed: bool,
}

const ELSEWHERE: &str = "nothing was run; name a file in a folder that you may write to";

impl PromisedFile {
    /// Opens `path` for writing. What the file held stays until the first byte is written.
    pub fn open(path: &Path) -> Result<PromisedFile, Failure> {
        let mut options = OpenOptions::new();
        options.write(true);
        let (opened, in_vain) = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (options.open(path), false),
            opened => (opened, true),
        };
        match opened {
            Ok(file) => {
                let file = BufWriter::with_capacity(1 << 16, file);
                Ok(PromisedFile {
                    path: path.to_owned(),
                    file,
                    in_vain,
                    streamed: false,
                })
            }
            Err(error) => Err(cannot_write(path, &error).with_help(ELSEWHERE)),
        }
    }

    /// Refuses a path at which no file can be, and touches nothing there.
    ///
    /// # Errors
    /// There is no such folder, or there is a folder at the path itself.
    pub fn refuse_wrong(path: &Path) -> Result<(), Failure> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let refused = match folder.map_or(Ok(true), |at| at.metadata().map(|at| at.is_dir())) {
            Ok(true) if path.is_dir() => ErrorKind::IsADirectory.into(),
            Ok(true) => return Ok(()),
            Ok(false) => ErrorKind::NotADirectory.into(),
            Err(error) => error,
        };
        Err(cannot_write(path, &refused).with_help(ELSEWHERE))
    }

    /// The file for somebody who writes it while the work goes on, and may read it back; `None`:
    /// it is a pipe or a device, or may not be read.
    pub fn stream(&mut self) -> Option<File> {
        if !self.file.get_ref().metadata().ok()?.is_file() {
            return None;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(&self.path).ok()?;
        self.streamed = true;
        Some(file)
    }

    /// Replaces the content by what `write` writes, unless it was written before.
    pub fn fill(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.streamed {
            self.in_vain = false;
            return Ok(());
        }
        let made = std::mem::take(&mut self.in_vain);
        let file = &mut self.file;
        let done = empty(file.get_ref())
            .and_then(|()| write(file))
            .and_then(|()| file.flush());
        // A full disk may have taken not a byte of it.
        let length = |file: &File| file.metadata().map_or(1, |of| of.len());
        self.in_vain = made && done.is_err() && length(self.file.get_ref()) == 0;
        match done {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(cannot_write(&self.path, &error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for PromisedFile {
    fn drop(&mut self) {
        if self.in_vain {
            // A file that cannot be removed is empty, and harms nobody.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Pipes and devices have no length to set.
fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)
    } else {
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", path.display()))
}
