//! Quick answers: the classic utilization bounds, as information only
//!
//! # Assumptions
//! 1. Periodic or sporadic tasks whose deadlines are their periods, without jitter, blocking,
//!    waiting or anything above them, preemptive, on one CPU.
//! 2. For fixed priorities: rate-monotonic ones.
//!
//! Powers are computed in 60-bit fixed point and rounded up, so "admits" is certain; within
//! rounding of the bound the answer is "cannot tell".
//!
//! Sources: Liu and Layland 1973, Theorems 5 and 7; Bini, Buttazzo and Buttazzo 2003, Theorem 1.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::PolicyKind;

use crate::node::Node;
use crate::units::UNIT;
use crate::utilization::Ratio;
use crate::verdict::{Quick, QuickAnswer, Test};

const FRACTION_BITS: u32 = 60;
const ONE: u128 = 1 << FRACTION_BITS;

const LIU_LAYLAND: Test = Test {
    name: "Liu and Layland's bound",
    source: "Liu and Layland 1973, Theorem 5",
};
const HYPERBOLIC: Test = Test {
    name: "hyperbolic bound",
    source: "Bini, Buttazzo and Buttazzo 2003, Theorem 1",
};
const EDF_UTILIZATION: Test = Test {
    name: "EDF utilization bound",
    source: "Liu and Layland 1973, Theorem 7",
};

/// The quick answers that belong to the policy of this CPU. O(n), O(n²) to see rate monotonicity.
pub(crate) fn answers(node: &Node) -> Vec<Quick> {
    let model = outside_the_model(node);
    match node.policy {
        PolicyKind::EarliestDeadlineFirst => {
            let answer = model.map_or_else(|| admits(fits(node)), QuickAnswer::DoesNotApply);
            vec![Quick {
                test: EDF_UTILIZATION,
                answer,
            }]
        }
        PolicyKind::FixedPriority { .. } => {
            let model = model.or_else(|| not_rate_monotonic(node));
            let answer = |test, ok: fn(&Node) -> bool| Quick {
                test,
                answer: model.map_or_else(|| admits(ok(node)), QuickAnswer::DoesNotApply),
            };
            vec![
                answer(LIU_LAYLAND, liu_layland),
                answer(HYPERBOLIC, hyperbolic),
            ]
        }
        PolicyKind::Fifo
        | PolicyKind::RoundRobin { .. }
        | PolicyKind::Tdm { .. }
        | PolicyKind::Planned => Vec::new(),
    }
}

fn admits(yes: bool) -> QuickAnswer {
    if yes {
        QuickAnswer::Admits
    } else {
        QuickAnswer::CannotTell
    }
}

fn fits(node: &Node) -> bool {
    node.load() != Ordering::Greater
}

fn outside_the_model(node: &Node) -> Option<&'static str> {
    let all = |test: fn(&crate::entity::Entity) -> bool| node.entities.iter().all(test);
    if !node.unserved.is_empty() || !all(|c| c.who.task().is_some()) {
        Some("there are schedulers below")
    } else if !node.reserved.is_empty() {
        Some("the machine takes time above all tasks")
    } else if !all(|c| c.requests.separation == Some(c.deadline)) {
        Some("a deadline is not the period")
    } else if !all(|c| c.requests.jitter.is_zero()) {
        Some("there is release jitter or waiting")
    } else if !all(|c| c.section <= UNIT) || node.background.is_some() {
        Some("there are sections without preemption")
    } else {
        None
    }
}

fn not_rate_monotonic(node: &Node) -> Option<&'static str> {
    let mut order: Vec<_> = node
        .entities
        .iter()
        .map(|c| (c.priority, c.requests.separation))
        .collect();
    order.sort_unstable();
    let falling = order
        .windows(2)
        .all(|w| w[0].1 >= w[1].1 || w[0].0 == w[1].0);
    // Equal priorities with different periods are first come, first served: not rate-monotonic.
    let equal = order
        .windows(2)
        .any(|w| w[0].0 == w[1].0 && w[0].1 != w[1].1);
    (!falling || equal).then_some("the priorities are not rate-monotonic")
}

fn share(r: Ratio) -> u128 {
    (u128::from(r.numerator) << FRACTION_BITS).div_ceil(u128::from(r.denominator))
}

/// Rounded up; saturates far above 2.
fn times(a: u128, b: u128) -> u128 {
    a.checked_mul(b)
        .map_or(4 * ONE, |p| p.div_ceil(ONE))
        .min(4 * ONE)
}

/// Π (Uᵢ + 1) ≤ 2.
fn hyperbolic(node: &Node) -> bool {
    let shares = node.ratios().map(share);
    shares.fold(ONE, |product, u| times(product, (ONE + u).min(4 * ONE))) <= 2 * ONE
}

/// U ≤ n·(2^(1/n) − 1), as (1 + U/n)ⁿ ≤ 2.
fn liu_layland(node: &Node) -> bool {
    let ratios = node.ratios();
    let n = ratios.clone().count() as u128;
    if n == 0 {
        return true;
    }
    let sum: u128 = ratios.clone().map(share).sum();
    let factor = (ONE + sum.div_ceil(n)).min(4 * ONE);
    ratios.fold(ONE, |product, _| times(product, factor)) <= 2 * ONE
}
