//! Schedulers: the supply that a parent can give, and the children that it can have.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;

use super::tree::{Node, Tree};
use super::{Errors, delegate};
use crate::id::{ResourceId, SchedulerId};
use crate::readable::readable;
use crate::scheduler::{PolicyKind, Scheduler, Server, Supply, Trust};
use crate::system::Fault;
use crate::time::Ns;

/// Checks every scheduler; its slots are checked elsewhere. O(n log n) in schedulers and tasks.
pub(super) fn check_all(tree: &Tree<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    let sharing = sharing(tree);
    let schedulers = &tree.system.schedulers;
    for (id, scheduler) in (0..=u16::MAX).map(SchedulerId).zip(schedulers) {
        errors.check_name("scheduler", &scheduler.name, Fault::Scheduler(id, "name"));
        let what = format!("scheduler `{}`", scheduler.name);
        errors.check_policy(&scheduler.policy, &what, |key| Fault::Scheduler(id, key));
        let mut checker = Checker {
            id,
            scheduler,
            tree,
            errors,
        };
        if !names.insert(scheduler.name.as_str()) {
            let (problem, help) = match scheduler.receiver {
                None => (
                    "its name is taken by another scheduler",
                    "rename one of them",
                ),
                Some(_) => (
                    "its giver delegates to this receiver twice, or to a task and a scheduler of \
                     one name",
                    "make one slice of both, or rename the task or the scheduler",
                ),
            };
            checker.add("name", problem.into(), help);
        }
        if let Supply::Server(server) = scheduler.supply {
            checker.check_server(server);
        }
        checker.check_code();
        checker.check_fallback(sharing.get(&id).copied());
        if let Some(parent) = tree.parent_of(id) {
            checker.check_parent(parent);
        }
    }
    delegate::check_all(tree.system, errors);
    check_quotas(tree, errors);
}

/// One scheduler under examination.
struct Checker<'a, 'b> {
    id: SchedulerId,
    scheduler: &'a Scheduler,
    tree: &'a Tree<'b>,
    errors: &'a mut Errors,
}

impl Checker<'_, '_> {
    fn add(&mut self, key: &'static str, problem: String, help: &str) {
        let what = match self.scheduler.receiver {
            Some(_) => "slice",
            None => "scheduler",
        };
        let message = format!("{what} `{}`: {problem}", self.scheduler.name);
        self.errors
            .add(Fault::Scheduler(self.id, key), message, help);
    }

    fn check_server(&mut self, server: Server<Ns>) {
        let (budget, period) = (server.budget, server.period);
        if period.is_zero() {
            self.add(
                "server",
                "a server with a period of 0s".into(),
                "replenishments need a distance above zero",
            );
        } else if budget.is_zero() {
            self.add(
                "server",
                "a server with a budget of 0s".into(),
                "nothing could ever run on it: raise the budget",
            );
        } else if budget.as_span() > period {
            let (budget, period) = (readable(budget.as_ns()), readable(period.as_ns()));
            let (who, help) = match self.scheduler.receiver {
                Some(_) => ("it", "a slice is at most as long as `every`"),
                None => ("its server", "a budget is at most its period"),
            };
            let problem = format!("{who} grants {budget} in every {period}");
            self.add("server", problem, help);
        }
    }

    fn check_code(&mut self) {
        let Some(code) = &self.scheduler.code else {
            return;
        };
        if self.scheduler.trust != Trust::OwnTime {
            self.add(
                "code",
                "its code would decide inside the core, where a loop in it stands everything still"
                    .into(),
                "let it decide on its own supply with `trust = \"own-time\"`",
            );
        } else if code.library.is_empty() || code.symbol.is_empty() {
            self.add(
                "code",
                "its code has no name".into(),
                "write `code = { library = \"libx.so\", symbol = \"mine\" }`",
            );
        }
    }

    /// `shared` is a resource that tasks of the scheduler share.
    fn check_fallback(&mut self, shared: Option<ResourceId>) {
        let Some(fallback) = self.scheduler.fallback else {
            return;
        };
        if self.scheduler.trust != Trust::OwnTime {
            self.add(
                "fallback",
                "it has a fallback, and the core decides for it anyway".into(),
                "remove it, or let its own code decide with `trust = \"own-time\"`",
            );
        } else if fallback.after == 0
            || matches!(
                fallback.policy,
                PolicyKind::Tdm { .. } | PolicyKind::Planned
            )
        {
            self.add(
                "fallback",
                "its fallback has no periods to wait for, divides time, or is planned".into(),
                "write `fallback = { policy = \"fixed-priority\", after = 3 }`",
            );
        } else if let Some(shared) = shared {
            self.check_order(fallback.policy.waits_by(), shared);
        }
    }

    /// A resource of tasks is handed on in the order of the policy, settled before the run.
    fn check_order(&mut self, then: &str, shared: ResourceId) {
        let now = self.scheduler.policy.waits_by();
        if now == then {
            return;
        }
        let resource = self.tree.system.resources.get(shared.index());
        let resource = resource.map_or("?", |resource| resource.name.as_str());
        self.add(
            "fallback",
            format!(
                "its tasks share resource `{resource}`, which goes to its waiters {now}, and its \
                 fallback would order them {then}"
            ),
            "choose a fallback with the order of `policy` (deadlines, priorities or arrival), or \
             let its tasks share nothing",
        );
    }

    /// A scheduler spends time on deciding: without supply of its own that would be its siblings'
    /// time.
    fn check_own_time(&mut self, parent: Node) {
        let shares = self.scheduler.supply == Supply::Shared;
        // Those two want a supply of everybody.
        let wanted = matches!(
            self.tree.policy(parent),
            Some(PolicyKind::Tdm { .. } | PolicyKind::EarliestDeadlineFirst)
        );
        if self.scheduler.trust == Trust::OwnTime && shares && !wanted {
            self.add(
                "trust",
                "it decides on its own supply, and has none: no server and no slots".into(),
                "add `server = { kind = \"deferrable\", budget = \"1ms\", period = \"10ms\" }`, or \
                 let it decide with `trust = \"inline\"`",
            );
        }
    }

    fn check_parent(&mut self, parent: Node) {
        if let Node::Scheduler(id) = parent
            && let Some(above) = self.tree.system.schedulers.get(id.index())
            && above.trust == Trust::OwnTime
        {
            self.add(
                "on",
                format!(
                    "it is on `{}`, which decides on its own supply and so has tasks only",
                    above.name
                ),
                "place it beside, or let its parent decide with `trust = \"inline\"`",
            );
        }
        self.check_own_time(parent);
        let above = self.tree.describe(parent);
        match (self.tree.policy(parent), &self.scheduler.supply) {
            (Some(PolicyKind::Tdm { .. }), Supply::Shared) => self.add(
                "slots",
                format!("it has no slots, and the policy of {above} is tdm"),
                "add `slots = [{ at = \"0ms\", length = \"1ms\" }]`",
            ),
            (Some(PolicyKind::Tdm { .. }), _) if self.scheduler.receiver.is_some() => self.add(
                "server",
                format!("a table divides the time of {above}"),
                "delegate from a scheduler with another policy, such as a child in a slot",
            ),
            (Some(PolicyKind::Tdm { .. }), Supply::Server(_)) => self.add(
                "server",
                format!("it has a server, and the policy of {above} is tdm"),
                "give it `slots` instead; a server can stand one level further down",
            ),
            (Some(PolicyKind::Tdm { .. }), Supply::Slots(_)) | (None, _) => {}
            (Some(policy), Supply::Slots(_)) => self.add(
                "slots",
                format!(
                    "it has slots, and the policy of {above} is {}",
                    policy.name()
                ),
                "slots are granted by a parent with `policy = \"tdm\"`",
            ),
            (Some(PolicyKind::EarliestDeadlineFirst), Supply::Shared) => self.add(
                "server",
                format!("it has no server, and so no deadline; the policy of {above} is edf"),
                "add `server = { kind = \"constant-bandwidth\", budget = \"1ms\", period = \
                 \"10ms\" }`",
            ),
            (Some(_), Supply::Shared | Supply::Server(_)) => {}
        }
    }
}

/// The schedulers of which two tasks use the same resource: the first such. O(n log n) in sections.
fn sharing(tree: &Tree<'_>) -> BTreeMap<SchedulerId, ResourceId> {
    let (mut first, mut sharing) = (BTreeMap::new(), BTreeMap::new());
    for (task, index) in tree.system.tasks.iter().zip(0_usize..) {
        let Some(scheduler) = task.scheduler else {
            continue;
        };
        for section in &task.uses {
            let user = first.entry((scheduler, section.resource)).or_insert(index);
            if *user != index {
                let _ = sharing.entry(scheduler).or_insert(section.resource);
            }
        }
    }
    sharing
}

/// A quota is for all tasks of the subtree, which the file already has at the start.
fn check_quotas(tree: &Tree<'_>, errors: &mut Errors) {
    let schedulers = &tree.system.schedulers;
    let mut counts = vec![0_u32; schedulers.len()];
    for task in &tree.system.tasks {
        let Some(node) = tree.care_of(task) else {
            continue;
        };
        for above in tree.path(node) {
            if let Node::Scheduler(id) = above
                && let Some(count) = counts.get_mut(id.index())
            {
                *count = count.saturating_add(1);
            }
        }
    }
    let all = (0..=u16::MAX).map(SchedulerId).zip(schedulers);
    for ((id, scheduler), count) in all.zip(counts) {
        if let Some(quota) = scheduler.quota
            && quota < count
        {
            errors.add(
                Fault::Scheduler(id, "quota"),
                format!(
                    "scheduler `{}`: a quota of {quota} for the {count} tasks below it",
                    scheduler.name
                ),
                format!("raise it to at least {count}"),
            );
        }
    }
}
