//! Time-division multiplexing: every entity has slots of its own in a frame that repeats.
//!
//! Source: CompOSe paper §3.3: constant slots and a constant time
//! between them make what an owner sees independent of all others. So an owner that leaves its slot
//! idle leaves it to nobody (this policy idles on purpose), and between slots nobody runs. Gives
//! up: work conservation, for that independence.

use alloc::boxed::Box;
use alloc::vec;

use punctual_model::{Instant, Span, ThreadId};
use punctual_order::{Attributes, Pick, Policy, SlotTerms};

/// A part of the frame.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    owner: u32,
}

/// Ready entities, each in its own slots only. All frames start at instant 0.
#[derive(Debug)]
pub struct Tdm {
    /// In ticks, at least one.
    frame: u64,
    /// In order of time.
    parts: Box<[Part]>,
    ready: Box<[Option<ThreadId>]>,
    count: usize,
}

impl Tdm {
    /// For entities with an index below `capacity`, and these slots of them, in ticks. A slot of
    /// somebody else, or beyond the frame, is nobody's.
    pub fn new(capacity: usize, frame: Span, slots: &[SlotTerms]) -> Self {
        let frame = frame.ticks().max(1);
        let part = |slot: &SlotTerms| Part {
            start: slot.at.ticks().min(frame),
            end: slot.at.saturating_add(slot.length).ticks().min(frame),
            owner: slot.entity,
        };
        let mut parts: Box<[Part]> = slots.iter().map(part).collect();
        parts.sort_unstable_by_key(|part| part.start);
        Tdm {
            frame,
            parts,
            ready: vec![None; capacity].into_boxed_slice(),
            count: 0,
        }
    }

    /// When the part with this index begins next, at or after the frame that starts at `frame`.
    fn start_of(&self, index: usize, frame: u64) -> Instant {
        let (index, frame) = match index < self.parts.len() {
            true => (index, frame),
            false => (0, frame.saturating_add(self.frame)),
        };
        let start = self.parts.get(index).map_or(0, |part| part.start);
        Instant::from_ticks(frame.saturating_add(start))
    }

    /// The owner that may run, and the end of that choice. Out of the way of the policies beside it
    /// in [`crate::AnyPolicy`].
    #[inline(never)]
    fn owner_at(&self, now: Instant) -> (Option<ThreadId>, Option<Instant>) {
        if self.count == 0 || self.parts.is_empty() {
            return (None, None);
        }
        let offset = now.ticks() % self.frame;
        let frame = now.ticks() - offset;
        let next = self.parts.partition_point(|part| part.start <= offset);
        let current = next.checked_sub(1).map(|index| self.parts[index]);
        if let Some(part) = current.filter(|part| offset < part.end)
            && let Some(Some(owner)) = self.ready.get(part.owner as usize)
        {
            let end = Instant::from_ticks(frame.saturating_add(part.end));
            return (Some(*owner), Some(end));
        }
        (None, Some(self.start_of(next, frame)))
    }
}

impl Policy for Tdm {
    fn wake(&mut self, entity: ThreadId, _: &Attributes) {
        if let Some(place) = self.ready.get_mut(entity.index())
            && place.replace(entity).is_none()
        {
            self.count += 1;
        }
    }

    fn block(&mut self, entity: ThreadId) {
        if let Some(place) = self.ready.get_mut(entity.index())
            && place.take().is_some()
        {
            self.count -= 1;
        }
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn renew(&mut self, _: ThreadId, _: &Attributes) {}

    /// O(log slots).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, now: Instant) -> Pick {
        let (entity, until) = self.owner_at(now);
        Pick { entity, until }
    }

    fn orders_background(&self) -> bool {
        true
    }
}
