//! A policy takes the place of another while its scheduler goes on.
//!
//! Nobody knows a bound for a busy window that two policies order. So the threads with a guarantee
//! whose window that could be are between their jobs then: those of the CPU, or of the closest
//! supply around the scheduler, as the analysis names it.
//!
//! The new policy is told of every place of the CPU, some per entry. These entries come one after
//! the other before anybody goes on, and stand for one job that is more urgent than all: at the
//! CPU's own scheduler, whose time they take, and where they order.

use punctual_analysis::Verdict;
use punctual_kern::NodeId;
use punctual_model::{
    Class, CpuId, Instant, Ns, PolicyKind, Priority, SchedulerId, Span, Supply, System, Task,
    Trust, Work,
};

use super::loan::NEVER;
use super::{Admission, Moved, NotAdmitted, State};

/// The entries of a replacement while they count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replaced {
    node: NodeId,
    pub(super) work: Work<Ns>,
    /// When the new policy came.
    pub(super) at: Instant<Ns>,
}

impl Admission {
    /// Whether a scheduler divides its time into slots, for as long as it lives.
    pub(crate) fn divides_time(&self, node: NodeId) -> bool {
        let policy = match self.state.place_of(node) {
            Ok(None) => self.state.system.cpus[0].policy,
            Ok(Some(id)) => self.state.system.schedulers[id.index()].policy,
            Err(_) => return false,
        };
        matches!(policy, PolicyKind::Tdm { .. })
    }

    /// Whether a scheduler decided on its own supply when it came.
    pub(crate) fn decides_itself(&self, node: NodeId) -> bool {
        let place = self.state.place_of(node).ok().flatten();
        let trust = place.map(|id| self.state.system.schedulers[id.index()].trust);
        trust == Some(Trust::OwnTime)
    }

    /// Judges that another policy, which takes so many entries to know everything, orders what
    /// `node` orders.
    pub(crate) fn reorders(
        &mut self,
        node: NodeId,
        (policy, entries): (PolicyKind<Ns>, u64),
        now: Instant<Ns>,
    ) -> Result<Moved, NotAdmitted> {
        self.forget_until(now);
        let mut changed = self.state.clone();
        let place = changed.place_of(node)?;
        let by_priority = policy == PolicyKind::FixedPriority { preemptive: true };
        if !by_priority
            && self
                .state
                .loans
                .iter()
                .any(|loan| self.state.is_lent_at(loan.to, place))
        {
            let what = "budget is lent below it, and loans are analysed where the parent orders \
                        by preemptive fixed priority: ask again when they are over";
            return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
        }
        let old = match place {
            None => &mut changed.system.cpus[0].policy,
            Some(id) => &mut changed.system.schedulers[id.index()].policy,
        };
        // Turns start anew, and nobody has begun.
        let starts_anew = *old == policy && !policy.knows_no_past();
        *old = policy;
        let entry = self.state.system.machine.stretch();
        let work = Work::from_ns(entry.as_ns().saturating_mul(entries));
        if work.as_span() > self.state.most_urgent(policy, place) {
            let what = "to tell another policy of all that there is takes longer than a deadline";
            return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
        }
        if !work.is_zero() {
            changed.replaced.push(Replaced {
                node,
                work,
                at: now,
            });
        }
        let (verdict, idle) = self.state.judge_when(&changed, now)?;
        let top = idle.map(|idle| changed.scheduler_named(idle.scheduler.as_deref()));
        let top = top.or(starts_anew.then_some(None));
        let rest = changed.resting_below(top);
        Ok(Moved::resting(changed, verdict, now, rest))
    }
}

impl State {
    /// Whether the scheduler that borrows is a child of this one.
    fn is_lent_at(&self, borrower: NodeId, parent: Option<SchedulerId>) -> bool {
        let borrower = self.place_of(borrower).ok().flatten();
        borrower.is_some_and(|borrower| self.parent(borrower) == parent)
    }

    fn scheduler_named(&self, name: Option<&str>) -> Option<SchedulerId> {
        let place = self
            .system
            .schedulers
            .iter()
            .position(|s| Some(s.name.as_str()) == name)?;
        Some(SchedulerId(super::small(place)))
    }

    /// The entries of policies that come, as jobs of a system. They stand first in it: nobody who
    /// ties with them goes before them.
    pub(super) fn count_replaced(&self, system: &mut System) {
        let mut entries = self.entries();
        entries.append(&mut system.tasks);
        system.tasks = entries;
    }

    /// Leaves of the rows about the judged system those of its entries out.
    pub(super) fn without_entries(&self, verdict: &mut Verdict) {
        let entries = self.entries().len();
        let _ = verdict.tasks.drain(..entries.min(verdict.tasks.len()));
    }

    pub(super) fn entries(&self) -> Vec<Task> {
        let mut entries = Vec::new();
        for (number, one) in self.replaced.iter().enumerate() {
            let place = self.place_of(one.node).ok().flatten();
            let levels = [None].into_iter().chain(place.map(Some));
            for (level, home) in levels.enumerate() {
                let policy = match home {
                    None => self.system.cpus[0].policy,
                    Some(id) => self.system.schedulers[id.index()].policy,
                };
                // Slots are constant, and so are the entries at their boundaries.
                if !matches!(policy, PolicyKind::Tdm { .. }) {
                    let class = Class::Once {
                        size: one.work,
                        relative_deadline: self.most_urgent(policy, home),
                    };
                    // No name of a thread's task ends so.
                    let name = format!("replaced:{number}:{level}:entry");
                    let mut task = Task::new(name, CpuId(0), class);
                    task.scheduler = home;
                    task.priority = Priority::new(u32::MAX);
                    entries.push(task);
                }
            }
        }
        entries
    }

    /// A deadline that is no later than any other that a scheduler orders by.
    fn most_urgent(&self, policy: PolicyKind<Ns>, home: Option<SchedulerId>) -> Span<Ns> {
        if policy != PolicyKind::EarliestDeadlineFirst {
            return NEVER;
        }
        let former = self.former.iter().map(|former| &former.task);
        let tasks = self.system.tasks.iter().chain(former);
        let tasks = tasks.filter(|task| task.scheduler == home);
        let tasks = tasks.filter_map(|task| task.class.relative_deadline());
        let children = self.system.schedulers.iter().filter(|s| s.parent == home);
        let servers = children.filter_map(|s| match &s.supply {
            Supply::Server(server) => Some(server.period),
            Supply::Shared | Supply::Slots(_) => None,
        });
        tasks.chain(servers).min().unwrap_or(NEVER)
    }

    /// Forgets the entries that count no more.
    pub(super) fn forget_replaced(&mut self, now: Instant<Ns>) {
        let counts = |one: &Replaced| {
            let place = self.place_of(one.node).ok().flatten();
            let is_over = |home| self.is_quiet(home, one.at, now);
            !(is_over(None) && is_over(place))
        };
        let left = self.replaced.iter().copied().filter(counts).collect();
        self.replaced = left;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Grant;
    use super::super::tests::{ROOT, at, edf, half};
    use super::*;
    use crate::constraint::Constraint;
    use punctual_model::{Machine, Scheduler, Server, ServerKind};
    use std::sync::Arc;

    const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
    const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

    fn server(name: &str, place: u16) -> (NodeId, NodeId, Scheduler) {
        let scheduler = Scheduler {
            name: name.to_owned(),
            cpu: CpuId(0),
            parent: None,
            policy: FIXED,
            priority: Priority::new(u32::from(place)),
            supply: Supply::Server(Server {
                kind: ServerKind::Deferrable,
                budget: Work::from_ms(2),
                period: Span::from_ms(10),
            }),
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        };
        (NodeId::new(place, 0), ROOT, scheduler)
    }

    fn two_servers(machine: Machine) -> Admission {
        let mut cpu = Admission::new(FIXED, machine, Arc::default());
        let tree = [server("one", 1), server("two", 2)];
        cpu.plant(tree.into_iter()).expect("4 of 10 ms");
        cpu
    }

    fn light(ms: u64) -> Constraint {
        Constraint::periodic(Span::from_ms(ms), Work::from_us(100)).priority(1)
    }

    #[test]
    fn who_is_ordered_by_it_rests_and_on_a_machine_that_costs_time_everybody() {
        let costs = Machine {
            switch: Work::from_us(1),
            ..Machine::default()
        };
        for (machine, all) in [(Machine::default(), false), (costs, true)] {
            let mut cpu = two_servers(machine);
            let (one, two) = (NodeId::new(1, 0), NodeId::new(2, 0));
            let a = cpu.add(("a", one), &light(60), at(0)).expect("on 2 in 10");
            let b = cpu.add(("b", two), &light(60), at(0)).expect("on 2 in 10");
            let c = cpu.add(("c", ROOT), &light(60), at(0)).expect("beside");
            let moved = cpu.reorders(one, (EDF, 1), at(100)).expect("light");
            let rest: Vec<Grant> = moved.threads.iter().map(|(grant, _)| *grant).collect();
            assert_eq!(rest, if all { vec![a, b, c] } else { vec![a] });
        }
    }

    #[test]
    fn the_entries_count_while_their_window_may_last_and_no_longer() {
        let machine = Machine {
            switch: Work::from_us(50),
            ..Machine::default()
        };
        let mut cpu = Admission::new(FIXED, machine, Arc::default());
        // Each job and each entry of a replacement costs 0.1 ms more.
        let busy = Constraint::periodic(Span::from_ms(10), Work::from_us(9_200));
        let _ = cpu.add(("busy", ROOT), &busy, at(0)).expect("alone");
        assert!(cpu.reorders(ROOT, (EDF, 1), at(0)).is_ok());
        let refused = cpu.reorders(ROOT, (EDF, 20), at(0));
        assert!(
            matches!(refused, Err(NotAdmitted::Refused(_))),
            "{refused:?}"
        );
        let refused = cpu.reorders(ROOT, (EDF, 200), at(0));
        assert!(
            matches!(&refused, Err(NotAdmitted::NoSafeInstant(why)) if why.contains("longer")),
            "{refused:?}"
        );
        let moved = cpu.reorders(ROOT, (EDF, 3), at(0)).expect("0.4 ms more");
        cpu.accept(Some(moved), at(1));
        assert_eq!(cpu.state.system.cpus[0].policy, EDF);
        assert_eq!(cpu.state.replaced.len(), 1);
        let tiny = Constraint::periodic(Span::from_ms(10), Work::from_us(300));
        assert!(cpu.add(("tiny", ROOT), &tiny, at(2)).is_err());
        cpu.forget_until(at(3_000));
        assert_eq!(cpu.state.replaced.len(), 0);
        assert!(cpu.add(("tiny", ROOT), &tiny, at(3_000)).is_ok());
    }

    /// A job that comes with them, and is as urgent, waits for all of them.
    #[test]
    fn entries_go_before_all_that_tie_with_them() {
        let machine = Machine {
            switch: Work::from_us(50),
            ..Machine::default()
        };
        for policy in [PolicyKind::Fifo, FIXED] {
            let mut cpu = Admission::new(EDF, machine.clone(), Arc::default());
            // With 0.1 ms for itself and 0.7 ms for six entries and theirs, it ends at 10 ms.
            for (more, is_admitted) in [(0, true), (1, false)] {
                let wcet = Work::from_ns(9_200_000 + more);
                let busy = Constraint::periodic(Span::from_ms(10), wcet).priority(u32::MAX);
                let busy = cpu.add(("busy", ROOT), &busy, at(0)).expect("alone");
                let moved = cpu.reorders(ROOT, (policy, 6), at(0));
                assert_eq!(moved.is_ok(), is_admitted, "{policy:?}, {more} ns more");
                cpu.withdraw(busy);
            }
        }
        let mut cpu = Admission::new(EDF, machine, Arc::default());
        let busy = Constraint::periodic(Span::from_ms(10), Work::from_ms(1));
        let busy = cpu.add(("busy", ROOT), &busy, at(0)).expect("alone");
        let moved = cpu.reorders(ROOT, (FIXED, 6), at(0)).expect("light");
        cpu.accept(Some(moved), at(0));
        let verdict = cpu.verdict().expect("it ends");
        let rows: Vec<&str> = verdict.tasks.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(rows, [format!("busy:{}", busy.0)]);
    }

    #[test]
    fn what_is_refused_has_changed_nothing() {
        let mut cpu = edf();
        let _ = cpu.add(("a", ROOT), &half(10), at(0)).expect("half");
        let _ = cpu.add(("b", ROOT), &half(14), at(0)).expect("the other");
        let before = format!("{:?}", cpu.state);
        let refused = cpu.reorders(ROOT, (FIXED, 1), at(0));
        assert!(
            matches!(refused, Err(NotAdmitted::Refused(_))),
            "{refused:?}"
        );
        let gone = cpu.reorders(NodeId::new(1, 0), (FIXED, 1), at(0));
        assert!(matches!(gone, Err(NotAdmitted::NoScheduler(_))), "{gone:?}");
        assert_eq!(format!("{:?}", cpu.state), before);
    }

    #[test]
    fn where_budget_is_lent_the_parent_goes_on_by_priority() {
        let mut cpu = two_servers(Machine::default());
        let (one, two) = (NodeId::new(1, 0), NodeId::new(2, 0));
        let lent = cpu.lends((one, two), Work::from_us(500), at(0));
        cpu.accept(lent.expect("little"), at(0));
        let refused = cpu.reorders(ROOT, (EDF, 1), at(1));
        assert!(
            matches!(&refused, Err(NotAdmitted::NoSafeInstant(why)) if why.contains("lent")),
            "{refused:?}"
        );
        for node in [one, two] {
            assert!(cpu.reorders(node, (EDF, 1), at(1)).is_ok());
        }
        assert!(cpu.reorders(ROOT, (EDF, 1), at(1_000)).is_ok());
    }

    #[test]
    fn a_thread_may_be_called_as_the_entries_of_a_replacement_are() {
        let machine = Machine {
            switch: Work::from_us(1),
            ..Machine::default()
        };
        let mut cpu = Admission::new(FIXED, machine, Arc::default());
        let _ = cpu
            .add(("replaced:0", ROOT), &light(60), at(0))
            .expect("alone");
        let moved = cpu.reorders(ROOT, (EDF, 1), at(0)).expect("another name");
        cpu.accept(Some(moved), at(1));
        let also = cpu.add(("replaced:0", ROOT), &light(60), at(2));
        assert!(also.is_ok(), "{also:?}");
    }
}
