//! The state that the threads of a run share, and the place of each of them in it.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as HostMutex, PoisonError};

use punctual_kern::{NodeId, Refusal, Request};
use punctual_linux::{clock_rate, held_alive, manage, replace, this_cpu, undisturbed};
use punctual_model::{Instant, Machine, Ns, PolicyKind, Scheduler, System, Tile, Work};
use punctual_policy::AnyPolicy;
use punctual_tables::Tables;

use crate::admission::{Admission, NotAdmitted, PROMOTED, Promise, Promises};
use crate::constraint::Constraint;
use crate::slots::Start;
use crate::spread::{Board, Spread, Spreads};
use crate::sync::Mutex;
use crate::thread::{SpawnError, now};

/// The name of the first thread of every CPU.
pub const FIRST: &str = "first";

/// State that the threads of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// By CPU: tasks of different CPUs do not meet.
    admission: Vec<Mutex<Admission>>,
    /// The promise of each of them. Only who asks for admission writes here, one at a time, so no
    /// thread ever waits for this lock; it is read when the run is over.
    promises: Vec<Arc<Promises>>,
    terms: Machine,
    start: Start,
    /// Where work is offered.
    pub(crate) board: Option<Arc<Board>>,
    /// Which run of this process it is: handles of another one mean nothing here.
    run: u64,
    /// By CPU: the threads and schedulers that there is room for.
    entities: Vec<usize>,
    /// By CPU: whether the root of its tree has been given away.
    given: Vec<AtomicBool>,
}

/// Runs of this process so far.
static RUNS: AtomicU64 = AtomicU64::new(0);

impl Shared {
    pub(crate) fn new(
        (tables, schedulers): (&Tables, &[Scheduler]),
        policies: &[PolicyKind<Ns>],
        (terms, floor): (Machine, Work<Ns>),
        (first, spread): (&Constraint, Option<Spread>),
    ) -> Result<Shared, NotAdmitted> {
        let promises: Vec<Arc<Promises>> = policies.iter().map(|_| Arc::default()).collect();
        let of_cpu = |(cpu, policy): (usize, &PolicyKind<Ns>)| {
            let promises = Arc::clone(&promises[cpu]);
            let mut admission = Admission::new(*policy, terms.clone(), promises).with_floor(floor);
            let rows = &tables.cpus[cpu].nodes;
            let nodes = (1..).zip(rows).map(|(place, row)| {
                let scheduler = schedulers[row.scheduler.index()].clone();
                (NodeId::new(place, 0), NodeId::new(row.parent, 0), scheduler)
            });
            admission.plant(nodes)?;
            if first.has_guarantee() {
                let home = tables.cpus[cpu].homes.first().copied().unwrap_or(0);
                let home = NodeId::new(home, 0);
                let _ = admission.add((FIRST, home), first, Instant::ZERO)?;
            }
            Ok(Mutex::new(admission))
        };
        let cpus = policies.iter().enumerate();
        let admission = cpus.map(of_cpu).collect::<Result<_, _>>()?;
        Ok(Shared {
            admission,
            promises,
            terms,
            start: Start::of((tables, schedulers), policies),
            board: spread.map(|spread| Arc::new(Board::new(spread, policies.len()))),
            run: RUNS.fetch_add(1, Ordering::Relaxed),
            entities: tables
                .cpus
                .iter()
                .map(|cpu| cpu.capacity.entities())
                .collect(),
            given: policies.iter().map(|_| AtomicBool::new(false)).collect(),
        })
    }

    pub(crate) fn spreads(&self) -> Vec<Spreads> {
        let board = self.board.as_ref();
        board.map_or_else(Vec::new, |board| board.counts())
    }

    /// The promises, by CPU.
    pub(crate) fn promises(&self) -> Vec<Promise> {
        let of_cpu = |(cpu, promises): (usize, &Arc<Promises>)| {
            let promises = promises.read().into_iter();
            promises
                .map(|promise| Promise { cpu, ..promise })
                .collect::<Vec<_>>()
        };
        self.promises.iter().enumerate().flat_map(of_cpu).collect()
    }

    /// The cost of the scheduler on behalf of a job, as the analysis counts it.
    fn overhead(&self) -> Work<Ns> {
        let grace = self.terms.funding(Vec::new()).grace;
        self.terms.stretch().saturating_add(grace)
    }
}

static CURRENT: HostMutex<Option<Arc<Shared>>> = HostMutex::new(None);

/// The run of this process, while this lives.
pub(crate) struct Current;

impl Current {
    pub(crate) fn set(shared: Arc<Shared>) -> Current {
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
#[derive(Clone, Debug)]
pub(crate) struct Place(Arc<Shared>, usize);

pub(crate) fn place() -> Option<Place> {
    let cpu = this_cpu()?;
    // Whoever is preempted in here may never go on, and the end of the run wants the lock.
    undisturbed(|| {
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().map(|shared| Place(shared, cpu))
    })
}

impl Place {
    /// Where the calling thread offers work, and its CPU there.
    pub(crate) fn board(&self) -> Option<(Arc<Board>, usize)> {
        let board = self.0.board.as_ref()?;
        Some((Arc::clone(board), self.1))
    }

    pub(crate) fn overhead(&self) -> Work<Ns> {
        self.0.overhead()
    }

    /// The system that the run started with, and the processor time of a scheduler of this CPU.
    pub(crate) fn start_home(&self, node: NodeId) -> Option<(Arc<System>, Tile)> {
        self.0.start.home(self.1, node)
    }

    /// The run, and the CPU in it.
    pub(crate) fn tree(&self) -> (u64, usize) {
        (self.0.run, self.1)
    }

    /// The threads and schedulers that this CPU has room for.
    pub(crate) fn entities(&self) -> usize {
        self.0.entities.get(self.1).copied().unwrap_or_default()
    }

    /// A scheduler that was just promoted into a place with the policy of a former one orders
    /// nobody yet: it has another at once.
    pub(crate) fn orders_by_priority(&self, node: NodeId) -> Result<NodeId, SpawnError> {
        let kind = PROMOTED.in_ticks(clock_rate().frequency);
        let mut made = Some(AnyPolicy::new(kind, self.entities(), &[]));
        match replace((node, kind), &mut made, &[]) {
            Ok(()) => Ok(node),
            Err(error) => {
                let _ = manage(NodeId::ROOT, Request::Demote(node), &[]);
                Err(error.into())
            }
        }
    }

    /// Whether the root of this tree is still there to be given: from now on it is not.
    pub(crate) fn give_root(&self) -> bool {
        let given = self.0.given.get(self.1);
        given.is_some_and(|given| !given.swap(true, Ordering::Relaxed))
    }

    /// Whether threads may come into the care of a scheduler.
    /// A table has no slot for them, and they would never run.
    pub(crate) fn takes_in(&self, node: NodeId) -> Result<(), SpawnError> {
        match self.ask(|admission, _| Ok(admission.divides_time(node)))? {
            true => Err(SpawnError::Refused(Refusal::NotGrantable(node))),
            false => Ok(()),
        }
    }

    /// Asks for admission, one at a time, at this instant.
    pub(crate) fn ask<R>(
        &self,
        question: impl FnOnce(&mut Admission, Instant<Ns>) -> Result<R, SpawnError>,
    ) -> Result<R, SpawnError> {
        let admission = self.0.admission.get(self.1).ok_or(SpawnError::NoRun)?;
        // Without the holder nobody would ever be admitted again.
        held_alive(|| {
            let mut admission = admission.lock().map_err(SpawnError::Busy)?;
            let now = now().ok_or(SpawnError::NoRun)?;
            question(&mut admission, now)
        })
    }
}
