//! Two derivations that share nothing agree, and a mutated certificate is noticed

use punctual_analysis::{TaskVerdict, admit};
use punctual_model::{
    AtBudgetEnd, Class, Cpu, CpuId, Gang, Machine, Mode, Ns, Priority, Protocol, Requirement,
    Reserve, Resource, ResourceId, SchedulerId, Server, ServerKind, Superstep, Trust,
};

use punctual_generate::Dice;

use super::*;

fn small(value: u64) -> u32 {
    u32::try_from(value).expect("small")
}

fn random_policy(dice: &mut Dice) -> PolicyKind<Ns> {
    match dice.below(7) {
        0..=2 => PolicyKind::FixedPriority { preemptive: true },
        3 => PolicyKind::FixedPriority { preemptive: false },
        4 => PolicyKind::Fifo,
        _ => PolicyKind::EarliestDeadlineFirst,
    }
}

fn random_task(dice: &mut Dice, index: u64, tasks: u64) -> Task {
    let period = [8, 10, 12, 15, 20, 30, 40, 60][usize::try_from(dice.below(8)).expect("small")];
    let wcet = 1 + dice.below((period / tasks).max(1));
    let relative_deadline = Span::from_ns(wcet + dice.below(2 * period));
    let class = if dice.one_in(3) {
        Class::Sporadic {
            min_separation: Span::from_ns(period),
            wcet: Work::from_ns(wcet),
            relative_deadline,
        }
    } else {
        Class::Periodic {
            period: Span::from_ns(period),
            wcet: Work::from_ns(wcet),
            relative_deadline,
        }
    };
    let mut task = Task::new(format!("t{index}"), CpuId(0), class);
    task.priority = Priority::new(small(1 + dice.below(5)));
    task.phase = Span::from_ns(dice.below(9));
    if dice.one_in(4) {
        task.jitter = Span::from_ns(1 + dice.below(3));
    }
    if dice.one_in(4) {
        task.non_preemptive = Work::from_ns(1 + dice.below(wcet));
    }
    if dice.one_in(8) {
        task.max_suspension = Span::from_ns(1 + dice.below(2));
        task.suspensions = 1;
    }
    task
}

fn random_system(dice: &mut Dice) -> System {
    let count = 2 + dice.below(4);
    let mut system = System::default();
    system.cpus.push(Cpu {
        name: "0".into(),
        host: None,
        policy: random_policy(dice),
    });
    system.tasks = (0..count).map(|i| random_task(dice, i, count)).collect();
    if dice.one_in(3) {
        let [switch, timer] = [0; 2].map(|_| dice.below(2));
        system.machine = Machine {
            switch: Work::from_ns(switch),
            // The share of a release that falls on another is 1.
            timer: Work::from_ns(3 * timer),
            budget_timer: Work::from_ns(switch),
            preemption: Work::from_ns(switch),
            cache_delay: Work::from_ns(timer),
            ..Machine::default()
        };
    }
    if dice.one_in(3) {
        system.machine.reserves.push(Reserve {
            name: "kernel".into(),
            budget: Work::from_ns(1),
            period: Span::from_ns(10 + dice.below(10)),
        });
    }
    for task in 0..small(count) {
        // Under EDF the response itself is certified only where it is asked for.
        system.requirements.push(Requirement::Response {
            task: TaskId(task),
            within: Span::from_ns(10_000),
        });
    }
    if dice.one_in(3) {
        system.requirements.push(Requirement::Chain {
            tasks: (0..small(count)).map(TaskId).collect(),
            within: Span::from_ns(10_000),
        });
    }
    system
}

fn bounds(certificate: &Certificate) -> Vec<(String, u64)> {
    let Claims::Admitted { nodes, .. } = &certificate.claims else {
        panic!("it is admitted");
    };
    let entities = nodes.iter().flat_map(|node| &node.entities);
    entities.map(|e| (e.name.clone(), e.bound)).collect()
}

/// No bound of the certificate is below that of the verdict.
fn promises_no_more(certificate: &Certificate, verdict: &Verdict, what: &str) {
    for (name, bound) in bounds(certificate) {
        let row = verdict.tasks.iter().find(|row| row.name == name);
        let sharper = row.and_then(|row| row.response_bound).map(Span::as_ns);
        assert!(
            sharper.is_none_or(|s| s <= bound),
            "{name} {bound} {sharper:?} {what}"
        );
    }
}

#[test]
fn on_a_whole_cpu_both_derivations_have_the_same_bounds() {
    let mut dice = Dice::new(4);
    let (mut admitted, mut refused, mut chains) = (0, 0, 0);
    for seed in 0..1_500 {
        let system = random_system(&mut dice);
        let verdict = admit(&system).expect("the analysis ends");
        match issue(&system, &verdict) {
            Ok(certificate) if verdict.admitted => {
                let row = |row: &TaskVerdict| (row.name.clone(), row.response_bound);
                let expected: Vec<_> = verdict.tasks.iter().map(row).collect();
                let found = bounds(&certificate).into_iter();
                let found: Vec<_> = found.map(|(n, b)| (n, Some(Span::from_ns(b)))).collect();
                assert_eq!(found, expected, "seed {seed} {system:#?}");
                let Claims::Admitted { required, .. } = &certificate.claims else {
                    panic!("it is admitted");
                };
                if let (Some(chain), Some(last)) = (verdict.chains.first(), required.last()) {
                    assert_eq!(
                        chain.bound.map(Span::as_ns),
                        Some(last.bound),
                        "seed {seed}"
                    );
                    chains += 1;
                }
                admitted += 1;
                assert_eq!(punctual_certificate::verify(&certificate), Ok(()));
            }
            Ok(certificate) => {
                assert_eq!(punctual_certificate::verify(&certificate), Ok(()));
                refused += 1;
            }
            // An admitted plain system is certified; not every refusal has a witness.
            Err(why) => assert!(!verdict.admitted, "seed {seed}: {why} {system:#?}"),
        }
    }
    assert!(admitted > 300, "{admitted}");
    assert!(refused > 300, "{refused}");
    assert!(chains > 30, "{chains}");
}

fn server(
    name: &str,
    parent: Option<SchedulerId>,
    kind: ServerKind,
    (budget, period): (u64, u64),
) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent,
        policy: PolicyKind::EarliestDeadlineFirst,
        priority: Priority::new(9),
        supply: Supply::Server(Server {
            kind,
            budget: Work::from_ns(budget),
            period: Span::from_ns(period),
        }),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

#[test]
fn a_server_is_certified_with_its_longest_blackout() {
    let mut dice = Dice::new(9);
    let mut certified = 0;
    for seed in 0..200 {
        let mut system = random_system(&mut dice);
        system.requirements.clear();
        system.machine = Machine::default();
        system.cpus[0].policy = PolicyKind::FixedPriority { preemptive: true };
        let kinds = [
            ServerKind::Deferrable,
            ServerKind::Polling,
            ServerKind::PeriodicResource,
        ];
        let kind = kinds[usize::try_from(dice.below(3)).expect("small")];
        system
            .schedulers
            .push(server("app", None, kind, (3 + dice.below(3), 6)));
        system.tasks[0].scheduler = Some(SchedulerId(0));
        let Ok(verdict) = admit(&system) else {
            continue;
        };
        match (issue(&system, &verdict), verdict.admitted) {
            (Ok(certificate), true) => {
                assert_eq!(punctual_certificate::verify(&certificate), Ok(()));
                // Knowing less of the server, it promises less.
                promises_no_more(&certificate, &verdict, &format!("seed {seed} {system:#?}"));
                certified += 1;
            }
            (Ok(certificate), false) => {
                assert!(
                    !matches!(certificate.claims, Claims::Admitted { .. }),
                    "seed {seed}"
                );
            }
            (Err(_), _) => {}
        }
    }
    assert!(certified > 5, "{certified}");
}

/// Below an EDF CPU or below a server there, and beside others with sections and reserves: what is
/// certified is admitted, and no bound is below that of the analysis.
#[test]
fn constant_bandwidth_servers_are_certified_only_where_they_are_admitted() {
    let mut dice = Dice::new(31);
    let (mut certified, mut nested, mut refused) = (0, 0, 0);
    for seed in 0..2_000 {
        let mut system = random_system(&mut dice);
        system.requirements.clear();
        let reserves = core::mem::take(&mut system.machine.reserves);
        system.machine = Machine {
            reserves,
            ..Machine::default()
        };
        system.cpus[0].policy = PolicyKind::EarliestDeadlineFirst;
        let is_nested = dice.one_in(2);
        if is_nested {
            let kind = ServerKind::PeriodicResource;
            system.schedulers.push(server("above", None, kind, (4, 6)));
            system.tasks[1].scheduler = Some(SchedulerId(0));
        }
        let parent = is_nested.then_some(SchedulerId(0));
        let own = SchedulerId(u16::from(is_nested));
        let terms = (1 + dice.below(4), 5 + dice.below(20));
        let kind = ServerKind::ConstantBandwidth;
        system.schedulers.push(server("app", parent, kind, terms));
        if dice.one_in(3) {
            system.tasks[0].class = Class::Aperiodic;
        }
        system.tasks[0].scheduler = Some(own);
        if system.validate().is_err() {
            continue;
        }
        let (Ok(verdict), Ok(certificate)) = (admit(&system), certify_admitted(&plain(&system)))
        else {
            refused += 1;
            continue;
        };
        assert!(verdict.admitted, "seed {seed} {system:#?}");
        assert_eq!(punctual_certificate::verify(&certificate), Ok(()));
        promises_no_more(&certificate, &verdict, &format!("seed {seed} {system:#?}"));
        certified += 1;
        nested += u32::from(is_nested);
    }
    assert!(
        certified > 100 && nested > 20 && refused > 100,
        "{certified} {nested} {refused}"
    );
}

fn lock(dice: &mut Dice, system: &mut System) {
    let protocols = [
        Protocol::Inheritance,
        Protocol::ImmediateCeiling,
        Protocol::StackResource,
        Protocol::NonPreemptive,
    ];
    for name in ["bus", "disk"] {
        system.resources.push(Resource {
            name: name.into(),
            protocol: protocols[usize::try_from(dice.below(4)).expect("small")],
            at_budget_end: AtBudgetEnd::Overrun,
        });
    }
    for task in &mut system.tasks {
        let mut left = task.class.budget().map_or(0, Work::as_ns);
        for resource in 0..2 {
            if left > 0 && dice.one_in(2) {
                let length = 1 + dice.below(left.min(3));
                left -= length;
                task.uses.push(punctual_model::Use {
                    resource: ResourceId(resource),
                    length: Work::from_ns(length),
                    mode: Mode::Exclusive,
                    inside: None,
                });
            }
        }
    }
}

#[test]
fn both_derivations_agree_on_what_locks_block() {
    let mut dice = Dice::new(21);
    let (mut certified, mut blocked) = (0, 0);
    for seed in 0..2_000 {
        let mut system = random_system(&mut dice);
        system.machine = Machine::default();
        system.cpus[0].policy = if dice.one_in(3) {
            PolicyKind::EarliestDeadlineFirst
        } else {
            PolicyKind::FixedPriority { preemptive: true }
        };
        for task in &mut system.tasks {
            task.max_suspension = Span::ZERO;
            task.suspensions = 0;
        }
        let free = admit(&system).expect("the analysis ends");
        lock(&mut dice, &mut system);
        if system.validate().is_err() {
            continue;
        }
        let verdict = admit(&system).expect("the analysis ends");
        if !verdict.admitted {
            continue;
        }
        let certificate = issue(&system, &verdict);
        let certificate =
            certificate.unwrap_or_else(|why| panic!("seed {seed}: {why} {system:#?}"));
        let row = |row: &TaskVerdict| (row.name.clone(), row.response_bound);
        let expected: Vec<_> = verdict.tasks.iter().map(row).collect();
        let found = bounds(&certificate).into_iter();
        let found: Vec<_> = found.map(|(n, b)| (n, Some(Span::from_ns(b)))).collect();
        assert_eq!(found, expected, "seed {seed} {system:#?}");
        certified += 1;
        let freed: Vec<_> = free.tasks.iter().map(row).collect();
        blocked += usize::from(freed != expected);
    }
    assert!(certified > 300, "{certified}");
    assert!(blocked > 100, "{blocked} of {certified} are blocked");
}

/// A gang of one to three supersteps on two to four CPUs, among other work.
fn random_gang(dice: &mut Dice) -> System {
    let count = u16::try_from(2 + dice.below(3)).expect("small");
    let policy = match dice.one_in(3) {
        true => PolicyKind::EarliestDeadlineFirst,
        false => PolicyKind::FixedPriority { preemptive: true },
    };
    let mut system = System::default();
    for number in 0..count {
        system.cpus.push(Cpu {
            name: number.to_string(),
            host: None,
            policy,
        });
    }
    system.machine.clock_error = Span::from_ns(dice.below(3));
    let reservation = |dice: &mut Dice| Class::Reservation {
        period: Span::from_ns(20 + 20 * dice.below(2)),
        slice: Work::from_ns(1 + dice.below(6)),
    };
    let same = (reservation(dice), dice.below(5), dice.one_in(2));
    for cpu in (0..count).map(CpuId) {
        let (class, phase) = match same {
            (class, phase, true) => (class, phase),
            _ => (reservation(dice), dice.below(5)),
        };
        let mut task = Task::new(format!("r{}", cpu.0), cpu, class);
        (task.priority, task.phase) = (Priority::new(9), Span::from_ns(phase));
        system.tasks.push(task);
    }
    let mut gang = Gang {
        name: "g".into(),
        supersteps: Vec::new(),
    };
    let mut at = dice.below(4);
    for number in 0..1 + dice.below(3) {
        let wcet = 1 + dice.below(7);
        let mut members = Vec::new();
        for cpu in (0..count).map(CpuId) {
            let class = Class::Periodic {
                period: Span::from_ns(80),
                wcet: Work::from_ns(wcet),
                relative_deadline: Span::from_ns(60),
            };
            let mut task = Task::new(format!("g{number}.{}", cpu.0), cpu, class);
            (task.priority, task.phase) = (Priority::new(5), Span::from_ns(at));
            members.push(TaskId(small(system.tasks.len() as u64)));
            system.tasks.push(task);
        }
        gang.supersteps.push(Superstep {
            name: format!("s{number}"),
            members,
        });
        at += wcet + dice.below(15);
    }
    let barriers: Vec<_> = gang.barriers().collect();
    system.gangs.push(gang);
    for barrier in barriers {
        system.keep_barrier(0, barrier);
    }
    system
}

#[test]
fn both_derivations_have_the_same_skews_and_leave_out_the_same_barriers() {
    let mut dice = Dice::new(15);
    let (mut alike, mut others, mut left_out, mut kept) = (0, 0, 0, 0);
    for seed in 0..400 {
        let system = random_gang(&mut dice);
        assert_eq!(system.validate(), Ok(()), "seed {seed}");
        let verdict = admit(&system).expect("the analysis ends");
        if !verdict.admitted {
            continue;
        }
        let certificate = issue(&system, &verdict);
        let certificate =
            certificate.unwrap_or_else(|why| panic!("seed {seed}: {why} {system:#?}"));
        assert_eq!(punctual_certificate::verify(&certificate), Ok(()));
        let Claims::Admitted { gangs, .. } = &certificate.claims else {
            panic!("it is admitted");
        };
        let (ours, theirs) = (&verdict.gangs[0], &gangs[0]);
        for (own, other) in ours.supersteps.iter().zip(&theirs.supersteps) {
            let bound = own.bound.map(Span::as_ns);
            assert_eq!(bound, Some(other.skew), "seed {seed} {system:#?}");
            if other.alike {
                alike += 1;
            } else {
                others += 1;
            }
        }
        assert_eq!(ours.barriers.len(), theirs.barriers.len());
        for (own, other) in ours.barriers.iter().zip(&theirs.barriers) {
            let times = [own.worst_end, own.begins].map(|time| time.map(Span::as_ns));
            let claimed = [other.end, other.begins].map(Some);
            assert_eq!(times, claimed, "seed {seed} {system:#?}");
            assert_eq!(own.left_out, other.left_out, "seed {seed}");
            if other.left_out {
                left_out += 1;
            } else {
                kept += 1;
            }
        }
        assert_eq!(wider(&verdict, &certificate), Vec::<String>::new());
    }
    println!("{alike} alike, {others} not; {left_out} barriers go, {kept} stay");
    let all = [alike, others, left_out, kept];
    assert!(all.iter().all(|&seen| seen > 20), "{all:?}");
}
