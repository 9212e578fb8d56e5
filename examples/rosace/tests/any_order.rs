//! The precedence of `examples/rosace.toml` alone fixes the trajectory.
//!
//! Jobs are executed in random order, bound by nothing but `after` and `follows` as GLOSSARY.md
//! defines them: not by time, priority or CPU. What holds here holds under every delay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use punctual_model::{Class, Task, TaskId, WorkSource};
use punctual_rosace::{Mode, RosaceWorkload, Targets};
use punctual_thread::{JobContext, Oracle, Step, Workload};

const EXAMPLE: &str = include_str!("../../rosace.toml");
const STEP_MS: u64 = 5;

/// A flight in which the altitude controller works from the first step on.
const HOLD: Targets = Targets {
    mode: Mode::Hold,
    vz: -2.5,
    h: 10_020.0,
    ..Targets::PUBLISHED
};

/// What one task of the file says about the order of its jobs.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    step: String,
    period_ms: u64,
    after: Vec<TaskId>,
    follows: Vec<TaskId>,
}

fn parse(file: &str) -> Vec<Node> {
    let description = punctual_spec::parse(file, "rosace.toml").expect("a system");
    description
        .system
        .tasks
        .into_iter()
        .map(Node::from)
        .collect()
}

impl From<Task> for Node {
    fn from(task: Task) -> Node {
        let Class::Periodic { period, .. } = task.class else {
            panic!("{} is not periodic", task.name)
        };
        let Some(WorkSource::Function(function)) = &task.work else {
            panic!("{} has no function", task.name)
        };
        assert!(
            task.phase.is_zero(),
            "{} does not start with the others",
            task.name
        );
        Node {
            step: function
                .strip_prefix("rosace::")
                .expect("a step of rosace")
                .to_owned(),
            period_ms: period.as_ns() / 1_000_000,
            after: task.after,
            follows: task.follows,
            name: task.name,
        }
    }
}

impl Node {
    /// Jobs released at or before `at_ms`.
    fn released_until(&self, at_ms: u64) -> u64 {
        at_ms / self.period_ms + 1
    }

    /// Jobs released strictly before `at_ms`.
    fn released_before(&self, at_ms: u64) -> u64 {
        at_ms.div_ceil(self.period_ms)
    }
}

/// Steele, Lea and Flood's SplitMix64: enough to pick one of a few.
struct Random(u64);

impl Random {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let index = (z ^ (z >> 31)) % u64::try_from(from.len()).expect("a small list");
        &from[usize::try_from(index).expect("a small index")]
    }
}

/// Executes all jobs released in [0, `steps` · 5 ms) in an order drawn from `seed`.
fn fly(nodes: &[Node], targets: Targets, steps: u64, seed: u64) -> Oracle {
    let mut rosace = RosaceWorkload::with(targets, 10_000);
    let mut bodies: Vec<Step> = nodes
        .iter()
        .map(|node| {
            rosace
                .step(&node.step)
                .unwrap_or_else(|| panic!("no step {}", node.step))
        })
        .collect();
    let mut done = vec![0_u64; nodes.len()];
    let mut random = Random(seed);
    loop {
        let may_start = |task: &usize| {
            let release = done[*task] * nodes[*task].period_ms;
            let after = |a: &TaskId| done[a.index()] >= nodes[a.index()].released_until(release);
            let follows = |a: &TaskId| done[a.index()] >= nodes[a.index()].released_before(release);
            release < steps * STEP_MS
                && nodes[*task].after.iter().all(after)
                && nodes[*task].follows.iter().all(follows)
        };
        let startable: Vec<usize> = (0..nodes.len()).filter(may_start).collect();
        if startable.is_empty() {
            break;
        }
        let task = *random.pick(&startable);
        let arrival_ns = done[task] * nodes[task].period_ms * 1_000_000;
        bodies[task](JobContext {
            job: done[task],
            arrival_ns,
        });
        done[task] += 1;
    }
    rosace.check().expect("rosace has a reference")
}

/// The same with a kernel thread per task, all at once: here steps overlap in every way that the
/// precedence leaves open.
fn fly_in_parallel(nodes: &[Node], steps: u64) -> Oracle {
    let mut rosace = RosaceWorkload::with(Targets::PUBLISHED, 10_000);
    let done: Vec<AtomicU64> = nodes.iter().map(|_| AtomicU64::new(0)).collect();
    let done_of = |task: &TaskId| done[task.index()].load(Ordering::Acquire);
    thread::scope(|scope| {
        for (node, done) in nodes.iter().zip(&done) {
            let mut body = rosace.step(&node.step).expect("a step of rosace");
            let may_start = move |release| {
                let after = |a: &TaskId| done_of(a) >= nodes[a.index()].released_until(release);
                let follows = |a: &TaskId| done_of(a) >= nodes[a.index()].released_before(release);
                node.after.iter().all(after) && node.follows.iter().all(follows)
            };
            scope.spawn(move || {
                for job in 0..(steps * STEP_MS).div_ceil(node.period_ms) {
                    let release = job * node.period_ms;
                    while !may_start(release) {
                        thread::yield_now();
                    }
                    body(JobContext {
                        job,
                        arrival_ns: release * 1_000_000,
                    });
                    done.store(job + 1, Ordering::Release);
                }
            });
        }
    });
    rosace.check().expect("rosace has a reference")
}

/// How many of the seeds 0..`seeds` give another trajectory of `steps` steps than the reference.
fn deviations(nodes: &[Node], targets: Targets, steps: u64, seeds: u64) -> usize {
    let differs = |seed: &u64| {
        let oracle = fly(nodes, targets, steps, *seed);
        oracle.mismatches > 0 || oracle.steps != steps
    };
    (0..seeds).filter(differs).count()
}

#[test]
fn any_order_that_keeps_the_precedence_flies_the_reference() {
    let nodes = parse(EXAMPLE);
    assert!(nodes.len() >= 11, "{} tasks", nodes.len());
    for targets in [Targets::PUBLISHED, HOLD] {
        for seed in 0..200 {
            let oracle = fly(&nodes, targets, 400, seed);
            assert_eq!(
                oracle,
                Oracle {
                    steps: 400,
                    mismatches: 0
                },
                "seed {seed}, {targets:?}"
            );
        }
    }
}

#[test]
fn fifty_seconds_in_random_order_fly_the_reference() {
    let oracle = fly(&parse(EXAMPLE), Targets::PUBLISHED, 10_000, 1);
    assert_eq!(
        oracle,
        Oracle {
            steps: 10_000,
            mismatches: 0
        }
    );
}

#[test]
fn eleven_threads_at_once_fly_the_reference() {
    let oracle = fly_in_parallel(&parse(EXAMPLE), 2_000);
    assert_eq!(
        oracle,
        Oracle {
            steps: 2_000,
            mismatches: 0
        }
    );
}

#[test]
fn swapping_two_precedences_makes_mismatches() {
    let swapped = swap_precedences(EXAMPLE);
    let nodes = parse(&swapped);
    assert_eq!(
        deviations(&nodes, Targets::PUBLISHED, 400, 20),
        20,
        "{swapped}"
    );
}

/// Dynamics before the actuators instead of after them.
fn swap_precedences(file: &str) -> String {
    let after = "after = [\"elevator\", \"engine\"]\n";
    assert_eq!(file.matches(after).count(), 1);
    let mut swapped = file.replace(after, "");
    for actuator in ["elevator", "engine"] {
        let heading = format!("work = {{ function = \"rosace::{actuator}\" }}\n");
        assert_eq!(swapped.matches(&heading).count(), 1);
        swapped = swapped.replace(&heading, &format!("after = [\"dynamics\"]\n{heading}"));
    }
    swapped
}

#[test]
fn every_precedence_of_the_file_is_needed() {
    let nodes = parse(EXAMPLE);
    let mut idle = Vec::new();
    for (task, node) in nodes.iter().enumerate() {
        for (kind, list) in [("after", &node.after), ("follows", &node.follows)] {
            for place in 0..list.len() {
                let mut without = nodes.clone();
                let edited = &mut without[task];
                let edited = if kind == "after" {
                    &mut edited.after
                } else {
                    &mut edited.follows
                };
                let dropped = edited.remove(place);
                if deviations(&without, HOLD, 100, 20) == 0 {
                    idle.push(format!(
                        "{} {kind} {}",
                        node.name,
                        nodes[dropped.index()].name
                    ));
                }
            }
        }
    }
    assert!(idle.is_empty(), "precedences that change nothing: {idle:?}");
}
