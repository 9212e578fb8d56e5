//! How far bounds are above the longest responses, by the supply of a task; and limits for that
//!
//! A bound may be right and of no use. So each kind of supply has a limit for the median of bound
//! over longest observation. Observations depend on the situations that are tried, so a limit
//! says nothing of one bound: it shows that a kind of supply has become looser as a whole.

use punctual_model::{Supply, System, Task};

use crate::tally::{Sharpness, Tally};

/// Bounds of one kind of supply from which on its median counts: every kind that a push draws has
/// as many, but for some supplies within supplies.
const ENOUGH: usize = 10;

/// Kinds of supply, and the most for the median of each, in thousandths.
const LIMITS: [(&str, u32); 8] = [
    ("a CPU", 1_100),
    ("slots", 1_100),
    ("shared", 2_000),
    ("polling", 2_000),
    ("periodic-resource", 2_000),
    ("constant-bandwidth", 4_000),
    ("deferrable", 4_000),
    ("sporadic", 8_000),
];

/// The most for kinds that are not listed: supplies within supplies.
const MOST: u32 = 8_000;

/// Behind the supply of a task whose scheduler has tasks with critical sections.
const WITH_LOCKS: &str = " with locks";

/// The most for the median of a server whose tasks lock, where its own limit is not less. Half of
/// those that are drawn stand above all others of their CPU, and many have background work.
const MOST_WITH_LOCKS: u32 = 2_000;

/// The supply of a task in words: its own, whether that lies in another or in slots of one, and
/// whether a task of the same scheduler enters critical sections.
pub(crate) fn supply_of(system: &System, task: &Task) -> String {
    let own = task
        .scheduler
        .and_then(|id| system.schedulers.get(id.index()));
    let Some(own) = own else {
        return "a CPU".into();
    };
    let name = |supply: &Supply| match supply {
        Supply::Server(server) => server.kind.name(),
        Supply::Slots(_) => "slots",
        Supply::Shared => "shared",
    };
    let above = own.parent.and_then(|id| system.schedulers.get(id.index()));
    let supply = match above {
        None => name(&own.supply).into(),
        Some(above) => format!("{} in {}", name(&own.supply), name(&above.supply)),
    };
    let locks = |other: &Task| other.scheduler == task.scheduler && !other.uses.is_empty();
    if system.tasks.iter().any(locks) {
        return supply + WITH_LOCKS;
    }
    supply
}

/// The limit of a kind of supply, in thousandths; locks loosen none.
pub(crate) fn limit(supply: &str) -> u32 {
    let own = |supply: &str| LIMITS.iter().find(|(kind, _)| *kind == supply);
    match supply.strip_suffix(WITH_LOCKS) {
        None => own(supply).map_or(MOST, |(_, limit)| *limit),
        Some(kind) => own(kind).map_or(MOST, |(_, limit)| MOST_WITH_LOCKS.min(*limit)),
    }
}

/// The branch of a supply whose tasks lock.
pub(crate) fn lock_branch(system: &System, task: &Task) -> Option<String> {
    let supply = supply_of(system, task);
    let locks = supply.ends_with(WITH_LOCKS);
    locks.then(|| format!("supply: {supply}"))
}

/// The ratio that so many percent of the bounds do not exceed, in thousandths.
pub(crate) fn quantile(sharpness: &Sharpness, percent: usize) -> u32 {
    let mut ratios = sharpness.ratios.clone();
    ratios.sort_unstable();
    let place = (ratios.len() * percent).div_ceil(100).saturating_sub(1);
    ratios.get(place).copied().unwrap_or(0)
}

/// Kinds of supply whose bounds are further above what is seen than their limits allow.
pub fn loose(tally: &Tally) -> Vec<String> {
    let mut found = Vec::new();
    for (supply, sharpness) in &tally.supplies {
        let (median, limit) = (quantile(sharpness, 50), limit(supply));
        if sharpness.ratios.len() >= ENOUGH && median > limit {
            found.push(format!(
                "{supply}: the median of bound over longest response is {:.3}, and {:.3} is allowed",
                f64::from(median) / 1_000.0,
                f64::from(limit) / 1_000.0
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_above_its_limit_is_told_where_there_are_enough_bounds() {
        let mut tally = Tally::default();
        let mut add = |supply: &str, count: usize, ratio: u32| {
            let sharpness = tally.supplies.entry(supply.into()).or_default();
            sharpness.ratios.extend(core::iter::repeat_n(ratio, count));
        };
        add("a CPU", ENOUGH, 1_101);
        add("slots", ENOUGH, 1_100);
        add("polling with locks", ENOUGH, 2_001);
        add("sporadic", ENOUGH, 2_001);
        add("sporadic with locks", ENOUGH, 2_001);
        add("polling in polling", ENOUGH - 1, MOST + 1);
        let found = loose(&tally);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("a CPU: "), "{found:?}");
        assert!(found[1].starts_with("polling with locks: "), "{found:?}");
        assert!(found[2].starts_with("sporadic with locks: "), "{found:?}");
    }
}
