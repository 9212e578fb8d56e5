//! A run of threads that were created while it ran, recorded: the same log as that of a file's run.

use std::collections::HashMap;

use punctual_model::{Instant, System, TaskId, ThreadId};
use punctual_thread::{FIRST, Finished, Promise, Runtime, StartError};
use punctual_trace::{Bound, Header, Log, Mode, Recorder, TaskInfo};

use crate::Error;
use crate::assemble::header;
use crate::counted::counters;
use crate::described::describe;
use crate::program::program_name;

/// The results of a run of threads, and its log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded<T> {
    /// The result of the first thread; `None`: it did not come to its end, and the faults in the
    /// log's header say why.
    pub result: Option<T>,
    /// All that happened. Every name of a thread is a task there; its bound is the largest that
    /// was promised while threads of that name lived.
    pub log: Log,
}

/// As [`Runtime::start`], recorded: the record of each CPU takes up to `bytes` bytes (about 128 per
/// entry of the scheduler), and one eighth of that more for names. A log that is full stops, and
/// says from when on; `punctual replay`, `report` and `diff` read it once it is written
/// ([`crate::trace::text::write`]).
///
/// ```no_run
/// use punctual::{Constraint, PolicyKind, Runtime, Span, Work, judge, record, thread, trace};
///
/// let runtime = Runtime::on(0, PolicyKind::EarliestDeadlineFirst);
/// let recorded = record(runtime, 16 << 20, || {
///     let every = Constraint::periodic(Span::from_ms(10), Work::from_ms(1));
///     let ticks = thread::spawn("tick", every, || {
///         while thread::wait_next_period().is_ok_and(|job| job.index < 100) {}
///     })?;
///     ticks.join().ok();
///     Ok::<(), thread::SpawnError>(())
/// })?;
/// assert!(punctual::rules::check(&recorded.log).is_empty());
/// println!("{}", judge(&recorded.log));
/// # Ok::<(), punctual::Error>(())
/// ```
///
/// # Errors
/// [`Error::Start`].
pub fn record<T, F>(runtime: Runtime, bytes: usize, first: F) -> Result<Recorded<T>, Error>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let sink = |_: &_| Recorder::with_capacity(bytes).map_err(|_| StartError::NoRecorder { bytes });
    let finished = runtime.start_recorded(bytes / BYTES_PER_BIRTH, sink, first);
    let (result, finished) = finished.map_err(Error::Start)?.split();
    let log = log_of(finished);
    Ok(Recorded { result, log })
}

/// A thread that is created, runs and ends takes more than this in the records.
const BYTES_PER_BIRTH: usize = 512;

fn log_of(finished: Finished<(), Recorder>) -> Log {
    let Finished {
        outcome,
        tables,
        hosts,
        promises,
        schedulers,
        ..
    } = finished;
    let mut header = Header {
        source: program_name(),
        ..header("linux", Mode::BestEffort)
    };
    describe(&outcome, &mut header);
    // It ends when its first thread does: that is no early end.
    if outcome.ending == punctual_linux::Ending::Stopped {
        header.stopped = None;
    }
    let mut log = Log::new(header, &System::default(), tables);
    log.schedulers = schedulers;
    let names: Vec<String> = hosts.iter().map(u32::to_string).collect();
    let mut tasks = Tasks::new(&names, &promises);
    let missing = outcome.missing;
    for (cpu, outcome) in outcome.cpus.into_iter().enumerate() {
        let spawned = outcome.spawned.iter();
        let named = spawned.map(|(thread, name)| (*thread, tasks.of(cpu, name)));
        let mut created: Vec<(ThreadId, TaskId)> = named.collect();
        created.sort_unstable();
        let one = log.add_cpu(&names[cpu], Some(hosts[cpu]), outcome.sink);
        one.counters = counters((&outcome.counters, outcome.takers), missing);
        one.created = created;
    }
    log.tasks = tasks.all;
    let length = log.header.end.since(Instant::ZERO);
    log.header.duration = length.ns_up(log.tables.frequency);
    log
}

/// One task for all threads of a name on a CPU. The first thread of each CPU comes first.
struct Tasks<'a> {
    cpus: &'a [String],
    promises: &'a [Promise],
    all: Vec<TaskInfo>,
    /// Their number by CPU and name.
    known: HashMap<(usize, String), TaskId>,
}

impl Tasks<'_> {
    fn new<'a>(cpus: &'a [String], promises: &'a [Promise]) -> Tasks<'a> {
        let mut tasks = Tasks {
            cpus,
            promises,
            all: Vec::new(),
            known: HashMap::new(),
        };
        for cpu in 0..cpus.len() {
            let _ = tasks.of(cpu, FIRST);
        }
        tasks
    }

    fn of(&mut self, cpu: usize, name: &str) -> TaskId {
        if let Some(task) = self.known.get(&(cpu, name.to_owned())) {
            return *task;
        }
        let task = TaskId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let _ = self.known.insert((cpu, name.to_owned()), task);
        // Other CPUs may have the same names; reports tell tasks by theirs.
        let elsewhere = (0..self.cpus.len())
            .any(|other| other != cpu && self.known.contains_key(&(other, name.to_owned())));
        let promised = self.promises.iter();
        let mut promised = promised.filter(|promise| promise.cpu == cpu && promise.name == name);
        let bound = promised.next().and_then(|promise| {
            Some(Bound {
                ns: promise.response_bound?.as_ns(),
                exactness: promise.exactness.name().to_owned(),
                explanation: String::new(),
            })
        });
        self.all.push(TaskInfo {
            name: match elsewhere {
                true => format!("{name}@{}", self.cpus[cpu]),
                false => name.to_owned(),
            },
            bound: None,
            machine_bound: bound,
        });
        task
    }
}
