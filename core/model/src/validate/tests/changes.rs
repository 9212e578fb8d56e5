//! Changes that mean nothing, or that the core would refuse in their midst.

use super::trees::{below, scheduler, server, tree};
use super::{mistake, periodic};
use crate::{
    Change, Class, CpuId, Fault, Instant, Ns, PolicyCode, PolicyKind, Priority, SchedulerId,
    Server, Span, Step, Supply, System, TaskId, Terms, Trust, Work,
};
use alloc::{vec, vec::Vec};

fn at(ms: u64, steps: Vec<Step>) -> Change {
    Change {
        name: alloc::format!("at-{ms}"),
        at: Instant::from_ms(ms),
        steps,
    }
}

fn of(supply: Supply) -> Server<Ns> {
    let Supply::Server(server) = supply else {
        panic!("a server");
    };
    server
}

/// A scheduler with a server, a task below it and one beside it.
fn served() -> System {
    let mut media = scheduler("media", 0, None);
    media.supply = server(5, 10);
    System {
        tasks: vec![below("inside", 0), periodic("outside", 0, 10, 2)],
        ..tree(vec![media])
    }
}

#[test]
fn a_scheduler_that_does_not_exist_is_a_mistake_and_no_panic() {
    let gone = SchedulerId(9);
    let steps = [
        Step::Join(gone),
        Step::Leave(gone),
        Step::Supply(gone, of(server(1, 10))),
    ];
    for step in steps {
        let mut system = served();
        system.changes = vec![at(5, vec![step])];
        let (fault, message) = mistake(&system);
        assert_eq!(fault, Fault::ChangeStep(0, 0));
        assert_eq!(message, "there is no such scheduler");
    }
}

#[test]
fn work_without_an_end_or_another_arrival_does_not_change_its_terms() {
    let mut system = served();
    system.tasks[1].class = Class::Once {
        size: Work::from_ms(1),
        relative_deadline: Span::from_ms(10),
    };
    let terms = Terms {
        priority: Some(Priority::new(3)),
        ..Terms::default()
    };
    system.changes = vec![at(5, vec![Step::Constrain(TaskId(1), terms)])];
    assert_eq!(
        mistake(&system).1,
        "task `outside` arrives once: with other terms it would arrive again"
    );
    system.tasks[1].class = Class::Aperiodic;
    assert_eq!(
        mistake(&system).1,
        "task `outside` never ends: with other terms its work would begin anew"
    );
}

#[test]
fn a_server_above_endless_work_stays_until_that_has_moved() {
    let mut system = served();
    system.tasks[0].class = Class::Aperiodic;
    let supply = Step::Supply(SchedulerId(0), of(server(2, 10)));
    system.changes = vec![at(5, vec![supply.clone()])];
    assert!(
        mistake(&system)
            .1
            .contains("cannot change above task `inside`")
    );
    let leaves = Step::Move(TaskId(0), None);
    system.changes = vec![at(4, vec![leaves]), at(5, vec![supply.clone()])];
    assert_eq!(system.validate(), Ok(()));
    // A task that is still to come has left nothing behind.
    system.changes = vec![
        at(5, vec![supply.clone()]),
        at(6, vec![Step::Start(TaskId(0))]),
    ];
    assert_eq!(system.validate(), Ok(()));
    system.changes = vec![at(4, vec![Step::Stop(TaskId(0))]), at(5, vec![supply])];
    assert!(
        mistake(&system)
            .1
            .contains("cannot change above task `inside`")
    );
}

#[test]
fn a_quota_counts_a_task_that_has_stopped_in_its_last_home() {
    let mut system = served();
    system.schedulers[0].quota = Some(1);
    let moves = Step::Move(TaskId(1), Some(SchedulerId(0)));
    system.changes = vec![
        at(4, vec![Step::Stop(TaskId(0))]),
        at(5, vec![moves.clone()]),
    ];
    let (fault, message) = mistake(&system);
    assert_eq!(fault, Fault::ChangeStep(1, 0));
    assert_eq!(
        message,
        "task `outside` finds no room below scheduler `media`: a quota of 1 for 2 tasks, with \
         those that have stopped there"
    );
    let leaves = Step::Move(TaskId(0), None);
    system.changes = vec![at(4, vec![leaves]), at(5, vec![moves])];
    assert_eq!(system.validate(), Ok(()));
}

#[test]
fn a_policy_that_divides_time_or_that_stays_is_a_mistake() {
    let mut system = served();
    let edf = PolicyKind::EarliestDeadlineFirst;
    let now = system.schedulers[0].policy;
    let tdm = PolicyKind::Tdm {
        frame: Span::from_ms(10),
        scheduling: Span::ZERO,
    };
    let said = |system: &System| mistake(system).1;
    let reorder = |to| vec![at(5, vec![Step::Reorder(SchedulerId(0), to, None)])];
    system.changes = reorder(now);
    assert_eq!(
        said(&system),
        "scheduler `media` orders by that policy already"
    );
    system.changes = reorder(tdm);
    assert_eq!(
        said(&system),
        "the table of scheduler `media` divides time, and is constant"
    );
    system.changes = reorder(PolicyKind::Fifo);
    assert_eq!(system.validate(), Ok(()));
    system.changes = vec![at(5, vec![Step::ReorderCpu(CpuId(9), edf)])];
    assert_eq!(said(&system), "there is no such CPU");
    let code = |ms, symbol: &str| {
        let code = PolicyCode {
            library: "libx.so".into(),
            symbol: symbol.into(),
        };
        let step = Step::Reorder(SchedulerId(0), now, Some(code));
        at(ms, vec![step])
    };
    system.changes = vec![code(5, "mine")];
    assert_eq!(
        said(&system),
        "new code of scheduler `media` would decide inside the core"
    );
    system.schedulers[0].trust = Trust::OwnTime;
    assert_eq!(system.validate(), Ok(()));
    system.changes = vec![code(5, "")];
    assert_eq!(said(&system), "new code of scheduler `media` has no name");
    // The same code twice changes nothing.
    system.changes = vec![code(5, "mine"), code(6, "mine")];
    assert_eq!(
        said(&system),
        "scheduler `media` orders by that policy already"
    );
    system.changes = reorder(PolicyKind::Fifo);
    assert_eq!(system.validate(), Ok(()));
}

#[test]
fn policies_that_change_leave_a_system_that_means_something() {
    let mut system = served();
    let other = match system.cpus[0].policy {
        PolicyKind::EarliestDeadlineFirst => PolicyKind::FixedPriority { preemptive: true },
        _ => PolicyKind::EarliestDeadlineFirst,
    };
    system.changes = vec![at(5, vec![Step::ReorderCpu(CpuId(0), other)])];
    assert_eq!(system.validate(), Ok(()));
    let mut stage = crate::Stage::at_start(&system);
    assert_eq!(stage.apply(&system.changes[0]), Ok(()));
    assert_eq!(stage.system().cpus[0].policy, other);
    // A scheduler without a server has no deadline.
    system.schedulers[0].supply = Supply::Shared;
    if other == PolicyKind::EarliestDeadlineFirst {
        assert!(mistake(&system).1.contains("no server"));
    }
}

#[test]
fn a_cpu_with_more_than_one_entry_can_tell_keeps_its_policies() {
    let mut system = served();
    let kept = crate::Stage::MAX_REORDERED;
    for number in 0..kept {
        system
            .tasks
            .push(periodic(&alloc::format!("more-{number}"), 0, 100, 1));
    }
    let fifo = Step::Reorder(SchedulerId(0), PolicyKind::Fifo, None);
    system.changes = vec![at(5, vec![fifo])];
    let (fault, message) = mistake(&system);
    assert_eq!(fault, Fault::ChangeStep(0, 0));
    assert!(message.contains("68 tasks and schedulers"), "{message}");
    // Itself, the CPU's own, and one task less than fit.
    system.tasks.truncate(kept - 2);
    assert_eq!(system.validate(), Ok(()));
}
