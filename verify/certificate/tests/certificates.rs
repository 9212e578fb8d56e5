//! Certificates of systems whose numbers can be found by hand, and of changed ones
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{FP, alike, bulk, system};
use punctual_certificate::system::{
    Machine, Policy, Required, Resource, Scheduler, Slot, Supply, System, Task, Use,
};
use punctual_certificate::{
    Certificate, Claims, EntityClaim, LedClaim, PLAN_FORMAT, PlanCertificate, Wrong,
    certify_admitted, certify_late, certify_overdue, digest, read, verify, verify_plan,
};
use serde_json::Value;

fn section(resource: usize, length: u64) -> Use {
    Use {
        resource,
        length,
        inside: None,
    }
}

fn entities(certificate: &Certificate) -> Vec<&EntityClaim> {
    match &certificate.claims {
        Claims::Admitted { nodes, .. } => nodes.iter().flat_map(|n| &n.entities).collect(),
        other => panic!("{other:?}"),
    }
}

fn bounds(system: &System) -> Vec<u64> {
    let certificate = certify_admitted(system).unwrap();
    assert_eq!(verify(&certificate), Ok(()));
    entities(&certificate).iter().map(|e| e.bound).collect()
}

#[test]
fn fixed_priority_bounds_are_those_of_the_textbook() {
    let rows = [(3, 7, 7), (3, 12, 12), (5, 20, 20)];
    assert_eq!(bounds(&system(FP, &rows)), [3, 6, 20]);
}

#[test]
fn the_demand_test_lists_the_instants_that_it_needs() {
    let edf = system(Policy::Edf, &[(2, 10, 5), (3, 15, 9), (4, 20, 12)]);
    let certificate = certify_admitted(&edf).unwrap();
    let Claims::Admitted { nodes, .. } = &certificate.claims else {
        panic!("it is admitted");
    };
    let points: Vec<_> = nodes[0]
        .points
        .iter()
        .map(|p| (p.at, p.demand, p.done))
        .collect();
    // The busy window is 9 long: 2 + 3 + 4. By 9, 5 are due; by 5, 2.
    assert_eq!(points, [(9, 5, 5), (5, 2, 2)]);
}

#[test]
fn edf_responses_are_listed_where_they_are_required() {
    let mut edf = system(Policy::Edf, &[(3, 7, 7), (3, 12, 12), (5, 20, 20)]);
    assert_eq!(bounds(&edf), [7, 12, 20]);
    for (task, within) in [(0, 3), (1, 8), (2, 16)] {
        edf.required.push(Required::Response { task, within });
    }
    assert_eq!(bounds(&edf), [3, 8, 16]);
}

#[test]
fn a_server_supplies_after_its_blackout() {
    let mut tree = system(FP, &[(2, 20, 20), (1, 30, 30)]);
    tree.schedulers.push(Scheduler {
        name: "app".into(),
        cpu: 0,
        parent: None,
        policy: FP,
        priority: 9,
        supply: Supply::Server {
            kind: "deferrable".into(),
            budget: 2,
            period: 5,
        },
    });
    tree.tasks[0].scheduler = Some(0);
    // t1 meets 2 of the server just before the end of its period, 2 after it, and needs 1; t0
    // waits for 2 * (5 - 2).
    assert_eq!(bounds(&tree), [5, 2, 8]);
}

#[test]
fn slots_supply_from_their_worst_offset() {
    let mut divided = system(Policy::Tdm { frame: 10 }, &[(2, 20, 20), (4, 40, 40)]);
    divided.tasks[0].slots = vec![Slot { at: 0, length: 3 }];
    divided.schedulers.push(Scheduler {
        name: "b".into(),
        cpu: 0,
        parent: None,
        policy: FP,
        priority: 0,
        supply: Supply::Slots(vec![Slot { at: 4, length: 3 }, Slot { at: 8, length: 1 }]),
    });
    divided.tasks[1].scheduler = Some(0);
    // t0: from 3 on, 7 until its slot. t1: from 9 on, 5 until [4, 7), 1 until [8, 9): 10 for 4.
    assert_eq!(bounds(&divided), [9, 10]);
    divided.tasks[0].slots[0].length = 5;
    assert!(certify_admitted(&divided).is_err(), "slots overlap");
}

#[test]
fn sections_block_once_by_ceiling_and_once_per_holder_by_inheritance() {
    let rows = [(1, 20, 20), (1, 20, 20), (4, 20, 20), (4, 20, 20)];
    let mut locked = system(FP, &rows);
    for name in ["bus", "disk"] {
        locked.resources.push(Resource {
            name: name.into(),
            protocol: "immediate-ceiling".into(),
        });
    }
    // t0 uses both, t2 the bus for 2, t3 the disk for 3: t1 is below both ceilings.
    locked.tasks[0].uses = vec![section(0, 1), section(1, 1)];
    locked.tasks[2].uses = vec![section(0, 2)];
    locked.tasks[3].uses = vec![section(1, 3)];
    assert_eq!(bounds(&locked), [4, 5, 9, 10]);
    for resource in &mut locked.resources {
        resource.protocol = "inheritance".into();
    }
    assert_eq!(bounds(&locked), [6, 7, 9, 10]);
}

#[test]
fn a_chain_is_the_sum_of_distances_and_a_response() {
    let mut chain = system(FP, &[(2, 10, 10), (3, 10, 10)]);
    let tasks = vec![1, 0];
    chain.required.push(Required::Chain { tasks, within: 12 });
    let certificate = certify_admitted(&chain).unwrap();
    let Claims::Admitted { required, .. } = &certificate.claims else {
        panic!("it is admitted");
    };
    assert_eq!(required[0].bound, 12);
}

#[test]
fn an_overload_is_certified_by_its_demand() {
    let over = system(Policy::Edf, &[(3, 5, 4), (2, 10, 3), (2, 20, 20)]);
    assert!(certify_admitted(&over).is_err());
    let certificate = certify_overdue(&over, "0", 4).unwrap();
    let Claims::Overdue(claim) = &certificate.claims else {
        panic!("it is overdue");
    };
    assert_eq!((claim.demand, claim.supply), (5, 4));
    assert_eq!(verify(&certificate), Ok(()));
    assert!(certify_overdue(&over, "0", 3).is_err());
}

#[test]
fn a_late_job_is_certified_by_its_response() {
    let late = system(FP, &[(3, 7, 7), (3, 12, 5)]);
    let certificate = certify_late(&late, "t1", 0).unwrap();
    let Claims::Late(claim) = &certificate.claims else {
        panic!("it is late");
    };
    assert_eq!((claim.response, claim.allowed), (6, 5));
    assert_eq!(verify(&certificate), Ok(()));
}

#[test]
fn what_is_not_understood_is_not_certified() {
    let mut locked = system(FP, &[(3, 7, 7)]);
    locked.resources.push(Resource {
        name: "bus".into(),
        protocol: "spin".into(),
    });
    locked.tasks[0].uses.push(section(0, 1));
    let why = certify_admitted(&locked).unwrap_err().to_string();
    assert!(why.contains("the protocol spin"), "{why}");
    let mut waiting = system(FP, &[(3, 7, 7), (1, 7, 7)]);
    waiting.tasks[0].after.push(1);
    waiting.tasks[1].deadline = None;
    let why = certify_admitted(&waiting).unwrap_err().to_string();
    assert!(why.contains("the wait of t0 for t1"), "{why}");
    let mut dear = system(FP, &[(1, 10, 6), (2, 10, 8)]);
    dear.tasks[0].follows.push(1);
    dear.tasks[0].phase = 2;
    dear.machine.switch = 1;
    let why = certify_admitted(&dear).unwrap_err().to_string();
    assert!(why.contains("where switching has a price"), "{why}");
}

#[test]
fn it_says_which_task_pays_the_timer_entry_of_which() {
    let mut costly = system(FP, &[(10, 500, 500), (20, 1_000, 1_000)]);
    costly.machine = Machine {
        switch: 1,
        timer: 32,
        preemption: 3,
        cache_delay: 2,
        ..costly.machine
    };
    // 10 + 7 + an entry of 32 and a sixteenth; the second job pays two switches alone. An overrun
    // takes three entries.
    assert_eq!(bounds(&costly), [147, 265]);
    let certificate = certify_admitted(&costly).unwrap();
    let led = |certificate: &Certificate| match &certificate.claims {
        Claims::Admitted { led, .. } => led.clone(),
        other => panic!("{other:?}"),
    };
    let claim = LedClaim {
        task: "t1".into(),
        leader: "t0".into(),
        entry: 2,
        preempts: false,
    };
    assert_eq!(led(&certificate), [claim]);
    let text = serde_json::to_string(&certificate).unwrap();
    for (true_, false_) in [
        ("\"leader\":\"t0\"", "\"leader\":\"t1\""),
        ("\"preempts\":false", "\"preempts\":true"),
        ("\"entry\":2", "\"entry\":0"),
    ] {
        let forged = read(&text.replace(true_, false_)).unwrap();
        assert!(matches!(verify(&forged), Err(Wrong::Number { .. })));
    }
    let alone = |change: &dyn Fn(&mut Task)| {
        let mut other = costly.clone();
        change(&mut other.tasks[1]);
        assert_eq!(bounds(&other), [177, 300]);
        assert_eq!(led(&certify_admitted(&other).unwrap()), []);
    };
    alone(&|task| task.phase = 99);
    alone(&|task| task.class = "sporadic".into());
}

#[test]
fn unknown_keys_and_other_formats_are_no_certificates() {
    let certificate = certify_admitted(&system(FP, &[(3, 7, 7)])).unwrap();
    let text = serde_json::to_string(&certificate).unwrap();
    assert!(read(&text).is_ok());
    let newer = text.replace("\"format\":2", "\"format\":3");
    assert!(matches!(read(&newer), Err(Wrong::Form(_))));
    let more = text.replace("\"digest\"", "\"trust\":1,\"digest\"");
    assert!(matches!(read(&more), Err(Wrong::Form(_))));
}

/// The places of all numbers of a value.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_string()),
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                numbers(value, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                numbers(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn samples() -> Vec<Certificate> {
    let mut mixed = system(FP, &[(3, 7, 7), (3, 12, 12), (5, 40, 40)]);
    mixed.tasks[1].section = 2;
    mixed.machine.switch = 0;
    let tasks = vec![0, 2];
    mixed.required.push(Required::Chain { tasks, within: 200 });
    let mut edf = system(Policy::Edf, &[(2, 10, 9), (3, 15, 15), (4, 20, 20)]);
    edf.tasks[2].section = 3;
    edf.required.push(Required::Response {
        task: 1,
        within: 15,
    });
    let over = system(Policy::Edf, &[(3, 5, 4), (2, 10, 3), (2, 20, 20)]);
    let late = system(FP, &[(3, 7, 7), (3, 12, 5)]);
    vec![
        certify_admitted(&mixed).unwrap(),
        certify_admitted(&edf).unwrap(),
        certify_overdue(&over, "0", 4).unwrap(),
        certify_late(&late, "t1", 0).unwrap(),
        certify_admitted(&bulk()).unwrap(),
        certify_admitted(&alike()).unwrap(),
    ]
}

#[test]
fn one_changed_number_is_always_noticed() {
    let mut changed = 0;
    for certificate in samples() {
        assert_eq!(verify(&certificate), Ok(()));
        let value = serde_json::to_value(&certificate).unwrap();
        let mut places = Vec::new();
        numbers(&value, "", &mut places);
        for place in places {
            let now = value.pointer(&place).unwrap().as_u64().unwrap();
            for other in [
                now + 1,
                now.saturating_sub(1),
                now * 2,
                now / 2,
                0,
                now + 1_000_000,
            ] {
                if other == now {
                    continue;
                }
                let mut mutant = value.clone();
                *mutant.pointer_mut(&place).unwrap() = other.into();
                let noticed = match read(&mutant.to_string()) {
                    Ok(mutant) => verify(&mutant).is_err(),
                    Err(_) => true,
                };
                assert!(noticed, "{place} was {now}, is {other}");
                changed += 1;
            }
        }
    }
    assert!(changed > 500, "{changed}");
}

#[test]
fn a_changed_claim_is_noticed_without_the_digest_and_named() {
    let mut certificate = samples().remove(0);
    let Claims::Admitted { nodes, .. } = &mut certificate.claims else {
        panic!("it is admitted");
    };
    nodes[0].entities[2].jobs[0].completion += 1;
    let wrong = verify(&certificate).unwrap_err().to_string();
    let place = "claims.admitted.nodes[0].entities[2].jobs[0].completion";
    assert!(wrong.starts_with(place), "{wrong}");
    // A forger who renews the digest has to find claims that follow from the other system.
    let mut forged = samples().remove(0);
    forged.system.tasks[0].wcet = Some(4);
    forged.digest = digest(&forged.system);
    assert!(matches!(
        verify(&forged),
        Err(Wrong::Number { .. } | Wrong::Verdict(_))
    ));
}

#[test]
fn no_number_makes_the_checker_panic() {
    let mut trees = system(FP, &[(2, 20, 20), (1, 30, 30)]);
    trees.schedulers.push(Scheduler {
        name: "app".into(),
        cpu: 0,
        parent: None,
        policy: Policy::Edf,
        priority: 9,
        supply: Supply::Server {
            kind: "polling".into(),
            budget: 3,
            period: 5,
        },
    });
    trees.tasks[0].scheduler = Some(0);
    let turns = system(
        Policy::RoundRobin { timeslice: 2 },
        &[(2, 20, 20), (1, 30, 30)],
    );
    let mut divided = system(Policy::Tdm { frame: 10 }, &[(2, 30, 30)]);
    divided.tasks[0].slots = vec![Slot { at: 0, length: 3 }];
    let more = [trees, turns, divided].map(|system| certify_admitted(&system).unwrap());
    for certificate in samples().into_iter().chain(more) {
        let value = serde_json::to_value(&certificate).unwrap();
        let mut places = Vec::new();
        numbers(&value, "", &mut places);
        for place in &places {
            for other in [u64::MAX, u64::MAX / 2, 1 << 62, 1 << 61, 1 << 32, 1, 0] {
                let mut mutant = value.clone();
                *mutant.pointer_mut(place).unwrap() = other.into();
                if let Ok(mut mutant) = read(&mutant.to_string()) {
                    mutant.digest = digest(&mutant.system);
                    // Right or wrong: it answers.
                    let _ = verify(&mutant);
                }
            }
        }
    }
}

/// The predecessor is less urgent, and done before the next arrival: nobody waits.
#[test]
fn a_predecessor_that_is_done_by_then_costs_nothing() {
    for policy in [FP, Policy::Edf] {
        let mut read_back = system(policy, &[(1, 10, 6), (2, 10, 8)]);
        read_back.tasks[0].class = "periodic".into();
        read_back.tasks[1].class = "periodic".into();
        read_back.tasks[0].follows.push(1);
        let certificate = certify_admitted(&read_back).unwrap();
        let Claims::Admitted { waits, .. } = &certificate.claims else {
            panic!("it is admitted");
        };
        assert_eq!((waits[0].bound, waits[0].distance), (3, 10));
        assert_eq!(verify(&certificate), Ok(()));
        let mut forged = certificate.clone();
        let Claims::Admitted { waits, .. } = &mut forged.claims else {
            panic!("it is admitted");
        };
        waits[0].bound = 2;
        assert!(matches!(verify(&forged), Err(Wrong::Number { .. })));
        // It may still run when the next job arrives: that one waits.
        let mut late = read_back.clone();
        late.tasks[0].phase = 2;
        late.tasks[1].phase = 0;
        let certificate = certify_admitted(&late).unwrap();
        let own = entities(&certificate)[0];
        // Under EDF nobody asks for its response, so that is the deadline.
        let bound = if policy == FP { 2 } else { 6 };
        assert_eq!((own.waiting, own.bound), (1, bound), "{policy:?}");
        let text = serde_json::to_string(&certificate).unwrap();
        let forged = read(&text.replace("\"waiting\":1", "\"waiting\":0")).unwrap();
        let wrong = verify(&forged).unwrap_err().to_string();
        assert!(wrong.contains("waiting"), "{wrong}");
        // Where that takes too long, it is not admitted.
        late.tasks[0].deadline = Some(1);
        assert!(certify_admitted(&late).is_err());
        let mut sporadic = read_back.clone();
        sporadic.tasks[1].class = "sporadic".into();
        // It does not come by the clock, so it may arrive just before.
        let certificate = certify_admitted(&sporadic).unwrap();
        assert_eq!(entities(&certificate)[0].waiting, 2, "{policy:?}");
    }
}

/// A server right below a CPU is certified to come late, one below another server is not.
#[test]
fn a_budget_that_comes_late_is_certified_or_the_reason_is_true() {
    let server = |name: &str, parent, budget, period| Scheduler {
        name: name.into(),
        cpu: 0,
        parent,
        policy: FP,
        priority: 1,
        supply: Supply::Server {
            kind: "periodic-resource".into(),
            budget,
            period,
        },
    };
    let mut late = system(FP, &[(5, 10, 10)]);
    late.tasks[0].priority = 2;
    late.schedulers.push(server("s", None, 6, 10));
    let certificate = certify_late(&late, "scheduler.s", 0).unwrap();
    let Claims::Late(claim) = &certificate.claims else {
        panic!("it is late");
    };
    // One of 6 + 5 within 10, and 5 more from there on.
    assert_eq!((claim.response, claim.allowed), (16, 10));
    assert_eq!(verify(&certificate), Ok(()));
    late.schedulers[0] = server("s", None, 4, 10);
    late.schedulers.push(server("t", Some(0), 4, 5));
    let on_time = certify_late(&late, "scheduler.s", 0)
        .unwrap_err()
        .to_string();
    assert!(on_time.contains("on time"), "{on_time}");
    let nested = certify_late(&late, "scheduler.t", 0)
        .unwrap_err()
        .to_string();
    assert!(
        nested.contains("the late budget of t, for that of s above it"),
        "{nested}"
    );
}

/// The rest beside a plan is admitted: the proof of a refusal proves no yes.
#[test]
fn a_plan_beside_a_refusal_is_no_proof() {
    let plan = |rest| PlanCertificate {
        format: PLAN_FORMAT,
        cpus: Vec::new(),
        resources: Vec::new(),
        repeats_from: 0,
        period: 0,
        segments: Vec::new(),
        places: Vec::new(),
        rest,
    };
    let good = certify_admitted(&system(FP, &[(5, 10, 10)])).unwrap();
    assert_eq!(verify_plan(&plan(Some(good))), Ok(()));
    let late = certify_late(&system(FP, &[(5, 10, 10), (6, 10, 10)]), "t1", 0).unwrap();
    assert_eq!(verify(&late), Ok(()));
    let why = verify_plan(&plan(Some(late))).unwrap_err().to_string();
    assert!(why.contains("what is no segment is refused"), "{why}");
}

fn constant_bandwidth(parent: Option<usize>, budget: u64, period: u64) -> Scheduler {
    Scheduler {
        name: "app".into(),
        cpu: 0,
        parent,
        policy: FP,
        priority: 9,
        supply: Supply::Server {
            kind: "constant-bandwidth".into(),
            budget,
            period,
        },
    }
}

/// It may ask for the rest of a budget by an early deadline: half of any window, not 5 in each 10.
#[test]
fn a_constant_bandwidth_server_asks_for_its_share_of_every_window() {
    let mut tree = system(Policy::Edf, &[(4, 100, 7), (1, 100, 100)]);
    tree.schedulers.push(constant_bandwidth(None, 5, 10));
    tree.tasks[1].scheduler = Some(0);
    // Nothing for 2 * (10 - 5), then 1.
    assert_eq!(bounds(&tree), [7, 10, 11]);
    // 5 + 3 by 7.
    tree.tasks[0].wcet = Some(5);
    let late = certify_admitted(&tree).unwrap_err().to_string();
    assert!(late.contains("more is due than can be done"), "{late}");
    // Only its own work is background, and it is the same.
    tree.tasks.truncate(1);
    assert!(certify_admitted(&tree).is_err());
    tree.tasks[0].wcet = Some(4);
    assert!(certify_admitted(&tree).is_ok());
    tree.required
        .push(Required::Response { task: 0, within: 7 });
    let asked = certify_admitted(&tree).unwrap_err().to_string();
    assert!(asked.contains("a response beside"), "{asked}");
    tree.required.clear();
    let refusal = certify_overdue(&tree, "0", 7).unwrap_err().to_string();
    assert!(refusal.contains("a refusal beside"), "{refusal}");
    tree.cpus[0].policy = FP;
    let ranked = certify_admitted(&tree).unwrap_err().to_string();
    assert!(ranked.contains("under priorities"), "{ranked}");
}

/// A rest of its budget may come late there, and the next budget a period after that.
#[test]
fn a_constant_bandwidth_server_waits_for_a_period_where_its_rests_may_be_late() {
    let mut section = system(Policy::Edf, &[(4, 100, 90), (1, 100, 100)]);
    section.schedulers.push(constant_bandwidth(None, 5, 10));
    section.tasks[1].scheduler = Some(0);
    section.tasks[0].section = 3;
    assert_eq!(bounds(&section), [90, 10, 16]);
    // Below a server: 6 in 10, so 7 are there by 8 + 10 + 1.
    let mut nested = system(FP, &[(3, 20, 20), (1, 100, 100)]);
    nested.schedulers.push(Scheduler {
        name: "above".into(),
        cpu: 0,
        parent: None,
        policy: Policy::Edf,
        priority: 9,
        supply: Supply::Server {
            kind: "periodic-resource".into(),
            budget: 6,
            period: 10,
        },
    });
    nested.schedulers.push(constant_bandwidth(Some(0), 4, 20));
    nested.tasks[0].scheduler = Some(0);
    nested.tasks[1].scheduler = Some(1);
    assert_eq!(bounds(&nested), [6, 20, 20, 20 + 16 + 1]);
    // By 20, 8 would be due with 3 + 1, and are there by 8 + 10 + 2; by 19 it asks for 3 alone.
    nested.tasks[0].wcet = Some(4);
    assert!(certify_admitted(&nested).is_ok());
    nested.tasks[0].wcet = Some(5);
    assert!(certify_admitted(&nested).is_err());
}
