//! Schedules of random graphs follow, and no number of them can be changed unseen

use punctual_certificate::verify_graphs;
use punctual_generate::Random;
use punctual_model::{
    ActorId, Class, Cpu, CpuId, OrderRule, Priority, Reserve, Scheduler, SchedulerId, Slot, Task,
    Trust,
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
    graph.orders = draw_orders(&graph, &tiles, random);
    system.graphs.push(graph);
    system
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
    let (mut certified, mut kinds) = (0, std::collections::HashMap::new());
    for seed in 0..1_000 {
        let random = &mut Random::at(seed, &[9]);
        let system = draw(random);
        system.validate().expect("it means something");
        let Ok(certificate) = issue(&system) else {
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
    assert!(certified > 600, "{certified}");
    assert!(
        kinds.len() == 4 && kinds.values().all(|&count| count > 20),
        "{kinds:?}"
    );
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
    let certificate = issue(&system).expect("it goes on");
    assert_eq!(certificate.schedules[0].numerator, 8);
    assert_eq!(verify_graphs(&certificate), Ok(()));
    let mut changed = certificate;
    changed.graphs[0].tiles[0].order = Some(vec![1, 0]);
    assert!(verify_graphs(&changed).is_err());
}

#[test]
fn what_no_schedule_accounts_for_is_refused_both_ways() {
    let mut drawn = (0..100).map(|seed| draw(&mut Random::at(seed, &[9])));
    let system = drawn.find(|system| issue(system).is_ok()).expect("one");
    assert!(plain(&system).is_ok());
    let taken = Reserve {
        name: "taken".into(),
        budget: Work::from_ns(1),
        period: Span::from_ns(1_000),
    };
    let class = Class::Sporadic {
        min_separation: Span::from_ns(100),
        wcet: Work::from_ns(1),
        relative_deadline: Span::from_ns(100),
    };
    let changes: [&dyn Fn(&mut System); 3] = [
        &|system| system.tasks.push(Task::new("t", CpuId(2), class)),
        &|system| system.machine.missing_time = Some(taken.clone()),
        &|system| system.machine.reserves.push(taken.clone()),
    ];
    for change in changes {
        let mut changed = system.clone();
        change(&mut changed);
        // `check --certificate` and `verify` with the file.
        let why = issue(&changed).expect_err("it is refused");
        assert!(why.starts_with("not certified: "), "{why}");
        assert_eq!(plain(&changed), Err(why));
    }
}
