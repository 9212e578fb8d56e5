//! A program's own policy for a scheduler that decides on its own supply, in both worlds.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{
    ChildPolicies, Error, Faults, LiveOptions, Log, RunReport, SimOptions, Span, System, Workloads,
    run, simulate, simulate_unjudged,
};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId, Work};
use punctual_policy::AnyPolicy;
use punctual_rules::check;
use punctual_trace::replay;

const FILE: &str = r#"
[system]
cpus = [0]

[cpu.0]
policy = "fixed-priority"

[scheduler.plugin]
on = "cpu.0"
policy = "fifo"
priority = 2
server = { kind = "deferrable", budget = "8ms", period = "20ms" }
trust = "own-time"

[task.first]
class = "periodic"
on = "scheduler.plugin"
period = "20ms"
deadline = "20ms"
wcet = "2ms"
work = { burn = "1ms" }

[task.second]
class = "periodic"
on = "scheduler.plugin"
period = "20ms"
wcet = "2ms"
work = { burn = "1ms" }

[task.rest]
class = "periodic"
on = "cpu.0"
period = "20ms"
wcet = "2ms"
priority = 1
work = { burn = "1ms" }
"#;

fn system() -> System {
    let description = punctual_spec::parse(FILE, "own-time.toml");
    description
        .map_err(|errors| format!("{errors:?}"))
        .unwrap()
        .system
}

/// Last come, first served: the whole policy.
struct LastFirst(Vec<ThreadId>);

impl Policy for LastFirst {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|&other| other != thread);
    }
    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .last()
            .map_or(Pick::NOBODY, |&thread| Pick::run(thread))
    }
}

fn policies() -> ChildPolicies {
    ChildPolicies::new().with("plugin", |threads| LastFirst(Vec::with_capacity(threads)))
}

fn in_virtual_time(policies: ChildPolicies) -> Result<Log, Error> {
    let options = SimOptions {
        duration: Some(Span::from_ms(200)),
        policies,
        ..SimOptions::default()
    };
    simulate(&system(), &options, &mut Workloads::new(), &mut |_| true)
}

fn longest_ns(log: &Log) -> [Option<u64>; 3] {
    let report = RunReport::new(log);
    [0, 1, 2].map(|task: usize| report.tasks[task].response_ns.max)
}

#[test]
fn a_program_brings_the_order_of_its_own_scheduler() {
    let by_file = in_virtual_time(ChildPolicies::new()).unwrap();
    assert_eq!(
        longest_ns(&by_file),
        [1, 2, 3].map(|ms| Some(ms * 1_000_000))
    );
    let by_program = in_virtual_time(policies()).unwrap();
    assert_eq!(
        longest_ns(&by_program),
        [2, 1, 3].map(|ms| Some(ms * 1_000_000))
    );
    assert!(check(&by_program).is_empty());
}

#[test]
fn a_miss_says_how_long_schedulers_decided() {
    // Deciding uses up the budget of the first period; and `rest` has 5 ms beside 8 of budget.
    let impatient = FILE.replace(
        "on = \"cpu.0\"\nperiod",
        "on = \"cpu.0\"\ndeadline = \"5ms\"\nperiod",
    );
    let system = punctual_spec::parse(&impatient, "own-time.toml")
        .unwrap()
        .system;
    let options = SimOptions {
        duration: Some(Span::from_ms(200)),
        faults: Faults {
            decision_cost: Work::from_ms(9),
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let report = RunReport::new(&log);
    let detail = |task: &str| {
        let miss = report.misses.iter().find(|miss| miss.task == task);
        miss.unwrap_or_else(|| panic!("{task}: {report}"))
            .detail
            .clone()
    };
    assert!(
        detail("first").contains("its schedulers deciding"),
        "{report}"
    );
    assert!(
        detail("rest").contains("other schedulers deciding"),
        "{report}"
    );
}

#[test]
fn a_policy_for_a_scheduler_that_decides_inside_is_an_error() {
    let wrong = ChildPolicies::new().with("plug", |_| LastFirst(Vec::new()));
    let error = in_virtual_time(wrong).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::NotOwnTime(name) if name == "plug"));
}

#[test]
fn the_same_policy_decides_for_real() {
    let options = LiveOptions {
        duration: Some(Span::from_ms(400)),
        // A loaded machine may measure overheads with which nothing fits.
        force: true,
        policies: policies(),
        ..LiveOptions::default()
    };
    let _alone = crate::alone();
    let log = run(&system(), &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let report = RunReport::new(&log);
    assert!(report.tasks.iter().all(|task| task.jobs == 20), "{report}");
    let _ = replay(&log, AnyPolicy::new).unwrap_or_else(|difference| panic!("{difference}"));
    let violations = check(&log);
    assert!(violations.is_empty(), "{}", violations[0]);
}
