//! The log of a run is written while the run goes on.
//!
//! Whole entries are taken from the recorders and written: by an ordinary thread while a machine
//! runs, and between two steps in virtual time, so that equal runs have equal logs
//! (doc/design/0030-logs-while-the-run-goes-on.md).

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_linux::CpuInput;
use punctual_model::Instant;
use punctual_policy::AnyPolicy;
use punctual_trace::{CpuLog, Drain, Log, Recorder, text};

/// How often the recorders are looked after.
const EVERY: Duration = Duration::from_millis(20);

/// The size of a recorder: at ten thousand entries a second the thread may stay away for more than
/// ten seconds.
pub(crate) const RING_BYTES: usize = 16 << 20;

/// The thread that writes, and the file.
pub(crate) struct Stream {
    file: Arc<File>,
    over: Arc<AtomicBool>,
    writer: Option<JoinHandle<io::Result<Writer>>>,
    written: Option<io::Result<Writer>>,
}

type Writer = text::Writer<Arc<File>>;
type Inputs = [CpuInput<AnyPolicy, Recorder>];

impl Stream {
    /// Replaces what the file holds by `head`, a log whose run is to come on `cpus`, and has its
    /// records written from now on. After an error the recorders keep what they can hold.
    pub(crate) fn start(head: &Log, file: &Arc<File>, cpus: &mut Inputs) -> io::Result<Stream> {
        let writer = begin(head, file)?;
        let hosts: Vec<u32> = cpus.iter().map(|cpu| cpu.host).collect();
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let (give, given) = mpsc::channel();
        let builder = thread::Builder::new().name("punctual/log".into());
        let writer = builder.spawn(move || {
            punctual_linux::stand_aside(&hosts);
            write_all(writer, given.recv().unwrap_or_default(), &until)
        })?;
        let drains: Vec<Drain> = cpus.iter_mut().map(|cpu| cpu.sink.drain()).collect();
        // It waits for them.
        let _ = give.send(drains);
        Ok(Stream {
            file: Arc::clone(file),
            over,
            writer: Some(writer),
            written: None,
        })
    }

    /// Ends the thread, and gives the records of the finished recorders back to `log`.
    pub(crate) fn give_back(&mut self, log: &mut Log) {
        self.join();
        let read = read_back(&self.file).map_or_else(|_| Vec::new(), |read| read.cpus);
        for (cpu, read) in log.cpus.iter_mut().zip(read) {
            cpu.records = read.records;
        }
        // The end of the log comes behind them.
        let mut file = &*self.file;
        if let (Err(error), Some(Ok(_))) = (file.seek(io::SeekFrom::End(0)), &self.written) {
            self.written = Some(Err(error));
        }
    }

    fn join(&mut self) {
        let ended = || io::Error::other("the thread that writes it ended");
        if let Some(writer) = self.end() {
            self.written = Some(writer.join().unwrap_or_else(|_| Err(ended())));
        }
    }

    /// Writes the end of `log`, whose recorders are finished, and reads its records back.
    /// The log says from when on something could not be written, and why.
    pub(crate) fn finish(mut self, log: &mut Log) {
        self.join();
        let ended = || Err(io::Error::other("the thread that writes it ended"));
        let writer = self.written.take().unwrap_or_else(ended);
        conclude(&self.file, writer, log);
    }

    /// Has the thread come to its end.
    fn end(&mut self) -> Option<JoinHandle<io::Result<Writer>>> {
        self.over.store(true, Ordering::Release);
        let writer = self.writer.take()?;
        writer.thread().unpark();
        Some(writer)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A run that did not come about: nobody waits for the thread.
        let _ = self.end();
    }
}

/// The log of a simulation, written by the simulation itself.
pub(crate) struct Steps {
    file: Arc<File>,
    writer: io::Result<Writer>,
    drains: Vec<Drain>,
}

impl Steps {
    /// As [`Stream::start`]: `recorders` are asked for their drains once the file has its first
    /// lines.
    pub(crate) fn start<'a>(
        head: &Log,
        file: &Arc<File>,
        recorders: impl Iterator<Item = &'a mut Recorder>,
    ) -> io::Result<Steps> {
        Ok(Steps {
            file: Arc::clone(file),
            writer: Ok(begin(head, file)?),
            drains: recorders.map(Recorder::drain).collect(),
        })
    }

    /// Writes what was recorded since the last time. After an error the recorders keep what they
    /// can hold.
    pub(crate) fn write(&mut self) {
        let Ok(writer) = &mut self.writer else { return };
        if let Err(error) = append(writer, &mut self.drains) {
            self.writer = Err(error);
        }
    }

    /// As [`Stream::finish`].
    pub(crate) fn finish(mut self, log: &mut Log) {
        self.write();
        conclude(&self.file, self.writer, log);
    }
}

/// Replaces what the file holds by the beginning of a log.
fn begin(head: &Log, file: &Arc<File>) -> io::Result<Writer> {
    file.set_len(0)?;
    text::Writer::begin(head, Arc::clone(file))
}

/// Writes what the recorders have until all is over.
fn write_all(mut writer: Writer, mut drains: Vec<Drain>, over: &AtomicBool) -> io::Result<Writer> {
    loop {
        // In this order: what is recorded before the end is taken after it.
        let is_last = over.load(Ordering::Acquire);
        append(&mut writer, &mut drains)?;
        if is_last {
            return Ok(writer);
        }
        thread::park_timeout(EVERY);
    }
}

/// Writes what the recorders have now.
fn append(writer: &mut Writer, drains: &mut [Drain]) -> io::Result<()> {
    for (cpu, drain) in drains.iter_mut().enumerate() {
        let records = drain.take();
        if !records.is_empty() {
            writer.append(cpu, &records)?;
        }
    }
    Ok(())
}

/// Writes the end of a log and reads its records back.
fn conclude(file: &File, writer: io::Result<Writer>, log: &mut Log) {
    if let Err(error) = writer.and_then(|writer| writer.finish(log)) {
        log.header.faults.push(not_written(&error));
    }
    let read = read_back(file);
    if let Err(error) = &read {
        let fault = format!("the log cannot be read back: {error}");
        log.header.faults.push(fault);
    }
    let read = read.map_or_else(|_| Vec::new(), |read| read.cpus);
    let mut read = read.into_iter();
    for cpu in &mut log.cpus {
        let none = || CpuLog {
            lost_from: Some(Instant::ZERO),
            ..CpuLog::default()
        };
        let read = read.next().unwrap_or_else(none);
        cpu.records = read.records;
        cpu.lost_from = read.lost_from.or(cpu.lost_from);
    }
}

fn read_back(file: &File) -> Result<Log, text::LogError> {
    let mut file = file;
    let _ = file.rewind();
    text::read(&mut BufReader::with_capacity(1 << 16, file))
}

/// The fault of a log that could not be written to its end.
pub(crate) fn not_written(error: &io::Error) -> String {
    format!("the log could not be written to its end: {error}")
}
