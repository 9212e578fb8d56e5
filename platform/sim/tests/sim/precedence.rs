//! Precedence across rates and CPUs, under delays of every kind.

use crate::common::{periodic, simulate_watched, system};
use punctual_model::{CpuId, Ns, PolicyKind, Span, System, TaskId};
use punctual_sim::{Completion, Faults, MissingTime, Observer, Overrun};

/// The order in which jobs completed.
#[derive(Default)]
struct Order(Vec<(u32, u64)>);

impl Observer for Order {
    fn completed(&mut self, c: Completion) {
        self.0.push((c.task.0, c.job));
    }

    fn needs_order(&self) -> bool {
        true
    }
}

fn order_of(s: &System, faults: Faults, seed: u64) -> Vec<(u32, u64)> {
    let mut order = Order::default();
    let _ = simulate_watched(s, 1_000, faults, seed, &mut order);
    order.0
}

/// fast (5) -> slow (20, after fast), back (5: follows slow), on the given CPUs.
fn loop_of_three(cpus: [u16; 3], policy: PolicyKind<Ns>) -> System {
    let mut s = system(3, policy);
    s.tasks = vec![
        periodic("fast", 1, 5, 5),
        periodic("slow", 2, 20, 20),
        periodic("back", 1, 5, 5),
    ];
    for (task, cpu) in s.tasks.iter_mut().zip(cpus) {
        task.cpu = CpuId(cpu);
    }
    s.tasks[1].after = vec![TaskId(0)];
    s.tasks[2].follows = vec![TaskId(1)];
    s
}

/// How many pairs of jobs are in order, and how many are not.
fn pairs(order: &[(u32, u64)]) -> (usize, usize) {
    let place = |job: (u32, u64)| order.iter().position(|&j| j == job);
    let (mut kept, mut broken) = (0, 0);
    for (at, &(task, job)) in order.iter().enumerate() {
        // slow k is released at 20k, with fast 4k; back m at 5m, strictly after slow ceil(m/4) - 1.
        let needed = match task {
            1 => (0, 4 * job),
            2 if job > 0 => (1, job.div_ceil(4) - 1),
            _ => continue,
        };
        if place(needed).is_some_and(|before| before < at) {
            kept += 1
        } else {
            broken += 1
        }
    }
    (kept, broken)
}

fn respects_precedence(order: &[(u32, u64)]) {
    let (kept, broken) = pairs(order);
    assert!(
        kept > 100 && broken == 0,
        "{kept} pairs in order, {broken} not"
    );
}

#[test]
fn precedence_holds_on_one_cpu_and_across_cpus_under_any_delay() {
    let placements = [[0, 0, 0], [0, 1, 0], [0, 1, 2], [1, 0, 0]];
    let policies = [
        PolicyKind::EarliestDeadlineFirst,
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::Fifo,
        PolicyKind::RoundRobin {
            timeslice: Span::from_ns(1),
        },
    ];
    for placement in placements {
        for policy in policies {
            let s = loop_of_three(placement, policy);
            respects_precedence(&order_of(&s, Faults::default(), 0));
            for seed in 0..20 {
                let faults = Faults {
                    missing: vec![MissingTime {
                        cpu: Some(CpuId(u16::try_from(seed % 3).unwrap())),
                        length: Span::from_ns(40),
                        every: Span::from_ns(171),
                    }],
                    late_timer: Span::from_ns(3),
                    overruns: vec![Overrun {
                        task: TaskId(1),
                        per_mille: 1_400,
                    }],
                    ..Faults::default()
                };
                respects_precedence(&order_of(&s, faults, seed));
            }
        }
    }
}

#[test]
fn without_the_edges_the_same_check_finds_jobs_out_of_order() {
    let mut s = loop_of_three([0, 1, 0], PolicyKind::EarliestDeadlineFirst);
    s.tasks[0] = periodic("fast", 3, 5, 5);
    let with = order_of(&s, Faults::default(), 0);
    respects_precedence(&with);
    s.tasks[1].after.clear();
    s.tasks[2].follows.clear();
    let (_, broken) = pairs(&order_of(&s, Faults::default(), 0));
    assert_eq!(
        broken, 50,
        "each slow job completes before the fast one that it needs"
    );
}
