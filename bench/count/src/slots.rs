//! The border between two slots, and the decision of an application inside its own
//!
//! `core.slot_end.N.T` is the entry that ends a slot and `core.slot_start.N.T` the one that begins
//! the next, in a frame of N slots with an owner each that has T endless threads.
//! `firing.decision.A` is the end of a firing and the decision for the next one, in own time, on a
//! tile with A actors that all may fire. `firing.rest.A` is the rest of one firing in the engine.

use punctual_firing::{Activity, Engine, Held, RoundRobin, When};
use punctual_kern::{Event, Next};
use punctual_model::{
    Class, CpuId, Graph, PolicyKind, Priority, Scheduler, SchedulerId, Slot, Span, Supply, System,
    Task, Tile, Trust, Work,
};

use crate::decisions::{Core, cpu, shard_of};
use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, mark};

/// Slots of a frame, and threads of each owner.
const FRAMES: [(u16, u16); 4] = [(2, 1), (8, 1), (64, 1), (8, 32)];
/// Actors on a tile.
const ACTORS: [usize; 2] = [2, 8];

const WARM_UP: u64 = 256;
const WINDOWS: usize = 64;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let borders = FRAMES.into_iter().map(|(slots, threads)| Scenario {
        rows: ["end", "start"]
            .map(|border| format!("core.slot_{border}.{slots}.{threads}"))
            .into(),
        reading: Reading::Mean,
        windows: 2 * WINDOWS,
        program: Box::new(move || borders(slots, threads)),
    });
    let firings = ACTORS.into_iter().map(|actors| Scenario {
        rows: ["decision", "rest"]
            .map(|part| format!("firing.{part}.{actors}"))
            .into(),
        reading: Reading::Mean,
        windows: 2 * WINDOWS,
        program: Box::new(move || firings(actors)),
    });
    borders.chain(firings).collect()
}

/// Slots of 90 us with 10 us in front of each.
fn frame(slots: u16, threads: u16) -> System {
    let length = |count: u16| Span::from_us(u64::from(count) * 100);
    let mut system = System {
        cpus: vec![cpu(PolicyKind::Tdm {
            frame: length(slots),
            scheduling: Span::from_us(10),
        })],
        ..System::default()
    };
    for slot in 0..slots {
        let home = SchedulerId(slot);
        system.schedulers.push(Scheduler {
            name: slot.to_string(),
            cpu: CpuId(0),
            parent: None,
            policy: PolicyKind::Fifo,
            priority: Priority::new(0),
            supply: Supply::Slots(vec![Slot {
                at: length(slot),
                length: Span::from_us(90),
            }]),
            trust: Trust::Inline,
            quota: None,
            fallback: None,
            code: None,
            receiver: None,
        });
        system.tasks.extend((0..threads).map(|_| Task {
            scheduler: Some(home),
            ..Task::new("", CpuId(0), Class::Aperiodic)
        }));
    }
    system
}

fn borders(slots: u16, threads: u16) -> Result<(), String> {
    let mut core = Core::new(shard_of(frame(slots, threads))?, punctual_kern::NoSink);
    let mut arm = core.enter(1, Event::Tick).arm;
    let mut runs = core.shard.running().is_some();
    for count in 0.. {
        if count == WARM_UP {
            begin();
        }
        let at = arm.ok_or("no slot begins or ends any more")?;
        let wait = at.since(core.now).ticks();
        mark(u64::from(!runs));
        let decision = core.enter(wait, Event::Tick);
        mark(NONE);
        let now_runs = matches!(decision.next, Next::Thread(_));
        if now_runs == runs {
            return Err(format!("not the border of a slot: {decision:?}"));
        }
        (arm, runs) = (decision.arm, now_runs);
    }
    Ok(())
}

/// Actors with a FIFO each to the next one in a circle, which always has tokens and space.
fn firings(actors: usize) -> Result<(), String> {
    let tile = Tile::cpu(CpuId(0));
    let mut graph = Graph::new("g");
    let ids: Vec<_> = (0..actors)
        .map(|at| graph.actor(at.to_string(), tile, Work::from_us(1)))
        .collect();
    for (at, &from) in ids.iter().enumerate() {
        let fifo = graph.fifo(at.to_string(), from, ids[(at + 1) % actors]);
        (fifo.initial, fifo.capacity) = (2, Some(4));
    }
    let mut fifos = Held::at_first(&graph);
    let mut engine = Engine::new(&graph, tile, When::OwnTime, RoundRobin);
    let mut activity = engine.next(&mut fifos, &mut ());
    for count in 0.. {
        if count == WARM_UP {
            begin();
        }
        if !matches!(activity, Activity::Claim(_)) {
            return Err(format!("no firing begins: {activity:?}"));
        }
        mark(1);
        // Compute, release, reset.
        for _ in 0..3 {
            let _ = engine.next(&mut fifos, &mut ());
        }
        mark(0);
        activity = engine.next(&mut fifos, &mut ());
        mark(NONE);
    }
    Ok(())
}
