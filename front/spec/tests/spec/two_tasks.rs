//! The smallest file of the contract, read whole.

use punctual_model::{
    Class, CpuId, Fault, PolicyKind, Priority, Requirement, Span, TaskId, Work, WorkSource,
};

const TWO_TASKS: &str = r#"
[system]
cpus = [0]                  # host CPU numbers, or names given in [cpu.NAME]; sim needs no hardware

[cpu.0]
policy = "fixed-priority"   # fifo | round-robin | fixed-priority | edf | tdm | ...

[task.fast]
class = "periodic"
on = "cpu.0"                # a CPU or a scheduler
period = "10ms"
wcet = "2ms"
priority = 2
work = { burn = "1ms" }     # burns executed processor time

[task.slow]
class = "periodic"
on = "cpu.0"
period = "20ms"
wcet = "5ms"
priority = 1
work = { burn = "3ms" }

[require]
response = [{ task = "slow", within = "8ms" }]

[run]
for = "10s"
"#;

#[test]
fn the_smallest_file_gives_its_system() {
    let description = punctual_spec::parse(TWO_TASKS, "plants/two-tasks.toml").expect("valid");
    let system = &description.system;
    assert_eq!(system.cpus.len(), 1);
    assert_eq!(system.cpus[0].host, Some(0));
    assert_eq!(
        system.cpus[0].policy,
        PolicyKind::FixedPriority { preemptive: true }
    );
    let names: Vec<&str> = system.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["fast", "slow"], "the order of the file");
    let fast = &system.tasks[0];
    assert_eq!(fast.cpu, CpuId(0));
    assert_eq!(fast.priority, Priority::new(2));
    assert_eq!(fast.work, Some(WorkSource::Burn(Work::from_ms(1))));
    assert_eq!(
        fast.class,
        Class::Periodic {
            period: Span::from_ms(10),
            wcet: Work::from_ms(2),
            relative_deadline: Span::from_ms(10),
        }
    );
    let within = Span::from_ms(8);
    assert_eq!(
        system.requirements,
        [Requirement::Response {
            task: TaskId(1),
            within
        }]
    );
    assert_eq!(system.run.duration, Some(Span::from_ms(10_000)));
    assert_eq!(system.run.seed, None);
    assert_eq!(
        description.base.join("libx.so"),
        std::path::Path::new("plants/libx.so")
    );
}

#[test]
fn a_part_of_the_system_leads_back_to_its_line() {
    let description = punctual_spec::parse(TWO_TASKS, "two-tasks.toml").expect("valid");
    let at = |fault| {
        let found = description.diagnostic(&fault, String::new(), String::new());
        (found.line, found.column, found.text)
    };
    assert_eq!(
        at(Fault::Task(TaskId(1), "wcet")),
        (20, 8, "\"5ms\"".into())
    );
    assert_eq!(
        at(Fault::Task(TaskId(1), "deadline")),
        (19, 10, "\"20ms\"".into())
    );
    assert_eq!(at(Fault::Task(TaskId(0), "name")), (8, 7, "fast".into()));
    assert_eq!(
        at(Fault::Task(TaskId(0), "jitter")),
        (8, 1, "[task.fast]".into())
    );
    assert_eq!(at(Fault::Requirement(0)).0, 25);
}
