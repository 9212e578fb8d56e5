//! Changes of a running tree: schedulers come and go, threads change their home.
//!
//! # Why each is safe at the instant at which it is asked
//! * *A scheduler joins.* A server that nobody has woken is in the state in which it was made, and
//!   its periods count from the start of the run. So it is as if it had been there from the start,
//!   without work. The tests hold for first arrivals at any instant.
//! * *A thread changes its home* between two jobs: it leaves the old one and joins the new one. Its
//!   demand at the old home counts there until its zero-lag instant has passed.
//! * *A scheduler leaves*: its threads change their home. Its budget counts until its period, and
//!   the lag of each of its threads, has passed.

use punctual_analysis::Verdict;
use punctual_kern::NodeId;
use punctual_linux::Who;
use punctual_model::{
    CpuId, Instant, Ns, PolicyKind, Scheduler, SchedulerId, Span, Supply, System, Task,
};

use super::{Admission, Grant, NotAdmitted, State, at_once, judge, simple, small, task_name};

/// The policy of schedulers that are promoted.
pub(crate) const PROMOTED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// A scheduler of the system, as the core knows it.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    node: NodeId,
    /// As its parent named it.
    name: String,
    /// The scheduler that holds it; `None`: it is no slice of its parent's supply.
    receiver: Option<NodeId>,
    /// Its zero-lag instant; `None`: it lives.
    pub(super) until: Option<Instant<Ns>>,
}

impl Branch {
    /// Whether it is a scheduler, or a slice, of this name that lives.
    fn is(&self, name: &str, is_slice: bool) -> bool {
        self.until.is_none() && self.receiver.is_some() == is_slice && self.name == name
    }
}

/// A change that was judged, until the core has done it.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    changed: State,
    verdict: Verdict,
    /// The instant at which it was asked: the core does it later.
    asked: Instant<Ns>,
    /// The threads with a guarantee that must be between their jobs: those that move, or all of
    /// the part that has to be idle. One that is being created is not known yet.
    pub(crate) threads: Vec<(Grant, Option<Who>)>,
}

impl Moved {
    /// The former terms of the thread of a grant count for longer.
    pub(super) fn hold(&mut self, grant: Grant, hold: Span<Ns>) {
        let mut former = self.changed.former.iter_mut();
        let last = former.rfind(|former| former.grant == grant);
        if let Some(former) = last {
            former.until = former.until.saturating_add(hold);
        }
    }

    /// A change that moves nobody.
    pub(super) fn staying(changed: State, verdict: Verdict, asked: Instant<Ns>) -> Moved {
        Moved::resting(changed, verdict, asked, Vec::new())
    }

    /// A change while these threads are between their jobs.
    pub(super) fn resting(
        changed: State,
        verdict: Verdict,
        asked: Instant<Ns>,
        threads: Vec<(Grant, Option<Who>)>,
    ) -> Moved {
        Moved {
            changed,
            verdict,
            asked,
            threads,
        }
    }
}

impl Admission {
    /// The tree that a CPU starts with: each scheduler behind its place in the core and that of its
    /// parent, parents first.
    pub(crate) fn plant(
        &mut self,
        tree: impl Iterator<Item = (NodeId, NodeId, Scheduler)>,
    ) -> Result<(), NotAdmitted> {
        let tree: Vec<_> = tree.collect();
        let named = |name: &str| tree.iter().find(|(.., s)| s.name == name).map(|t| t.0);
        let receivers: Vec<Option<NodeId>> = tree
            .iter()
            .map(|(.., scheduler)| {
                let holder = scheduler.receiver.as_ref()?.scheduler.as_deref();
                Some(holder.and_then(named).unwrap_or(NodeId::ROOT))
            })
            .collect();
        // A receiver may come behind its slice.
        for (node, parent, scheduler) in tree {
            let fallback = scheduler.fallback.map(|fallback| fallback.policy);
            self.has_policy(node, fallback.unwrap_or(scheduler.policy));
            let name = scheduler.name.clone();
            self.state.grow(parent, (node, name, None), scheduler)?;
        }
        for (branch, receiver) in self.state.branches.iter_mut().zip(receivers) {
            branch.receiver = receiver;
        }
        if !self.state.branches.is_empty() {
            let nothing = System {
                machine: self.state.system.machine.clone(),
                ..System::default()
            };
            let _ = at_once(judge(&[nothing], self.state.judged())?)?;
        }
        Ok(())
    }

    /// The core has this policy at the place of `node`, also for those that come there later.
    pub(crate) fn has_policy(&mut self, node: NodeId, policy: PolicyKind<Ns>) {
        self.others.retain(|place| *place != node.index());
        if policy != PROMOTED {
            self.others.push(node.index());
        }
    }

    /// The places at which the policy in the core is not that of promoted schedulers.
    pub(crate) fn others(&self) -> Vec<usize> {
        self.others.clone()
    }

    /// Whether there is such a scheduler.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.state.place_of(node).is_ok()
    }

    /// The scheduler of this name in the subtree of `above`, or the slice.
    pub(crate) fn named(
        &self,
        above: NodeId,
        (name, is_slice): (&str, bool),
    ) -> Result<NodeId, NotAdmitted> {
        let below = self.state.below(self.state.place_of(above)?);
        let mut branches = self.state.branches.iter().zip(below);
        let found = branches
            .find(|(branch, below)| *below && branch.is(name, is_slice) && branch.node != above);
        found.map_or(Err(NotAdmitted::NoScheduler(above)), |(branch, _)| {
            Ok(branch.node)
        })
    }

    /// A scheduler joins below `parent`, or a slice of its supply is delegated, if `promote` makes
    /// it in the core.
    pub(crate) fn promote<E: From<NotAdmitted>>(
        &mut self,
        parent: NodeId,
        (name, terms, receiver): (&str, Scheduler, Option<NodeId>),
        now: Instant<Ns>,
        promote: impl FnOnce() -> Result<NodeId, E>,
    ) -> Result<NodeId, E> {
        self.forget_until(now);
        let mut changed = self.state.clone();
        let name_there = match self.state.is_name_taken(name) {
            true => task_name(name, self.number()),
            false => simple(name),
        };
        let scheduler = Scheduler {
            name: name_there,
            ..terms
        };
        // The core names it once it is there.
        let named = (NodeId::ROOT, name.to_owned(), receiver);
        changed.grow(parent, named, scheduler)?;
        let verdict = self.state.judge(&changed, now)?;
        let node = promote()?;
        if let Some(branch) = changed.branches.last_mut() {
            branch.node = node;
        }
        self.take(changed, &verdict);
        Ok(node)
    }

    /// Judges that `by` has a thread with a guarantee go to `home`: down to a child, to a slice in
    /// its hands, or back to itself. `None`: it has no such power, and the core will say so.
    pub(crate) fn moves(
        &mut self,
        grant: Grant,
        (by, home): (NodeId, NodeId),
        now: Instant<Ns>,
    ) -> Result<Option<Moved>, NotAdmitted> {
        self.forget_until(now);
        let place = self.state.granted(grant)?;
        let (by, to) = (self.state.place_of(by)?, self.state.place_of(home)?);
        let from = self.state.system.tasks[place].scheduler;
        let care = self.state.care(from);
        let is_its_own = |to: SchedulerId| match self.state.is_slice(to) {
            true => self.state.care(Some(to)) == by,
            false => self.state.parent(to) == by,
        };
        let is_lawful = match by == to {
            true => from != by && self.state.is_below(care, by),
            false => care == by && to.is_some_and(is_its_own),
        };
        if !is_lawful {
            return Ok(None);
        }
        self.moved(&[(place, to)], now, |_| {}).map(Some)
    }

    /// Judges that a scheduler and those below it leave by the will of `by`, with the slices that
    /// they hold: threads go to its parent, from slices to the schedulers that hold them. `None`:
    /// as for [`Admission::moves`].
    pub(crate) fn leaves(
        &mut self,
        (by, node): (NodeId, NodeId),
        now: Instant<Ns>,
    ) -> Result<Option<Moved>, NotAdmitted> {
        self.forget_until(now);
        let (by, top) = (self.state.place_of(by)?, self.state.place_of(node)?);
        let Some(id) = top.filter(|_| top != by && self.state.is_below(top, by)) else {
            return Ok(None);
        };
        let heir = self.state.parent(id);
        let top_down = self.state.below(top);
        let below = self.state.ends_with(&top_down);
        let inside = |node| matches!(self.state.place_of(node), Ok(Some(id)) if below[id.index()]);
        if self.state.loans.iter().any(|loan| inside(loan.to)) {
            let what = "it has borrowed budget, and what was borrowed still counts: ask again";
            return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
        }
        let lives = |place: &usize| {
            let home = self.state.system.tasks[*place].scheduler;
            home.is_some_and(|home| below[home.index()])
        };
        let to = |place: usize| {
            let home = self.state.system.tasks[place].scheduler;
            let care = self.state.care(home);
            let survives = care.is_none_or(|care| !top_down[care.index()]);
            match care != home && survives {
                true => care,
                false => heir,
            }
        };
        let places = (0..self.state.owners.len()).filter(lives);
        let places: Vec<(usize, Option<SchedulerId>)> = places.map(|at| (at, to(at))).collect();
        self.moved(&places, now, |changed| {
            let lags = places.iter().map(|(place, _)| changed.owners[*place].lag);
            let longest = lags.max().unwrap_or_default();
            for (place, _) in (0..).zip(&below).filter(|(_, below)| **below) {
                let period = match &changed.system.schedulers[place].supply {
                    Supply::Server(server) => server.period,
                    Supply::Shared | Supply::Slots(_) => Span::ZERO,
                };
                let until = now.saturating_add(longest.max(period));
                changed.branches[place].until = Some(until);
            }
        })
        .map(Some)
    }

    /// Threads at these places go each to a home, and `also` happens with it.
    fn moved(
        &mut self,
        places: &[(usize, Option<SchedulerId>)],
        now: Instant<Ns>,
        also: impl FnOnce(&mut State),
    ) -> Result<Moved, NotAdmitted> {
        if places
            .iter()
            .any(|(place, _)| self.state.is_changing(*place))
        {
            let what = "the last change of its constraint is not certainly in force: ask again";
            return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
        }
        let mut changed = self.state.clone();
        let mut threads = Vec::new();
        for &(place, to) in places {
            changed.was(place, now);
            changed.system.tasks[place].scheduler = to;
            let owner = &mut changed.owners[place];
            owner.blocked.clear();
            threads.push((owner.grant, owner.thread));
        }
        also(&mut changed);
        let verdict = self.state.judge(&changed, now)?;
        Ok(Moved::resting(changed, verdict, now, threads))
    }

    /// Whether a scheduler may have this thread wait for that long: as long and as often as it has
    /// declared. Each wait counts until no job that it was in can be there any more. Returns what
    /// [`Admission::spare`] takes back.
    pub(crate) fn suspends(
        &mut self,
        grant: Grant,
        most: Option<Span<Ns>>,
        now: Instant<Ns>,
    ) -> Result<Instant<Ns>, NotAdmitted> {
        self.forget_until(now);
        let place = self.state.granted(grant)?;
        let task = &self.state.system.tasks[place];
        let owner = &mut self.state.owners[place];
        owner
            .blocked
            .retain(|(counts_until, _)| *counts_until > now);
        let so_far = owner.blocked.iter().map(|(_, span)| *span);
        let all = so_far.fold(most.unwrap_or(Span::MAX), Span::saturating_add);
        let times = u32::try_from(owner.blocked.len() + 1).unwrap_or(u32::MAX);
        if all > task.max_suspension || times > task.suspensions {
            return Err(NotAdmitted::Undeclared(format!(
                "`{}` has a guarantee, and its jobs wait for {} in {} waits at most",
                owner.name,
                task.max_suspension.readable(),
                task.suspensions
            )));
        }
        let until = now.saturating_add(all).saturating_add(owner.lag);
        owner.blocked.push((until, most.unwrap_or_default()));
        Ok(until)
    }

    /// The wait that counts until then did not come about.
    pub(crate) fn spare(&mut self, grant: Grant, until: Instant<Ns>) {
        if let Some(place) = self.state.place(grant) {
            let blocked = &mut self.state.owners[place].blocked;
            blocked.retain(|(counts_until, _)| *counts_until != until);
        }
    }

    /// The core had done it by this instant: all that the change has end counts from there.
    pub(crate) fn accept(&mut self, moved: Option<Moved>, done: Instant<Ns>) {
        debug_assert!(moved.is_some(), "the core and admission know the same tree");
        if let Some(mut moved) = moved {
            let later = done.since(moved.asked);
            moved.changed.postpone(later, &self.state);
            self.take(moved.changed, &moved.verdict);
        }
    }
}

impl State {
    /// The place of a scheduler that lives; `None`: the CPU's own.
    pub(super) fn place_of(&self, node: NodeId) -> Result<Option<SchedulerId>, NotAdmitted> {
        if node == NodeId::ROOT {
            return Ok(None);
        }
        let is_it = |branch: &Branch| branch.node == node && branch.until.is_none();
        let place = self.branches.iter().position(is_it);
        let place = place.ok_or(NotAdmitted::NoScheduler(node))?;
        Ok(Some(SchedulerId(small(place))))
    }

    /// Every instant that was set since `before` comes later. A change appends, and moves nothing.
    fn postpone(&mut self, later: Span<Ns>, before: &State) {
        let put_off = |now: &mut Option<Instant<Ns>>, old: Option<Instant<Ns>>| {
            if *now != old {
                *now = now.map(|until| until.saturating_add(later));
            }
        };
        for former in self.former.iter_mut().skip(before.former.len()) {
            former.until = former.until.saturating_add(later);
        }
        for (place, branch) in self.branches.iter_mut().enumerate() {
            let old = before.branches.get(place).and_then(|old| old.until);
            put_off(&mut branch.until, old);
        }
        for loan in self.loans.iter_mut().skip(before.loans.len()) {
            loan.ends = loan.ends.saturating_add(later);
        }
        for replaced in self.replaced.iter_mut().skip(before.replaced.len()) {
            replaced.at = replaced.at.saturating_add(later);
        }
    }

    fn grow(
        &mut self,
        parent: NodeId,
        (node, name, receiver): (NodeId, String, Option<NodeId>),
        scheduler: Scheduler,
    ) -> Result<(), NotAdmitted> {
        let parent = self.place_of(parent)?;
        if let Some(receiver) = receiver {
            let _ = self.place_of(receiver)?;
        }
        self.system.schedulers.push(Scheduler {
            cpu: CpuId(0),
            parent,
            // The core holds it to its quota; here stand others than its threads, too.
            quota: None,
            receiver: None,
            ..scheduler
        });
        self.branches.push(Branch {
            node,
            name,
            receiver,
            until: None,
        });
        Ok(())
    }

    fn is_slice(&self, id: SchedulerId) -> bool {
        self.branches[id.index()].receiver.is_some()
    }

    /// The scheduler that has the threads at a home in its care: of a slice, the one that holds it.
    fn care(&self, home: Option<SchedulerId>) -> Option<SchedulerId> {
        let receiver = home.and_then(|home| self.branches[home.index()].receiver);
        match receiver {
            Some(receiver) => self.place_of(receiver).unwrap_or(home),
            None => home,
        }
    }

    /// For each scheduler, whether it ends when those in `below` do: it is one of them, a slice
    /// that one of them holds, or below such a slice.
    fn ends_with(&self, below: &[bool]) -> Vec<bool> {
        let held = |id: &SchedulerId| {
            let care = self.care(Some(*id));
            self.is_slice(*id) && care.is_some_and(|care| below[care.index()])
        };
        let places = (0..below.len()).map(|place| SchedulerId(small(place)));
        let ends = places.map(|id| {
            let mut up = core::iter::successors(Some(id), |id| self.parent(*id));
            up.any(|id| below[id.index()] || held(&id))
        });
        ends.collect()
    }

    /// The threads with a guarantee at this scheduler and below it; `None`: nobody's.
    pub(super) fn resting_below(
        &self,
        top: Option<Option<SchedulerId>>,
    ) -> Vec<(Grant, Option<Who>)> {
        let is_inside = |task: &Task| top.is_some_and(|top| self.is_below(task.scheduler, top));
        let owners = self.owners.iter().zip(&self.system.tasks);
        let inside = owners.filter(|(_, task)| is_inside(task));
        inside
            .map(|(owner, _)| (owner.grant, owner.thread))
            .collect()
    }

    fn is_name_taken(&self, name: &str) -> bool {
        let name = simple(name);
        let mut schedulers = self.system.schedulers.iter();
        name.is_empty() || schedulers.any(|scheduler| scheduler.name == name)
    }

    /// Whether the last change of a thread's constraint is not certainly in force.
    fn is_changing(&self, place: usize) -> bool {
        let (grant, task) = (self.owners[place].grant, &self.system.tasks[place]);
        let mut before = self.former.iter().filter(|former| former.grant == grant);
        before.any(|former| {
            let at_home = Task {
                scheduler: task.scheduler,
                ..former.task.clone()
            };
            at_home != *task
        })
    }

    pub(super) fn parent(&self, id: SchedulerId) -> Option<SchedulerId> {
        self.system.schedulers[id.index()].parent
    }

    /// Whether a scheduler is `top` or below it.
    fn is_below(&self, id: Option<SchedulerId>, top: Option<SchedulerId>) -> bool {
        top.is_none() || core::iter::successors(id, |id| self.parent(*id)).any(|id| Some(id) == top)
    }

    /// For each scheduler, whether it is `top` or below it.
    pub(super) fn below(&self, top: Option<SchedulerId>) -> Vec<bool> {
        let places = 0..self.system.schedulers.len();
        let ids = places.map(|place| Some(SchedulerId(small(place))));
        ids.map(|id| self.is_below(id, top)).collect()
    }

    /// Takes what is over out of the system: nobody has it as a home or parent any more.
    pub(super) fn forget_branches(&mut self, now: Instant<Ns>) {
        while let Some(place) = self.unused_branch(now) {
            let _ = self.branches.remove(place);
            let _ = self.system.schedulers.remove(place);
            let closer = |id: &mut SchedulerId| {
                if id.index() > place {
                    id.0 -= 1;
                }
            };
            let parents = self.system.schedulers.iter_mut().map(|s| &mut s.parent);
            let former = self.former.iter_mut().map(|former| &mut former.task);
            let tasks = self.system.tasks.iter_mut().chain(former);
            let homes = tasks.map(|task| &mut task.scheduler);
            parents.chain(homes).flatten().for_each(closer);
        }
    }

    /// A scheduler that is over, and nobody's home or parent.
    fn unused_branch(&self, now: Instant<Ns>) -> Option<usize> {
        let names = |place: usize| {
            let parents = self.system.schedulers.iter().map(|s| s.parent);
            let former = self.former.iter().map(|former| &former.task);
            let homes = self.system.tasks.iter().chain(former).map(|t| t.scheduler);
            parents.chain(homes).flatten().any(|id| id.index() == place)
        };
        let over = |place: &usize| self.is_branch_over(*place, now);
        let mut places = (0..self.branches.len()).filter(over);
        places.find(|place| !names(*place))
    }
}
