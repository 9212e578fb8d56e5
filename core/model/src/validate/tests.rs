//! Every meaningless system, one by one.

use super::*;
use crate::{
    Arrivals, Class, Cpu, IdleTime, Instant, Late, Limits, Ns, Priority, Requirement, Share, Span,
    Task, TaskId, Work, WorkSource,
};
use alloc::vec;

mod changes;
mod groups;
mod resources;
mod slots;
mod trees;

fn ms(n: u64) -> Span<Ns> {
    Span::from_ms(n)
}

fn periodic(name: &str, cpu: u16, period: u64, wcet: u64) -> Task {
    let class = Class::Periodic {
        period: ms(period),
        wcet: Work::from_ms(wcet),
        relative_deadline: ms(period),
    };
    Task {
        priority: Priority::new(1),
        ..Task::new(name, CpuId(cpu), class)
    }
}

fn sporadic(name: &str, cpu: u16) -> Task {
    let class = Class::Sporadic {
        min_separation: ms(10),
        wcet: Work::from_ms(1),
        relative_deadline: ms(10),
    };
    Task::new(name, CpuId(cpu), class)
}

fn system(tasks: Vec<Task>) -> System {
    let cpu = |name: &str, host| Cpu {
        name: name.into(),
        host: Some(host),
        policy: PolicyKind::EarliestDeadlineFirst,
    };
    System {
        cpus: vec![cpu("0", 0), cpu("1", 1)],
        tasks,
        ..System::default()
    }
}

/// The only mistake of a system.
fn mistake(system: &System) -> (Fault, String) {
    let mut errors = system.validate().expect_err("a mistake");
    assert_eq!(errors.len(), 1, "{errors:?}");
    let error = errors.remove(0);
    (error.fault, error.message)
}

/// The mistake of a system with one task.
fn task_mistake(task: Task) -> (Fault, String) {
    mistake(&system(vec![task]))
}

#[test]
fn a_sensible_system_passes() {
    let mut second = periodic("b", 1, 20, 5);
    second.after = vec![TaskId(0)];
    second.follows = vec![TaskId(1)];
    assert_eq!(
        system(vec![periodic("a", 0, 10, 2), second]).validate(),
        Ok(())
    );
}

#[test]
fn a_system_needs_a_cpu_and_has_at_most_256() {
    let (fault, message) = mistake(&System::default());
    assert_eq!(
        (fault, message.as_str()),
        (Fault::System, "a system without CPUs")
    );
    let mut many = system(vec![]);
    many.cpus = (0..257)
        .map(|n| Cpu {
            name: format!("{n}"),
            host: None,
            policy: PolicyKind::Fifo,
        })
        .collect();
    assert!(mistake(&many).1.starts_with("257 CPUs, more than the 256"));
}

#[test]
fn too_many_tasks_are_refused_and_do_not_wrap_their_numbers() {
    let tasks = (0..=System::MAX_TASKS)
        .map(|n| periodic(&format!("t{n}"), 0, 10, 1))
        .collect();
    assert_eq!(mistake(&system(tasks)).0, Fault::System);
}

#[test]
fn cpus_have_their_own_names_and_hosts() {
    let mut twice = system(vec![]);
    twice.cpus[1].name = "0".into();
    assert_eq!(mistake(&twice).0, Fault::Cpu(CpuId(1), "name"));
    let mut shared = system(vec![]);
    shared.cpus[1].host = Some(0);
    let (fault, message) = mistake(&shared);
    assert_eq!(fault, Fault::Cpu(CpuId(1), "host"));
    assert_eq!(message, "CPUs `0` and `1` are both host CPU 0");
}

#[test]
fn names_need_no_quoting_anywhere() {
    for name in ["", "a b", "a,b", "a\"b", "a\nb"] {
        assert_eq!(
            task_mistake(periodic(name, 0, 10, 1)).0,
            Fault::Task(TaskId(0), "name")
        );
    }
    let long = "x".repeat(129);
    assert_eq!(
        task_mistake(periodic(&long, 0, 10, 1)).1,
        "a task name of 129 bytes"
    );
    assert_eq!(
        system(vec![periodic("é-1.b:c_d", 0, 10, 1)]).validate(),
        Ok(())
    );
}

#[test]
fn a_task_name_is_taken_once() {
    let tasks = vec![periodic("a", 0, 10, 1), periodic("a", 1, 10, 1)];
    assert_eq!(mistake(&system(tasks)).0, Fault::Task(TaskId(1), "name"));
}

#[test]
fn a_task_on_no_cpu_is_refused() {
    assert_eq!(
        task_mistake(periodic("a", 7, 10, 1)).0,
        Fault::Task(TaskId(0), "on")
    );
}

#[test]
fn budgets_fit_their_windows() {
    let (fault, message) = task_mistake(periodic("a", 0, 10, 12));
    assert_eq!(fault, Fault::Task(TaskId(0), "wcet"));
    assert_eq!(
        message,
        "task `a`: its wcet 12ms is longer than its deadline 10ms"
    );
    let reservation = Class::Reservation {
        period: ms(10),
        slice: Work::from_ms(11),
    };
    let once = Class::Once {
        size: Work::from_ms(11),
        relative_deadline: ms(10),
    };
    for (class, key) in [(reservation, "slice"), (once, "size")] {
        let task = Task::new("a", CpuId(0), class);
        assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), key));
    }
}

#[test]
fn nothing_that_must_take_time_takes_none() {
    let classes = [
        (
            Class::Reservation {
                period: ms(0),
                slice: Work::from_ms(1),
            },
            "period",
        ),
        (
            Class::Reservation {
                period: ms(1),
                slice: Work::ZERO,
            },
            "slice",
        ),
        (
            Class::Once {
                size: Work::ZERO,
                relative_deadline: ms(1),
            },
            "size",
        ),
        (
            Class::Once {
                size: Work::from_ms(1),
                relative_deadline: ms(0),
            },
            "deadline",
        ),
    ];
    for (class, key) in classes {
        assert_eq!(
            task_mistake(Task::new("a", CpuId(0), class)).0,
            Fault::Task(TaskId(0), key)
        );
    }
    let mut task = periodic("a", 0, 10, 1);
    if let Class::Periodic { period, .. } = &mut task.class {
        *period = Span::ZERO;
    }
    assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), "period"));
    let burn = Task {
        work: Some(WorkSource::Burn(Work::ZERO)),
        ..periodic("a", 0, 10, 1)
    };
    assert_eq!(task_mistake(burn).0, Fault::Task(TaskId(0), "work"));
}

#[test]
fn arrivals_go_forward_and_keep_their_mean() {
    let at = |n| Instant::from_ms(n);
    for arrivals in [
        Arrivals::Every(Span::ZERO),
        Arrivals::Random { mean: ms(9) },
        Arrivals::At(vec![at(5), at(4)]),
    ] {
        let task = Task {
            arrivals,
            ..sporadic("a", 0)
        };
        assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), "arrivals"));
    }
    // Too early is no mistake: the scheduler makes those arrivals wait.
    let early = Task {
        arrivals: Arrivals::Every(ms(1)),
        ..sporadic("a", 0)
    };
    assert_eq!(system(vec![early]).validate(), Ok(()));
}

#[test]
fn a_kernel_thread_carries_a_body_that_ends_no_job_and_is_no_program() {
    let backed = |class, work| Task {
        kernel_backed: true,
        work,
        ..Task::new("a", CpuId(0), class)
    };
    let program = Some(WorkSource::Command(vec!["sh".into()]));
    assert_eq!(
        system(vec![backed(Class::Aperiodic, None)]).validate(),
        Ok(())
    );
    let with_jobs = Task {
        kernel_backed: true,
        ..periodic("a", 0, 10, 1)
    };
    for task in [with_jobs, backed(Class::Aperiodic, program.clone())] {
        assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), "thread"));
    }
    let kept_out = |kernel_backed, work| Task {
        idle: IdleTime::Keep,
        kernel_backed,
        work,
        ..Task::new("a", CpuId(0), Class::Aperiodic)
    };
    for task in [kept_out(true, None), kept_out(false, program)] {
        assert_eq!(system(vec![task]).validate(), Ok(()));
    }
    let mistake = task_mistake(kept_out(false, None));
    assert_eq!(mistake.0, Fault::Task(TaskId(0), "idle"));
}

#[test]
fn suspensions_have_a_length_and_lengths_a_number() {
    let nothing = Task {
        suspensions: 2,
        ..periodic("a", 0, 10, 1)
    };
    let never = Task {
        max_suspension: ms(1),
        ..periodic("a", 0, 10, 1)
    };
    for task in [nothing, never] {
        assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), "suspensions"));
    }
}

#[test]
fn a_non_preemptive_stretch_is_part_of_the_job() {
    let task = Task {
        non_preemptive: Work::from_ms(2),
        ..periodic("a", 0, 10, 1)
    };
    assert_eq!(
        task_mistake(task).0,
        Fault::Task(TaskId(0), "non-preemptive")
    );
}

#[test]
fn a_queue_has_room() {
    let task = Task {
        late: Late::Queue { backlog: 0 },
        ..periodic("a", 0, 10, 1)
    };
    assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), "backlog"));
}

#[test]
fn a_call_names_what_it_calls() {
    for (symbol, library) in [("", "libx.so"), ("f", ""), ("f\0", "libx.so")] {
        let work = WorkSource::Call {
            symbol: symbol.into(),
            library: library.into(),
        };
        let task = Task {
            work: Some(work),
            ..periodic("a", 0, 10, 1)
        };
        assert_eq!(task_mistake(task).0, Fault::Task(TaskId(0), "work"));
    }
}

#[test]
fn a_cycle_of_after_edges_is_shown_whole() {
    let mut tasks: Vec<Task> = ["a", "b", "c"].map(|name| periodic(name, 0, 10, 1)).into();
    tasks[0].after = vec![TaskId(1)];
    tasks[1].after = vec![TaskId(2)];
    tasks[2].after = vec![TaskId(0)];
    let (fault, message) = mistake(&system(tasks.clone()));
    assert_eq!(
        fault,
        Fault::Precedence {
            task: TaskId(0),
            key: "after",
            index: 0
        }
    );
    assert_eq!(
        message,
        "precedence cycle: `a` after `b` after `c` after `a`"
    );
    // The same circle with one edge to earlier releases makes progress.
    tasks[2].after.clear();
    tasks[2].follows = vec![TaskId(0)];
    assert_eq!(system(tasks).validate(), Ok(()));
}

#[test]
fn a_task_does_not_wait_for_its_own_job() {
    let mut task = periodic("a", 0, 10, 1);
    task.after = vec![TaskId(0)];
    assert_eq!(task_mistake(task).1, "precedence cycle: `a` after `a`");
}

#[test]
fn separate_cycles_are_reported_separately_and_long_chains_need_no_stack() {
    let mut tasks: Vec<Task> = (0..90_000)
        .map(|n| periodic(&format!("t{n}"), 0, 10, 1))
        .collect();
    for (id, task) in (0..).zip(&mut tasks).skip(1) {
        task.after = vec![TaskId(id - 1)];
    }
    tasks[0].after = vec![TaskId(1)];
    tasks[50_000].after = vec![TaskId(89_999)];
    let errors = system(tasks).validate().expect_err("two cycles");
    assert_eq!(errors.len(), 2);
    assert!(
        errors[1].message.ends_with("more after `t50000`"),
        "{}",
        errors[1].message
    );
}

#[test]
fn precedence_orders_jobs_that_complete() {
    let reservation = Class::Reservation {
        period: ms(10),
        slice: Work::from_ms(1),
    };
    for class in [reservation, Class::Aperiodic] {
        let endless = Task::new("e", CpuId(0), class);
        let waits = Task {
            after: vec![TaskId(0)],
            ..periodic("a", 0, 10, 1)
        };
        let (fault, _) = mistake(&system(vec![endless, waits]));
        assert_eq!(
            fault,
            Fault::Precedence {
                task: TaskId(1),
                key: "after",
                index: 0
            }
        );
        let endless = Task {
            follows: vec![TaskId(1)],
            ..Task::new("e", CpuId(0), class)
        };
        let (fault, _) = mistake(&system(vec![endless, periodic("a", 0, 10, 1)]));
        assert_eq!(
            fault,
            Fault::Precedence {
                task: TaskId(0),
                key: "follows",
                index: 0
            }
        );
    }
}

#[test]
fn sporadic_arrivals_are_unknown_to_other_cpus() {
    let waits = |cpu| Task {
        after: vec![TaskId(0)],
        ..periodic("a", cpu, 10, 1)
    };
    let (fault, _) = mistake(&system(vec![sporadic("s", 0), waits(1)]));
    assert_eq!(
        fault,
        Fault::Precedence {
            task: TaskId(1),
            key: "after",
            index: 0
        }
    );
    assert_eq!(system(vec![sporadic("s", 0), waits(0)]).validate(), Ok(()));
}

#[test]
fn predecessors_exist_and_are_named_once() {
    let dangling = Task {
        after: vec![TaskId(9)],
        ..periodic("a", 0, 10, 1)
    };
    assert_eq!(
        task_mistake(dangling).0,
        Fault::Precedence {
            task: TaskId(0),
            key: "after",
            index: 0
        }
    );
    let twice = Task {
        after: vec![TaskId(0), TaskId(0)],
        ..periodic("b", 0, 10, 1)
    };
    let (fault, message) = mistake(&system(vec![periodic("a", 0, 10, 1), twice]));
    assert_eq!(
        fault,
        Fault::Precedence {
            task: TaskId(1),
            key: "after",
            index: 1
        }
    );
    assert_eq!(message, "task `b`: `after` names `a` twice");
}

#[test]
fn reserves_and_missing_time_leave_something() {
    let reserve = |budget, period| Reserve {
        name: "fair-server".into(),
        budget: Work::from_ms(budget),
        period: ms(period),
    };
    for bad in [reserve(0, 10), reserve(1, 0), reserve(11, 10)] {
        let mut missing = system(vec![]);
        missing.machine.missing_time = Some(bad.clone());
        assert_eq!(mistake(&missing).0, Fault::Machine("missing-time"));
        let mut reserved = system(vec![]);
        reserved.machine.reserves = vec![bad];
        assert_eq!(mistake(&reserved).0, Fault::Reserve(0));
    }
    let mut twice = system(vec![]);
    twice.machine.reserves = vec![reserve(1, 10), reserve(1, 10)];
    assert_eq!(mistake(&twice).0, Fault::Reserve(1));
    let mut none = system(vec![]);
    none.machine.limits = Limits {
        utilization: Share::try_from_ppm(0).expect("a share"),
    };
    assert_eq!(mistake(&none).0, Fault::Machine("limits"));
}

#[test]
fn requirements_are_about_tasks_that_respond() {
    let response = |task, within| Requirement::Response {
        task: TaskId(task),
        within: ms(within),
    };
    let aperiodic = Task::new("bg", CpuId(0), Class::Aperiodic);
    let mut described = system(vec![periodic("a", 0, 10, 1), aperiodic]);
    for bad in [response(2, 5), response(1, 5), response(0, 0)] {
        described.requirements = vec![bad];
        assert_eq!(mistake(&described).0, Fault::Requirement(0));
    }
    // Below the wcet is refused by the analysis, with a witness: it is no mistake of the file.
    let mut tight = system(vec![periodic("a", 0, 10, 5)]);
    tight.requirements = vec![response(0, 4)];
    assert_eq!(tight.validate(), Ok(()));
}

#[test]
fn chains_have_two_tasks_whose_jobs_complete() {
    let chain = |tasks: &[u32], within| Requirement::Chain {
        tasks: tasks.iter().copied().map(TaskId).collect(),
        within: ms(within),
    };
    let reservation = Class::Reservation {
        period: ms(10),
        slice: Work::from_ms(1),
    };
    let mut described = system(vec![
        periodic("a", 0, 10, 1),
        sporadic("b", 1),
        Task::new("bg", CpuId(0), Class::Aperiodic),
        Task::new("decoder", CpuId(0), reservation),
    ]);
    for bad in [
        chain(&[], 5),
        chain(&[0], 5),
        chain(&[0, 1], 0),
        chain(&[0, 9], 5),
        chain(&[0, 1, 0], 5),
        chain(&[0, 2], 5),
        chain(&[3, 1], 5),
    ] {
        described.requirements = vec![bad];
        assert_eq!(mistake(&described).0, Fault::Requirement(0));
    }
    described.requirements = vec![chain(&[1, 0], 5)];
    assert_eq!(described.validate(), Ok(()));
}

#[test]
fn a_jitter_of_nothing_can_be_required_but_not_of_endless_bodies() {
    let jitter = |task| Requirement::Jitter {
        task: TaskId(task),
        within: Span::ZERO,
    };
    let aperiodic = Task::new("bg", CpuId(0), Class::Aperiodic);
    let mut described = system(vec![periodic("a", 0, 10, 1), aperiodic]);
    described.requirements = vec![jitter(0)];
    assert_eq!(described.validate(), Ok(()));
    for bad in [jitter(1), jitter(2)] {
        described.requirements = vec![bad];
        assert_eq!(mistake(&described).0, Fault::Requirement(0));
    }
}

#[test]
fn a_run_has_a_length() {
    let mut empty = system(vec![]);
    empty.run.duration = Some(Span::ZERO);
    assert_eq!(mistake(&empty).0, Fault::Run("for"));
}
