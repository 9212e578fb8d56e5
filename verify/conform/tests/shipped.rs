//! Every shipped policy passes its own kit under its own claims.

use punctual_conform::{Budget, Claims, Options, Order, Property, Report, Ties, check};
use punctual_kern::{Policy, SlotTerms};
use punctual_model::{PolicyKind, Span, Work};
use punctual_policy::{AnyPolicy, EarliestDeadlineFirst, Fifo, FixedPriority, RoundRobin, Tdm};

fn passes<P: Policy + 'static>(claims: &Claims, make: impl Fn(usize) -> P) -> Report {
    match check(claims, make, &Options::default()) {
        Ok(report) => report,
        Err(broken) => panic!("{broken}"),
    }
}

#[test]
fn fixed_priority_conforms() {
    let report = passes(&Claims::FIXED_PRIORITY, FixedPriority::new);
    for coverage in [report.seam, report.core] {
        assert!(coverage.contested > 1_000, "{report}");
        assert!(coverage.preemptions > 100, "{report}");
    }
    assert!(report.core.exhausted > 100, "{report}");
}

#[test]
fn fixed_priority_without_preemption_conforms() {
    let claims = Claims {
        preemptive: false,
        ..Claims::FIXED_PRIORITY
    };
    let _ = passes(&claims, FixedPriority::non_preemptive);
}

#[test]
fn earliest_deadline_first_conforms() {
    let _ = passes(&Claims::EARLIEST_DEADLINE_FIRST, EarliestDeadlineFirst::new);
}

#[test]
fn fifo_conforms() {
    let _ = passes(&Claims::FIFO, Fifo::new);
}

/// Its segments come from the agenda of the shard; the policy orders what fills the gaps.
#[test]
fn the_policy_of_planned_nodes_conforms_as_fifo() {
    let planned = |n| AnyPolicy::new(PolicyKind::Planned, n, &[]);
    let report = passes(&Claims::FIFO, planned);
    assert!(report.core.contested > 1_000, "{report}");
}

#[test]
fn round_robin_conforms_with_short_turns_and_with_long_ones() {
    for timeslice in [1, 10, 1_000, 1_000_000] {
        let turn = Span::from_ticks(timeslice);
        let report = passes(&Claims::ROUND_ROBIN, |n| RoundRobin::new(n, turn));
        assert!(report.seam.turns > 100, "{timeslice}: {report}");
    }
}

/// A slot of 20 in 20n ticks for each of n threads.
fn slots(capacity: usize) -> Tdm {
    let slot = |entity: u32| SlotTerms {
        node: 0,
        entity,
        at: Span::from_ticks(20 * u64::from(entity)),
        length: Span::from_ticks(20),
    };
    let entities = u32::try_from(capacity).expect("few");
    let frame = Span::from_ticks(20 * u64::from(entities));
    let slots: Vec<SlotTerms> = (0..entities).map(slot).collect();
    Tdm::new(capacity, frame, &slots)
}

#[test]
fn tdm_conforms_and_keeps_everybody_to_his_slot() {
    let frame = 20 * u64::try_from(Options::default().threads).expect("few");
    let claims = Claims {
        work_conserving: false,
        budget: Some(Budget {
            work: Work::from_ticks(20),
            period: Span::from_ticks(frame),
        }),
        ..Claims::ANY_ORDER
    };
    let report = passes(&claims, slots);
    assert!(report.seam.idle > 1_000, "{report}");
}

#[test]
fn tdm_does_not_conserve_work() {
    let broken = check(&Claims::ANY_ORDER, slots, &Options::default()).expect_err("it idles");
    assert_eq!(broken.property, Property::WorkConservation);
}

#[test]
fn a_policy_that_a_file_chooses_conforms_as_the_one_that_it_is() {
    let kinds = [
        (
            PolicyKind::FixedPriority { preemptive: true },
            Claims::FIXED_PRIORITY,
        ),
        (
            PolicyKind::EarliestDeadlineFirst,
            Claims::EARLIEST_DEADLINE_FIRST,
        ),
        (PolicyKind::Fifo, Claims::FIFO),
        (
            PolicyKind::RoundRobin {
                timeslice: Span::from_ticks(100_000),
            },
            Claims::ROUND_ROBIN,
        ),
    ];
    for (kind, claims) in kinds {
        let _ = passes(&claims, |capacity| AnyPolicy::new(kind, capacity, &[]));
    }
}

#[test]
fn a_policy_conforms_to_weaker_claims_too() {
    let claims = Claims {
        order: Order::FixedPriority,
        ties: Ties::Any,
        work_conserving: false,
        ..Claims::ANY_ORDER
    };
    let _ = passes(&claims, FixedPriority::new);
}
