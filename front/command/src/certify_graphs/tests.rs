//! Schedules of random graphs follow, and no number of them can be changed unseen

use punctual_certificate::system::{Policy, Slot as PlainSlot, Supply as PlainSupply};
use punctual_certificate::{Claims, verify_graphs};
use punctual_generate::Random;
use punctual_model::{
    ActorId, Copies, Cpu, CpuId, OrderRule, Priority, Reserve, Scheduler, SchedulerId, Slot, Trust,
};

use super::*;

fn narrow(wide: u64) -> u32 {
    u32::try_from(wide).expect("few")
}

/// One CPU with one or two slots, and whole ones: a chain of actors on them, by turns or alone.
fn draw(random: &mut Random) -> System {
    let mut system = System::default();
    let frame: Span<Ns> = Span::from_ns(random.within(4, 30));
    let scheduling = Span::from_ns(1);
    let cpu = |name: &str, policy| Cpu {
        name: name.into(),
        host: None,
        policy,
    };
    system
        .cpus
        .push(cpu("slots", PolicyKind::Tdm { frame, scheduling }));
    let half = frame.as_ns() / 2;
    let second = Slot {
        at: Span::from_ns(half),
        length: Span::from_ns(random.within(1, frame.as_ns() - half - 1)),
    };
    let first = Slot {
        at: Span::ZERO,
        length: Span::from_ns(random.within(1, half - 1)),
    };
    let slots = if random.happens(500) {
        vec![first, second]
    } else {
        vec![second]
    };
    system.schedulers.push(Scheduler {
        name: "own".into(),
        cpu: CpuId(0),
        parent: None,
        policy: PolicyKind::Fifo,
        priority: Priority::new(0),
        supply: Supply::Slots(slots),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        code: None,
        fallback: None,
    });
    let mut tiles = vec![Tile {
        cpu: CpuId(0),
        scheduler: Some(SchedulerId(0)),
    }];
    for index in 1..3 {
        system
            .cpus
            .push(cpu(&format!("c{index}"), PolicyKind::Fifo));
        tiles.push(Tile::cpu(CpuId(index)));
    }
    let mut graph = Graph::new("drawn");
    for index in 0..random.within(1, 4) {
        let tile = tiles[random.index(tiles.len())];
        let id = graph.actor(format!("a{index}"), tile, Work::from_ns(1));
        let phases = random.within(1, 2);
        let wcet = (0..phases).map(|_| Work::from_ns(random.within(1, 9)));
        graph.actors[id.index()].wcet = wcet.collect();
        if index > 0 {
            let (p, c) = (random.within(1, 4), random.within(1, 4));
            let before = ActorId(narrow(index - 1));
            let fifo = graph.fifo(format!("f{index}"), before, id);
            (fifo.produce, fifo.consume) = (vec![narrow(p)], vec![narrow(c)]);
            fifo.initial = narrow(random.below(9));
            let capacity = fifo.initial.max(narrow(p + c - 1)) + narrow(random.below(4));
            fifo.capacity = random.happens(800).then_some(capacity);
        }
    }
    draw_copies(&mut graph, random);
    graph.orders = draw_orders(&graph, &tiles, random);
    system.graphs.push(graph);
    system
}

/// Copies that take time, in some graphs that have any.
fn draw_copies(graph: &mut Graph, random: &mut Random) {
    for fifo in &mut graph.fifos {
        fifo.token_size = narrow(random.below(4));
        fifo.place = *random.pick(&Place::ALL).expect("three");
    }
    let moves = |fifo: &Fifo| graph.claim_copies(fifo) || graph.release_copies(fifo);
    let moved = graph
        .fifos
        .iter()
        .any(|fifo| fifo.token_size > 0 && moves(fifo));
    if moved && random.happens(500) {
        graph.copies = Some(Copies {
            latency: Span::from_ns(random.below(4)),
            bytes_per_us: 1_000,
        });
    }
}

fn draw_orders(graph: &Graph, tiles: &[Tile], random: &mut Random) -> Vec<Order> {
    let mut drawn = |&tile: &Tile| draw_order(graph, tile, random);
    tiles.iter().filter_map(&mut drawn).collect()
}

/// The order of a tile, where it has one: between slots, or threads of the core.
fn draw_order(graph: &Graph, tile: Tile, random: &mut Random) -> Option<Order> {
    let mut here: Vec<ActorId> = graph.actors_on(tile).collect();
    let again = *random.pick(&here)?;
    let kinds = if tile.scheduler.is_some() { 6 } else { 3 };
    let passed_over = When::BetweenSlots(Preempted::PassedOver);
    let (when, by) = match random.below(kinds) {
        0 | 1 => return None,
        2 => (When::Inline, OrderRule::RoundRobin),
        3 => (
            When::BetweenSlots(Preempted::Continues),
            OrderRule::RoundRobin,
        ),
        4 => (passed_over, OrderRule::RoundRobin),
        _ => {
            here.push(again);
            random.shuffle(&mut here);
            (passed_over, OrderRule::Tdm(here))
        }
    };
    Some(Order { tile, when, by })
}

#[test]
fn schedules_of_random_graphs_follow_and_changed_ones_do_not() {
    let (mut certified, mut copied) = (0, 0);
    let mut kinds = std::collections::HashMap::new();
    for seed in 0..1_000 {
        let random = &mut Random::at(seed, &[9]);
        let system = draw(random);
        system.validate().expect("it means something");
        let Ok(certificate) = schedules(&system) else {
            continue;
        };
        certified += 1;
        for order in &system.graphs[0].orders {
            let owners = !order.by.listed().is_empty();
            *kinds.entry((order.when, owners)).or_insert(0) += 1;
        }
        assert_eq!(verify_graphs(&certificate), Ok(()), "seed {seed}");
        let mutants: [fn(&mut plain::Schedule); 4] = [
            // Its period is the shortest: no schedule has a shorter one.
            |schedule| schedule.numerator -= 1,
            |schedule| schedule.latency += 1,
            |schedule| schedule.responses[0][0] -= 1,
            |schedule| schedule.starts[0].push(0),
        ];
        for mutate in mutants {
            let mut changed = certificate.clone();
            mutate(&mut changed.schedules[0]);
            assert!(verify_graphs(&changed).is_err(), "seed {seed}");
        }
        if system.graphs[0].copies.is_some() {
            copied += 1;
            copies_are_counted(&certificate, seed);
        }
        // The earliest schedule: a start that is earlier breaks something.
        let mut changed = certificate.clone();
        let starts = &mut changed.schedules[0].starts;
        let actor = random.index(starts.len());
        let firing = random.index(starts[actor].len());
        if starts[actor][firing] > 0 {
            starts[actor][firing] -= 1;
            assert!(verify_graphs(&changed).is_err(), "seed {seed}");
        }
    }
    assert!(certified > 600 && copied > 100, "{certified} {copied}");
    assert!(
        kinds.len() == 4 && kinds.values().all(|&count| count > 20),
        "{kinds:?}"
    );
}

/// No number of a copy can be changed unseen, and no FIFO that copies can be moved.
fn copies_are_counted(certificate: &plain::GraphCertificate, seed: u64) {
    let tile = |actor: usize| certificate.graphs[0].actors[actor].tile;
    let moves = |fifo: &plain::Fifo| {
        let kept = fifo.kept.expect("it says where");
        let apart = tile(fifo.from) != tile(fifo.to);
        kept.bytes > 0 && (apart || kept.memory == plain::Memory::Tile)
    };
    let fifos = &certificate.graphs[0].fifos;
    let at = fifos.iter().position(moves).expect("one copies");
    let mutants: [fn(&mut plain::Graph, usize); 5] = [
        |graph, _| graph.copies.as_mut().expect("copies").latency += 1,
        |graph, _| graph.copies.as_mut().expect("copies").bytes_per_us /= 2,
        |graph, at| graph.fifos[at].kept.as_mut().expect("kept").bytes += 1,
        |graph, _| graph.copies = None,
        |graph, at| graph.fifos[at].kept = None,
    ];
    for mutate in mutants {
        let mut changed = certificate.clone();
        mutate(&mut changed.graphs[0], at);
        assert!(verify_graphs(&changed).is_err(), "seed {seed}");
    }
    for memory in [
        plain::Memory::Writer,
        plain::Memory::Reader,
        plain::Memory::Tile,
    ] {
        let mut changed = certificate.clone();
        let kept = changed.graphs[0].fifos[at].kept.as_mut().expect("kept");
        if kept.memory != memory {
            kept.memory = memory;
            assert!(verify_graphs(&changed).is_err(), "seed {seed}");
        }
    }
}

/// Two actors in the slots of `own`, and tasks in those of `other` and on a CPU of their own.
const BESIDE: &str = r#"
[system]
cpus = ["slots", "more"]
[cpu.slots]
policy = "tdm"
frame = "1ms"
scheduling-time = "10us"
[cpu.more]
policy = "edf"
[scheduler.own]
on = "cpu.slots"
policy = "fifo"
slots = [{ at = "0us", length = "400us" }]
[scheduler.other]
on = "cpu.slots"
policy = "fifo"
slots = [{ at = "500us", length = "300us" }]
[graph.pair]
actors = [
  { name = "a", on = "scheduler.own", wcet = "50us" },
  { name = "b", on = "scheduler.own", wcet = "80us" },
]
fifos = [{ name = "x", from = "a", to = "b", capacity = 2 }]
[task.here]
class = "periodic"
on = "scheduler.other"
period = "4ms"
wcet = "500us"
[task.there]
class = "periodic"
on = "cpu.more"
period = "3ms"
wcet = "1ms"
"#;

#[test]
fn tasks_beside_a_graph_are_certified_and_none_may_share_its_tile() {
    let system = file_system();
    let verdict = punctual_analysis::admit(&system).expect("a verdict");
    let certificate = issue(&system, &verdict).expect("it is certified");
    assert_eq!(verify_graphs(&certificate), Ok(()));
    assert_eq!(other_tasks(&system, certificate.rest.as_ref()), None);
    let told = |change: &dyn Fn(&mut punctual_certificate::system::System)| {
        let mut changed = certificate.clone();
        let rest = changed.rest.as_mut().expect("tasks");
        let mut system = rest.system.clone();
        change(&mut system);
        *rest = certify_admitted(&system).expect("the tasks alone are on time");
        let wrong = verify_graphs(&changed).expect_err("it is refused");
        assert!(other_tasks(&file_system(), changed.rest.as_ref()).is_some());
        wrong.to_string()
    };
    let said = told(&|system| system.tasks[0].scheduler = Some(0));
    assert!(said.contains("`here` shares tile `own`"), "{said}");
    let said = told(&|system| system.schedulers[0].name = "its".into());
    assert!(said.contains("no tile `own`"), "{said}");
    let slot = PlainSlot {
        at: 0,
        length: 399_000,
    };
    let moved = PlainSupply::Slots(vec![slot]);
    let said = told(&|system| system.schedulers[0].supply = moved.clone());
    let both = ["the slots of own is [(0, 400000)]", "[(0, 399000)] follows"];
    assert!(both.iter().all(|part| said.contains(part)), "{said}");
    let into = PlainSupply::Slots(vec![PlainSlot {
        at: 300_000,
        ..slot
    }]);
    let said = told(&|system| system.schedulers[1].supply = into.clone());
    assert!(said.contains("slots that overlap"), "{said}");
    let frame = Policy::Tdm { frame: 900_000 };
    let said = told(&|system| system.cpus[0].policy = frame);
    assert!(
        said.contains("the frame of own is 1000000, but 900000"),
        "{said}"
    );

    let mut changed = certificate.clone();
    let rest = changed.rest.as_mut().expect("tasks");
    let Claims::Admitted { nodes, .. } = &mut rest.claims else {
        panic!("it is admitted");
    };
    nodes[0].entities[0].bound += 1;
    let said = verify_graphs(&changed)
        .expect_err("it is refused")
        .to_string();
    assert!(
        said.starts_with("claims.admitted.nodes[0].entities[0].bound is"),
        "{said}"
    );

    let mut changed = certificate.clone();
    changed.graphs[0].tiles[0].overhead = 5;
    assert!(verify_graphs(&changed).is_err());
    let mut twice = certificate;
    twice.graphs.push(twice.graphs[0].clone());
    twice.schedules.push(twice.schedules[0].clone());
    let said = verify_graphs(&twice)
        .expect_err("it is refused")
        .to_string();
    assert!(said.contains("tile `own` is used twice"), "{said}");
}

fn file_system() -> System {
    punctual_spec::parse(BESIDE, "a test")
        .expect("a system")
        .system
}

#[test]
fn an_order_is_followed() {
    let mut system = draw(&mut Random::at(0, &[9]));
    let tile = Tile::cpu(CpuId(1));
    let mut graph = Graph::new("pair");
    let a = graph.actor("a", tile, Work::from_ns(3));
    let b = graph.actor("b", tile, Work::from_ns(5));
    graph.fifo("x", a, b).capacity = Some(1);
    let firings = vec![a, b];
    graph.orders = vec![Order::fixed(tile, firings)];
    system.graphs = vec![graph];
    let certificate = schedules(&system).expect("it goes on");
    assert_eq!(certificate.schedules[0].numerator, 8);
    assert_eq!(verify_graphs(&certificate), Ok(()));
    let mut changed = certificate;
    changed.graphs[0].tiles[0].order = Some(vec![1, 0]);
    assert!(verify_graphs(&changed).is_err());
}

#[test]
fn what_no_schedule_accounts_for_is_refused_both_ways() {
    let mut drawn = (0..100).map(|seed| draw(&mut Random::at(seed, &[9])));
    let system = drawn.find(|system| schedules(system).is_ok()).expect("one");
    assert!(plain(&system).is_ok());
    let taken = Reserve {
        name: "taken".into(),
        budget: Work::from_ns(1),
        period: Span::from_ns(1_000),
    };
    let changes: [&dyn Fn(&mut System); 2] = [
        &|system| system.machine.missing_time = Some(taken.clone()),
        &|system| system.machine.reserves.push(taken.clone()),
    ];
    for change in changes {
        let mut changed = system.clone();
        change(&mut changed);
        // `check --certificate` and `verify` with the file.
        let why = schedules(&changed).expect_err("it is refused");
        assert!(why.starts_with("not certified: "), "{why}");
        assert_eq!(plain(&changed), Err(why));
    }
}
