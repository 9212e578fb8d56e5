//! The log of one run: its tables, what was promised, everything that happened.
//!
//! A log is enough to say whether the run was on time and why not ([`crate::RunReport`]), to check
//! it against the predicates of the field (`punctual-rules`), and to run it again
//! ([`crate::replay()`]). Its written form is described in `doc/trace-format.md`.

use punctual_model::{Clock, Instant, Ns, Requirement, Span, System, TaskId, ThreadId};
use punctual_tables::Tables;

use crate::boundary::Boundaries;
use crate::gangs::GangInfo;
use crate::graphs::{GraphInfo, Moved};
use crate::groups::{GroupInfo, RequestInfo};
use crate::record::Records;
use crate::recorder::Recorder;

/// How a log begins to say that it ends too early ([`Log::is_prefix`]).
pub(crate) const PREFIX: &str = "this log ends before the run did";

/// One run on one platform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// Where and how it ran.
    pub header: Header,
    /// The shards that it ran on, complete: replay builds them again from here.
    pub tables: Tables,
    /// The tasks of the system, in the order of the file ([`punctual_model::TaskId`]); after them
    /// those of threads that were created while it ran, one for all of a name on a CPU.
    pub tasks: Vec<TaskInfo>,
    /// Names of the schedulers below CPUs, in the order of the file
    /// ([`punctual_model::SchedulerId`]).
    pub schedulers: Vec<String>,
    /// Names of the resources, in the order of the file ([`punctual_model::ResourceId`]).
    pub resources: Vec<String>,
    /// Required beyond deadlines; the tasks are those above.
    pub requirements: Vec<Requirement>,
    /// What changes while it runs, in the order of time.
    pub changes: Vec<ChangeInfo>,
    /// The graphs, in the order of the file.
    pub graphs: Vec<GraphInfo>,
    /// The gangs, superstep by superstep, in the order of the file.
    pub gangs: Vec<GangInfo>,
    /// The planned groups, in the order of the file.
    pub groups: Vec<GroupInfo>,
    /// Their arrivals, in the order in which they were planned.
    pub requests: Vec<RequestInfo>,
    /// The CPUs, in the order of the tables.
    pub cpus: Vec<CpuLog>,
    /// What a workload found when it compared itself with its reference.
    pub oracle: Option<Oracle>,
}

/// A change that a system declares, and what the analysis says of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChangeInfo {
    /// From the file.
    pub name: String,
    /// Not before this instant of the run.
    pub at: Instant<Ns>,
    /// From when on it keeps every promise: `at-once`, `zero-lag`, `idle`, `never`.
    pub when: String,
    /// By which rule, or why not.
    pub ground: String,
    /// How many events it is on each CPU.
    pub parts: Vec<u32>,
}

/// Where and how a run took place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// `sim`, `linux`, ...
    pub platform: String,
    /// What its figures are worth.
    pub mode: Mode,
    /// What the machine refused, one line each; empty in real-time and virtual mode.
    pub lost: Vec<String>,
    /// Name and version of what ran it.
    pub tool: String,
    /// Name of the system file or program.
    pub source: String,
    /// Fingerprint of the machine, as (name, value), in the order to be shown.
    pub machine: Vec<(String, String)>,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Releases in [0, this) nanoseconds were covered.
    pub duration: Span<Ns>,
    /// When the run was over, in ticks of the tables' frequency. Jobs still pending then, with
    /// their deadline behind them, count as missed.
    pub end: Instant,
    /// Why it ended before its time; `None`: it did not.
    pub stopped: Option<String>,
    /// From when on the clocks of two CPUs were seen to differ by more than the verdict counts
    /// with; `None`: never, or nobody looked.
    pub clocks_apart: Option<Instant<Ns>>,
    /// What went wrong in the work itself, one line each (a body that panicked, by task).
    pub faults: Vec<String>,
}

/// What the figures of a run are worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Real hardware, with every privilege that the guarantees need.
    RealTime,
    /// Real hardware without some of them: figures are observations, not guarantees.
    #[default]
    BestEffort,
    /// Virtual time.
    Virtual,
}

impl Mode {
    /// The word in files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::RealTime => "real-time",
            Mode::BestEffort => "best-effort",
            Mode::Virtual => "virtual",
        }
    }
}

/// A task, and what was promised about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskInfo {
    /// From the file.
    pub name: String,
    /// Response bound with the terms of the file alone.
    pub bound: Option<Bound>,
    /// Response bound with this machine's measured terms.
    pub machine_bound: Option<Bound>,
}

/// A proven response bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The bound in nanoseconds.
    pub ns: u64,
    /// `exact`, `sufficient` or `simulated`: one word, from the verdict.
    pub exactness: String,
    /// The terms that it is made of, in the words of the verdict; empty: not known.
    pub explanation: String,
}

/// What happened on one CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuLog {
    /// Its name in the file.
    pub name: String,
    /// The host CPU it ran on; `None` in virtual time.
    pub host: Option<u32>,
    /// Its admitted utilization with the terms of the file alone, in parts per million.
    pub utilization_ppm: Option<u64>,
    /// The same with this machine's measured terms.
    pub machine_utilization_ppm: Option<u64>,
    /// What the platform counted beside the records.
    pub counters: Counters,
    /// From when on nothing was recorded ([`Log::is_cut`]); `None`: all is here.
    pub lost_from: Option<Instant>,
    /// Threads that were created while it ran, as far as they are known by name, in ascending
    /// order: the task of each.
    pub created: Vec<(ThreadId, TaskId)>,
    /// How its clock differed from the true one, where the platform knows.
    pub clock: Clock,
    /// The transitions of the actors here, in the order of time.
    pub moves: Vec<Moved>,
    /// Every event, change and decision.
    pub records: Records,
}

/// What a platform counts that the core cannot see. Virtual time leaves it at the default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Preemptions that had to wait until the interrupted code could be left.
    pub deferrals: u64,
    /// The median of such waits, in nanoseconds.
    pub deferred_p50_ns: u64,
    /// What 99 % of them do not exceed, in nanoseconds.
    pub deferred_p99_ns: u64,
    /// The longest of them, in nanoseconds.
    pub deferred_max_ns: u64,
    /// The longest delay from an armed instant to the entry, in nanoseconds, as the platform saw
    /// it.
    pub late_max_ns: u64,
    /// How missing time was measured (`rdpmc`, `gap-sampling`, ...); empty: not at all.
    pub missing_method: String,
    /// What that measurement may be off by, in nanoseconds per gap.
    pub missing_error_ns: u64,
    /// The boundaries of slots, where there are any.
    pub boundaries: Option<Boundaries>,
    /// Anything else worth showing, as (name, value).
    pub others: Vec<(String, u64)>,
    /// The processor time in the run, in nanoseconds, of the programs that are tasks of the CPU.
    pub programs: Vec<(TaskId, u64)>,
    /// Threads of the machine that took time, in order, as far as the platform tells.
    pub takers: Vec<TakingThread>,
}

/// A thread of the machine that had a CPU of the run for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakingThread {
    /// The entry that found it.
    pub at: Instant,
    /// How long it ran, in nanoseconds.
    pub ns: u64,
    /// Its name.
    pub name: String,
}

/// A workload compared its results with its reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oracle {
    /// Steps compared.
    pub steps: u64,
    /// Steps that differed.
    pub mismatches: u64,
}

impl Log {
    /// The log of a run of `system` to come: its names, without promises and CPUs.
    pub fn new(header: Header, system: &System, tables: Tables) -> Log {
        let task = |name: &String| TaskInfo {
            name: name.clone(),
            ..TaskInfo::default()
        };
        Log {
            header,
            tables,
            tasks: system.tasks.iter().map(|t| task(&t.name)).collect(),
            schedulers: system.schedulers.iter().map(|s| s.name.clone()).collect(),
            resources: system.resources.iter().map(|r| r.name.clone()).collect(),
            requirements: system.requirements.clone(),
            changes: Vec::new(),
            graphs: system.graphs.iter().map(GraphInfo::new).collect(),
            gangs: GangInfo::of_system(system),
            groups: GroupInfo::of_system(system),
            requests: Vec::new(),
            cpus: Vec::new(),
            oracle: None,
        }
    }

    /// Adds what was recorded on the next CPU of the tables. The run was over with the last entry
    /// of all of them, or later.
    pub fn add_cpu(&mut self, name: &str, host: Option<u32>, recorder: Recorder) -> &mut CpuLog {
        self.header.end = self.header.end.max(recorder.last_entry());
        let (records, lost_from) = recorder.finish();
        self.cpus.push(CpuLog {
            name: name.to_owned(),
            host,
            lost_from,
            records,
            ..CpuLog::default()
        });
        let last = self.cpus.len() - 1;
        &mut self.cpus[last]
    }

    /// Ticks to nanoseconds, rounded up (as for every observed response).
    pub fn ns(&self, ticks: u64) -> u64 {
        self.tables.frequency.ns_up(ticks)
    }

    /// The task behind a thread of CPU `cpu`: in its tables, or known by name since it was
    /// created. O(log of those).
    pub fn task_of(&self, cpu: usize, thread: ThreadId) -> Option<TaskId> {
        let given = self.tables.cpus.get(cpu)?.threads.get(thread.index());
        if let Some((task, _)) = given.filter(|_| thread.generation() == 0) {
            return Some(*task);
        }
        let created = &self.cpus.get(cpu)?.created;
        let place = created.binary_search_by_key(&thread, |(thread, _)| *thread);
        Some(created[place.ok()?].1)
    }

    /// Name of the task behind a thread of CPU `cpu`; `?` when nothing says it.
    pub fn task_name(&self, cpu: usize, thread: ThreadId) -> &str {
        self.task_of(cpu, thread)
            .and_then(|task| self.tasks.get(task.index()))
            .map_or("?", |task| task.name.as_str())
    }

    /// Names of the tasks whose threads had place `thread` on CPU `cpu`, in the order of their
    /// coming; of more than three the first two and how many more. O(threads created).
    pub fn place_name(&self, cpu: usize, thread: usize) -> String {
        let first = u32::try_from(thread).map(|index| ThreadId::new(index, 0));
        let first = first.ok().and_then(|id| self.task_of(cpu, id));
        let created = self.cpus.get(cpu).map_or(&[][..], |cpu| &cpu.created);
        let created = created.iter().filter(|(id, _)| id.index() == thread);
        let mut tasks: Vec<TaskId> = first.into_iter().collect();
        for (_, task) in created {
            if !tasks.contains(task) {
                tasks.push(*task);
            }
        }
        let name = |task: &TaskId| self.tasks.get(task.index()).map_or("?", |task| &task.name);
        match tasks.len() {
            0 => "?".to_owned(),
            1..=3 => tasks.iter().map(name).collect::<Vec<_>>().join(", "),
            n => format!(
                "{}, {} and {} more",
                name(&tasks[0]),
                name(&tasks[1]),
                n - 2
            ),
        }
    }

    /// Name of the scheduler at place `node` of the tree of CPU `cpu`: a scheduler of the file, or
    /// the CPU itself at place 0.
    pub fn node_name(&self, cpu: usize, node: usize) -> &str {
        let Some(below) = node.checked_sub(1) else {
            return self.cpus.get(cpu).map_or("?", |cpu| cpu.name.as_str());
        };
        let tables = self.tables.cpus.get(cpu);
        tables
            .and_then(|tables| tables.nodes.get(below))
            .and_then(|node| self.schedulers.get(node.scheduler.index()))
            .map_or("?", String::as_str)
    }

    /// Name of the resource with this number on CPU `cpu`.
    pub fn resource_name(&self, cpu: usize, resource: u32) -> &str {
        let tables = self.tables.cpus.get(cpu);
        tables
            .and_then(|tables| tables.resources.get(resource as usize))
            .and_then(|terms| self.resources.get(terms.resource.index()))
            .map_or("?", String::as_str)
    }

    /// Whether some records are missing: a recorder or a disk was full, or the log is a prefix.
    pub fn is_cut(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.lost_from.is_some())
    }

    /// Whether it was read from a file that ends before the run did.
    pub fn is_prefix(&self) -> bool {
        let stopped = self.header.stopped.as_deref();
        stopped.is_some_and(|why| why.starts_with(PREFIX))
    }
}
