//! When the slots of a thread or a scheduler lie, in a stretch of a run.

use punctual_kern::SlotTerms;
use punctual_model::{Instant, PolicyKind, Span};
use punctual_tables::CpuTables;

/// The slots of node `at` (0 has none) that overlap a stretch, in order of time, about `most`.
pub(crate) fn of_node(
    tables: &CpuTables,
    at: u16,
    stretch: (Instant, Instant),
    most: usize,
) -> Vec<(Instant, Instant)> {
    match usize::from(at)
        .checked_sub(1)
        .and_then(|at| tables.nodes.get(at))
    {
        Some(node) => owned(
            tables,
            (node.parent, tables.capacity.entity_of(at)),
            stretch,
            most,
        ),
        None => Vec::new(),
    }
}

/// The slots of a thread in the frame of its own scheduler; none, if that has no frame.
pub(crate) fn of_thread(
    tables: &CpuTables,
    thread: usize,
    stretch: (Instant, Instant),
    most: usize,
) -> Vec<(Instant, Instant)> {
    let home = tables.homes.get(thread).copied().unwrap_or(0);
    let entity = u32::try_from(thread);
    entity.map_or_else(
        |_| Vec::new(),
        |entity| owned(tables, (home, entity), stretch, most),
    )
}

/// About how many slots overlap a stretch of so many ticks.
pub(crate) fn count(tables: &CpuTables, ticks: u64) -> u64 {
    let frames = |slot: &SlotTerms| {
        frame(tables, slot.node).map_or(0, |frame| ticks / frame.ticks().max(1) + 1)
    };
    let all = tables.slots.iter().map(frames);
    all.fold(0, u64::saturating_add)
}

/// The frame of a node that divides time.
pub(crate) fn frame(tables: &CpuTables, at: u16) -> Option<Span> {
    let policy = match usize::from(at).checked_sub(1) {
        None => tables.policy,
        Some(at) => tables.nodes.get(at)?.policy,
    };
    match policy {
        PolicyKind::Tdm { frame, .. } => Some(frame),
        _ => None,
    }
}

fn owned(
    tables: &CpuTables,
    (node, entity): (u16, u32),
    (from, to): (Instant, Instant),
    most: usize,
) -> Vec<(Instant, Instant)> {
    let Some(frame) = frame(tables, node) else {
        return Vec::new();
    };
    let own = |slot: &&SlotTerms| (slot.node, slot.entity) == (node, entity);
    let mut own: Vec<&SlotTerms> = tables.slots.iter().filter(own).collect();
    own.sort_by_key(|slot| slot.at);
    let mut all = Vec::new();
    let length = frame.ticks().max(1);
    let mut start = from.ticks() / length * length;
    while start < to.ticks() && all.len() < most && !own.is_empty() {
        for slot in &own {
            let begin = Instant::from_ticks(start).saturating_add(slot.at);
            let end = begin.saturating_add(slot.length);
            if begin < to && end > from {
                all.push((begin.max(from), end.min(to)));
            }
        }
        start = start.saturating_add(length);
    }
    all
}
