//! The engine keeps the rules of graphs, with any task scheduler and any ends of slots.

use punctual_dataflow::{Rates, Timed, Tokens, firings_per_iteration};
use punctual_firing::{
    Activity, Call, Engine, Fifos, Held, Observer, Plain, Preempted, RoundRobin, State,
    StaticOrder, TaskScheduler, Tasks, Tdm, When,
};
use punctual_generate::{Random, draw_graph};
use punctual_model::{CpuId, Graph, Tile, Work};

const TILE: Tile = Tile::cpu(CpuId(0));

/// `read` hands two tokens to `show`, which takes one; the FIFO has three places.
fn pipeline() -> Graph {
    let mut graph = Graph::new("pipeline");
    let read = graph.actor("read", TILE, Work::from_ns(2));
    let show = graph.actor("show", TILE, Work::from_ns(1));
    let fifo = graph.fifo("pixels", read, show);
    (fifo.produce, fifo.capacity) = (vec![2], Some(3));
    graph
}

/// Every transition, as in the paper.
#[derive(Default)]
struct Log(Vec<(usize, &'static str)>, Vec<usize>);

impl Observer for Log {
    fn moved(&mut self, actor: usize, _: u64, state: State, preempted: bool) {
        self.0.push((actor, state.name(preempted)));
    }

    fn refused(&mut self, answer: usize) {
        self.1.push(answer);
    }
}

/// Goes on until an actor claims, or nobody can; the place of that actor.
fn next_claim(
    engine: &mut Engine<impl TaskScheduler>,
    fifos: &mut impl Fifos,
    log: &mut Log,
) -> Option<usize> {
    loop {
        match engine.next(fifos, log) {
            Activity::Claim(actor) => return Some(actor),
            Activity::Idle => return None,
            _ => {}
        }
    }
}

#[test]
fn a_firing_goes_through_the_states_of_the_paper() {
    let graph = pipeline();
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let mut engine = Engine::new(&graph, TILE, When::OwnTime, RoundRobin);
    let order: Vec<_> = (0..6)
        .map(|_| next_claim(&mut engine, &mut held, &mut log))
        .collect();
    // By turns, until two tokens more have no room.
    let by_turns = [0, 1, 0, 1, 1, 0].map(Some);
    assert_eq!(order, by_turns);
    let first = ["CLAIM", "COMPUTE", "RELEASE", "RESET", "IDLE"].map(|state| (0, state));
    assert_eq!(log.0[..5], first);
}

#[test]
fn the_end_of_a_slot_has_a_state_for_every_instant() {
    let graph = pipeline();
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let mut engine = Engine::new(&graph, TILE, When::OwnTime, RoundRobin);
    for _ in 0..4 {
        let activity = engine.next(&mut held, &mut log);
        engine.preempted(&mut log);
        engine.preempted(&mut log);
        let goes_on = engine.resumed(&mut held, &mut log);
        assert!(matches!(
            activity,
            Activity::Claim(0) | Activity::Compute(0) | Activity::Release(0) | Activity::Reset(0)
        ));
        assert_eq!(goes_on, Activity::GoOn(0));
    }
    let states = ["CLAIM", "COMPUTE", "RELEASE", "RESET"];
    let expected = states.iter().flat_map(|&state| {
        let preempted = [
            "PREEMPT_CLAIM",
            "PREEMPT_COMPUTE",
            "PREEMPT_RELEASE",
            "PREEMPT_RESET",
        ];
        let at = states.iter().position(|&s| s == state).expect("listed");
        [(0, state), (0, preempted[at]), (0, state)]
    });
    assert_eq!(log.0, expected.collect::<Vec<_>>());
}

#[test]
fn who_is_between_two_firings_is_looked_at_again() {
    let mut graph = pipeline();
    graph.fifos[0].capacity = Some(2);
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let only_read = StaticOrder::new(vec![0]);
    let mut engine = Engine::new(&graph, TILE, When::OwnTime, only_read);
    assert_eq!(next_claim(&mut engine, &mut held, &mut log), Some(0));
    assert_eq!(next_claim(&mut engine, &mut held, &mut log), None);
    engine.preempted(&mut log);
    assert_eq!(log.0.last(), Some(&(0, "PREEMPT_IDLE")));
    assert_eq!(engine.resumed(&mut held, &mut log), Activity::Idle);
    assert_eq!(log.0.last(), Some(&(0, "IDLE")));
    engine.preempted(&mut log);
    held.consume(0, 2);
    assert_eq!(engine.resumed(&mut held, &mut log), Activity::Claim(0));
}

#[test]
fn between_slots_one_firing_begins_per_slot_and_who_was_preempted_goes_on_or_waits() {
    for (rule, second) in [(Preempted::Continues, 0), (Preempted::PassedOver, 1)] {
        let graph = {
            let mut graph = pipeline();
            graph.fifos[0].initial = 1;
            graph
        };
        let (mut held, mut log) = (Held::at_first(&graph), Log::default());
        let when = When::BetweenSlots(rule);
        let mut engine = Engine::new(&graph, TILE, when, RoundRobin);
        assert_eq!(engine.next(&mut held, &mut log), Activity::Idle);
        assert_eq!(engine.resumed(&mut held, &mut log), Activity::Claim(0));
        assert_eq!(engine.next(&mut held, &mut log), Activity::Compute(0));
        engine.preempted(&mut log);
        let goes_on = engine.resumed(&mut held, &mut log);
        if second == 0 {
            assert_eq!(goes_on, Activity::GoOn(0));
            assert_eq!(next_claim(&mut engine, &mut held, &mut log), None);
        } else {
            assert_eq!(goes_on, Activity::Claim(1));
            assert_eq!(next_claim(&mut engine, &mut held, &mut log), None);
            assert_eq!(engine.state(0), Some((State::Compute, true)));
            engine.preempted(&mut log);
            assert_eq!(engine.resumed(&mut held, &mut log), Activity::GoOn(0));
        }
    }
}

#[test]
fn who_was_passed_over_comes_to_its_end_where_no_firing_begins_any_more() {
    let mut graph = pipeline();
    graph.fifos[0].initial = 1;
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let when = When::BetweenSlots(Preempted::PassedOver);
    let mut engine = Engine::new(&graph, TILE, when, RoundRobin);
    for slot in 0..2 {
        assert_eq!(engine.resumed(&mut held, &mut log), Activity::Claim(slot));
        engine.preempted(&mut log);
    }
    let before = log.0.len();
    for place in [1, 0] {
        assert_eq!(engine.finish(&mut log), Some(place));
        assert_eq!(next_claim(&mut engine, &mut held, &mut log), None);
        assert_eq!(engine.firings(place), Some(1));
    }
    assert_eq!(engine.finish(&mut log), None);
    assert!(
        log.0[before..]
            .iter()
            .all(|(_, state)| !state.starts_with("PREEMPT"))
    );
}

#[test]
fn between_slots_the_owner_of_a_turn_leaves_it_empty() {
    let graph = pipeline();
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let when = When::BetweenSlots(Preempted::PassedOver);
    let mut engine = Engine::new(&graph, TILE, when, Tdm::new(vec![1, 0]));
    let mut fired = Vec::new();
    for _ in 0..6 {
        fired.push(match engine.resumed(&mut held, &mut log) {
            Activity::Claim(actor) => Some(actor),
            _ => None,
        });
        assert_eq!(next_claim(&mut engine, &mut held, &mut log), None);
        engine.preempted(&mut log);
    }
    // Two tokens stay until the second turn of `show`; three places have no room for two more.
    let turns = [None, Some(0), Some(1), Some(0), Some(1), None];
    assert_eq!(fired, turns);
}

/// Names whom it likes.
struct Liar(Vec<usize>);

impl TaskScheduler for Liar {
    fn next(&mut self, _: &dyn Tasks) -> Option<usize> {
        self.0.pop()
    }
}

#[test]
fn an_answer_that_may_not_fire_is_refused_and_nobody_fires() {
    let graph = pipeline();
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let mut engine = Engine::new(&graph, TILE, When::OwnTime, Liar(vec![0, 7, 1]));
    for _ in 0..2 {
        assert_eq!(engine.next(&mut held, &mut log), Activity::Idle);
    }
    assert_eq!(log.1, [1, 7]);
    assert_eq!(engine.next(&mut held, &mut log), Activity::Claim(0));
}

#[test]
fn rates_that_depend_on_data_hold_from_the_next_firing_on() {
    let graph = pipeline();
    let (mut held, mut log) = (Held::at_first(&graph), Log::default());
    let mut engine = Engine::new(&graph, TILE, When::OwnTime, RoundRobin);
    for expected in [
        Activity::Claim(0),
        Activity::Compute(0),
        Activity::Release(0),
    ] {
        assert_eq!(engine.next(&mut held, &mut log), expected);
        assert!(!engine.set_rate(0, 0, 3), "a firing is under way");
    }
    assert_eq!(engine.next(&mut held, &mut log), Activity::Reset(0));
    assert_eq!(held.tokens(0), 2);
    assert!(engine.set_rate(0, 0, 3));
    assert!(!engine.set_rate(0, 1, 3), "no such port");
    let order: Vec<_> = (0..3)
        .map(|_| next_claim(&mut engine, &mut held, &mut log))
        .collect();
    assert_eq!(order, [1, 1, 0].map(Some));
    assert_eq!(next_claim(&mut engine, &mut held, &mut log), Some(1));
    assert_eq!(held.tokens(0), 3);
}

/// Any that may fire, by chance.
struct Chance(Random);

impl TaskScheduler for Chance {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let able: Vec<usize> = (0..tasks.count())
            .filter(|&task| tasks.check_firing_rules(task))
            .collect();
        self.0.pick(&able).copied()
    }
}

/// An engine on each tile, one step at a time by chance, with slots that end by chance: each firing
/// begins exactly when the theory of graphs lets it, and changes what it says.
#[test]
fn engines_on_many_tiles_do_what_the_theory_of_graphs_says() {
    let mut firings = 0_u64;
    for seed in 0..600 {
        let random = &mut Random::at(seed, &[9]);
        let mut graph = draw_graph(random);
        let tiles = u16::try_from(random.within(1, 3)).expect("few");
        for actor in &mut graph.actors {
            actor.tile = Tile::cpu(CpuId(
                u16::try_from(random.below(tiles.into())).expect("few"),
            ));
        }
        let Ok(Rates::Consistent(rates)) = firings_per_iteration(&graph) else {
            panic!("drawn graphs are consistent");
        };
        let times: Vec<Vec<u64>> = graph.actors.iter().map(|a| vec![1; a.wcet.len()]).collect();
        let timed = Timed::new(&graph, &rates, &times).expect("small");
        let (mut tokens, mut held) = (Tokens::at_first(&timed), Held::at_first(&graph));
        let mut engines: Vec<_> = (0..tiles)
            .map(|cpu| {
                let when = match random.below(3) {
                    0 => When::OwnTime,
                    1 => When::BetweenSlots(Preempted::Continues),
                    _ => When::BetweenSlots(Preempted::PassedOver),
                };
                let chance = Chance(Random::at(seed, &[10, cpu.into()]));
                Engine::new(&graph, Tile::cpu(CpuId(cpu)), when, chance)
            })
            .collect();
        for _ in 0..400 {
            let at = random.index(engines.len());
            let engine = &mut engines[at];
            let before: Vec<bool> = (0..engine.actors())
                .map(|place| {
                    engine
                        .state(place)
                        .is_some_and(|(state, _)| state == State::Release)
                })
                .collect();
            let activity = if random.happens(200) {
                engine.preempted(&mut ());
                engine.resumed(&mut held, &mut ())
            } else {
                engine.next(&mut held, &mut ())
            };
            let actor = |place| engine.actor(place).expect("on the tile").index();
            match activity {
                Activity::Claim(place) => {
                    assert!(tokens.may_start(actor(place)), "seed {seed}");
                    tokens.start(actor(place));
                }
                Activity::Reset(place) if before[place] => {
                    tokens.end(actor(place));
                    firings += 1;
                }
                _ => {}
            }
        }
    }
    assert!(firings > 20_000, "{firings}");
}

/// Rounds and calls as they were told.
#[derive(Default)]
struct Calls(Vec<String>);

impl Observer for Calls {
    fn moved(&mut self, task: usize, rounds: u64, state: State, preempted: bool) {
        let state = state.name(preempted);
        self.0.push(format!("{task} {rounds} {state}"));
    }

    fn called(&mut self, task: usize, rounds: u64, call: Call, goes_on: bool) {
        let call = call.name(goes_on);
        self.0.push(format!("{task} {rounds} {call}"));
    }

    fn refused(&mut self, answer: usize) {
        self.0.push(format!("{answer} refused"));
    }
}

#[test]
fn tasks_that_wait_for_each_other_let_a_third_go_on() {
    let mut graph = pipeline();
    let back = (graph.fifos[0].to, graph.fifos[0].from);
    graph.fifo("back", back.0, back.1);
    let mut held = Held::at_first(&graph);
    let told = &mut Calls::default();
    let mut engine = Plain::new(3, RoundRobin);
    let back = u32::try_from(graph.fifos.len()).expect("few") - 1;
    let (forth, back) = (Call::Read(0, 1), Call::Read(back, 1));
    assert_eq!(engine.next(&held, told), Some(0));
    assert!(!engine.call(back, &held, told));
    assert_eq!(engine.next(&held, told), Some(1));
    engine.preempted(told);
    assert_eq!(engine.state(1), Some((State::Run, true)));
    assert_eq!(engine.resumed(told), Some(1));
    assert!(!engine.call(forth, &held, told));
    assert_eq!(engine.next(&held, told), Some(2));
    assert_eq!(engine.state(0), Some((State::Run, false)));
    engine.goes_on(told);
    engine.ends(told);
    assert_eq!(
        engine.next(&held, told),
        None,
        "the two wait for each other"
    );
    assert_eq!(
        (engine.waits(0), engine.waits(1)),
        (Some(back), Some(forth))
    );
    held.produce(0, 1);
    assert_eq!(engine.next(&held, told), Some(1));
    assert!(engine.call(forth, &held, told));
    forth.take(&mut held);
    assert_eq!(held.tokens(0), 0);
    engine.ends(told);
    assert!(!engine.is_finished());
    back_to(&mut held, back);
    assert_eq!(engine.next(&held, told), Some(0));
    assert!(engine.call(back, &held, told));
    engine.ends(told);
    assert!(engine.is_finished());
    let expected = [
        "0 0 RUN",
        "0 0 lacks-tokens",
        "1 0 RUN",
        "1 0 PREEMPT_RUN",
        "1 0 RUN",
        "1 0 lacks-tokens",
        "2 0 RUN",
        "2 1 RUN",
        "2 2 FINISHED",
        "1 0 reads",
        "1 1 FINISHED",
        "0 0 reads",
        "0 1 FINISHED",
    ];
    assert_eq!(told.0, expected);
}

/// One token into the FIFO that this call reads.
fn back_to(held: &mut Held, call: Call) {
    if let Call::Read(fifo, count) = call {
        held.produce(fifo as usize, count);
    }
}

/// A scheduler of tasks that run to completion is no more believed than another.
#[test]
fn a_task_that_waits_or_has_ended_is_not_chosen() {
    struct Always(usize);
    impl TaskScheduler for Always {
        fn next(&mut self, _: &dyn Tasks) -> Option<usize> {
            Some(self.0)
        }
    }
    let graph = pipeline();
    let held = Held::at_first(&graph);
    let told = &mut Calls::default();
    let mut engine = Plain::new(3, Always(1));
    assert_eq!(engine.next(&held, told), Some(1));
    assert!(!engine.call(Call::Read(0, 1), &held, told));
    assert_eq!(engine.next(&held, told), None);
    let mut engine = Plain::new(1, Always(0));
    assert_eq!(engine.next(&held, told), Some(0));
    engine.ends(told);
    assert_eq!(engine.next(&held, told), None);
    let mut engine = Plain::new(1, Always(7));
    assert_eq!(engine.next(&held, told), None);
    let refused: Vec<&str> = told
        .0
        .iter()
        .filter_map(|line| line.strip_suffix(" refused"))
        .collect();
    assert_eq!(refused, ["1", "0", "7"]);
}

/// One that is chosen although its call has no end yet calls again, and tells its reason once.
#[test]
fn a_call_that_is_looked_at_again_is_told_once() {
    let graph = pipeline();
    let mut held = Held::at_first(&graph);
    let told = &mut Calls::default();
    let mut engine = Plain::new(2, RoundRobin);
    assert_eq!(engine.next(&held, told), Some(0));
    let call = Call::Read(0, 2);
    assert!(!engine.call(call, &held, told));
    held.produce(0, 2);
    assert_eq!(engine.next(&held, told), Some(1));
    assert!(engine.call(Call::Read(0, 1), &held, told));
    held.consume(0, 1);
    assert!(!engine.call(Call::Read(0, 2), &held, told));
    assert_eq!(engine.next(&held, told), None);
    assert_eq!(
        told.0.iter().filter(|line| line.contains("lacks")).count(),
        2
    );
}
