//! More work between two instants than fits: a test that no plan can pass
//!
//! Segments that are released at or after r and have to end by d execute between both. On m CPUs
//! they take at most m·(d − r) together; those that use a resource alone at most d − r.
//!
//! # Assumptions
//! 1. None of its own: it counts the segments of the plan that was asked for.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Mode, Ns};

use super::expand::{Expanded, Parts};
use crate::error::{Checked, in_range};
use crate::units::{Span, Work};
use crate::verdict::Witness;

const WHAT: &str = "the work between two instants";

/// Most pairs of a release and a segment that are looked at.
const PAIRS: usize = 4_000_000;

/// More work than fits.
pub(crate) struct Excess {
    /// The last of the segments that have to end by then.
    pub(crate) group: GroupId,
    pub(crate) segment: usize,
    pub(crate) reason: String,
    pub(crate) witness: Witness,
    pub(crate) situation: String,
}

/// The first interval with more work than fits; `None`: there is none, or too many to look at.
/// O(releases · segments · uses).
pub(crate) fn excess(parts: &Parts<'_>, expanded: &Expanded) -> Checked<Option<Excess>> {
    let segments = &expanded.segments;
    let releases: BTreeSet<Instant<Ns>> = segments.iter().map(|s| s.release).collect();
    if releases.len().saturating_mul(segments.len()) > PAIRS {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|number| segments.get(*number).map(|s| s.absolute_deadline));
    let nodes = u64::try_from(parts.nodes.len()).unwrap_or(u64::MAX);
    for &release in &releases {
        let mut all = Work::ZERO;
        let mut alone: BTreeMap<usize, Work> = BTreeMap::new();
        let mut count = 0_u64;
        for &number in &order {
            let Some(segment) = segments.get(number).filter(|s| s.release >= release) else {
                continue;
            };
            count += 1;
            all = in_range(all.checked_add(segment.wcet), WHAT)?;
            let window = segment.absolute_deadline.since(release);
            let room = in_range(window.checked_mul(nodes), WHAT)?;
            let end = (release, segment.absolute_deadline);
            if all.as_span() > room {
                let whose = format!("{count} segments, on {nodes} planned nodes");
                return Ok(Some(found(
                    (parts, expanded),
                    number,
                    (all, room),
                    end,
                    &whose,
                )));
            }
            let uses = segments.uses(number).iter();
            for used in uses.filter(|used| used.mode == Mode::Exclusive) {
                let sum = alone.entry(used.resource).or_insert(Work::ZERO);
                *sum = in_range(sum.checked_add(segment.wcet), WHAT)?;
                if sum.as_span() > window {
                    let whose = format!("with {} alone", parts.resource_name(used.resource));
                    let demand = (*sum, window);
                    return Ok(Some(found((parts, expanded), number, demand, end, &whose)));
                }
            }
        }
    }
    Ok(None)
}

fn found(
    (parts, expanded): (&Parts<'_>, &Expanded),
    number: usize,
    (demand, room): (Work, Span),
    (release, end): (Instant<Ns>, Instant<Ns>),
    whose: &str,
) -> Excess {
    let (own, segment) = expanded.parts[number];
    let group = expanded.instances[own].group;
    let from = release.since(Instant::ZERO).readable();
    let name = &parts.system.groups[group.index()].name;
    Excess {
        group,
        segment,
        reason: format!(
            "between {from} and {} are {} of work ({whose}), and there is room for {}; the last of \
             it is of group `{name}`",
            end.since(Instant::ZERO).readable(),
            demand.as_span().readable(),
            room.readable()
        ),
        witness: Witness::Demand {
            at: end.since(release),
            demand,
            supply: room.as_work(),
        },
        situation: format!("counted from {from}, in every plan"),
    }
}
