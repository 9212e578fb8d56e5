//! Releases brought into line: who is released when, so that the worst can happen.

use punctual_model::{Class, Ns, PolicyKind, Requirement, Span, System, Task, TaskId};

/// Most jobs that a usual situation covers.
const MOST_JOBS: u64 = 1_500;

/// Someone less urgent who is in a section when the others are released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocker {
    /// Whose section.
    pub(crate) task: usize,
    /// How long it executes before the section begins.
    pub(crate) lead: u64,
    /// How long the section is.
    pub(crate) length: u64,
    /// How much before the others are released it begins: a tick for a section that opens its job,
    /// for at the same instant the others are dispatched; nothing for a lock, which is taken first.
    pub(crate) ahead: u64,
}

/// How far a release may lie behind its arrival when the platform feeds it.
fn fed_jitter(task: &Task) -> u64 {
    match task.class {
        Class::Periodic { .. } => task.jitter.as_ns(),
        _ => 0,
    }
}

/// Tasks whose first arrivals may move together, but not apart: how long a task waits for its
/// predecessor, or an effect along a chain, depends on the distance of their arrivals, which the
/// description states. So does whether one timer entry serves two releases.
pub(crate) fn groups(system: &System) -> Vec<usize> {
    let mut group: Vec<usize> = (0..system.tasks.len()).collect();
    let mut unite = |a: usize, b: &TaskId| {
        let (from, to) = (group[a], group[b.index()]);
        for member in &mut group {
            if *member == from {
                *member = to;
            }
        }
    };
    for (index, task) in system.tasks.iter().enumerate() {
        for other in task.after.iter().chain(&task.follows) {
            unite(index, other);
        }
    }
    for requirement in &system.requirements {
        if let Requirement::Chain { tasks, .. } = requirement {
            for pair in tasks.windows(2) {
                unite(pair[0].index(), &pair[1]);
            }
        }
    }
    if costs_are_simulated(system) {
        for (index, leader) in system.leaders().iter().enumerate() {
            leader.iter().for_each(|leader| unite(index, leader));
        }
    }
    group
}

/// Whether the timers and cold caches of this system happen in virtual time. That they cost
/// what the machine says is known where jobs are released, preempt and complete, and nothing else.
pub(crate) fn costs_are_simulated(system: &System) -> bool {
    let machine = &system.machine;
    let costs = [machine.timer, machine.budget_timer, machine.cache_delay];
    let plain = |task: &Task| {
        let arrives = matches!(task.class, Class::Periodic { .. } | Class::Sporadic { .. });
        let sections = !task.non_preemptive.is_zero() || !task.uses.is_empty();
        arrives && !sections && task.max_suspension.is_zero()
    };
    let in_turn = |policy| {
        matches!(
            policy,
            PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. }
        )
    };
    costs.iter().any(|cost| !cost.is_zero())
        && system.schedulers.is_empty()
        && system.tasks.iter().all(plain)
        && !system.cpus.iter().any(|cpu| in_turn(cpu.policy))
}

/// Moves first arrivals so that each group begins a gap after the one before, that of `own` first.
pub(crate) fn set_apart(system: &mut System, own: usize, (at, gap): (u64, u64)) {
    let groups = groups(system);
    let mut begin = at;
    let mut moved = Vec::new();
    for first in [own].into_iter().chain(0..groups.len()) {
        if moved.contains(&groups[first]) {
            continue;
        }
        moved.push(groups[first]);
        let anchor = &system.tasks[first];
        let (before, jitter) = (anchor.phase.as_ns(), fed_jitter(anchor));
        for member in (0..groups.len()).filter(|m| groups[*m] == groups[first]) {
            let phase = &mut system.tasks[member].phase;
            let moved = phase.as_ns() + begin.saturating_sub(jitter);
            *phase = Span::from_ns(moved.saturating_sub(before));
        }
        begin += gap;
    }
}

/// An instant before which every jittered release can arrive and every blocker can begin.
pub(crate) fn common_instant(system: &System, blocker: Option<Blocker>) -> u64 {
    let latest = |all: &mut dyn Iterator<Item = u64>| all.max().unwrap_or(0);
    let jitter = latest(&mut system.tasks.iter().map(fed_jitter));
    let phase = latest(&mut system.tasks.iter().map(|t| t.phase.as_ns()));
    jitter + phase + blocker.map_or(0, |b| b.lead + b.ahead)
}

/// Who is to be released when; of each group one task, which takes the others along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alignment {
    /// The common instant, at least [`common_instant`].
    pub(crate) at: u64,
    /// Whose section has begun.
    pub(crate) blocker: Option<Blocker>,
    /// The task that it is all about, and how much later than the others it is released.
    pub(crate) own: Option<(usize, u64)>,
}

impl Alignment {
    /// Moves first arrivals so that releases fall together, each as late as its jitter allows.
    pub(crate) fn apply(self, system: &mut System) {
        let groups = groups(system);
        self.apply_to_groups(system, &groups);
    }

    /// The same, whatever distances precedence relies on: for situations that a verdict names.
    pub(crate) fn apply_to_each(self, system: &mut System) {
        let each: Vec<usize> = (0..system.tasks.len()).collect();
        self.apply_to_groups(system, &each);
    }

    fn apply_to_groups(self, system: &mut System, groups: &[usize]) {
        let count = system.tasks.len();
        let own = self.own.map(|own| own.0);
        let chosen = [own, self.blocker.map(|b| b.task)].into_iter().flatten();
        // Of a group across CPUs, those count that contend with the task in question.
        let cpu = own.map(|own| system.tasks[own].cpu);
        let (near, far): (Vec<_>, Vec<_>) =
            (0..count).partition(|&t| Some(system.tasks[t].cpu) == cpu);
        let mut moved = vec![false; count];
        for anchor in chosen.chain(near).chain(far) {
            if moved[anchor] {
                continue;
            }
            let arrival = self
                .release(anchor)
                .saturating_sub(fed_jitter(&system.tasks[anchor]));
            let before = system.tasks[anchor].phase.as_ns();
            for member in (0..count).filter(|m| groups[*m] == groups[anchor]) {
                let phase = &mut system.tasks[member].phase;
                *phase = Span::from_ns((phase.as_ns() + arrival).saturating_sub(before));
                moved[member] = true;
            }
        }
    }

    fn release(self, task: usize) -> u64 {
        match (self.blocker, self.own) {
            (Some(b), _) if b.task == task => self.at.saturating_sub(b.ahead + b.lead),
            (_, Some((own, offset))) if own == task => self.at + offset,
            _ => self.at,
        }
    }
}

/// Whether `other` cannot preempt or delay `own` but by a section, under the policy of their node.
fn is_less_urgent(policy: PolicyKind<Ns>, other: &Task, own: &Task) -> bool {
    let deadline = |t: &Task| t.class.relative_deadline().unwrap_or(Span::MAX);
    match policy {
        PolicyKind::FixedPriority { .. } => {
            !other.class.is_real_time() || own.priority.is_higher_than(other.priority)
        }
        PolicyKind::EarliestDeadlineFirst => deadline(other) > deadline(own),
        _ => !other.class.is_real_time(),
    }
}

/// The sections of its less urgent siblings that are worth trying against a task: the longest few.
pub(crate) fn blockers(system: &System, own: usize) -> Vec<Blocker> {
    let target = &system.tasks[own];
    let policy = match target.scheduler {
        Some(id) => system.schedulers[id.index()].policy,
        None => system.cpus[target.cpu.index()].policy,
    };
    let siblings = |task: &Task| (task.cpu, task.scheduler) == (target.cpu, target.scheduler);
    let mut found = Vec::new();
    for (index, task) in system.tasks.iter().enumerate() {
        if index == own || !siblings(task) || !is_less_urgent(policy, task, target) {
            continue;
        }
        let whole = matches!(policy, PolicyKind::FixedPriority { preemptive: false });
        let wcet = task.class.budget().map_or(0, |w| w.as_ns());
        let protected = task.non_preemptive.as_ns();
        let section = if whole {
            wcet.max(protected)
        } else {
            protected
        };
        if section > 1 {
            found.push(Blocker {
                task: index,
                lead: 0,
                length: section,
                ahead: 1,
            });
        }
        found.extend(locked(task, index));
    }
    found.sort_by_key(|b| std::cmp::Reverse(b.length));
    found.truncate(6);
    found
}

/// The outer critical sections of a task, with the work before each: ordinary work is spread
/// equally before, between and after them.
fn locked(task: &Task, index: usize) -> Vec<Blocker> {
    let outer: Vec<u64> = task
        .uses
        .iter()
        .filter(|u| u.inside.is_none())
        .map(|u| u.length.as_ns())
        .collect();
    let wcet = task.class.budget().map_or(0, |w| w.as_ns());
    let ordinary = wcet.saturating_sub(outer.iter().sum());
    let part = ordinary / (outer.len() as u64 + 1);
    let mut before = 0;
    let mut found = Vec::new();
    for length in outer {
        before += part;
        for ahead in [1, 0] {
            found.push(Blocker {
                task: index,
                lead: before,
                length,
                ahead,
            });
        }
        before += length;
    }
    found
}

/// Least common multiple; `None` beyond 64 bits.
fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a.checked_div(x)?.checked_mul(b)
}

/// Everything in the system that comes again and again.
fn cycles(system: &System) -> Vec<u64> {
    let mut cycles: Vec<u64> = system
        .tasks
        .iter()
        .filter_map(|t| t.class.min_separation())
        .map(Span::as_ns)
        .collect();
    for scheduler in &system.schedulers {
        if let punctual_model::Supply::Server(server) = &scheduler.supply {
            cycles.push(server.period.as_ns());
        }
    }
    let policies = system.cpus.iter().map(|c| c.policy);
    for policy in policies.chain(system.schedulers.iter().map(|s| s.policy)) {
        if let PolicyKind::Tdm { frame, .. } = policy {
            cycles.push(frame.as_ns());
        }
    }
    cycles.retain(|cycle| *cycle > 0);
    cycles
}

/// How long to look, from `start` on: two hyperperiods, or as many jobs as are affordable, but
/// never less than two of the longest cycle.
pub(crate) fn duration(system: &System, start: u64) -> Span<Ns> {
    let cycles = cycles(system);
    let longest = cycles.iter().copied().max().unwrap_or(100);
    let hyperperiod = cycles.iter().try_fold(1, |all, &cycle| lcm(all, cycle));
    let shortest = cycles.iter().copied().min().unwrap_or(1);
    let affordable = shortest.saturating_mul(MOST_JOBS / (system.tasks.len() as u64).max(1));
    let covered = hyperperiod.map_or(u64::MAX, |h| h.saturating_mul(2));
    let length = covered.min(affordable).max(longest.saturating_mul(2));
    let once = system.tasks.iter().filter_map(|t| match t.class {
        Class::Once {
            relative_deadline, ..
        } => Some(relative_deadline.as_ns()),
        _ => None,
    });
    let length = length.max(once.max().unwrap_or(0));
    let phase = system
        .tasks
        .iter()
        .map(|t| t.phase.as_ns())
        .max()
        .unwrap_or(0);
    Span::from_ns(start.max(phase).saturating_add(length))
}
