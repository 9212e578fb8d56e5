//! What one event of the scheduler core costs, against the number of threads.

use punctual_count::many::{constraint, period};
use punctual_kern::{
    Capacity, Event, Grant, MAX_RELEASES_PER_ENTRY, NoSink, NodeId, NodeTerms, Policy, Shard, Tree,
};
use punctual_model::{Instant, PolicyKind, Priority, Server, ServerKind, Span, Trust, Work};
use punctual_policy::AnyPolicy;

use super::counting::{batch, is_on, uncounted};
use super::figure::{Bench, time};

/// Threads on one CPU. The checks of a debug build cost O(threads) per event.
const THREADS: &[u32] = if cfg!(debug_assertions) {
    &[2, 100]
} else {
    &[2, 10, 100, 1_000, 10_000, 100_000]
};

/// Fewest events of one sample.
const EVENTS_PER_SAMPLE: u32 = 1_000;

/// Samples per figure; the largest numbers of threads get fewer.
const SAMPLES: u32 = if cfg!(debug_assertions) { 3 } else { 1_000 };

/// Most events of one figure.
const MAX_EVENTS: u32 = 10_000_000;

/// An event is half a job: its release or its completion, with the choice of who runs next.
pub(super) fn benches() -> Vec<Bench> {
    let policies = [
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::EarliestDeadlineFirst,
    ];
    let pairs = policies
        .iter()
        .flat_map(|kind| THREADS.iter().map(move |&n| (*kind, n)));
    let one_level = |(kind, n): (PolicyKind, u32)| {
        let name = format!("kern event, {}, {n} threads", kind.name());
        Bench::new(name, move || measure(kind, n, 0))
    };
    let tree = |levels: u16| {
        let name = format!("kern event, {levels} servers deep, 100 threads");
        let kind = PolicyKind::FixedPriority { preemptive: true };
        Bench::new(name, move || measure(kind, 100, levels))
    };
    let depths = [1, 3, 8];
    pairs
        .map(one_level)
        .chain(depths.into_iter().map(tree))
        .collect()
}

/// One policy, or that many schedulers below it, each on a server, and the last of them.
fn tree(
    kind: PolicyKind,
    capacity: Capacity,
    period: u64,
) -> Result<(Tree<AnyPolicy>, NodeId), String> {
    let policy = || AnyPolicy::new(kind, capacity.entities(), &[]);
    let mut tree = Tree::new(capacity, policy());
    let mut home = NodeId::ROOT;
    for _ in 0..capacity.nodes {
        let terms = NodeTerms {
            supply: Grant::Server(Server {
                kind: ServerKind::Deferrable,
                budget: Work::from_ticks(period),
                period: Span::from_ticks(period),
            }),
            priority: Priority::LOWEST,
            order: 0,
            trust: Trust::Inline,
            quota: None,
            receiver: None,
        };
        let added = tree.add(home, policy(), terms);
        home = added.map_err(|refusal| format!("{refusal:?}"))?;
    }
    Ok((tree, home))
}

fn measure(kind: PolicyKind, threads: u32, levels: u16) -> Result<Vec<f64>, String> {
    let mut capacity = Capacity::for_threads(threads as usize);
    capacity.nodes = levels;
    let period = period(threads);
    let (tree, home) = tree(kind, capacity, period)?;
    let mut shard = Shard::new(tree);
    for index in 0..threads {
        shard
            .attach_to(home, constraint(index, threads, period))
            .map_err(|error| error.to_string())?;
    }
    if is_on() {
        return count(&mut shard, threads, period);
    }
    let rounds = EVENTS_PER_SAMPLE.div_ceil(2 * threads);
    let events = rounds * 2 * threads;
    let samples = SAMPLES.min(MAX_EVENTS / events).max(3);
    let mut start = 0;
    // The first samples touch the memory for the first time.
    let warm_up = (samples / 10).max(1);
    let mut all = Vec::new();
    for sample in 0..warm_up + samples {
        let mut completed = 0;
        let each = time(events, || {
            for _ in 0..rounds {
                completed += round(&mut shard, threads, Instant::from_ticks(start));
                start += period;
            }
        });
        if completed != rounds * threads {
            return Err(format!(
                "{completed} jobs of {} completed",
                rounds * threads
            ));
        }
        if sample >= warm_up {
            all.push(each);
        }
    }
    Ok(all)
}

/// Rounds of which one entry of releases and as many completions are counted, each in the middle of
/// the others.
fn count<P: Policy>(shard: &mut Shard<P>, threads: u32, period: u64) -> Result<Vec<f64>, String> {
    let part = u32::try_from(MAX_RELEASES_PER_ENTRY).map_or(threads, |most| most.min(threads));
    let before = (threads - part) / 2;
    for start in (0..4).map(|round| Instant::from_ticks(round * period)) {
        let tick = |shard: &mut Shard<P>| shard.handle(start, Event::Tick, &mut NoSink);
        let complete = |shard: &mut Shard<P>, numbers: core::ops::Range<u32>| {
            for number in numbers {
                let now = start.saturating_add(Span::from_ticks(u64::from(number) + 1));
                let _ = shard.handle(now, Event::Complete, &mut NoSink);
            }
        };
        for _ in 0..before / part {
            let _ = tick(shard);
        }
        batch(2 * part, || {
            let mut decision = tick(shard);
            uncounted(|| {
                while decision.arm == Some(start) {
                    decision = tick(shard);
                }
                complete(shard, 0..before);
            });
            complete(shard, before..before + part);
        });
        complete(shard, before + part..threads);
    }
    Err("these are counted, not measured".into())
}

/// Everybody is released at `start`, then one after the other completes. Returns how many did.
fn round<P: Policy>(shard: &mut Shard<P>, threads: u32, start: Instant) -> u32 {
    let mut decision = shard.handle(start, Event::Tick, &mut NoSink);
    while decision.arm == Some(start) {
        decision = shard.handle(start, Event::Tick, &mut NoSink);
    }
    let mut completed = 0;
    for tick in 1..=u64::from(threads) {
        let now = start.saturating_add(Span::from_ticks(tick));
        let decision = shard.handle(now, Event::Complete, &mut NoSink);
        completed += u32::from(decision.refused.is_none());
    }
    completed
}
