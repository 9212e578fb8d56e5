//! The tree of a running CPU: schedulers are made, moved, funded and taken away.
//!
//! A [`Scheduler`] is a handle, and to hold it is the authority over its subtree. Nobody can make
//! one from numbers: a CPU's first thread takes the root ([`Scheduler::root`]), and each further
//! one comes from a handle above it. Its power ends at its own subtree. Each change of the tree is
//! admitted first, by the same function as a file ([note 0037]).
//!
//! ```no_run
//! use punctual_model::{PolicyKind, ServerKind, Span, Work};
//! use punctual_thread::tree::{Scheduler, Terms};
//! use punctual_thread::{Constraint, Runtime, thread};
//!
//! let runtime = Runtime::on(1, PolicyKind::FixedPriority { preemptive: true }).promotions(4);
//! let finished = runtime.start(|| {
//!     let root = Scheduler::root()?;
//!     let two_in_ten = (Work::from_ms(2), Span::from_ms(10));
//!     let terms = Terms::server(ServerKind::Deferrable, two_in_ten).priority(3);
//!     let net = root.promote("net", terms)?;
//!     let every = Constraint::periodic(Span::from_ms(40), Work::from_ms(1)).priority(1);
//!     let receive = net.spawn("receive", every, || while thread::wait_next_period().is_ok() {})?;
//!     thread::sleep(Span::from_ms(400));
//!     receive.cancel();
//!     Ok::<(), thread::SpawnError>(())
//! })?;
//! # Ok::<(), punctual_thread::StartError>(())
//! ```
//!
//! [note 0037]: ../../../doc/design/0037-the-tree-for-programs.md

mod replace;

use std::sync::Arc;

use punctual_kern::{Grant as Supplied, NodeId, NodeTerms, Request};
use punctual_linux::{Who, clock_rate, manage};
use punctual_model::{
    CpuId, Ns, Priority, Server, ServerKind, Span, Supply, System, ThreadId, Tile, Trust, Work,
};

use crate::admission::{Grant, PROMOTED};
use crate::constraint::Constraint;
use crate::place::{Place, place};
use crate::sync::after;
use crate::thread::{Builder, SpawnError, Thread, ThreadRef};

/// A scheduler of the tree of one CPU, and the authority over its subtree. A copy of the handle
/// gives that authority to somebody else. It ends with the scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduler(At);

/// A scheduler that budget may be lent to, or time be delegated to, and nothing else: schedulers
/// that do not trust each other give each other this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipient(At);

/// A slice of a scheduler's supply in the hands of another, and the authority to hand on its time.
/// The receiver binds threads to it ([`Scheduler::bind`]). It ends when somebody above takes it
/// back, or with its receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice(At);

/// A scheduler of one CPU of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct At {
    run: u64,
    cpu: usize,
    node: NodeId,
}

/// The terms on which a scheduler joins a tree. It orders its threads and children by fixed
/// priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    server: Option<Server<Ns>>,
    priority: Priority,
    quota: Option<u32>,
}

impl Terms {
    /// A budget in every period.
    pub fn server(kind: ServerKind, (budget, period): (Work<Ns>, Span<Ns>)) -> Terms {
        Terms {
            server: Some(Server {
                kind,
                budget,
                period,
            }),
            ..Terms::shared()
        }
    }

    /// No budget of its own: it runs when it is the most urgent child of its parent.
    pub fn shared() -> Terms {
        Terms {
            server: None,
            priority: Priority::LOWEST,
            quota: None,
        }
    }

    /// Urgency among what its parent orders; a larger number is more urgent.
    #[must_use]
    pub fn priority(self, number: u32) -> Terms {
        Terms {
            priority: Priority::new(number),
            ..self
        }
    }

    /// Most threads of its subtree at any one time.
    #[must_use]
    pub fn quota(self, threads: u32) -> Terms {
        Terms {
            quota: Some(threads),
            ..self
        }
    }

    fn in_model(self, name: &str) -> punctual_model::Scheduler {
        punctual_model::Scheduler {
            name: name.to_owned(),
            cpu: CpuId(0),
            parent: None,
            policy: PROMOTED,
            priority: self.priority,
            supply: self.server.map_or(Supply::Shared, Supply::Server),
            trust: Trust::Inline,
            quota: self.quota,
            receiver: None,
            fallback: None,
            code: None,
        }
    }

    fn in_core(self, receiver: Option<NodeId>) -> NodeTerms {
        let frequency = clock_rate().frequency;
        let server = self.server.map(|server| server.in_ticks(frequency));
        NodeTerms {
            supply: server.map_or(Supplied::Shared, Supplied::Server),
            priority: self.priority,
            order: u32::MAX,
            trust: Trust::Inline,
            quota: self.quota,
            receiver,
        }
    }
}

/// How a scheduler has a thread wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    exclusive: bool,
    most: Option<Span<Ns>>,
}

impl Wait {
    /// Until somebody wakes it.
    pub const fn until_woken() -> Wait {
        Wait {
            exclusive: false,
            most: None,
        }
    }

    /// Until somebody wakes it, for `most` at most.
    pub const fn within(most: Span<Ns>) -> Wait {
        Wait {
            exclusive: false,
            most: Some(most),
        }
    }

    /// Only the scheduler that asks and those above it may wake the thread.
    #[must_use]
    pub const fn exclusive(self) -> Wait {
        Wait {
            exclusive: true,
            ..self
        }
    }
}

impl Scheduler {
    /// The root of the caller's CPU: its own policy, with authority over the whole tree. Its first
    /// thread gets it, once.
    ///
    /// # Errors
    /// [`SpawnError::NotItsRoot`] for anybody else and for a second call; [`SpawnError::NoRun`].
    pub fn root() -> Result<Scheduler, SpawnError> {
        let place = place().ok_or(SpawnError::NoRun)?;
        let caller = Who::this().and_then(Who::id);
        if caller != Some(ThreadId::new(0, 0)) || !place.give_root() {
            return Err(SpawnError::NotItsRoot);
        }
        Ok(Scheduler(At::new(&place, NodeId::ROOT)))
    }

    /// Whether it is a scheduler still, on the caller's CPU.
    pub fn is_alive(&self) -> bool {
        let there = |place: Place| {
            place
                .ask(|admission, _| Ok(admission.knows(self.0.node)))
                .is_ok_and(|knows| knows)
        };
        self.0.place().is_ok_and(there)
    }

    /// Whether it was demoted for certain: on another CPU, in another run and while admission
    /// cannot be asked, nobody knows.
    #[doc(hidden)]
    pub fn is_dead(&self) -> bool {
        self.0.is_dead()
    }

    /// The scheduler of this name below, however deep it is.
    ///
    /// # Errors
    /// [`SpawnError::Refused`] when there is none; [`SpawnError::NotHere`].
    pub fn child(&self, name: &str) -> Result<Scheduler, SpawnError> {
        let place = self.0.place()?;
        let node = place.ask(|admission, _| Ok(admission.named(self.0.node, (name, false))?))?;
        Ok(Scheduler(At::new(&place, node)))
    }

    /// The slice of this name below: one that a run starts with is named after its giver and its
    /// receiver, `giver:receiver`.
    ///
    /// # Errors
    /// As [`Scheduler::child`].
    pub fn slice(&self, name: &str) -> Result<Slice, SpawnError> {
        let place = self.0.place()?;
        let node = place.ask(|admission, _| Ok(admission.named(self.0.node, (name, true))?))?;
        Ok(Slice(At::new(&place, node)))
    }

    /// Creates a thread in the care of this scheduler, admitted on its supply; see
    /// [`Builder::spawn`]. The runtime creates it in the name of the root, and the quotas of this
    /// scheduler and of those above it answer.
    ///
    /// # Errors
    /// See [`SpawnError`].
    pub fn spawn<T, F>(
        &self,
        name: &str,
        constraint: Constraint,
        body: F,
    ) -> Result<Thread<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.create(Builder::new(name, constraint), body)
    }

    /// As [`Scheduler::spawn`], with everything that a builder says.
    ///
    /// # Errors
    /// See [`SpawnError`].
    pub fn create<T, F>(&self, builder: Builder<'_>, body: F) -> Result<Thread<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let _ = self.0.place()?;
        builder.spawn_at(Some(self.0.node), body)
    }

    /// A new scheduler below this one, if everybody stays on time beside what its server may take.
    /// Its name is for [`Scheduler::child`] and for verdicts.
    ///
    /// # Errors
    /// See [`SpawnError`]; [`punctual_kern::Refusal::NoNodeLeft`] when there is no room
    /// ([`crate::Runtime::promotions`]).
    pub fn promote(&self, name: &str, terms: Terms) -> Result<Scheduler, SpawnError> {
        self.0.promote((name, terms), None).map(Scheduler)
    }

    /// A slice of this scheduler's supply goes into the hands of another, if everybody stays on
    /// time beside it and all of it is sure to come in each of its periods. `terms` are those of a
    /// server, at a priority among what this scheduler orders; their quota counts for nothing,
    /// because threads there count in the quota of the receiver. The shares of all slices together
    /// are at most that of its own server; the root, which has none, has all of its CPU.
    /// The handle is for the receiver.
    ///
    /// # Errors
    /// See [`SpawnError`]; [`punctual_kern::Refusal::TooLittleBudget`] beyond the supply, in which
    /// slices that ended count until the last of them would have come back;
    /// [`punctual_kern::Refusal::NotGrantable`] on shared terms, or to itself.
    pub fn delegate(&self, to: &Recipient, terms: Terms) -> Result<Slice, SpawnError> {
        self.0.delegate(to, terms)
    }

    /// A thread of its own executes on a slice that it holds, if everybody is on time then. It
    /// stays in the care of this scheduler; [`Scheduler::revoke`] brings it back to its supply.
    ///
    /// # Errors
    /// As [`Scheduler::grant`].
    pub fn bind(&self, thread: impl Into<ThreadRef>, to: &Slice) -> Result<(), SpawnError> {
        let to = to.0.beside(&self.0)?.node;
        self.moves(thread.into(), to, |thread| Request::Grant { thread, to })
    }

    /// A slice of the supply of this scheduler or of one below ends, with all that was delegated
    /// from it. Threads on them go on on the supply of their own schedulers, if they are on time
    /// there.
    ///
    /// # Errors
    /// As [`Scheduler::demote`].
    pub fn take_back(&self, slice: &Slice) -> Result<(), SpawnError> {
        self.0.end(&slice.0)
    }

    /// A scheduler below this one is none any more, nor are those below it; their threads fall back
    /// to its parent, if they are on time there.
    ///
    /// # Errors
    /// See [`SpawnError`]; [`SpawnError::HasJob`] while a thread with a guarantee there has a job.
    pub fn demote(&self, scheduler: &Scheduler) -> Result<(), SpawnError> {
        self.0.end(&scheduler.0)
    }

    /// A thread of its own goes into the care of a child, if everybody is on time then.
    ///
    /// # Errors
    /// See [`SpawnError`]; [`SpawnError::HasJob`] while a thread with a guarantee has a job.
    pub fn grant(&self, thread: impl Into<ThreadRef>, to: &Scheduler) -> Result<(), SpawnError> {
        let to = to.0.beside(&self.0)?.node;
        self.moves(thread.into(), to, |thread| Request::Grant { thread, to })
    }

    /// A thread that some scheduler below has comes back to this one, if everybody is on time then.
    ///
    /// # Errors
    /// As [`Scheduler::grant`].
    pub fn revoke(&self, thread: impl Into<ThreadRef>) -> Result<(), SpawnError> {
        self.0.place()?.takes_in(self.0.node)?;
        self.moves(thread.into(), self.0.node, |thread| Request::Revoke {
            thread,
        })
    }

    fn moves(
        &self,
        thread: ThreadRef,
        home: NodeId,
        request: impl FnOnce(ThreadId) -> Request,
    ) -> Result<(), SpawnError> {
        let place = self.0.place()?;
        let id = id_of(thread)?;
        let Some(grant) = thread.grant else {
            let _ = manage(self.0.node, request(id), &[])?;
            return Ok(());
        };
        place.ask(|admission, now| {
            let moved = admission.moves(grant, (self.0.node, home), now)?;
            let rest: &[ThreadId] = if moved.is_some() { &[id] } else { &[] };
            let _ = manage(self.0.node, request(id), rest)?;
            admission.accept(moved, crate::thread::now().unwrap_or(now));
            Ok(())
        })
    }

    /// The handle by which siblings lend it budget.
    pub fn recipient(&self) -> Recipient {
        Recipient(self.0)
    }

    /// Budget goes to a sibling until the end of this scheduler's period, if everybody is on time
    /// without it here and with it there.
    ///
    /// # Errors
    /// See [`SpawnError`].
    pub fn lend(&self, to: &Recipient, work: Work<Ns>) -> Result<(), SpawnError> {
        self.0.lend(to, work)
    }

    /// A thread of the subtree waits. One with a guarantee waits no longer and no more often than
    /// its constraint declares ([`Constraint::suspension`]).
    ///
    /// # Errors
    /// See [`SpawnError`].
    pub fn block(&self, thread: impl Into<ThreadRef>, wait: Wait) -> Result<(), SpawnError> {
        let place = self.0.place()?;
        let thread = thread.into();
        let id = id_of(thread)?;
        let block = || {
            let request = Request::Block {
                thread: id,
                exclusive: wait.exclusive,
                until: wait.most.and_then(after),
            };
            Ok(manage(self.0.node, request, &[]).map(|_| ())?)
        };
        let Some(grant) = thread.grant else {
            return block();
        };
        let until = place.ask(|admission, now| Ok(admission.suspends(grant, wait.most, now)?))?;
        // Not while admission is asked: the thread may be the caller.
        let blocked = block();
        if blocked.is_err() {
            place.ask(|admission, _| {
                admission.spare(grant, until);
                Ok(())
            })?;
        }
        blocked
    }

    /// A thread of the subtree goes on, if no more trusted scheduler has blocked it for itself.
    ///
    /// # Errors
    /// See [`SpawnError`].
    pub fn wake(&self, thread: impl Into<ThreadRef>) -> Result<(), SpawnError> {
        let _ = self.0.place()?;
        let id = id_of(thread.into())?;
        Ok(manage(self.0.node, Request::Wake(id), &[]).map(|_| ())?)
    }
}

impl Slice {
    /// A slice of this slice goes into the hands of another, as by [`Scheduler::delegate`].
    ///
    /// # Errors
    /// As there.
    pub fn delegate(&self, to: &Recipient, terms: Terms) -> Result<Slice, SpawnError> {
        self.0.delegate(to, terms)
    }

    /// The rest of it goes to a slice or a scheduler with the same giver until the end of its
    /// period, as by [`Scheduler::lend`].
    ///
    /// # Errors
    /// As there.
    pub fn transfer(&self, to: &Recipient, work: Work<Ns>) -> Result<(), SpawnError> {
        self.0.lend(to, work)
    }

    /// A slice that was delegated from this one ends, as by [`Scheduler::take_back`].
    ///
    /// # Errors
    /// As there.
    pub fn take_back(&self, slice: &Slice) -> Result<(), SpawnError> {
        self.0.end(&slice.0)
    }

    /// As [`Scheduler::is_dead`].
    #[doc(hidden)]
    pub fn is_dead(&self) -> bool {
        self.0.is_dead()
    }

    /// The handle by which others transfer time to it.
    pub fn recipient(&self) -> Recipient {
        Recipient(self.0)
    }
}

/// The system that the run of the caller started with, without threads, and the scheduler there
/// that has the caller in its care; `None`: outside of a run, or its scheduler came later.
pub fn home() -> Option<(Arc<System>, Tile)> {
    place()?.start_home(punctual_linux::home()?)
}

/// The core's name of a thread of the caller's CPU that lives.
fn id_of(thread: ThreadRef) -> Result<ThreadId, SpawnError> {
    thread.who.and_then(Who::id).ok_or(SpawnError::NotHere)
}

/// The core's names of threads that must be between their jobs. A thread that is being created
/// has a job.
fn ids_of(threads: &[(Grant, Option<Who>)]) -> Result<Vec<ThreadId>, SpawnError> {
    let ids = threads.iter().map(|(_, who)| who.and_then(Who::id));
    ids.collect::<Option<_>>().ok_or(SpawnError::HasJob)
}

impl At {
    fn new(place: &Place, node: NodeId) -> At {
        let (run, cpu) = place.tree();
        At { run, cpu, node }
    }

    /// Whether it ended for certain.
    fn is_dead(&self) -> bool {
        let gone = |place: Place| {
            place
                .ask(|admission, _| Ok(!admission.knows(self.node)))
                .is_ok_and(|gone| gone)
        };
        self.place().is_ok_and(gone)
    }

    /// A scheduler below this one, or a slice of it for another.
    fn promote(
        &self,
        (name, terms): (&str, Terms),
        receiver: Option<NodeId>,
    ) -> Result<At, SpawnError> {
        let (place, by) = (self.place()?, self.node);
        let scheduler = (name, terms.in_model(name), receiver);
        let node = place.ask(|admission, now| {
            let others = admission.others();
            let node = admission.promote(by, scheduler, now, || {
                let made = manage(by, Request::Promote(terms.in_core(receiver)), &[])?;
                let node = made.ok_or(SpawnError::NoRun)?;
                match others.contains(&node.index()) {
                    true => place.orders_by_priority(node),
                    false => Ok(node),
                }
            })?;
            admission.has_policy(node, PROMOTED);
            Ok(node)
        })?;
        Ok(At::new(&place, node))
    }

    fn delegate(&self, to: &Recipient, terms: Terms) -> Result<Slice, SpawnError> {
        let to = to.0.beside(self)?.node;
        self.promote(("slice", terms), Some(to)).map(Slice)
    }

    /// A scheduler below this one ends, or a slice of it.
    fn end(&self, below: &At) -> Result<(), SpawnError> {
        let (place, by) = (self.place()?, self.node);
        let node = below.beside(self)?.node;
        place.ask(|admission, now| {
            let moved = admission.leaves((by, node), now)?;
            let threads = moved.as_ref().map_or(&[][..], |moved| &moved.threads);
            let _ = manage(by, Request::Demote(node), &ids_of(threads)?)?;
            admission.accept(moved, crate::thread::now().unwrap_or(now));
            Ok(())
        })
    }

    fn lend(&self, to: &Recipient, work: Work<Ns>) -> Result<(), SpawnError> {
        let (place, by) = (self.place()?, self.node);
        let to = to.0.beside(self)?.node;
        let ticks = work.ticks_up(clock_rate().frequency);
        place.ask(|admission, now| {
            let moved = admission.lends((by, to), work, now)?;
            let _ = manage(by, Request::Lend { to, work: ticks }, &[])?;
            admission.accept(moved, crate::thread::now().unwrap_or(now));
            Ok(())
        })
    }

    /// The place of the caller, if that is on this CPU, in this run.
    fn place(&self) -> Result<Place, SpawnError> {
        let place = place().ok_or(SpawnError::NoRun)?;
        match place.tree() == (self.run, self.cpu) {
            true => Ok(place),
            false => Err(SpawnError::NotHere),
        }
    }

    /// This one, if it is in the same tree as another.
    fn beside(&self, other: &At) -> Result<At, SpawnError> {
        match (self.run, self.cpu) == (other.run, other.cpu) {
            true => Ok(*self),
            false => Err(SpawnError::NotHere),
        }
    }
}
