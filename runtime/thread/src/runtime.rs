//! A run that threads are created in: CPU, policy, pool, and the terms of admission.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as HostMutex, PoisonError};

use punctual_kern::{ConfigError, NoSink, Plan};
use punctual_linux::{
    Body, CpuPlan, Mode, Outcome, Overheads, RunError, RunOptions, ThreadPlan, clock_rate,
    measure_overheads, run, this_cpu,
};
use punctual_model::{Cpu, Instant, Machine, PolicyKind, System, TaskId, ThreadId, Work};
use punctual_policy::AnyHierarchy;

use crate::admission::{Admission, NotAdmitted};
use crate::constraint::Constraint;
use crate::sync::Mutex;
use crate::thread::{SpawnError, now};

/// How a run starts.
#[derive(Clone, Debug)]
pub struct Runtime {
    host: u32,
    policy: PolicyKind,
    threads: usize,
    stack_bytes: usize,
    main: Constraint,
    terms: Option<Machine>,
    real_time: bool,
}

/// Why there was no run, or nothing came out of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The machine refused something that a run cannot do without.
    Run(RunError),
    /// The first thread's constraint means nothing.
    Config(ConfigError),
    /// The first thread asked for a guarantee and does not get it.
    NotAdmitted(NotAdmitted),
    /// The first thread did not come to its end: it panicked, or the run was ended.
    NoResult {
        /// What panics said, with the names of their threads.
        panics: Vec<punctual_linux::Panic>,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Run(error) => write!(f, "{error}"),
            StartError::Config(error) => write!(f, "{error}"),
            StartError::NotAdmitted(why) => write!(f, "{why}"),
            StartError::NoResult { panics } => {
                write!(f, "the first thread did not come to its end")?;
                panics
                    .iter()
                    .try_for_each(|p| write!(f, "; `{}` panicked: {}", p.name, p.message))
            }
        }
    }
}

impl std::error::Error for StartError {}

/// A run that is over.
#[derive(Debug)]
pub struct Finished<T> {
    /// What the first thread returned.
    pub result: T,
    /// What the run left behind: its mode, what it did not get, counters, panics.
    pub outcome: Outcome<NoSink>,
}

impl<T> Finished<T> {
    /// Whether its guarantees could be kept: without real-time priority they are observations.
    pub fn is_real_time(&self) -> bool {
        self.outcome.mode == Mode::RealTime
    }
}

impl Runtime {
    /// A run on host CPU `host` under a policy, for up to 64 threads with 64 KiB of stack each.
    pub fn on(host: u32, policy: PolicyKind) -> Runtime {
        Runtime {
            host,
            policy,
            threads: 64,
            stack_bytes: 64 * 1024,
            main: Constraint::aperiodic(0),
            terms: None,
            real_time: true,
        }
    }

    /// How many threads there may be at a time beside the first. Their stacks are made before the
    /// run starts.
    #[must_use]
    pub fn threads(self, threads: usize) -> Runtime {
        Runtime { threads, ..self }
    }

    /// Usable bytes of each stack, which must also hold the frame of a preemption (3 KiB and more,
    /// by the processor).
    #[must_use]
    pub fn stack_bytes(self, stack_bytes: usize) -> Runtime {
        Runtime {
            stack_bytes,
            ..self
        }
    }

    /// The constraint of the first thread; background work of the lowest priority unless said.
    #[must_use]
    pub fn main(self, main: Constraint) -> Runtime {
        Runtime { main, ..self }
    }

    /// Admission counts with these terms of the machine, instead of measuring them before the run
    /// (which takes less than half a second).
    #[must_use]
    pub fn terms(self, terms: Machine) -> Runtime {
        Runtime {
            terms: Some(terms),
            ..self
        }
    }

    /// Whether to try for real-time priority and locked memory; what is refused is listed in the
    /// outcome.
    #[must_use]
    pub fn real_time(self, real_time: bool) -> Runtime {
        Runtime { real_time, ..self }
    }

    /// Starts the run with `first` on its first thread, and ends it when `first` returns: threads
    /// that are left are ended where they wait.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start<T, F>(self, first: F) -> Result<Finished<T>, StartError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let options = self.options();
        let terms = match &self.terms {
            Some(terms) => terms.clone(),
            None => measure_overheads(self.host, &options)
                .map(|overheads: Overheads| overheads.machine())
                .map_err(StartError::Run)?,
        };
        let shared = Arc::new(Shared::new(self.policy, terms));
        let overhead = shared.overhead();
        let mut admission = Admission::new(self.policy, shared.terms.clone());
        if self.main.has_guarantee() {
            let _ = admission
                .add("first", &self.main, Instant::ZERO)
                .map_err(StartError::NotAdmitted)?;
        }
        let shared = Arc::new(Shared {
            admission: Mutex::new(admission),
            ..Shared::new(self.policy, shared.terms.clone())
        });
        let result = Arc::new(HostMutex::new(None));
        let body = body_of(first, Arc::clone(&result), Arc::clone(&options.stop));
        let plan = self.plan(body, overhead).map_err(StartError::Config)?;
        let current = Current::set(shared);
        let outcome = run(vec![plan], &options).map_err(StartError::Run);
        drop(current);
        let outcome = outcome?;
        let result = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        match result {
            Some(result) => Ok(Finished { result, outcome }),
            None => Err(StartError::NoResult {
                panics: outcome.panics,
            }),
        }
    }

    fn options(&self) -> RunOptions {
        RunOptions {
            real_time: self.real_time,
            stack_bytes: self.stack_bytes,
            pool: self.threads,
            ..RunOptions::default()
        }
    }

    fn plan(
        &self,
        body: Body,
        overhead: Work,
    ) -> Result<CpuPlan<AnyHierarchy, NoSink>, ConfigError> {
        let name = self.host.to_string();
        let cpu = Cpu {
            name: name.clone(),
            host: Some(self.host),
            policy: self.policy,
        };
        let system = System {
            cpus: vec![cpu],
            ..System::default()
        };
        let frequency = clock_rate().frequency;
        let ticks = |ns| frequency.ticks_up(ns);
        let main = self.main.in_core(overhead).convert(ticks, ticks);
        let mut plan = Plan::new(&system, frequency).cpus.swap_remove(0);
        plan.capacity.threads = self.threads + 1;
        plan.capacity.pending = 4 * self.threads + 64;
        plan.threads.push((TaskId(0), main));
        plan.homes.push(0);
        Ok(CpuPlan {
            host: self.host,
            name,
            shard: plan.build(AnyHierarchy::new(&plan))?,
            sink: NoSink,
            threads: vec![ThreadPlan {
                id: ThreadId::new(0, 0),
                name: "first".to_owned(),
                body,
            }],
            children: Vec::new(),
            resources: Vec::new(),
            arrivals: Vec::new(),
        })
    }
}

/// Runs `first` once, keeps its result, and ends the run whatever happens.
fn body_of<T, F>(first: F, result: Arc<HostMutex<Option<T>>>, stop: Arc<AtomicBool>) -> Body
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mut first = Some(first);
    Box::new(move |_| {
        let _stop = Stop(Arc::clone(&stop));
        if let Some(first) = first.take() {
            let value = first();
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    })
}

/// What the threads of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    admission: Mutex<Admission>,
    terms: Machine,
}

impl Shared {
    fn new(policy: PolicyKind, terms: Machine) -> Shared {
        Shared {
            admission: Mutex::new(Admission::new(policy, terms.clone())),
            terms,
        }
    }

    /// What the scheduler costs on behalf of a job, as the analysis counts it.
    fn overhead(&self) -> Work {
        let t = &self.terms;
        let parts = [t.switch, t.switch, t.preemption, t.cache_delay, t.timer];
        parts.into_iter().fold(Work::ZERO, Work::saturating_add)
    }
}

static CURRENT: HostMutex<Option<Arc<Shared>>> = HostMutex::new(None);

/// The run of this process, while this lives.
struct Current;

impl Current {
    fn set(shared: Arc<Shared>) -> Current {
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(shared);
        Current
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The run that the calling thread belongs to.
pub(crate) struct Place(Arc<Shared>);

pub(crate) fn place() -> Option<Place> {
    let _ = this_cpu()?;
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    current.clone().map(Place)
}

impl Place {
    pub(crate) fn overhead(&self) -> Work {
        self.0.overhead()
    }

    /// Asks for admission, one at a time, at this instant.
    pub(crate) fn ask<R>(
        &self,
        question: impl FnOnce(&mut Admission, Instant) -> Result<R, NotAdmitted>,
    ) -> Result<R, SpawnError> {
        let mut admission = self.0.admission.lock().map_err(SpawnError::Busy)?;
        let now = now().ok_or(SpawnError::NoRun)?;
        question(&mut admission, now).map_err(SpawnError::NotAdmitted)
    }
}
