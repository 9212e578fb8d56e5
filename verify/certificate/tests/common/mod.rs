//! Systems in the words of certificates
// Each test program uses its own part of these.
#![allow(dead_code)]

use punctual_certificate::system::{Cpu, Gang, Machine, Policy, Superstep, System, Task};

pub(crate) const FP: Policy = Policy::FixedPriority { preemptive: true };

pub(crate) fn task(name: &str, wcet: u64, period: u64, deadline: u64, priority: u32) -> Task {
    Task {
        name: name.into(),
        cpu: 0,
        scheduler: None,
        slots: Vec::new(),
        class: "periodic".into(),
        separation: Some(period),
        wcet: Some(wcet),
        deadline: Some(deadline),
        priority,
        phase: 0,
        jitter: 0,
        places: 65,
        suspension: 0,
        suspensions: 0,
        section: 0,
        shortest: 0,
        uses: Vec::new(),
        after: Vec::new(),
        follows: Vec::new(),
    }
}

pub(crate) fn system(policy: Policy, rows: &[(u64, u64, u64)]) -> System {
    let tasks = rows.iter().enumerate().map(|(index, &(c, t, d))| {
        let priority = u32::try_from(rows.len() - index).unwrap();
        task(&format!("t{index}"), c, t, d, priority)
    });
    System {
        cpus: vec![Cpu {
            name: "0".into(),
            policy,
        }],
        tasks: tasks.collect(),
        machine: Machine {
            limit_ppm: 1_000_000,
            ..Machine::default()
        },
        ..System::default()
    }
}

/// Two CPUs with work that goes first on the second one, and a gang of two supersteps whose first
/// barrier stays.
pub(crate) fn bulk() -> System {
    let rows = [(20, 100, 100), (20, 100, 100), (5, 100, 100), (5, 100, 100)];
    let mut bulk = system(FP, &rows);
    bulk.cpus.push(Cpu {
        name: "1".into(),
        policy: FP,
    });
    for (index, task) in bulk.tasks.iter_mut().enumerate() {
        task.cpu = index % 2;
        task.priority = if index < 2 { 2 } else { 1 };
        task.phase = if index < 2 { 0 } else { 26 };
        match index < 2 {
            true => task.follows = vec![2, 3],
            false => task.after = vec![0, 1],
        }
    }
    let mut first = task("first", 6, 50, 50, 9);
    first.cpu = 1;
    bulk.tasks.push(first);
    let superstep = |name: &str, members: [usize; 2]| Superstep {
        name: name.into(),
        members: members.to_vec(),
    };
    bulk.gangs.push(Gang {
        name: "bulk".into(),
        supersteps: vec![superstep("compute", [0, 1]), superstep("write", [2, 3])],
    });
    bulk.machine.clock_error = 1;
    bulk
}

/// Two CPUs with the same reservation before the members of a gang.
pub(crate) fn alike() -> System {
    let rows = [(3, 10, 10), (3, 10, 10), (4, 20, 20), (4, 20, 20)];
    let mut alike = system(FP, &rows);
    alike.cpus.push(Cpu {
        name: "1".into(),
        policy: FP,
    });
    for (index, task) in alike.tasks.iter_mut().enumerate() {
        task.cpu = index % 2;
        task.priority = if index < 2 { 2 } else { 1 };
        if index < 2 {
            task.class = "reservation".into();
        }
    }
    alike.gangs.push(Gang {
        name: "step".into(),
        supersteps: vec![Superstep {
            name: "step".into(),
            members: vec![2, 3],
        }],
    });
    alike.machine.clock_error = 2;
    alike
}
