//! Budget that random schedulers transfer to each other.

use punctual_generate::Random;
use punctual_model::{
    Class, CpuId, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind, Span, Stage,
    Step, Supply, System, Trust, Work,
};

const FIXED: PolicyKind<punctual_model::Ns> = PolicyKind::FixedPriority { preemptive: true };

/// The tasks of one CPU in the care of two schedulers with servers, or of the CPU between them.
pub(super) fn side_by_side(random: &mut Random, system: &mut System) {
    system.cpus.truncate(1);
    system.schedulers.clear();
    system.cpus[0].policy = FIXED;
    let first = random.within(3, 6);
    let budgets = [first, random.within(1, 8 - first)];
    for (at, budget) in (0_u16..).zip(budgets) {
        let kind = match at {
            0 => ServerKind::Deferrable,
            _ => *random
                .pick(&ServerKind::ALL)
                .unwrap_or(&ServerKind::Deferrable),
        };
        let period = random.within(10, 14);
        system.schedulers.push(Scheduler {
            name: format!("s{at}"),
            cpu: CpuId(0),
            parent: None,
            policy: if random.happens(300) {
                PolicyKind::EarliestDeadlineFirst
            } else {
                FIXED
            },
            priority: Priority::new([2, 5, 8][random.index(3)]),
            supply: Supply::Server(Server {
                kind,
                budget: Work::from_ns(budget),
                period: Span::from_ns(period),
            }),
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        });
    }
    system.tasks.truncate(3);
    for (at, task) in system.tasks.iter_mut().enumerate() {
        task.cpu = CpuId(0);
        task.slots.clear();
        // One of them has to have its budget soon.
        let (home, soon) = match at {
            0 => (Some(SchedulerId(0)), (9, 16)),
            _ => (
                *random
                    .pick(&[None, Some(SchedulerId(0)), Some(SchedulerId(1))])
                    .unwrap_or(&None),
                (12, 40),
            ),
        };
        task.scheduler = home;
        let (soonest, latest) = soon;
        let deadline = random.within(soonest, latest);
        if let Class::Periodic {
            wcet,
            period: separation,
            relative_deadline,
        }
        | Class::Sporadic {
            wcet,
            min_separation: separation,
            relative_deadline,
        } = &mut task.class
        {
            *wcet = Work::from_ns(random.within(1, 3));
            *relative_deadline = Span::from_ns(deadline);
            *separation = Span::from_ns(deadline + random.within(0, 12));
        }
    }
}

/// A transfer between two schedulers that are there; `None`: there are no two, or it is not wanted.
pub(super) fn draw(random: &mut Random, system: &System, stage: &Stage<'_>) -> Option<Step> {
    let ids = || (0..).map(SchedulerId).take(system.schedulers.len());
    let server = |id: SchedulerId| match stage.scheduler(id)?.supply {
        Supply::Server(server) => Some(server),
        Supply::Shared | Supply::Slots(_) => None,
    };
    let is_slice = |id: SchedulerId| system.schedulers[id.index()].receiver.is_some();
    let home = |id: SchedulerId| {
        let scheduler = &system.schedulers[id.index()];
        (scheduler.cpu, scheduler.parent)
    };
    let pairs = ids().flat_map(|from| ids().map(move |to| (from, to)));
    let pairs = pairs.filter_map(|(from, to)| {
        let (lender, _) = server(from).zip(server(to))?;
        let lawful = from != to && home(from) == home(to) && !is_slice(from) && !is_slice(to);
        (lawful && lender.kind == ServerKind::Deferrable).then_some((from, to, lender.budget))
    });
    let pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() || !random.happens(400) {
        return None;
    }
    let &(from, to, budget) = random.pick(&pairs)?;
    let budget = Work::from_ns(random.within(1, budget.as_ns()));
    Some(Step::Transfer { from, to, budget })
}

/// A change that transfers does nothing else.
pub(super) fn alone(steps: &mut Vec<Step>) {
    let transfers = |step: &Step| matches!(step, Step::Transfer { .. });
    if let Some(at) = steps.iter().position(transfers) {
        let step = steps.swap_remove(at);
        steps.clear();
        steps.push(step);
    }
}
