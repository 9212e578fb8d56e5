//! Random segments of which a plan exists by construction, for studies of planning
//!
//! The generator of Ramamritham, Stankovic and Shiah (TPDS 1(2), 1990): segments are put one after
//! the other on the CPU that is free first, without a gap. Each uses the resources that are free
//! for it at that time, with a probability. Deadlines lie behind the end of the whole.

use punctual_model::Mode;

use crate::random::Random;

/// The shape of sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentMix {
    /// CPUs.
    pub cpus: usize,
    /// Resources.
    pub resources: usize,
    /// A segment uses a resource that is free for it, in this many of 1,000 draws.
    pub use_per_mille: u32,
    /// It does so together with others, in this many of 1,000 draws.
    pub shared_per_mille: u32,
    /// The least and the most work of a segment.
    pub wcet: (u64, u64),
    /// Segments are added while a CPU is free before.
    pub length: u64,
    /// Deadlines reach so far behind the end of the whole, in thousandths of it.
    pub laxity_per_mille: u64,
}

/// A segment that is released at 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrawnSegment {
    /// Its work.
    pub wcet: u64,
    /// Its resources, by number.
    pub uses: Vec<(usize, Mode)>,
    /// It ends by then.
    pub deadline: u64,
}

impl SegmentMix {
    /// 3 CPUs, 5 resources, work from 10 to 100, 46 segments on average: close to the sets of an
    /// earlier prototype, whose share of shared uses is not known.
    pub fn tight(use_per_mille: u32, laxity_per_mille: u64) -> SegmentMix {
        SegmentMix {
            cpus: 3,
            resources: 5,
            use_per_mille,
            shared_per_mille: 400,
            wcet: (10, 100),
            length: 815,
            laxity_per_mille,
        }
    }

    /// A set, in an order of its own.
    pub fn draw(&self, random: &mut Random) -> Vec<DrawnSegment> {
        let mut cpus = vec![0_u64; self.cpus.max(1)];
        let mut shared = vec![0_u64; self.resources];
        let mut exclusive = vec![0_u64; self.resources];
        let mut drawn = Vec::new();
        loop {
            let first = (0..cpus.len()).min_by_key(|&cpu| cpus[cpu]).unwrap_or(0);
            let start = cpus[first];
            if start >= self.length {
                break;
            }
            let wcet = random.within(self.wcet.0.max(1), self.wcet.1);
            let end = start + wcet;
            cpus[first] = end;
            let mut uses = Vec::new();
            for resource in 0..self.resources {
                if !random.happens(self.use_per_mille) {
                    continue;
                }
                let mode = match random.happens(self.shared_per_mille) {
                    true => Mode::Shared,
                    false => Mode::Exclusive,
                };
                let free = match mode {
                    Mode::Shared => shared[resource],
                    Mode::Exclusive => exclusive[resource],
                };
                if free <= start {
                    exclusive[resource] = exclusive[resource].max(end);
                    if mode == Mode::Exclusive {
                        shared[resource] = end;
                    }
                    uses.push((resource, mode));
                }
            }
            drawn.push(DrawnSegment {
                wcet,
                uses,
                deadline: 0,
            });
        }
        let whole = cpus.iter().copied().max().unwrap_or(0);
        let latest = whole + whole * self.laxity_per_mille / 1_000;
        for segment in &mut drawn {
            segment.deadline = random.within(whole, latest);
        }
        random.shuffle(&mut drawn);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fill_the_cpus_to_the_length_and_deadlines_lie_behind() {
        for seed in 0..50 {
            let mix = SegmentMix::tight(300, 100);
            let drawn = mix.draw(&mut Random::new(seed));
            let work: u64 = drawn.iter().map(|segment| segment.wcet).sum();
            assert!(work >= 3 * mix.length && work < 3 * (mix.length + mix.wcet.1));
            let first = drawn.iter().map(|segment| segment.deadline).min();
            assert!(first.is_some_and(|deadline| deadline >= mix.length));
            assert_eq!(drawn, mix.draw(&mut Random::new(seed)));
        }
    }
}
