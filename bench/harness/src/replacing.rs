//! What it takes to have another policy order so many ready threads, beside the kernel's classes.
//!
//! Ours is everything from the request to the decision of the new policy, in the core without the
//! platform: fixed priority becomes EDF, and back. The new policy is made and the old one freed
//! outside of it, as a program does. The kernel changes the class of each ready thread by a call.

use punctual_count::many::constraint;
use punctual_kern::{Capacity, Event, NoSink, NodeId, Request, Shard, Tree};
use punctual_model::{Instant, PolicyKind};
use punctual_policy::AnyPolicy;
use punctual_rivals::flips;

use super::figure::{Bench, time};
use super::live::place;

const SAMPLES: u32 = if cfg!(debug_assertions) { 10 } else { 1_000 };
const WARM_UP: u32 = SAMPLES / 10;
/// Ready threads; a debug build checks all of them in every entry.
const THREADS: &[u32] = if cfg!(debug_assertions) {
    &[2, 32]
} else {
    &[2, 32, 1_000]
};

pub(super) fn benches() -> Vec<Bench> {
    let bench = |&threads: &u32| {
        let flips = move || flips::flips(place()?, threads);
        Bench::new(format!("policy.swap.{threads}"), move || replace(threads))
            .against("sched_setscheduler", flips)
    };
    THREADS.iter().map(bench).collect()
}

fn replace(threads: u32) -> Result<Vec<f64>, String> {
    let capacity = Capacity::for_threads(threads as usize);
    let kinds = [
        PolicyKind::EarliestDeadlineFirst,
        PolicyKind::FixedPriority { preemptive: true },
    ];
    let policy = |kind| AnyPolicy::new(kind, capacity.entities(), &[]);
    let mut shard = Shard::new(Tree::new(capacity, policy(kinds[1])));
    for index in 0..threads {
        // No job ends, and no deadline comes.
        let constraint = constraint(index, threads, 1 << 40);
        shard
            .attach(constraint)
            .map_err(|error| error.to_string())?;
    }
    let now = Instant::from_ticks(0);
    while shard.handle(now, Event::Tick, &mut NoSink).arm == Some(now) {}
    let mut all = Vec::new();
    for round in 0..WARM_UP + SAMPLES {
        let kind = kinds[(round % 2) as usize];
        let made = policy(kind);
        let shelved = shard.shelve(NodeId::ROOT, made);
        shelved.map_err(|_| "the shelf is not free")?;
        let request = Request::Replace {
            node: NodeId::ROOT,
            policy: kind,
        };
        let event = Event::Manage {
            by: NodeId::ROOT,
            request,
        };
        let mut decision = None;
        let taken = time(1, || {
            decision = Some(shard.handle(now, event, &mut NoSink));
            while shard.is_replacing() {
                decision = Some(shard.handle(now, Event::Tick, &mut NoSink));
            }
        });
        if let Some(refusal) = decision.and_then(|decision| decision.refused) {
            return Err(format!("{refusal:?}"));
        }
        drop(shard.unshelve(NodeId::ROOT));
        if round >= WARM_UP {
            all.push(taken);
        }
    }
    Ok(all)
}
