//! Gangs: a section is as many tasks as it has members, and mistakes are told once.

use punctual_model::{Barrier, Class, Gang, Span, System, TaskId, Work};
use punctual_spec::{parse, write};

use crate::mistakes::check;

const CPUS: &str = "\
[system]
cpus = [\"a\", \"b\"]

[cpu.a]
policy = \"fixed-priority\"

[cpu.b]
policy = \"fixed-priority\"
";

fn read(text: &str) -> System {
    match parse(&format!("{CPUS}\n{text}"), "gangs.toml") {
        Ok(description) => description.system,
        Err(mistakes) => panic!("{}", mistakes[0]),
    }
}

#[test]
fn a_gang_is_a_task_on_each_of_its_cpus_with_one_constraint() {
    let made = read(
        "[gang.step]\non = [\"cpu.a\", \"cpu.b\"]\nclass = \"periodic\"\nperiod = \"1ms\"\n\
         wcet = \"100us\"\nphase = \"50us\"\npriority = 4\n",
    );
    let tasks = made.tasks.iter();
    let tasks: Vec<_> = tasks
        .map(|t| (&*t.name, t.cpu.0, t.priority.number()))
        .collect();
    assert_eq!(tasks, [("step.a", 0, 4), ("step.b", 1, 4)]);
    for task in &made.tasks {
        assert_eq!(task.phase, Span::from_us(50));
        let wcet = Work::from_us(100);
        assert!(matches!(task.class, Class::Periodic { wcet: own, .. } if own == wcet));
    }
    assert_eq!(made.gangs, [Gang::new("step", [TaskId(0), TaskId(1)])]);
    let declared = "[gang.step]\nmembers = [\"step.a\", \"step.b\"]\n";
    assert!(write(&made).contains(declared), "{}", write(&made));
    let again = parse(&write(&made), "again.toml").expect("a valid file");
    assert_eq!(again.system, made);
}

#[test]
fn barriers_are_waits_for_all_members_of_the_superstep_before() {
    let made = read(
        "[gang.bsp]\non = [\"cpu.a\", \"cpu.b\"]\nclass = \"periodic\"\nperiod = \"10ms\"\n\
         phase = \"1ms\"\npriority = 1\nsupersteps = [\n\
         { at = \"0s\", name = \"compute\", wcet = \"1ms\" },\n\
         { at = \"5ms\", name = \"write\", wcet = \"2ms\", work = { burn = \"1ms\" } },\n]\n",
    );
    let names: Vec<_> = made.tasks.iter().map(|task| &*task.name).collect();
    let expected = [
        "bsp.compute.a",
        "bsp.compute.b",
        "bsp.write.a",
        "bsp.write.b",
    ];
    assert_eq!(names, expected);
    let phases: Vec<_> = made
        .tasks
        .iter()
        .map(|task| task.phase.as_ns() / 1_000_000)
        .collect();
    assert_eq!(phases, [1, 1, 6, 6]);
    let (compute, write_tasks) = (vec![TaskId(0), TaskId(1)], vec![TaskId(2), TaskId(3)]);
    assert_eq!(made.tasks[0].follows, write_tasks);
    assert_eq!(made.tasks[3].after, compute);
    assert!(made.tasks[3].work.is_some() && made.tasks[0].work.is_none());
    let mut without = made.clone();
    let [first, last] = [(0, 1), (1, 0)].map(|(before, next)| Barrier { before, next });
    assert!(!first.wraps() && last.wraps());
    without.leave_out_barrier(0, first);
    assert!(!without.has_barrier(0, first) && without.has_barrier(0, last));
    assert_eq!(
        (without.tasks[3].after.len(), without.tasks[0].follows.len()),
        (0, 2)
    );
    without.keep_barrier(0, first);
    without.keep_barrier(0, first);
    assert_eq!(without, made);
}

#[test]
fn mistakes_of_gangs_stand_where_they_are_and_once() {
    for name in [
        "without-members",
        "on-no-cpu",
        "without-supersteps",
        "on-one-cpu-twice",
        "of-different-constraints",
        "with-a-mistake-in-every-member",
        "that-says-too-much",
        "with-supersteps-out-of-order",
        "that-changes-in-part",
        "beyond-the-end-of-time",
    ] {
        check(&format!("gang-{name}"));
    }
}
