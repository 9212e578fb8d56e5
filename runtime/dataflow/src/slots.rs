//! The slots of a tile, as instants of the run

use punctual_model::{Frequency, Instant, PolicyKind, Supply, System, Tile};

/// The frames that a tile's slots lie in: that of its own scheduler, and those of the schedulers
/// above it. In ticks, rounded as the tables of the core are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slots {
    levels: Vec<Level>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Level {
    frame: u64,
    /// Start and end of each slot in the frame, in order.
    slots: Vec<(u64, u64)>,
}

impl Slots {
    /// None yet.
    pub(crate) fn none() -> Slots {
        Slots { levels: Vec::new() }
    }

    /// Those of a tile; `None`: it has none. O(schedulers + n log n slots).
    pub(crate) fn of(system: &System, tile: Tile, frequency: Frequency) -> Option<Slots> {
        let mut levels = Vec::new();
        let mut at = tile.scheduler;
        for _ in 0..system.schedulers.len() {
            let Some(scheduler) = at.and_then(|id| system.schedulers.get(id.index())) else {
                break;
            };
            at = scheduler.parent;
            let above = at.and_then(|id| system.schedulers.get(id.index()));
            let policy = match above {
                Some(above) => above.policy,
                None => system.cpus.get(tile.cpu.index())?.policy,
            };
            let (PolicyKind::Tdm { frame, .. }, Supply::Slots(declared)) =
                (policy.in_ticks(frequency), &scheduler.supply)
            else {
                continue;
            };
            let slots = declared.iter().map(|slot| {
                let end = slot.at.saturating_add(slot.length);
                let ticks = |span: punctual_model::Span<_>| span.ticks_nearest(frequency).ticks();
                (ticks(slot.at), ticks(end))
            });
            let mut slots: Vec<_> = slots.collect();
            slots.sort_unstable();
            let frame = frame.ticks().max(1);
            levels.push(Level { frame, slots });
        }
        (!levels.is_empty()).then_some(Slots { levels })
    }

    /// The slot at an instant: its start and its end. Between two slots it is the last one; before
    /// the first, an empty one at the start of the run. O(levels · log slots).
    pub(crate) fn around(&self, now: Instant) -> (Instant, Instant) {
        let around = |level: &Level| level.around(now.ticks());
        let (start, end) = self
            .levels
            .iter()
            .map(around)
            .fold((0, u64::MAX), |all, one| {
                (all.0.max(one.0), all.1.min(one.1))
            });
        (Instant::from_ticks(start), Instant::from_ticks(end))
    }
}

impl Level {
    fn around(&self, now: u64) -> (u64, u64) {
        let offset = now % self.frame;
        let frame = now - offset;
        match self
            .slots
            .partition_point(|&(start, _)| start <= offset)
            .checked_sub(1)
        {
            Some(slot) => (frame + self.slots[slot].0, frame + self.slots[slot].1),
            // In the frame before, if there was one.
            None => match (self.slots.last(), frame.checked_sub(self.frame)) {
                (Some(last), Some(before)) => (before + last.0, before + last.1),
                _ => (0, 0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_at_an_instant_is_that_of_all_frames_around_it() {
        let level = |frame, slots: &[(u64, u64)]| Level {
            frame,
            slots: slots.to_vec(),
        };
        let own = level(100, &[(10, 30), (50, 90)]);
        let slots = Slots {
            levels: vec![own.clone()],
        };
        let around = |slots: &Slots, now| {
            let (start, end) = slots.around(Instant::from_ticks(now));
            (start.ticks(), end.ticks())
        };
        assert_eq!(around(&slots, 5), (0, 0), "none has begun");
        assert_eq!(around(&slots, 10), (10, 30));
        assert_eq!(around(&slots, 49), (10, 30), "the last one");
        assert_eq!(around(&slots, 155), (150, 190));
        assert_eq!(around(&slots, 205), (150, 190), "of the frame before");
        let nested = Slots {
            levels: vec![own, level(1_000, &[(0, 70), (160, 900)])],
        };
        assert_eq!(around(&nested, 60), (50, 70), "cut off above");
        assert_eq!(around(&nested, 170), (160, 190), "begun by the one above");
    }
}
