//! Applications off a run: order, contents, rules, and schedulers that are not believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_graph::{Application, Firing, GraphError, NextRule, State, TaskScheduler, Tasks};
use punctual_model::{
    ActorId, CpuId, Graph, GraphId, Ns, Order, OrderRule, Place, Preempted, Tile, When, Work,
};

const WCET: Work<Ns> = Work::from_ms(50);
const LEFT: Tile = Tile::cpu(CpuId(0));
const RIGHT: Tile = Tile::cpu(CpuId(1));

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a token of 8 bytes"))
}

/// Counts by its state, a FIFO to itself.
fn count(firing: &mut Firing<'_>) {
    let state = number(firing.inputs.tokens(0));
    firing
        .outputs
        .tokens(0)
        .copy_from_slice(&(state + 3).to_le_bytes());
    let places = firing.outputs.tokens(1).chunks_exact_mut(8);
    for (place, value) in places.zip(state..) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// Numbers come as they were sent, whatever the phase took before.
fn check(firing: &mut Firing<'_>, next: &mut u64) {
    for token in firing.inputs.tokens(0).chunks_exact(8) {
        assert_eq!(number(token), *next);
        *next += 1;
    }
}

fn as_declared<P>(_: &mut P, _: &mut NextRule<'_>) {}

/// `count` hands 3 tokens on per firing, `check` takes 2 and 4 in turns.
fn graph(readers_tile: Tile, place: Place) -> Graph {
    let mut graph = Graph::new("numbers");
    let from = graph.actor("count", LEFT, WCET);
    let to = graph.actor("check", readers_tile, WCET);
    let state = graph.fifo("state", from, from);
    (state.initial, state.token_size) = (1, 8);
    let numbers = graph.fifo("numbers", from, to);
    (numbers.produce, numbers.consume) = (vec![3], vec![2, 4]);
    (numbers.capacity, numbers.token_size, numbers.place) = (Some(7), 8, place);
    graph
}

fn application(graph: &Graph) -> Application {
    let mut application = Application::new(graph).expect("consistent");
    application.actor("count", count).expect("it is there");
    let check = application.actor_with("check", check, as_declared, 0);
    check.expect("it is there");
    application
}

#[test]
fn two_actors_of_a_tile_move_every_token_in_order_and_their_states_follow_each_other() {
    let mut tiles = application(&graph(LEFT, Place::Consumer))
        .tiles()
        .expect("tiles");
    let tile = &mut tiles[0];
    tile.run_until(|book| book.firings("check") >= 1_000);
    let (moved, lost) = tile.book().transitions(GraphId(0));
    assert_eq!(lost, None);
    for actor in [ActorId(0), ActorId(1)] {
        let of = moved.iter().filter(|moved| moved.actor == actor);
        let expected = (0_u64..).flat_map(|firing| {
            let states = [State::Claim, State::Compute, State::Release, State::Reset];
            let begun = states.map(|state| (firing, state));
            begun.into_iter().chain([(firing + 1, State::Idle)])
        });
        let differs = of
            .zip(expected)
            .find(|(moved, to)| (moved.firing, moved.state) != *to);
        assert_eq!(differs, None);
    }
    assert!(moved.is_sorted_by_key(|moved| moved.at));
    // 7 places, claims of 3 and 4: some go around the end.
    assert!(tile.copies().0 > 0);
    let book = tile.book();
    let [from, to] = [&book.actors[0], &book.actors[1]];
    let sent = 3 * from.firings();
    let taken = 3 * to.firings();
    assert!(
        sent >= taken && sent - taken <= 7,
        "{sent} sent, {taken} taken"
    );
    assert!(book.period(to).is_some() && book.longest(to) > Work::ZERO);
}

#[test]
fn tiles_on_two_threads_move_every_token_in_order_wherever_it_is_kept() {
    for place in Place::ALL {
        let tiles = application(&graph(RIGHT, place)).tiles().expect("tiles");
        let tiles: [_; 2] = tiles.try_into().expect("two");
        let [mut left, mut right] = tiles;
        let firings = 300;
        let sending = std::thread::spawn(move || {
            left.run_until(|book| book.firings("count") >= firings);
            left.copies().1
        });
        right.run_until(|book| book.firings("check") >= firings);
        assert_eq!(
            right.book().fault(Default::default(), Default::default()),
            None
        );
        let sent = sending.join().expect("it ends");
        let received = right.copies().1;
        let of_all = 24 * firings;
        assert_eq!(
            sent >= of_all,
            place != Place::Producer,
            "{place:?}: {sent}"
        );
        assert_eq!(
            received >= of_all,
            place != Place::Consumer,
            "{place:?}: {received}"
        );
    }
}

/// The number of its first token is the rate of its next firing.
fn send(firing: &mut Firing<'_>, next: &mut (u32, u64)) {
    for place in firing.outputs.tokens(0).chunks_exact_mut(8) {
        place.copy_from_slice(&next.1.to_le_bytes());
        next.1 += 1;
    }
    next.0 = next.0 % 5 + 1;
}

fn by_data(next: &mut (u32, u64), rule: &mut NextRule<'_>) {
    assert!(rule.produce(0, next.0) && !rule.produce(1, 1) && !rule.consume(0, 1));
    // It would never fire again: the FIFO holds six.
    assert!(!rule.produce(0, 7));
}

#[test]
fn rates_depend_on_data_where_the_update_of_a_rule_says_so() {
    let mut graph = Graph::new("variable");
    let (from, to) = (
        graph.actor("send", LEFT, WCET),
        graph.actor("check", LEFT, WCET),
    );
    let fifo = graph.fifo("numbers", from, to);
    (fifo.capacity, fifo.token_size) = (Some(6), 8);
    let mut application = Application::new(&graph).expect("consistent");
    application
        .actor_with("send", send, by_data, (0, 0))
        .expect("it is there");
    application
        .actor_with("check", check, as_declared, 0)
        .expect("it is there");
    let mut tiles = application.tiles().expect("tiles");
    tiles[0].run_until(|book| book.firings("check") >= 3_000);
    let sent = tiles[0].book().firings("send");
    // 1, 1, 2, 3, 4, 5, 1, 2, ...: three tokens per firing.
    assert!((1_000..=1_004).contains(&sent), "{sent}");
}

/// Answers nonsense now and then, and a task without tokens.
struct Liar(u64, Arc<AtomicU64>);

impl TaskScheduler for Liar {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        self.0 += 1;
        let hungry = (0..tasks.count()).find(|&task| !tasks.check_firing_rules(task));
        let lie = match self.0 % 3 {
            0 => Some(77),
            1 => hungry,
            _ => None,
        };
        self.1
            .fetch_add(u64::from(lie.is_some()), Ordering::Relaxed);
        lie.or_else(|| (0..tasks.count()).find(|&task| tasks.check_firing_rules(task)))
    }
}

#[test]
fn a_task_scheduler_that_answers_nonsense_is_refused_and_counted() {
    let lies = Arc::new(AtomicU64::new(0));
    let mut application = application(&graph(LEFT, Place::Consumer));
    let liar = Liar(0, Arc::clone(&lies));
    application
        .task_scheduler(LEFT, liar)
        .expect("a tile of it");
    let mut tiles = application.tiles().expect("tiles");
    tiles[0].run_until(|book| book.firings("check") >= 500);
    let (decisions, refused) = tiles[0].book().decisions();
    assert_eq!(refused, lies.load(Ordering::Relaxed));
    assert!(refused > 0 && decisions > refused);
}

#[test]
fn names_and_tiles_that_are_not_there_are_refused() {
    let graph = graph(LEFT, Place::Consumer);
    let mut application = application(&graph);
    let error = application
        .actor("nobody", count)
        .expect_err("no such actor");
    assert_eq!(error, GraphError::NoSuch("nobody".into()));
    let error = application.initial("state", &[0; 7]).expect_err("8 bytes");
    assert_eq!(error, GraphError::Initial("state".into()));
    let error = application.task_scheduler(RIGHT, punctual_graph::RoundRobin);
    assert_eq!(error.expect_err("no such tile"), GraphError::NoTile(RIGHT));
    let mut between = graph.clone();
    between.orders.push(Order {
        tile: LEFT,
        when: When::BetweenSlots(Preempted::Continues),
        by: OrderRule::RoundRobin,
    });
    let error = Application::new(&between).expect("consistent").tiles();
    assert_eq!(
        error.expect_err("no slots"),
        GraphError::BetweenSlots("numbers".into())
    );
    let mut contradicting = graph;
    contradicting.fifos[0].produce = vec![2];
    let error = Application::new(&contradicting).expect_err("rates contradict");
    assert_eq!(error, GraphError::Rates("numbers".into()));
}

#[test]
fn first_tokens_without_memory_are_an_error() {
    let mut graph = Graph::new("huge");
    let tile = punctual_model::Tile::cpu(punctual_model::CpuId(0));
    let actor = graph.actor("a", tile, Work::from_ns(1));
    let fifo = graph.fifo("state", actor, actor);
    (fifo.initial, fifo.token_size) = (u32::MAX, u32::MAX);
    assert!(matches!(
        Application::new(&graph),
        Err(GraphError::Fifo(..))
    ));
}

/// A picture in the memory that both tiles share, and a token that says so.
fn draw(firing: &mut Firing<'_>) {
    let picture = [firing.number.to_le_bytes()[0]; 1_000];
    assert!(firing.shared.write(1, 24, &picture));
    assert!(!firing.shared.write(1, 25, &picture) && !firing.shared.write(2, 0, &picture));
}

fn show(firing: &mut Firing<'_>) {
    let mut picture = [0; 1_000];
    assert!(firing.shared.read(1, 24, &mut picture));
    assert_eq!(picture, [firing.number.to_le_bytes()[0]; 1_000]);
    assert!(!firing.shared.read(0, 0, &mut picture));
}

#[test]
fn tiles_share_memory_whose_copies_are_done_when_a_token_says_so() {
    let mut graph = Graph::new("pictures");
    let (from, to) = (
        graph.actor("draw", LEFT, WCET),
        graph.actor("show", RIGHT, WCET),
    );
    graph.fifo("drawn", from, to);
    graph.fifo("shown", to, from).initial = 1;
    let mut application = Application::new(&graph).expect("consistent");
    application.actor("draw", draw).expect("it is there");
    application.actor("show", show).expect("it is there");
    let memories = [100, 1_024].map(|bytes| application.shared_memory(bytes).expect("small"));
    assert_eq!(memories, [0, 1]);
    let none = application.shared_memory(usize::MAX);
    assert_eq!(none, Err(GraphError::Shared(usize::MAX)));
    let tiles: [_; 2] = application.tiles().expect("tiles").try_into().expect("two");
    let [mut left, mut right] = tiles;
    let drawing = std::thread::spawn(move || {
        left.run_until(|book| book.firings("draw") >= 300);
        left.copies()
    });
    right.run_until(|book| book.firings("show") >= 300);
    // A token without bytes is a copy, too: it goes to the memory of the other tile.
    assert_eq!(drawing.join().expect("it ends"), (600, 300_000));
}

#[test]
fn copies_of_an_actor_are_counted() {
    let mut graph = Graph::new("one");
    let alone = graph.actor("alone", LEFT, WCET);
    graph.fifo("state", alone, alone).initial = 1;
    let mut application = Application::new(&graph).expect("consistent");
    let copies = |firing: &mut Firing<'_>| {
        let mut into = [0; 3];
        assert!(firing.shared.copy(b"abc", &mut into) && into == *b"abc");
        assert!(!firing.shared.copy(b"ab", &mut into) && into == *b"abc");
    };
    application.actor("alone", copies).expect("it is there");
    let mut tile = application.tiles().expect("tiles").remove(0);
    let before = tile.copies();
    tile.run_until(|book| book.firings("alone") >= 10);
    let (count, bytes) = (tile.copies().0 - before.0, tile.copies().1 - before.1);
    // A firing may be under way.
    assert!(
        (10..=11).contains(&count) && bytes == 3 * count,
        "{count}, {bytes}"
    );
}

/// One that burns copies as many bytes from and to shared memory as its file says.
#[test]
fn an_actor_of_a_file_reads_and_writes_shared_memory() {
    let mut graph = Graph::new("alone");
    let alone = graph.actor("alone", LEFT, Work::from_us(10));
    let actor = &mut graph.actors[alone.index()];
    (actor.reads_shm, actor.writes_shm) = (30, 7);
    let application = Application::new(&graph).expect("consistent");
    let mut tile = application.tiles().expect("tiles").remove(0);
    for firings in 1..=3 {
        assert_eq!(tile.fire(), Ok(true));
        assert_eq!(tile.copies(), (2 * firings, 37 * firings));
    }
}

#[test]
fn a_tile_in_the_hands_of_a_program_fires_once_and_says_who_failed() {
    let mut application = application(&graph(LEFT, Place::Consumer));
    let impatient = |firing: &mut Firing<'_>| assert!(firing.number < 2, "out of patience");
    application.actor("check", impatient).expect("it is there");
    let mut tile = application.tiles().expect("tiles").remove(0);
    for _ in 0..4 {
        assert_eq!(tile.fire(), Ok(true));
    }
    let why = "the actor `check` panicked: out of patience";
    while tile.fire() == Ok(true) {}
    assert_eq!(tile.fire(), Err(why.to_owned()));
    assert_eq!(tile.run_contained(|| false), Err(why.to_owned()));
    assert_eq!(tile.book().firings("check"), 2);
}
