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

use super::beside::Beside;
use super::expand::{Instance, Parts};
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
/// Segments whose places stay are not counted, and nothing else starts before `from`.
/// O(releases · segments · uses).
pub(crate) fn excess(
    parts: &Parts<'_>,
    beside: &Beside,
    from: Instant<Ns>,
) -> Checked<Option<Excess>> {
    let (segments, places) = beside.book.looked_at();
    let stays = |number: usize| places.get(number).is_some_and(Option::is_some);
    let mut order: Vec<usize> = (0..segments.len()).filter(|&own| !stays(own)).collect();
    let release = |number: usize| segments.get(number).map(|s| s.release.max(from));
    let releases: BTreeSet<Instant<Ns>> = order.iter().filter_map(|own| release(*own)).collect();
    if releases.len().saturating_mul(order.len()) > PAIRS {
        return Ok(None);
    }
    order.sort_by_key(|number| segments.get(*number).map(|s| s.absolute_deadline));
    let nodes = u64::try_from(parts.nodes.len()).unwrap_or(u64::MAX);
    for &begin in &releases {
        let mut all = Work::ZERO;
        let mut alone: BTreeMap<usize, Work> = BTreeMap::new();
        let mut count = 0_u64;
        for &number in &order {
            let later = release(number).is_some_and(|own| own >= begin);
            let Some(segment) = segments.get(number).filter(|_| later) else {
                continue;
            };
            count += 1;
            all = in_range(all.checked_add(segment.wcet), WHAT)?;
            let window = segment.absolute_deadline.since(begin);
            let room = in_range(window.checked_mul(nodes), WHAT)?;
            let last = beside.part(segments.tag(number));
            let end = (begin, segment.absolute_deadline);
            if all.as_span() > room {
                let whose = format!("{count} segments, on {nodes} planned nodes");
                return Ok(Some(found(parts, last, (all, room), end, &whose)));
            }
            let uses = segments.uses(number).iter();
            for used in uses.filter(|used| used.mode == Mode::Exclusive) {
                let sum = alone.entry(used.resource).or_insert(Work::ZERO);
                *sum = in_range(sum.checked_add(segment.wcet), WHAT)?;
                if sum.as_span() > window {
                    let whose = format!("with {} alone", parts.resource_name(used.resource));
                    return Ok(Some(found(parts, last, (*sum, window), end, &whose)));
                }
            }
        }
    }
    Ok(None)
}

fn found(
    parts: &Parts<'_>,
    (instance, segment): (Instance, usize),
    (demand, room): (Work, Span),
    (release, end): (Instant<Ns>, Instant<Ns>),
    whose: &str,
) -> Excess {
    let group = instance.group;
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
