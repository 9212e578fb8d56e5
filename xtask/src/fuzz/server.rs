//! A command that has started, and makes a process of its own for each input (`verify/feed`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The limits of one input.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Address space, in KiB.
    pub(super) kib: u64,
    /// Processor time, in seconds.
    pub(super) seconds: u32,
    /// Time on the wall, in seconds: for a reader that waits.
    pub(super) wall: u32,
}

/// How the reading of one input ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// Its processor time.
    pub(super) took: Duration,
    /// Its peak of memory, in KiB.
    pub(super) peak: u64,
    /// The beginning of its standard error.
    pub(super) said: String,
}

/// A command that reads the same file again and again.
pub(super) struct Server {
    child: Child,
    asks: ChildStdin,
    reports: ChildStdout,
    input: PathBuf,
    remarks: File,
}

impl Server {
    /// Starts a command below `feed`, the library of `verify/feed`; `input` is among its words.
    pub(super) fn start(
        feed: &Path,
        mut command: Command,
        input: PathBuf,
        limits: Limits,
    ) -> io::Result<Server> {
        let mut open = OpenOptions::new();
        // At the end of it, so that it may be emptied while children have it open.
        let open = open.read(true).append(true).create(true);
        let remarks = open.open(input.with_extension("stderr"))?;
        let Limits { kib, seconds, wall } = limits;
        command
            .env("LD_PRELOAD", feed)
            // A backtrace reads the whole program, and its memory is not that of the reader.
            .env("RUST_BACKTRACE", "0")
            .env("PUNCTUAL_FEED", format!("{kib},{seconds},{wall}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(remarks.try_clone()?);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (asks, reports) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Server {
            child,
            asks,
            reports,
            input,
            remarks,
        })
    }

    /// Has one input read.
    pub(super) fn feed(&mut self, input: &[u8]) -> io::Result<Ended> {
        self.remarks.set_len(0)?;
        fs::write(&self.input, input)?;
        self.asks.write_all(&[1])?;
        let mut report = [[0; 8]; 3];
        self.reports.read_exact(report.as_flattened_mut())?;
        let [status, micros, peak] = report.map(u64::from_ne_bytes);
        Ok(Ended {
            status: ExitStatus::from_raw(i32::try_from(status).unwrap_or(-1)),
            took: Duration::from_micros(micros),
            peak,
            said: self.said()?,
        })
    }

    fn said(&self) -> io::Result<String> {
        let mut bytes = [0; 1_000];
        let length = std::os::unix::fs::FileExt::read_at(&self.remarks, &mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
