//! An event among 100,000 threads: a release, and a completion
//!
//! All are released at one instant, in entries of many releases each; then one after the other
//! completes. An operation is one release, or one completion, in the middle of its phase.
//! `misses.OPERATION` is how many lines of data a hundred of them do not find in a cache of 1 MiB:
//! the cache of [`crate::stepper`], which is full when the count begins.

use crate::many::{period, shard};
use punctual_kern::{Event, MAX_RELEASES_PER_ENTRY, NoSink, Shard};
use punctual_model::{Frequency, Instant, Ns, PolicyKind, Span};
use punctual_policy::AnyPolicy;

use crate::ceilings::OF_CACHE;
use crate::decisions::POLICIES;
use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, cache_is_full, mark, pause};

const THREADS: u32 = 100_000;
/// Operations of a window: the releases of one entry.
const TOGETHER: u64 = MAX_RELEASES_PER_ENTRY as u64;
/// Windows of each operation, without and with a cache.
const FEW: usize = 4;
const MANY: usize = 16;

const RELEASE: u64 = 0;
const COMPLETE: u64 = 1;

fn windows(of_cache: bool) -> usize {
    if of_cache { MANY } else { FEW }
}

pub(crate) fn scenarios() -> Vec<Scenario> {
    let of = |(name, policy), of_cache: bool| Scenario {
        rows: ["release", "complete"]
            .map(|operation| match of_cache {
                true => format!("{OF_CACHE}{operation}.{name}.{THREADS}"),
                false => format!("core.{operation}.{name}.{THREADS}"),
            })
            .into(),
        reading: match of_cache {
            true => Reading::Misses(TOGETHER),
            false => Reading::Each(TOGETHER),
        },
        windows: 2 * windows(of_cache),
        program: Box::new(move || events(policy, windows(of_cache))),
    };
    let both = |policy| [of(policy, false), of(policy, true)];
    POLICIES.into_iter().flat_map(both).collect()
}

struct Crowd {
    shard: Shard<AnyPolicy>,
    now: Instant,
}

/// One window: whether all has been done that it should.
type Act = fn(&mut Crowd) -> bool;

impl Crowd {
    #[inline(always)]
    fn enter(&mut self, ticks: u64, event: Event) -> bool {
        self.now = self.now.saturating_add(Span::from_ticks(ticks));
        let decision = self.shard.handle(self.now, event, &mut NoSink);
        decision.refused.is_none()
    }

    fn release(&mut self) -> bool {
        let before = self.shard.unsettled();
        self.enter(0, Event::Tick) && self.shard.unsettled() == before + TOGETHER
    }

    fn complete(&mut self) -> bool {
        (0..TOGETHER).all(|_| self.enter(1, Event::Complete))
    }

    /// Steps through these windows.
    fn count(&mut self, operation: u64, act: Act, windows: usize) -> Result<(), String> {
        begin();
        while !cache_is_full() {
            act(self);
        }
        let mut is_done = true;
        for _ in 0..windows {
            mark(operation);
            is_done &= act(self);
            mark(NONE);
        }
        pause();
        match is_done {
            true => Ok(()),
            false => Err("an operation was not what its row says".to_owned()),
        }
    }
}

/// A first round, then one of whose middles windows are told.
fn events(policy: PolicyKind<Ns>, windows: usize) -> Result<(), String> {
    let policy = policy.in_ticks(Frequency::NANOSECONDS);
    let mut crowd = Crowd {
        shard: shard(policy, THREADS)?,
        now: Instant::ZERO,
    };
    let acts: [(u64, Act); 2] = [(RELEASE, Crowd::release), (COMPLETE, Crowd::complete)];
    let entries = u64::from(THREADS).div_ceil(TOGETHER);
    for round in 0..2 {
        crowd.now = Instant::from_ticks(round * period(THREADS));
        for (operation, act) in acts {
            for entry in 0..entries {
                if round == 1 && entry == entries / 2 {
                    crowd.count(operation, act, windows)?;
                }
                act(&mut crowd);
            }
        }
    }
    Ok(())
}
