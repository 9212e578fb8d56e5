//! The example in virtual time: any placement, policy and fault, the same flight.

use punctual_kern::NoSink;
use punctual_model::{Cpu, CpuId, Frequency, Ns, PolicyKind, Span, System, TaskId, WorkSource};
use punctual_policy::AnyPolicy;
use punctual_rosace::RosaceWorkload;
use punctual_sim::{Completion, CpuInput, Faults, MissingTime, Observer, Options, Overrun, run};
use punctual_tables::Tables;
use punctual_thread::{JobContext, Oracle, Step, Workloads};

const EXAMPLE: &str = include_str!("../../rosace.toml");

/// Executes the step of a job when the job completes.
struct Pilot {
    steps: Vec<Step>,
}

impl Observer for Pilot {
    fn completed(&mut self, completion: Completion) {
        let Completion { task, job, .. } = completion;
        self.steps[task.index()](JobContext { job, arrival_ns: 0 });
    }

    fn needs_order(&self) -> bool {
        true
    }
}

fn parse(file: &str) -> System {
    punctual_spec::parse(file, "rosace.toml")
        .expect("a system")
        .system
}

fn fly(system: &System, duration: Span<Ns>, faults: Faults, seed: u64) -> Oracle {
    let mut workloads = Workloads::new().with(RosaceWorkload::new());
    let mut body = |work: &Option<WorkSource>| match work {
        Some(WorkSource::Function(name)) => workloads.resolve(name).expect("a step of rosace"),
        other => panic!("{other:?}"),
    };
    let steps = system.tasks.iter().map(|task| body(&task.work)).collect();
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    tables.set_duration(system, duration);
    let input = |cpu: &punctual_tables::CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: NoSink,
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let options = Options {
        duration,
        seed,
        faults,
        plans: Vec::new(),
    };
    run(system, &tables, inputs, &options, &mut Pilot { steps }).expect("a valid system");
    workloads.check().expect("rosace has a reference")
}

/// The tasks on `cpus` CPUs, dealt out from the `seed`-th card on.
fn place(system: &mut System, cpus: u16, seed: u16, policy: PolicyKind<Ns>) {
    let cpu = |i: u16| Cpu {
        name: i.to_string(),
        host: None,
        policy,
    };
    system.cpus = (0..cpus).map(cpu).collect();
    for (i, task) in (0_u16..).zip(&mut system.tasks) {
        task.cpu = CpuId((i * (seed + 1) + seed) % cpus);
    }
}

/// Ten seconds of the file are the 2,000 steps that the guide promises.
#[test]
fn ten_seconds_are_two_thousand_steps_of_the_reference() {
    let oracle = fly(&parse(EXAMPLE), Span::from_ms(10_000), Faults::default(), 1);
    assert_eq!(
        oracle,
        Oracle {
            steps: 2_000,
            mismatches: 0
        }
    );
}

#[test]
fn no_placement_and_no_policy_changes_the_flight() {
    let policies = [
        PolicyKind::Fifo,
        PolicyKind::RoundRobin {
            timeslice: Span::from_us(10),
        },
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::FixedPriority { preemptive: false },
        PolicyKind::EarliestDeadlineFirst,
    ];
    for policy in policies {
        for (cpus, seed) in [(1, 0), (2, 0), (2, 1), (3, 1), (5, 2), (11, 3)] {
            let mut system = parse(EXAMPLE);
            place(&mut system, cpus, seed, policy);
            let oracle = fly(&system, Span::from_ms(2_000), Faults::default(), 1);
            let expected = Oracle {
                steps: 400,
                mismatches: 0,
            };
            assert_eq!(oracle, expected, "{cpus} CPUs, seed {seed}, {policy:?}");
        }
    }
}

#[test]
fn the_urgency_of_the_tasks_does_not_matter_to_the_flight() {
    let mut system = parse(EXAMPLE);
    let mut priorities: Vec<_> = system.tasks.iter().map(|task| task.priority).collect();
    priorities.reverse();
    for (task, priority) in system.tasks.iter_mut().zip(priorities) {
        task.priority = priority;
    }
    let oracle = fly(&system, Span::from_ms(2_000), Faults::default(), 1);
    assert_eq!(
        oracle,
        Oracle {
            steps: 400,
            mismatches: 0
        }
    );
}

#[test]
fn standing_still_late_timers_and_overruns_do_not_change_the_flight() {
    for (cpus, seed) in [(1, 0), (2, 1), (3, 2), (4, 0)] {
        let mut system = parse(EXAMPLE);
        place(
            &mut system,
            cpus,
            seed,
            PolicyKind::FixedPriority { preemptive: true },
        );
        let stop = MissingTime {
            cpu: None,
            length: Span::from_ms(200),
            every: Span::from_ms(1_700),
        };
        let overrun = |task| Overrun {
            task: TaskId(task),
            per_mille: 1_500,
        };
        let faults = Faults {
            missing: vec![stop],
            late_timer: Span::from_ms(3),
            overruns: vec![overrun(0), overrun(3), overrun(9)],
            ..Faults::default()
        };
        let oracle = fly(&system, Span::from_ms(5_000), faults, u64::from(seed));
        // What is unfinished one longest deadline after the end is not flown.
        assert!(oracle.steps > 900, "{cpus} CPUs, seed {seed}: {oracle:?}");
        assert_eq!(oracle.mismatches, 0, "{cpus} CPUs, seed {seed}");
    }
}

#[test]
fn an_aircraft_that_moves_before_its_actuators_is_found_out() {
    let after = "after = [\"elevator\", \"engine\"]\n";
    assert_eq!(EXAMPLE.matches(after).count(), 1);
    let mut swapped = EXAMPLE.replace(after, "");
    for actuator in ["elevator", "engine"] {
        let work = format!("work = {{ function = \"rosace::{actuator}\" }}\n");
        assert_eq!(swapped.matches(&work).count(), 1);
        swapped = swapped.replace(&work, &format!("after = [\"dynamics\"]\n{work}"));
    }
    let oracle = fly(&parse(&swapped), Span::from_ms(2_000), Faults::default(), 1);
    assert_eq!(oracle.steps, 400);
    assert!(oracle.mismatches > 390, "{oracle:?}");
}
