//! Agreement with the supply bounds of the `response-time-analysis` crate, for servers and inside
//!
//! Its periodic resource (Shin and Lee 2003) comes as late as it may in each period. Here the CPU
//! makes it so: one task above the server takes all the rest of each period.

use crate::common::random::{Deadlines, Random, set};
use crate::common::{EDF, FP, bounds, periodic, span, sporadic, work};
use punctual_analysis::{admit, is_admitted};
use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind, Supply,
    System, Task, Trust,
};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::{RBF, RequestBound};
use response_time_analysis::supply::{Constrained, Periodic, SupplyBound};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;

/// Beyond this nothing is compared: larger than any busy window of the sets drawn.
const LIMIT: u64 = 20_000;

type Row = (u64, u64, u64);

/// Tasks inside a periodic resource whose budget comes within `response`, for a task above takes
/// the rest of that time.
fn inside(policy: PolicyKind<Ns>, rows: &[Row], q: u64, t: u64, response: u64) -> System {
    let mut system = sporadic(FP, rows);
    system.schedulers.push(Scheduler {
        name: "resource".into(),
        cpu: CpuId(0),
        parent: None,
        policy,
        priority: Priority::new(1),
        supply: Supply::Server(Server {
            kind: ServerKind::PeriodicResource,
            budget: work(q),
            period: span(t),
        }),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    for task in &mut system.tasks {
        task.scheduler = Some(SchedulerId(0));
    }
    if response > q {
        let class = Class::Periodic {
            period: span(t),
            wcet: work(response - q),
            relative_deadline: span(t),
        };
        let mut above = Task::new("above", CpuId(0), class);
        above.priority = Priority::new(2);
        system.tasks.push(above);
    }
    system
}

/// The least time in which the crate's supply gives what its request bounds ask for.
fn their_response(rows: &[Row], place: usize, supply: &impl SupplyBound) -> Option<u64> {
    let rbf = |&(c, t, _): &Row| {
        let arrivals = Sporadic::new(Duration::from(t), Duration::from(0));
        RBF::new(arrivals, Scalar::new(Service::from(c)))
    };
    let above: Vec<_> = rows[..place].iter().map(rbf).collect();
    let (c, t, _) = rows[place];
    let mut worst = 0;
    for job in 0.. {
        let offset = job * t;
        let demand = |w: u64| {
            let own = Service::from((job + 1) * c);
            let window = Duration::from(w);
            above
                .iter()
                .fold(own, |sum, rbf| sum + rbf.service_needed(window))
        };
        let mut w = 1;
        while supply.service_time(demand(w)) > Duration::from(w) {
            w = u64::from(supply.service_time(demand(w)));
            if w > LIMIT {
                return None;
            }
        }
        worst = worst.max(w - offset.min(w));
        if w <= offset + t {
            return Some(worst);
        }
    }
    None
}

#[test]
fn fixed_priorities_inside_a_periodic_resource_take_as_long_as_theirs() {
    let mut compared = 0;
    for seed in 0..2_000 {
        let mut random = Random::new(seed + 11_000);
        let t = random.within(5, 40);
        let q = random.within(t.div_ceil(3), t - 1);
        let n = usize::try_from(random.within(1, 4)).expect("small");
        let load = 0.85 * f64::from(u32::try_from(q).expect("small"))
            / f64::from(u32::try_from(t).expect("small"));
        let rows = set(&mut random, n, load, (20.0, 300.0), Deadlines::Arbitrary);
        let found = bounds(&inside(FP, &rows, q, t, t));
        let theirs = Periodic::new(Service::from(q), Duration::from(t));
        for (place, found) in found.into_iter().take(n).enumerate() {
            let expected = their_response(&rows, place, &theirs);
            compared += u64::from(expected.is_some());
            if expected.is_some() {
                assert_eq!(found, expected, "seed {seed}: {rows:?} in {q}/{t}");
            }
        }
    }
    assert!(compared >= 3_000, "only {compared}");
}

#[test]
fn a_budget_that_comes_early_is_their_constrained_supply_shifted() {
    // Their budget comes by its own deadline D: nothing for (T − Q) + (D − Q), then Q of every T.
    for seed in 0..500 {
        let mut random = Random::new(seed + 12_000);
        let t = random.within(5, 40);
        let q = random.within(1, t - 1);
        let deadline = random.within(q, t);
        let (duration, service) = (Duration::from, Service::from);
        let theirs = Constrained::new(service(q), duration(deadline), duration(t));
        for c in 1..60 {
            let system = inside(FP, &[(c, 100_000, 100_000)], q, t, deadline);
            let expected = u64::from(theirs.service_time(service(c)));
            assert_eq!(
                bounds(&system)[0],
                Some(expected),
                "{c} in {q}/{deadline}/{t}"
            );
        }
    }
}

#[test]
fn edf_inside_a_periodic_resource_is_admitted_exactly_when_demand_fits_theirs() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..2_000 {
        let mut random = Random::new(seed + 13_000);
        let t = random.within(4, 20);
        let q = random.within(t.div_ceil(2), t - 1);
        let n = usize::try_from(random.within(1, 3)).expect("small");
        let rows = set(&mut random, n, 0.4, (20.0, 90.0), Deadlines::Arbitrary);
        let supply = Periodic::new(Service::from(q), Duration::from(t));
        let demand = |at: u64| -> u64 {
            let jobs = |&(c, t, d): &Row| at.checked_sub(d).map_or(0, |rest| (rest / t + 1) * c);
            rows.iter().map(jobs).sum()
        };
        let fits = (1..3_000)
            .all(|at| u64::from(supply.provided_service(Duration::from(at))) >= demand(at));
        let system = inside(EDF, &rows, q, t, t);
        assert_eq!(
            is_admitted(&system),
            Ok(fits),
            "seed {seed}: {rows:?} in {q}/{t}"
        );
        assert_eq!(admit(&system).expect("small").admitted, fits, "seed {seed}");
        yes += u64::from(fits);
        no += u64::from(!fits);
    }
    assert!(yes >= 300 && no >= 150, "{yes} admitted, {no} refused");
}

#[test]
fn a_resource_of_the_whole_processor_changes_nothing() {
    for rows in [
        &[(3, 7, 7), (3, 12, 12), (5, 20, 20)][..],
        &[(1, 4, 4), (2, 9, 9)],
    ] {
        let flat = bounds(&periodic(FP, rows));
        assert_eq!(bounds(&inside(FP, rows, 10, 10, 10)), flat);
    }
}
