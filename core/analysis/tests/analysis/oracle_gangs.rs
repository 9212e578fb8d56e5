//! Random gangs, and the `response-time-analysis` crate on each of their CPUs
//!
//! The crate knows one CPU. A gang is admitted if every deadline is kept on every CPU of it. The
//! latest start of a member is its response without its own work. Both follow from the crate's
//! bounds without a line of ours.

use punctual_analysis::admit;
use punctual_model::{
    Class, Cpu, CpuId, Gang, Ns, PolicyKind, Priority, Span, System, Task, TaskId, Work,
};

use crate::common::random::{Deadlines, Random};
use crate::common::{EDF, FP};
use crate::oracle::{Row, plain, their_fixed_priority, their_preemptive_edf};

/// The bound of the crate on one response.
type Theirs = fn(&[Row], usize) -> Option<u64>;

/// The tasks of each CPU in the order of their urgency, and the place of the member among them.
struct Drawn {
    cpus: Vec<(Vec<Row>, usize)>,
    clock_error: u64,
}

fn draw(random: &mut Random, load: (f64, f64)) -> Drawn {
    let count = random.within(2, 4);
    let mut member = None;
    let mut cpus = Vec::new();
    for _ in 0..count {
        let mut rows = plain(random, load, Deadlines::Constrained);
        let last = u64::try_from(rows.len() - 1).expect("small");
        let place = usize::try_from(random.within(0, last)).expect("small");
        // All members have the constraint of the first one.
        rows[place] = *member.get_or_insert(rows[place]);
        cpus.push((rows, place));
    }
    Drawn {
        cpus,
        clock_error: random.within(0, 3),
    }
}

fn system(policy: PolicyKind<Ns>, drawn: &Drawn) -> System {
    let mut system = System::default();
    let mut members = Vec::new();
    for (number, (rows, member)) in (0_u16..).zip(&drawn.cpus) {
        system.cpus.push(Cpu {
            name: number.to_string(),
            host: None,
            policy,
        });
        for (place, (urgency, &(c, t, d, ..))) in (1_u32..).zip(rows).enumerate() {
            let (wcet, relative_deadline) = (Work::from_ns(c), Span::from_ns(d));
            let class = match place == *member {
                true => Class::Periodic {
                    period: Span::from_ns(t),
                    wcet,
                    relative_deadline,
                },
                false => Class::Sporadic {
                    min_separation: Span::from_ns(t),
                    wcet,
                    relative_deadline,
                },
            };
            let mut task = Task::new(format!("t{place}.{number}"), CpuId(number), class);
            task.priority = Priority::new(100 - urgency);
            if place == *member {
                members.push(TaskId(u32::try_from(system.tasks.len()).expect("few")));
            }
            system.tasks.push(task);
        }
    }
    system.gangs.push(Gang::new("g", members));
    system.machine.clock_error = Span::from_ns(drawn.clock_error);
    assert_eq!(system.validate(), Ok(()));
    system
}

/// Compares admission, the bound of every member, and the skew.
fn compare(name: &str, policy: PolicyKind<Ns>, load: (f64, f64), theirs: Theirs) {
    const GANGS: u64 = 500;
    let (mut admitted, mut apart) = (0, 0);
    for seed in 0..GANGS {
        let drawn = draw(&mut Random::new(seed * 7_919 + 23), load);
        let system = system(policy, &drawn);
        let ours = admit(&system).expect("small numbers");
        let mut in_time = true;
        let mut latest = Some(0);
        let members = system.gangs[0].members();
        for ((rows, member), id) in drawn.cpus.iter().zip(members) {
            for (place, row) in rows.iter().enumerate() {
                in_time &= theirs(rows, place).is_some_and(|response| response <= row.2);
            }
            let response = theirs(rows, *member);
            let bound = ours.tasks[id.index()].response_bound.map(Span::as_ns);
            assert_eq!(bound, response, "{name}, seed {seed}: {:?}", drawn.cpus);
            let start = response.map(|response| response - rows[*member].0);
            latest = latest.zip(start).map(|(a, b): (u64, u64)| a.max(b));
        }
        assert_eq!(ours.admitted, in_time, "{name}, seed {seed}");
        let skew = ours.gangs[0].supersteps[0].bound.map(Span::as_ns);
        let expected = latest.map(|latest| latest + drawn.clock_error);
        assert_eq!(skew, expected, "{name}, seed {seed}: {:?}", drawn.cpus);
        admitted += u64::from(ours.admitted);
        apart += u64::from(latest.is_some_and(|latest| latest > 0));
    }
    let share = admitted * 100 / GANGS;
    println!("{name}: {GANGS} gangs, {share} % admitted, {apart} that do not start at once");
    assert!((20..=80).contains(&share), "{name}: {share} % are admitted");
    assert!(apart > GANGS / 2, "{name}: {apart} start late");
}

#[test]
fn gangs_under_fixed_priority_are_admitted_as_the_crate_says_of_each_cpu() {
    compare("fixed priority", FP, (0.4, 0.85), |rows, place| {
        their_fixed_priority(rows, place, true)
    });
}

#[test]
fn gangs_under_edf_are_admitted_as_the_crate_says_of_each_cpu() {
    compare("EDF", EDF, (0.5, 1.0), their_preemptive_edf);
}
