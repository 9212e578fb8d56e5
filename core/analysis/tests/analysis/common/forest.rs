//! A simulator of trees that tries every tick: servers, slots and locks, by their rules alone
//!
//! One CPU. It shares no code with the analysis nor with the scheduler.

mod budget;

use std::collections::BTreeMap;

use punctual_model::{
    AtBudgetEnd, Mode, Ns, PolicyKind, Protocol, SchedulerId, ServerKind, Supply, System,
};

use budget::Budget;

/// A section of a job: from so much execution to so much, and which of its task's uses it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) place: usize,
}

/// The choices that a run is fed with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feed {
    /// By task: releases, in order.
    pub(crate) releases: Vec<Vec<u64>>,
    /// By task: work of each job.
    pub(crate) work: Vec<u64>,
    /// By task: where its sections lie.
    pub(crate) parts: Vec<Vec<Part>>,
    /// By task: a stretch that lets no sibling preempt it.
    pub(crate) stretch: Vec<(u64, u64)>,
    pub(crate) end: u64,
    /// Decides ties.
    pub(crate) salt: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Entity {
    Task(usize),
    Node(usize),
}

#[derive(Clone, Debug, Default)]
struct Job {
    completed: usize,
    done: u64,
    /// Indices of its uses that are held, innermost last, and since when.
    held: Vec<(usize, u64)>,
    waits: bool,
    /// Until the budget above grows again.
    parked: bool,
}

pub(crate) struct Forest<'a> {
    system: &'a System,
    feed: &'a Feed,
    jobs: Vec<Job>,
    budgets: Vec<Budget>,
    now: u64,
}

/// The longest response of each task among the jobs that complete.
pub(crate) fn longest_responses(system: &System, feed: &Feed) -> Vec<u64> {
    let mut forest = Forest {
        system,
        feed,
        jobs: vec![Job::default(); system.tasks.len()],
        budgets: vec![Budget::default(); system.schedulers.len()],
        now: 0,
    };
    let mut worst = vec![0; system.tasks.len()];
    for (budget, scheduler) in forest.budgets.iter_mut().zip(&system.schedulers) {
        if let Supply::Server(server) = scheduler.supply {
            budget.pieces.push((0, signed(server.budget.as_ns())));
            budget.left = signed(server.budget.as_ns());
        }
    }
    while forest.now < feed.end {
        forest.replenish();
        if let Some(task) = forest.choose() {
            forest.execute(task, &mut worst);
        }
        forest.now += 1;
    }
    worst
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("small")
}

impl Forest<'_> {
    fn children(&self, node: Option<usize>) -> Vec<Entity> {
        let id = |n: usize| SchedulerId(u16::try_from(n).expect("few"));
        let tasks = self.system.tasks.iter().enumerate();
        let tasks = tasks.filter(|(_, t)| t.scheduler == node.map(id));
        let nodes = self.system.schedulers.iter().enumerate();
        let nodes = nodes.filter(|(_, s)| s.parent == node.map(id));
        tasks
            .map(|(t, _)| Entity::Task(t))
            .chain(nodes.map(|(n, _)| Entity::Node(n)))
            .collect()
    }

    fn parent(&self, entity: Entity) -> Option<usize> {
        match entity {
            Entity::Task(t) => self.system.tasks[t].scheduler.map(SchedulerId::index),
            Entity::Node(n) => self.system.schedulers[n].parent.map(SchedulerId::index),
        }
    }

    fn above(&self, task: usize) -> Vec<usize> {
        let mut nodes = Vec::new();
        let mut at = self.parent(Entity::Task(task));
        while let Some(node) = at {
            nodes.push(node);
            at = self.parent(Entity::Node(node));
        }
        nodes
    }

    fn release(&self, task: usize) -> Option<u64> {
        let next = self.feed.releases[task].get(self.jobs[task].completed);
        next.copied().filter(|&r| r <= self.now)
    }

    fn is_ready(&self, task: usize) -> bool {
        let job = &self.jobs[task];
        self.release(task).is_some() && !job.waits && !job.parked
    }

    /// Whether something below could run but for the supply of the node and of those above it.
    fn has_work(&self, node: usize) -> bool {
        (0..self.jobs.len()).any(|t| self.can_run(t, Some(node)))
    }

    /// Whether a task is ready and every server above it, up to `top`, lets it run: with its
    /// budget, or because it holds something that overruns it.
    fn can_run(&self, task: usize, top: Option<usize>) -> bool {
        let above = self.above(task);
        let until = match top {
            None => above.len(),
            Some(top) => match above.iter().position(|&n| n == top) {
                Some(place) => place,
                None => return false,
            },
        };
        let lets = |&n: &usize| match self.system.schedulers[n].supply {
            Supply::Server(_) => self.budgets[n].left > 0 || self.overruns(task) > 0,
            _ => true,
        };
        self.is_ready(task) && above[..until].iter().all(lets)
    }

    /// Under a policy that divides time: the owner of this tick.
    #[allow(clippy::option_option)] // Not divided; or divided, and nobody's.
    fn owner(&self, node: Option<usize>) -> Option<Option<Entity>> {
        let PolicyKind::Tdm { frame, .. } = self.policy(node) else {
            return None;
        };
        let at = self.now % frame.as_ns();
        let owns = |e: &Entity| {
            let slots = match *e {
                Entity::Task(t) => &self.system.tasks[t].slots,
                Entity::Node(n) => match &self.system.schedulers[n].supply {
                    Supply::Slots(slots) => slots,
                    _ => return false,
                },
            };
            slots
                .iter()
                .any(|s| (s.at.as_ns()..s.at.as_ns() + s.length.as_ns()).contains(&at))
        };
        Some(self.children(node).into_iter().find(owns))
    }

    fn policy(&self, node: Option<usize>) -> PolicyKind<Ns> {
        node.map_or(self.system.cpus[0].policy, |n| {
            self.system.schedulers[n].policy
        })
    }

    fn eligible(&self, entity: Entity) -> bool {
        match entity {
            Entity::Task(t) => self.can_run(t, None),
            Entity::Node(n) => {
                (0..self.jobs.len()).any(|t| self.above(t).contains(&n) && self.can_run(t, None))
            }
        }
    }

    /// The rest of its outermost section that goes on beyond a budget.
    fn overruns(&self, task: usize) -> u64 {
        let held = self.jobs[task].held.iter().map(|&(place, _)| {
            let section = &self.system.tasks[task].uses[place];
            let rule = self.system.resources[section.resource.index()].at_budget_end;
            let part = self.feed.parts[task].iter().find(|p| p.place == place);
            let rest = part.map_or(0, |p| p.to - self.jobs[task].done);
            if rule == AtBudgetEnd::Overrun {
                rest
            } else {
                0
            }
        });
        held.max().unwrap_or(0)
    }

    /// Inner nodes first: their budgets are work to the outer ones.
    fn replenish(&mut self) {
        let depth = |f: &Self, n: usize| {
            let mut depth = 0;
            let mut at = f.parent(Entity::Node(n));
            while let Some(up) = at {
                depth += 1;
                at = f.parent(Entity::Node(up));
            }
            depth
        };
        let mut order: Vec<usize> = (0..self.budgets.len()).collect();
        order.sort_by_key(|&n| std::cmp::Reverse(depth(self, n)));
        for node in order {
            let Supply::Server(server) = self.system.schedulers[node].supply else {
                continue;
            };
            let before = self.budgets[node].left;
            self.replenish_one(
                node,
                server.kind,
                server.budget.as_ns(),
                server.period.as_ns(),
            );
            if self.budgets[node].left > before {
                self.unpark(node);
            }
        }
    }

    fn replenish_one(&mut self, node: usize, kind: ServerKind, q: u64, t: u64) {
        // Parked tasks are pending work to the server.
        let parked =
            (0..self.jobs.len()).any(|i| self.jobs[i].parked && self.above(i).contains(&node));
        let others = self.has_work(node);
        let work = others || parked;
        let now = self.now;
        let budget = &mut self.budgets[node];
        let begins = now.is_multiple_of(t);
        let full = signed(q) + budget.left.min(0);
        match kind {
            ServerKind::Polling => {
                if begins && work {
                    budget.left = full;
                } else if !others {
                    budget.left = budget.left.min(0);
                }
            }
            ServerKind::Deferrable => {
                if begins {
                    budget.left = full;
                }
            }
            ServerKind::PeriodicResource => {
                if begins {
                    budget.left = full;
                }
                // What waited for this very budget has it now.
                let waited = begins && parked;
                if !(others || waited) && budget.left > 0 {
                    budget.left -= 1;
                }
            }
            // Its amounts are not in use while all wait for more.
            ServerKind::Sporadic => budget.ripen(now, others),
            ServerKind::ConstantBandwidth => {
                let (left, rest) = (budget.left.max(0), budget.deadline.saturating_sub(now));
                let ahead = left * signed(t) >= signed(rest) * signed(q);
                if work && !budget.awake && (budget.deadline <= now || ahead) {
                    budget.left = full;
                    budget.deadline = now + t;
                } else if work && budget.left <= 0 && budget.deadline <= now {
                    budget.left = full;
                    budget.deadline += t;
                } else if parked && !others && budget.deadline <= now {
                    budget.left = full;
                    budget.deadline = now + t;
                }
            }
        }
        if !matches!(kind, ServerKind::ConstantBandwidth | ServerKind::Sporadic) {
            budget.deadline = (now / t + 1) * t;
        }
        budget.awake = if kind == ServerKind::Sporadic {
            others
        } else {
            work
        };
        if kind == ServerKind::Sporadic {
            budget.deadline = budget.pieces[0].0 + t;
        }
    }

    /// The task that runs this tick; takes locks on the way, and may find them taken.
    fn choose(&mut self) -> Option<usize> {
        'again: loop {
            let mut node = None;
            let task = loop {
                match self.choose_in(node)? {
                    Entity::Task(task) => break task,
                    Entity::Node(n) => node = Some(n),
                }
            };
            let parts = self.feed.parts.get(task).cloned().unwrap_or_default();
            for part in parts {
                let job = &self.jobs[task];
                let has = job.held.iter().any(|&(place, _)| place == part.place);
                if part.from == job.done && !has && !self.take(task, part) {
                    continue 'again;
                }
            }
            return Some(task);
        }
    }

    fn take(&mut self, task: usize, part: Part) -> bool {
        let section = self.system.tasks[task].uses[part.place];
        let resource = &self.system.resources[section.resource.index()];
        if resource.at_budget_end == AtBudgetEnd::CheckFirst {
            let servers = self.above(task);
            let short = |&&n: &&usize| {
                let has_server = matches!(self.system.schedulers[n].supply, Supply::Server(_));
                has_server && self.budgets[n].left < signed(part.to - part.from)
            };
            if servers.iter().any(|n| short(&n)) {
                self.jobs[task].parked = true;
                return false;
            }
        }
        let taken = (0..self.jobs.len()).any(|other| {
            other != task
                && self.jobs[other].held.iter().any(|&(place, _)| {
                    let theirs = self.system.tasks[other].uses[place];
                    theirs.resource == section.resource
                        && !(theirs.mode == Mode::Shared && section.mode == Mode::Shared)
                })
        });
        if taken {
            self.jobs[task].waits = true;
            return false;
        }
        let now = self.now;
        self.jobs[task].held.push((part.place, now));
        true
    }

    /// Smaller goes first. Boosts are found from scratch.
    fn urgency(&self, entity: Entity, node: Option<usize>) -> i64 {
        let by_deadline = self.policy(node) == PolicyKind::EarliestDeadlineFirst;
        let own = match entity {
            Entity::Task(t) if by_deadline => {
                let deadline = self.system.tasks[t].class.relative_deadline();
                signed(self.release(t).unwrap_or(0) + deadline.map_or(0, |d| d.as_ns()))
            }
            Entity::Node(n) if by_deadline => signed(self.budgets[n].deadline),
            Entity::Task(t) => -i64::from(self.system.tasks[t].priority.number()),
            Entity::Node(n) => -i64::from(self.system.schedulers[n].priority.number()),
        };
        let holders: Vec<usize> = match entity {
            Entity::Task(t) => vec![t],
            Entity::Node(n) => (0..self.jobs.len())
                .filter(|&t| self.can_run(t, None) && self.above(t).contains(&n))
                .collect(),
        };
        let raised = holders.into_iter().flat_map(|holder| {
            let held = self.jobs[holder].held.iter();
            held.map(move |&(place, since)| self.raised(entity, holder, place, since, node))
        });
        raised.fold(own, i64::min)
    }

    /// How urgent a held section makes `entity` among its siblings.
    fn raised(
        &self,
        entity: Entity,
        holder: usize,
        place: usize,
        since: u64,
        node: Option<usize>,
    ) -> i64 {
        let resource = self.system.tasks[holder].uses[place].resource;
        let protocol = self.system.resources[resource.index()].protocol;
        let users = || {
            let uses = |t: &usize| {
                self.system.tasks[*t]
                    .uses
                    .iter()
                    .any(|u| u.resource == resource)
            };
            (0..self.jobs.len()).filter(uses)
        };
        let entity_of = |t: usize| {
            let mut at = Entity::Task(t);
            while self.parent(at) != node {
                at = Entity::Node(self.parent(at)?);
            }
            Some(at)
        };
        let here: Vec<Option<Entity>> = users().map(entity_of).collect();
        if here.iter().all(|e| *e == Some(entity)) && !matches!(entity, Entity::Task(_)) {
            return i64::MAX;
        }
        if here.iter().any(Option::is_none) {
            return i64::MIN;
        }
        let by_deadline = self.policy(node) == PolicyKind::EarliestDeadlineFirst;
        match protocol {
            Protocol::NonPreemptive | Protocol::Spin | Protocol::Planned => i64::MIN,
            Protocol::Inheritance => {
                let waiting = |t: &usize| {
                    self.jobs[*t].waits && *t != holder && self.wants(*t) == Some(resource)
                };
                let waiters = users().filter(waiting);
                waiters
                    .map(|t| self.urgency(Entity::Task(t), node))
                    .min()
                    .unwrap_or(i64::MAX)
            }
            Protocol::StackResource if by_deadline => {
                let deadline = |t: usize| {
                    let task = &self.system.tasks[t];
                    task.class
                        .relative_deadline()
                        .map_or(u64::MAX, |d| d.as_ns())
                };
                // Ties go to the holder.
                signed(since + users().map(deadline).min().unwrap_or(0)) - 1
            }
            Protocol::ImmediateCeiling | Protocol::StackResource => {
                let priority = |e: Option<Entity>| match e {
                    Some(Entity::Task(t)) => self.system.tasks[t].priority.number(),
                    Some(Entity::Node(n)) => self.system.schedulers[n].priority.number(),
                    None => 0,
                };
                let ceiling = here.into_iter().map(priority).max().unwrap_or(0);
                -i64::from(ceiling) * 2 - 1
            }
        }
    }

    fn wants(&self, task: usize) -> Option<punctual_model::ResourceId> {
        let job = &self.jobs[task];
        let free = |p: &&Part| !job.held.iter().any(|&(place, _)| place == p.place);
        let parts = self.feed.parts[task].iter();
        let next = parts.filter(|p| p.from == job.done).find(free)?;
        Some(self.system.tasks[task].uses[next.place].resource)
    }

    fn choose_in(&self, node: Option<usize>) -> Option<Entity> {
        if let Some(owner) = self.owner(node) {
            return owner.filter(|&e| self.eligible(e));
        }
        let ready: Vec<Entity> = self.children(node);
        let ready = ready.into_iter().filter(|&e| self.eligible(e));
        let by_priority = matches!(self.policy(node), PolicyKind::FixedPriority { .. });
        let key = |e: &Entity| {
            let in_stretch = match *e {
                Entity::Task(t) => {
                    let (from, to) = self.feed.stretch.get(t).copied().unwrap_or((0, 0));
                    from < self.jobs[t].done && self.jobs[t].done < to
                }
                Entity::Node(_) => false,
            };
            let urgency = match self.policy(node) {
                PolicyKind::RoundRobin { .. } => 0,
                // Ceilings are odd: they beat those of the same priority.
                _ if by_priority => self.doubled(*e, node),
                _ => self.urgency(*e, node),
            };
            let mut tie = BTreeMap::from([(*e, self.feed.salt)]);
            let tie = tie.pop_first().map_or(0, |(e, salt)| match e {
                Entity::Task(t) => (t as u64 * 7 + salt) % 11,
                Entity::Node(n) => (n as u64 * 5 + salt + 3) % 11,
            });
            let arrival = match *e {
                Entity::Task(t) if by_priority => self.release(t).unwrap_or(0),
                _ => 0,
            };
            // Among tasks of one priority and arrival, the order in the file.
            let tie = match *e {
                Entity::Task(t) if by_priority => t as u64,
                _ => tie + 20,
            };
            (!in_stretch, urgency, arrival, tie)
        };
        ready.min_by_key(key)
    }

    /// The urgency by priority, doubled, so that ceilings can stand between.
    fn doubled(&self, entity: Entity, node: Option<usize>) -> i64 {
        let own = match entity {
            Entity::Task(t) => self.system.tasks[t].priority.number(),
            Entity::Node(n) => self.system.schedulers[n].priority.number(),
        };
        let own = -i64::from(own) * 2;
        let holders: Vec<usize> = match entity {
            Entity::Task(t) => vec![t],
            Entity::Node(n) => (0..self.jobs.len())
                .filter(|&t| self.can_run(t, None) && self.above(t).contains(&n))
                .collect(),
        };
        let mut best = own;
        for holder in holders {
            for &(place, since) in &self.jobs[holder].held {
                let resource = self.system.tasks[holder].uses[place].resource;
                let protocol = self.system.resources[resource.index()].protocol;
                let raised =
                    if protocol == Protocol::Inheritance && !matches!(entity, Entity::Task(_)) {
                        // It works among siblings only.
                        i64::MAX
                    } else if protocol == Protocol::Inheritance {
                        let waiting =
                            |t: &usize| self.jobs[*t].waits && self.wants(*t) == Some(resource);
                        let waiters = (0..self.jobs.len()).filter(waiting);
                        let raised = waiters.map(|t| self.doubled(Entity::Task(t), node)).min();
                        raised.unwrap_or(i64::MAX)
                    } else {
                        self.raised(entity, holder, place, since, node)
                    };
                best = best.min(raised);
            }
        }
        best
    }

    fn unpark(&mut self, node: usize) {
        for task in 0..self.jobs.len() {
            if self.above(task).contains(&node) {
                self.jobs[task].parked = false;
            }
        }
    }

    fn execute(&mut self, task: usize, worst: &mut [u64]) {
        for node in self.above(task) {
            if let Supply::Server(server) = self.system.schedulers[node].supply {
                let budget = &mut self.budgets[node];
                if server.kind == ServerKind::Sporadic {
                    budget.take(server.period.as_ns());
                }
                budget.left -= 1;
                let over = server.kind == ServerKind::ConstantBandwidth
                    && budget.left == 0
                    && budget.deadline <= self.now + 1;
                if over {
                    budget.left = signed(server.budget.as_ns());
                    budget.deadline = self.now + 1 + server.period.as_ns();
                    self.unpark(node);
                }
            }
        }
        let job = &mut self.jobs[task];
        job.done += 1;
        let done = job.done;
        let parts = self.feed.parts.get(task).cloned().unwrap_or_default();
        let ends = |place: usize| parts.iter().any(|p| p.place == place && p.to == done);
        let before = job.held.len();
        job.held.retain(|&(place, _)| !ends(place));
        let freed = job.held.len() < before;
        if done >= self.feed.work[task] {
            let release = self.feed.releases[task][job.completed];
            worst[task] = worst[task].max(self.now + 1 - release);
            job.completed += 1;
            job.done = 0;
            job.held.clear();
        }
        if freed {
            for other in &mut self.jobs {
                other.waits = false;
            }
        }
    }
}
