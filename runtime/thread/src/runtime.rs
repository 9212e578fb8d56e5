//! A run that threads are created in: CPU, policy, pool, and the terms of admission.

use core::fmt;
use std::sync::{Arc, Mutex as HostMutex, PoisonError};

use punctual_child::ChildScheduler;
use punctual_kern::{NoSink, NodeId, Plan, Policy, Sink};
use punctual_linux::{
    Body, ChildInput, CpuInput, Ending, GiveBack, Mode, Outcome, RunOptions, ThreadInput,
    check_room, clock_rate, end_run, measure_overheads, run,
};
use punctual_model::{
    Cpu, Machine, Ns, PolicyKind, Scheduler, Span, System, TaskId, ThreadId, Trust,
};
use punctual_policy::AnyPolicy;
use punctual_tables::{CpuTables, NodeRow, Tables};

use crate::admission::{NotAdmitted, Promise, meaning};
use crate::constraint::Constraint;
use crate::entry_cost::{entry_ns, floor_of, with_share_of_others};
use crate::place::{Current, FIRST, Shared};
use crate::slots::home_of_first;
use crate::spread::{Spread, Spreads};
use crate::start_error::StartError;
use crate::tally::{COUNTED, Jobs, Tally, by_name};

/// How a run starts.
#[derive(Debug)]
pub struct Runtime {
    host: u32,
    policy: PolicyKind<Ns>,
    beside: Vec<Beside>,
    threads: usize,
    stack_bytes: usize,
    lock_stacks: bool,
    pub(crate) strict: bool,
    main: Constraint,
    terms: Option<Machine>,
    floor: bool,
    real_time: bool,
    spread: Option<Spread>,
    schedulers: Vec<Scheduler>,
    policies: Vec<Own>,
    promotions: u16,
    most: Option<Span<Ns>>,
}

/// A policy, or why there is none.
type Made = Result<Box<dyn Policy + Send>, String>;

/// A program's own policy for a scheduler that decides on its own supply.
struct Own {
    scheduler: String,
    make: Box<dyn FnOnce(usize) -> Made>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Own({})", self.scheduler)
    }
}

/// Another CPU of a run.
struct Beside {
    host: u32,
    policy: PolicyKind<Ns>,
    first: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Beside { host, policy, .. } = self;
        write!(f, "Beside({host}, {policy:?})")
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished<T, S = NoSink> {
    /// The result of the first thread.
    pub result: T,
    /// The outcome of the run: its mode, refused rights, counters, panics.
    pub outcome: Outcome<S>,
    /// The tables of its shards: the first thread of each CPU is thread 0 there.
    pub tables: Tables,
    /// The host CPU of each.
    pub hosts: Vec<u32>,
    /// The promises to threads with a guarantee, one per name and CPU, in the order of their first
    /// admission.
    pub promises: Vec<Promise>,
    /// The names of the schedulers that it started with, in the order of [`Runtime::tree`].
    pub schedulers: Vec<String>,
    /// The fate of offered work, by CPU; empty if the run spread none.
    pub spreads: Vec<Spreads>,
    /// The jobs of its threads, by CPU and name; empty if it was recorded.
    pub jobs: Vec<Jobs>,
}

impl<T> Finished<T, Tally> {
    fn counted(self) -> Finished<T> {
        Finished {
            jobs: by_name(&self.outcome),
            result: self.result,
            outcome: self.outcome.without_sinks(),
            tables: self.tables,
            hosts: self.hosts,
            promises: self.promises,
            schedulers: self.schedulers,
            spreads: self.spreads,
        }
    }
}

impl<T, S> Finished<T, S> {
    /// The result, and the rest.
    pub fn split(self) -> (T, Finished<(), S>) {
        self.exchange(())
    }

    fn exchange<R>(self, result: R) -> (T, Finished<R, S>) {
        let rest = Finished {
            result,
            outcome: self.outcome,
            tables: self.tables,
            hosts: self.hosts,
            promises: self.promises,
            schedulers: self.schedulers,
            spreads: self.spreads,
            jobs: self.jobs,
        };
        (self.result, rest)
    }

    /// Whether its guarantees could be kept: without real-time priority they are observations.
    pub fn is_real_time(&self) -> bool {
        self.outcome.mode == Mode::RealTime
    }
}

impl Runtime {
    /// A run on host CPU `host` under a policy, for up to 64 threads with 64 KiB of stack each.
    pub fn on(host: u32, policy: PolicyKind<Ns>) -> Runtime {
        Runtime {
            host,
            policy,
            beside: Vec::new(),
            threads: 64,
            stack_bytes: 64 * 1024,
            lock_stacks: false,
            strict: false,
            main: Constraint::aperiodic(u32::MAX),
            terms: None,
            floor: false,
            real_time: true,
            spread: None,
            schedulers: Vec::new(),
            policies: Vec::new(),
            promotions: 0,
            most: None,
        }
    }

    /// Another CPU beside it, with a first thread of its own that does this. A thread stays on the
    /// CPU of its creator. [`crate::sync`] has the objects that CPUs share, and work that any of
    /// them may begin is offered ([`Runtime::spread`]).
    #[must_use]
    pub fn and(
        mut self,
        host: u32,
        policy: PolicyKind<Ns>,
        first: impl FnOnce() + Send + 'static,
    ) -> Runtime {
        let first = Box::new(first);
        self.beside.push(Beside {
            host,
            policy,
            first,
        });
        self
    }

    /// How many threads each CPU may have at a time beside its first, less than
    /// [`punctual_linux::MOST_THREADS`]. Their stacks are made before the run starts.
    #[must_use]
    pub fn threads(self, threads: usize) -> Runtime {
        Runtime { threads, ..self }
    }

    /// Usable bytes of each stack, at most [`punctual_linux::MOST_STACK_BYTES`], which must also
    /// hold the frame of a preemption (3 KiB and more, by the processor).
    #[must_use]
    pub fn stack_bytes(self, stack_bytes: usize) -> Runtime {
        Runtime {
            stack_bytes,
            ..self
        }
    }

    /// Whether all of each stack is in memory before the run starts. Else its first 64 KiB are (of
    /// a smaller stack what it was declared with, and a page). The first use of each page below
    /// them takes a page fault: by the thread, or by the frame of a signal.
    #[must_use]
    pub fn lock_stacks(self, lock_stacks: bool) -> Runtime {
        Runtime {
            lock_stacks,
            ..self
        }
    }

    /// The constraint of the first thread of each CPU. Unless said, it is background work of the
    /// highest priority: only threads with a guarantee go before it, and no other can keep it from
    /// ending the run.
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

    /// Whether a budget that two entries of the scheduler use up is refused, also where admission
    /// counts none of their costs ([`Runtime::terms`]). An entry is measured then, before the first
    /// run of this process on a CPU, in some 40 ms. With measured terms it is always refused.
    #[must_use]
    pub fn floor(self, floor: bool) -> Runtime {
        Runtime { floor, ..self }
    }

    /// Whether to try for real-time priority and locked memory; the outcome lists refused rights.
    #[must_use]
    pub fn real_time(self, real_time: bool) -> Runtime {
        Runtime { real_time, ..self }
    }

    /// Ends the run after so long, whatever its threads do: no thread of it executes any longer. A
    /// thread of the host above all of the run sees to that where a CPU does not listen.
    #[must_use]
    pub fn at_most(self, most: Span<Ns>) -> Runtime {
        Runtime {
            most: Some(most),
            ..self
        }
    }

    /// Spreads work that is offered ([`crate::spread::offer`]) over the CPUs of the run, by workers
    /// beside the threads that [`Runtime::threads`] says.
    #[must_use]
    pub fn spread(self, spread: Spread) -> Runtime {
        Runtime {
            spread: Some(spread),
            ..self
        }
    }

    /// The schedulers below the policies of the CPUs, as those of a file: CPU 0 is the first of the
    /// run. Each CPU's first thread gets the root of its tree ([`crate::tree::Scheduler::root`]).
    /// On a CPU that divides its time into slots it executes in those of the first scheduler there
    /// that the core decides for and that divides no time itself.
    #[must_use]
    pub fn tree(self, schedulers: Vec<Scheduler>) -> Runtime {
        Runtime { schedulers, ..self }
    }

    /// A scheduler of [`Runtime::tree`] that decides on its own supply ([`Trust::OwnTime`]) orders
    /// its threads by the program's own policy. `make` is called once, with a number that all
    /// indices of threads are below. Such a policy may be slow, wrong or endless, or panic: that
    /// costs nobody but its own threads, which go on under the scheduler's `fallback` if it names
    /// one. A run refuses to start where the tree has no such scheduler, or one is given two.
    #[must_use]
    pub fn policy<P: Policy + Send + 'static>(
        self,
        scheduler: &str,
        make: impl FnOnce(usize) -> P + 'static,
    ) -> Runtime {
        self.try_policy(scheduler, move |threads| Ok(make(threads)))
    }

    /// As [`Runtime::policy`], of a policy that perhaps cannot be made: the run does not start
    /// then, and says why ([`StartError::NoPolicy`]).
    #[must_use]
    pub fn try_policy<P: Policy + Send + 'static>(
        mut self,
        scheduler: &str,
        make: impl FnOnce(usize) -> Result<P, String> + 'static,
    ) -> Runtime {
        self.policies.push(Own {
            scheduler: scheduler.to_owned(),
            make: Box::new(move |threads| Ok(Box::new(make(threads)?))),
        });
        self
    }

    /// How many schedulers each CPU may have at a time beside those of [`Runtime::tree`]
    /// ([`crate::tree::Scheduler::promote`]).
    #[must_use]
    pub fn promotions(self, promotions: u16) -> Runtime {
        Runtime { promotions, ..self }
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
        let most = self.most;
        let counts = |tables: &CpuTables| Ok(Tally::of(tables));
        let finished = self.start_recorded(COUNTED, counts, first)?.counted();
        let (result, finished) = finished.split();
        let outcome = &finished.outcome;
        let is_cut = outcome.ending != Ending::Stopped && outcome.panics.is_empty();
        match (result, most.filter(|_| is_cut)) {
            (Some(result), _) => Ok(finished.exchange(result).1),
            (None, Some(after)) => Err(StartError::Ended { after }),
            (None, None) => Err(StartError::NoResult {
                panics: finished.outcome.panics,
            }),
        }
    }

    /// As [`Runtime::start`], with a recorder on each CPU, made from what its shard is built from,
    /// and the names of up to `spawned` threads of each CPU kept for the outcome. A first thread
    /// that does not come to its end leaves no result, and its record all the same.
    ///
    /// # Errors
    /// See [`StartError`]; [`StartError::NoResult`] and [`StartError::Ended`] do not come.
    pub fn start_recorded<T, F, S>(
        mut self,
        spawned: usize,
        mut sink: impl FnMut(&CpuTables) -> Result<S, StartError>,
        first: F,
    ) -> Result<Finished<Option<T>, S>, StartError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
        S: Sink + Send + 'static,
    {
        self.has_new_locals()?;
        let mut options = self.options(spawned);
        let cpus = self.beside.len() + 1;
        check_room(cpus, self.pool().saturating_add(1), &options).map_err(StartError::Run)?;
        let (terms, entry) = match &self.terms {
            Some(terms) => {
                let entry = self.floor.then(|| entry_ns(self.host, &options));
                let entry = entry.transpose().map_err(StartError::Run)?;
                (terms.clone(), entry.flatten())
            }
            None => {
                let measured = measure_overheads(self.host, &options);
                let overheads = measured.map_err(StartError::Run)?;
                options.early_ns = overheads.early_ns;
                (with_share_of_others(&overheads), overheads.entry_ns())
            }
        };
        let floor = floor_of(entry);
        options.give_back = GiveBack::of(&terms);
        let policies = self.beside.iter().map(|beside| beside.policy);
        let policies: Vec<PolicyKind<Ns>> = [self.policy].into_iter().chain(policies).collect();
        let hosts = self.beside.iter().map(|beside| beside.host);
        let hosts: Vec<u32> = [self.host].into_iter().chain(hosts).collect();
        let tables = self.tables(&policies, &hosts, &terms)?;
        let shared = Shared::new(
            (&tables, &self.schedulers),
            &policies,
            (terms, floor),
            (&self.main, self.spread),
        );
        let shared = shared.map_err(StartError::NotAdmitted)?;
        let result = Arc::new(HostMutex::new(None));
        let mut bodies = vec![body_of(first, Arc::clone(&result))];
        let beside = core::mem::take(&mut self.beside);
        bodies.extend(beside.into_iter().map(|beside| once(beside.first)));
        let bodies = self.with_workers(bodies, &shared);
        let mut policies = core::mem::take(&mut self.policies);
        let cpus = tables.cpus.iter().zip(&hosts).zip(bodies);
        let cpus = cpus.map(|((tables, host), body)| {
            let mut input = cpu_input(tables, *host, sink(tables)?, body)?;
            input.children = children(tables, &self.schedulers, &mut policies)?;
            Ok(input)
        });
        let cpus = cpus.collect::<Result<_, _>>()?;
        let shared = Arc::new(shared);
        let current = Current::set(Arc::clone(&shared));
        let outcome = run(cpus, &options).map_err(StartError::Run);
        drop(current);
        Ok(Finished {
            outcome: outcome?,
            result: result.lock().unwrap_or_else(PoisonError::into_inner).take(),
            tables,
            hosts,
            promises: shared.promises(),
            schedulers: self.schedulers.iter().map(|s| s.name.clone()).collect(),
            spreads: shared.spreads(),
            jobs: Vec::new(),
        })
    }

    /// Bodies that start the workers of their CPU before they begin.
    fn with_workers(&self, bodies: Vec<Body>, shared: &Shared) -> Vec<Body> {
        let (Some(spread), Some(board)) = (self.spread, &shared.board) else {
            return bodies;
        };
        let with = |(cpu, mut body): (usize, Body)| -> Body {
            let mut board = Some(Arc::clone(board));
            Box::new(move |info| {
                if let Some(board) = board.take() {
                    // There is room for them, so it fails only when the run is over.
                    let _ = board.serve(cpu, spread);
                }
                body(info);
            })
        };
        bodies.into_iter().enumerate().map(with).collect()
    }

    /// Threads of each CPU beside its first.
    fn pool(&self) -> usize {
        let workers = self.spread.map_or(0, |spread| spread.workers);
        self.threads.saturating_add(workers)
    }

    fn options(&self, spawned: usize) -> RunOptions {
        RunOptions {
            spawned,
            real_time: self.real_time,
            stack_bytes: self.stack_bytes,
            lock_stacks: self.lock_stacks,
            pool: self.pool(),
            duration_ns: self.most.map(Span::as_ns),
            grace_ns: 0,
            ..RunOptions::default()
        }
    }

    /// Every policy has a scheduler that decides on its own supply, and all code that a file names
    /// has a policy in its place.
    fn check_policies(&self) -> Result<(), NotAdmitted> {
        let decides = |own: &Own| {
            let mut schedulers = self.schedulers.iter();
            schedulers.any(|s| s.name == own.scheduler && s.trust == Trust::OwnTime)
        };
        let refused = |name: &str, what: &str| {
            let what = format!("scheduler `{name}`: {what}");
            Err(NotAdmitted::Meaningless(what))
        };
        if let Some(own) = self.policies.iter().find(|own| !decides(own)) {
            return refused(
                &own.scheduler,
                "none of this name decides on its own supply",
            );
        }
        let mut rest = self.policies.iter();
        while let Some(own) = rest.next() {
            if rest.as_slice().iter().any(|o| o.scheduler == own.scheduler) {
                return refused(&own.scheduler, "it has a policy of the program's already");
            }
        }
        let has_own = |s: &Scheduler| self.policies.iter().any(|own| own.scheduler == s.name);
        let mut foreign = self.schedulers.iter().filter(|s| s.code.is_some());
        match foreign.find(|s| !has_own(s)) {
            Some(s) => refused(&s.name, "its file names code: give it as `Runtime::policy`"),
            None => Ok(()),
        }
    }

    /// The tables of the shards: the first thread of each CPU, its tree, and room for more.
    fn tables(
        &self,
        policies: &[PolicyKind<Ns>],
        hosts: &[u32],
        terms: &Machine,
    ) -> Result<Tables, StartError> {
        let cpu = |(policy, host): (&PolicyKind<Ns>, &u32)| Cpu {
            name: host.to_string(),
            host: Some(*host),
            policy: *policy,
        };
        let system = System {
            cpus: policies.iter().zip(hosts).map(cpu).collect(),
            schedulers: self.schedulers.clone(),
            ..System::default()
        };
        meaning(&system).map_err(StartError::NotAdmitted)?;
        self.check_policies().map_err(StartError::NotAdmitted)?;
        let frequency = clock_rate().frequency;
        let funding = terms.funding(Vec::new());
        let overhead = terms.stretch().saturating_add(funding.grace);
        let main = self.main.in_core(overhead).in_ticks(frequency);
        let mut tables = Tables::new(&system, frequency);
        for (task, cpu) in (0..).zip(&mut tables.cpus) {
            cpu.make_room(self.pool() + 1, self.promotions);
            cpu.capacity.grace = funding.grace.ticks_up(frequency);
            cpu.capacity.stop_cost = funding.stop.ticks_up(frequency);
            cpu.capacity.entry = funding.entry.ticks_up(frequency);
            cpu.capacity.cache_delay = funding.cache_delay.ticks_up(frequency);
            cpu.threads.push((TaskId(task), main));
            let home = home_of_first(cpu);
            cpu.homes.push(home.map_err(StartError::NotAdmitted)?);
        }
        Ok(tables)
    }
}

fn cpu_input<S: Sink>(
    tables: &CpuTables,
    host: u32,
    sink: S,
    body: Body,
) -> Result<CpuInput<AnyPolicy, S>, StartError> {
    Ok(CpuInput {
        host,
        name: host.to_string(),
        shard: tables.build(AnyPolicy::new).map_err(StartError::Config)?,
        sink,
        threads: vec![ThreadInput {
            id: ThreadId::new(0, 0),
            name: FIRST.to_owned(),
            body,
        }],
        children: Vec::new(),
        resources: Vec::new(),
        arrivals: Vec::new(),
        plan: Plan::default(),
    })
}

/// The schedulers of a CPU that decide on their own supply, by the policies that the program has
/// for them, or that they name.
fn children(
    tables: &CpuTables,
    schedulers: &[Scheduler],
    policies: &mut Vec<Own>,
) -> Result<Vec<ChildInput>, StartError> {
    let nodes = (1..).zip(&tables.nodes);
    let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
    let child = |(place, node): (u16, &NodeRow)| {
        let (threads, entities) = (tables.capacity.threads, tables.capacity.entities());
        let name = schedulers[node.scheduler.index()].name.clone();
        let own = policies.iter().position(|own| own.scheduler == name);
        let policy: Box<dyn Policy + Send> = match own {
            Some(own) => {
                let scheduler = name.clone();
                let made = (policies.swap_remove(own).make)(threads);
                made.map_err(|why| StartError::NoPolicy { scheduler, why })?
            }
            None => Box::new(AnyPolicy::new(
                node.policy,
                entities,
                &tables.slots_of(place),
            )),
        };
        Ok(ChildInput {
            name,
            code: ChildScheduler::new(NodeId::new(place, 0), threads, policy),
        })
    };
    own_time.map(child).collect()
}

/// Runs `first` once.
fn once(first: Box<dyn FnOnce() + Send>) -> Body {
    let mut first = Some(first);
    Box::new(move |_| {
        if let Some(first) = first.take() {
            first();
        }
    })
}

/// Runs `first` once, keeps its result, and ends the run whatever happens.
fn body_of<T, F>(first: F, result: Arc<HostMutex<Option<T>>>) -> Body
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let mut first = Some(first);
    Box::new(move |_| {
        end_run();
        if let Some(first) = first.take() {
            let value = first();
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    })
}
