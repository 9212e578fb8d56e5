//! Copies of tokens between memories, and the time that they take.
//!
//! A claim makes the input of a firing local, and a release sends its output to where the FIFO is
//! (CompOSe §4.2.2). Which of them copies follows from the [`Place`] of a FIFO and from the tiles
//! of its ends; the engine that copies belongs to the application (§4.4).

use crate::graph::{Copies, Fifo, Graph, Place};
use crate::id::ActorId;
use crate::time::{Ns, Span};

impl Copies {
    /// The time that copies so many bytes, rounded up; none for none. A length beyond 64 bits is
    /// the longest.
    pub fn time(self, bytes: u64) -> Span<Ns> {
        if bytes == 0 {
            return Span::ZERO;
        }
        let moving = (u128::from(bytes) * 1_000).div_ceil(u128::from(self.bytes_per_us.max(1)));
        let moving = u64::try_from(moving).unwrap_or(u64::MAX);
        Span::from_ns(self.latency.as_ns().saturating_add(moving))
    }
}

impl Graph {
    /// Whether claims of the reader copy: the tokens are not in the memory of its tile.
    pub fn claim_copies(&self, fifo: &Fifo) -> bool {
        self.is_kept_elsewhere(fifo, fifo.to)
    }

    /// Whether releases of the writer copy.
    pub fn release_copies(&self, fifo: &Fifo) -> bool {
        self.is_kept_elsewhere(fifo, fifo.from)
    }

    fn is_kept_elsewhere(&self, fifo: &Fifo, from: ActorId) -> bool {
        let tile = |id: ActorId| self.actors.get(id.index()).map(|actor| actor.tile);
        match fifo.place {
            Place::Producer => tile(fifo.from) != tile(from),
            Place::Consumer => tile(fifo.to) != tile(from),
            Place::Memory => true,
        }
    }

    /// Whether tokens of a FIFO arrive with the copies of its writer's release, and not before:
    /// they are copied, or say that shared memory has been written.
    pub fn arrive_by_copy(&self, fifo: &Fifo) -> bool {
        let writer = self.actors.get(fifo.from.index());
        let writes = writer.is_some_and(|actor| actor.writes_shm > 0);
        let copied = fifo.token_size > 0 && self.release_copies(fifo);
        self.copies.is_some() && (writes || copied)
    }

    /// The time that copies so many tokens of a FIFO; none where copies take no time.
    pub fn copy_time(&self, fifo: &Fifo, tokens: u32) -> Span<Ns> {
        self.bytes_time(u64::from(fifo.token_size) * u64::from(tokens))
    }

    fn bytes_time(&self, bytes: u64) -> Span<Ns> {
        self.copies.map_or(Span::ZERO, |copies| copies.time(bytes))
    }

    /// The copy of what a firing of this actor reads from shared memory, at its claim.
    pub fn shm_read_time(&self, actor: ActorId) -> Span<Ns> {
        let actor = self.actors.get(actor.index());
        self.bytes_time(actor.map_or(0, |actor| actor.reads_shm.into()))
    }

    /// The copy of what a firing of this actor writes to shared memory, at its release.
    pub fn shm_write_time(&self, actor: ActorId) -> Span<Ns> {
        let actor = self.actors.get(actor.index());
        self.bytes_time(actor.map_or(0, |actor| actor.writes_shm.into()))
    }

    /// The copies of a claim of this actor in this phase, one after the other. O(FIFOs).
    pub fn claim_time(&self, actor: ActorId, phase: usize) -> Span<Ns> {
        let read = self.fifos.iter().filter(|fifo| fifo.to == actor);
        let copied = read.filter(|fifo| self.claim_copies(fifo));
        self.sum(copied.map(|fifo| (fifo, rate(&fifo.consume, phase))))
            .saturating_add(self.shm_read_time(actor))
    }

    /// The copies of a release of this actor in this phase, one after the other. O(FIFOs).
    pub fn release_time(&self, actor: ActorId, phase: usize) -> Span<Ns> {
        let written = self.fifos.iter().filter(|fifo| fifo.from == actor);
        let copied = written.filter(|fifo| self.release_copies(fifo));
        self.sum(copied.map(|fifo| (fifo, rate(&fifo.produce, phase))))
            .saturating_add(self.shm_write_time(actor))
    }

    fn sum<'a>(&self, copied: impl Iterator<Item = (&'a Fifo, u32)>) -> Span<Ns> {
        copied.fold(Span::ZERO, |sum, (fifo, tokens)| {
            sum.saturating_add(self.copy_time(fifo, tokens))
        })
    }
}

/// The tokens of a phase.
fn rate(cycle: &[u32], phase: usize) -> u32 {
    cycle.get(phase).or(cycle.first()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Tile;
    use crate::id::CpuId;
    use crate::time::Work;
    use alloc::vec;

    #[test]
    fn a_copy_takes_its_latency_and_its_bytes_and_nothing_takes_nothing() {
        let copies = Copies {
            latency: Span::from_ns(20),
            bytes_per_us: 3,
        };
        assert_eq!(copies.time(0), Span::ZERO);
        assert_eq!(copies.time(1), Span::from_ns(20 + 334));
        assert_eq!(copies.time(6), Span::from_ns(20 + 2_000));
        assert_eq!(copies.time(u64::MAX).as_ns(), u64::MAX);
    }

    /// CompOSe §4.4: none where both ends and the buffer are on one tile; at the write where the
    /// buffer is the consumer's; both where it is in a memory tile.
    #[test]
    fn the_place_of_a_fifo_says_who_copies() {
        let tiles = [0, 1].map(|cpu| Tile::cpu(CpuId(cpu)));
        for (there, place, claims, releases) in [
            (0, Place::Producer, false, false),
            (0, Place::Consumer, false, false),
            (0, Place::Memory, true, true),
            (1, Place::Producer, true, false),
            (1, Place::Consumer, false, true),
            (1, Place::Memory, true, true),
        ] {
            let mut graph = Graph::new("g");
            let from = graph.actor("w", tiles[0], Work::from_ns(1));
            let to = graph.actor("r", tiles[there], Work::from_ns(1));
            let fifo = graph.fifo("f", from, to);
            (fifo.place, fifo.token_size) = (place, 4);
            (fifo.produce, fifo.consume) = (vec![1, 0], vec![2]);
            graph.copies = Some(Copies {
                latency: Span::from_ns(1),
                bytes_per_us: 1_000,
            });
            let ns = |copies: bool, ns| Span::from_ns(if copies { ns } else { 0 });
            assert_eq!(graph.claim_time(to, 0), ns(claims, 9), "{place:?}");
            assert_eq!(graph.release_time(from, 0), ns(releases, 5), "{place:?}");
            assert_eq!(graph.release_time(from, 1), Span::ZERO);
            assert_eq!(graph.claim_time(from, 0), Span::ZERO);
            graph.copies = None;
            assert_eq!(graph.claim_time(to, 0), Span::ZERO);
        }
    }

    #[test]
    fn shared_memory_is_read_at_claims_and_written_before_any_token_arrives() {
        let tile = Tile::cpu(CpuId(0));
        let mut graph = Graph::new("g");
        let from = graph.actor("w", tile, Work::from_ns(1));
        let to = graph.actor("r", tile, Work::from_ns(1));
        graph.fifo("f", from, to);
        graph.actors[from.index()].writes_shm = 5;
        graph.actors[to.index()].reads_shm = 3;
        let late = |graph: &Graph| graph.arrive_by_copy(&graph.fifos[0]);
        assert!(!late(&graph) && graph.release_time(from, 0).is_zero());
        graph.copies = Some(Copies {
            latency: Span::from_ns(1),
            bytes_per_us: 1_000,
        });
        assert!(late(&graph));
        assert_eq!(graph.release_time(from, 0), Span::from_ns(6));
        assert_eq!(graph.claim_time(to, 0), Span::from_ns(4));
        assert!(graph.claim_time(from, 0).is_zero() && graph.release_time(to, 0).is_zero());
    }
}
