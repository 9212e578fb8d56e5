//! Certificates of gangs by hand, and forged ones
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{alike, bulk};
use punctual_certificate::system::{Policy, Reserve, System, Task};
use punctual_certificate::{Certificate, Claims, GangClaim, certify_admitted, read, verify};

fn gangs(certificate: &Certificate) -> &[GangClaim] {
    match &certificate.claims {
        Claims::Admitted { gangs, .. } => gangs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gang_is_certified_by_its_latest_starts_and_its_barriers_by_their_ends() {
    let certificate = certify_admitted(&bulk()).unwrap();
    assert_eq!(verify(&certificate), Ok(()));
    let gang = &gangs(&certificate)[0];
    // `compute` ends by 26 behind 6 of `first`, which is 1 more than its writing can tell.
    assert_eq!(gang.supersteps[0].latest, [0, 6]);
    assert_eq!(gang.supersteps[0].skew, 7);
    let barrier = |place: usize| {
        let claim = &gang.barriers[place];
        (claim.end, claim.begins, claim.left_out)
    };
    assert_eq!(barrier(0), (26, 26, false));
    // `write` may be released with everything before it: 6 + 20 + 5 on the second CPU.
    assert_eq!(barrier(1), (26 + 31, 100, true));
    let Claims::Admitted { nodes, .. } = &certificate.claims else {
        panic!("it is admitted");
    };
    let waiting = nodes.iter().flat_map(|node| &node.entities);
    assert_eq!(waiting.map(|entity| entity.waiting).max(), Some(1));
    // One clock tick less, and it goes.
    let mut exact = bulk();
    exact.machine.clock_error = 0;
    let certificate = certify_admitted(&exact).unwrap();
    assert!(gangs(&certificate)[0].barriers.iter().all(|b| b.left_out));
}

#[test]
fn a_forged_gang_is_refused_and_the_number_is_named() {
    let certificate = certify_admitted(&bulk()).unwrap();
    let text = serde_json::to_string(&certificate).unwrap();
    for (place, true_, false_) in [
        ("gangs[0].supersteps[0].skew", "\"skew\":7", "\"skew\":6"),
        (
            "gangs[0].supersteps[0].latest[1]",
            "\"latest\":[0,6]",
            "\"latest\":[0,5]",
        ),
        (
            "gangs[0].barriers[0].left_out",
            "\"begins\":26,\"left_out\":false",
            "\"begins\":26,\"left_out\":true",
        ),
        ("gangs[0].barriers[0].end", "\"end\":26", "\"end\":25"),
        (
            "gangs[0].barriers[0].clocks",
            "\"clocks\":1,\"begins\":26",
            "\"clocks\":0,\"begins\":26",
        ),
    ] {
        assert!(text.contains(true_), "{true_} in {text}");
        let forged = read(&text.replacen(true_, false_, 1)).unwrap();
        let wrong = verify(&forged).unwrap_err().to_string();
        assert!(
            wrong.starts_with(&format!("claims.admitted.{place}")),
            "{wrong}"
        );
    }
    // Members that do not arrive together, or on one CPU, are no gang.
    for change in [
        (|task: &mut Task| task.phase = 1) as fn(&mut Task),
        |task| task.wcet = Some(19),
        |task| task.cpu = 1,
    ] {
        let mut other = bulk();
        change(&mut other.tasks[0]);
        let why = certify_admitted(&other).unwrap_err().to_string();
        assert!(why.contains("do not arrive together"), "{why}");
    }
}

#[test]
fn cpus_that_decide_alike_differ_by_their_clocks_alone() {
    let skew = |system: &System| {
        let certificate = certify_admitted(system).unwrap();
        let step = &gangs(&certificate)[0].supersteps[0];
        (step.alike, step.skew)
    };
    assert_eq!(skew(&alike()), (true, 2));
    let differs = |change: fn(&mut System)| {
        let mut other = alike();
        change(&mut other);
        assert_eq!(skew(&other), (false, 5));
    };
    differs(|s| s.tasks[1].phase = 1);
    differs(|s| (s.tasks[0].class, s.tasks[1].class) = ("periodic".into(), "periodic".into()));
    differs(|s| s.tasks[1].priority = 3);
    differs(|s| (s.tasks[1].wcet, s.tasks[0].section) = (Some(2), 0));
    let mut taken = alike();
    taken.machine.reserves.push(Reserve {
        name: "kernel".into(),
        budget: 1,
        period: 100,
    });
    assert_eq!(skew(&taken), (false, 6));
}

/// Under EDF a tie of deadlines goes to the task that stands first in the file.
#[test]
fn cpus_with_ties_in_another_order_do_not_decide_alike() {
    for (members, expected) in [([2, 3], (true, 2)), ([2, 1], (false, 4 + 2))] {
        let mut tied = alike();
        for cpu in &mut tied.cpus {
            cpu.policy = Policy::Edf;
        }
        for task in &mut tied.tasks {
            task.class = "reservation".into();
            (task.wcet, task.priority) = (Some(4), 1);
            (task.separation, task.deadline) = (Some(20), Some(20));
        }
        tied.gangs[0].supersteps[0].members = members.to_vec();
        let certificate = certify_admitted(&tied).unwrap();
        let step = &gangs(&certificate)[0].supersteps[0];
        assert_eq!((step.alike, step.skew), expected, "{members:?}");
    }
}
