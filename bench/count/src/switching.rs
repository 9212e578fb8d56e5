//! Switches outside of a run: the dispatch alone, and a yield by core and dispatch.

use punctual_linux::bench::{Sharing, direct, through_core};
use punctual_model::{Ns, PolicyKind};

use crate::decisions::{POLICIES, equals, recorder, shard};
use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, mark};

/// Batches of the two windows. The rest of their calls is the same in both.
const FEW: usize = 1;
const MANY: usize = 3;
/// Dispatches of a batch of [`direct`].
const DISPATCHES: usize = 100;
/// Yields of a batch through the core.
const YIELDS: usize = 20;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let of =
        |row: String, batch: usize, program: Box<dyn FnOnce() -> Result<(), String>>| Scenario {
            rows: vec![row],
            reading: Reading::Growth(((MANY - FEW) * batch) as u64),
            windows: 2,
            program,
        };
    let switch = || twice(|batches| direct(batches, Sharing::Shared).len() == batches);
    let direct = of("switch.direct".to_owned(), DISPATCHES, Box::new(switch));
    let through_core = POLICIES.map(|(name, policy)| {
        let row = format!("switch.core.{name}.2");
        of(row, YIELDS, Box::new(move || yields(policy)))
    });
    [direct].into_iter().chain(through_core).collect()
}

/// Yields of two threads through the core, recorded.
fn yields(policy: PolicyKind<Ns>) -> Result<(), String> {
    let world = || Ok::<_, String>((shard(policy, equals(2))?, recorder()?));
    let mut worlds = vec![world()?, world()?];
    twice(|batches| {
        let world = worlds.pop();
        world.is_some_and(|(shard, sink)| {
            through_core(batches, YIELDS, shard, sink).len() == batches
        })
    })
}

/// Executes a few batches, and more of them.
fn twice(mut batches: impl FnMut(usize) -> bool) -> Result<(), String> {
    begin();
    for count in [FEW, MANY] {
        mark(0);
        let is_done = batches(count);
        mark(NONE);
        if !is_done {
            return Err("a batch was not executed as it should".to_owned());
        }
    }
    Ok(())
}
