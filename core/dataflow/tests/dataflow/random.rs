//! Thousands of random graphs: two ways to a period agree, and what follows from it holds.

use punctual_dataflow::{
    Firings, Fraction, Rates, Timed, Tokens, deadlock, firings_per_iteration, first_output, front,
    period_by_states, schedule, worst_circle,
};
use punctual_generate::Random;
use punctual_model::{ActorId, Graph};

use crate::drawn::{draw, times, with_an_order};

const GRAPHS: u64 = 4_000;

fn timed(graph: &Graph) -> Timed {
    match firings_per_iteration(graph) {
        Ok(Rates::Consistent(firings)) => {
            Timed::new(graph, &firings, &times(graph)).expect("it fits")
        }
        other => panic!("consistent by construction: {other:?}\n{graph:?}"),
    }
}

fn period(timed: &Timed) -> Fraction {
    let firings = Firings::of(timed);
    worst_circle(timed, &firings).expect("an answer").period
}

#[test]
fn states_and_circles_give_the_same_period() {
    let (mut running, mut stopping, mut broken) = (0, 0, 0);
    for seed in 0..GRAPHS {
        let graph = draw(&mut Random::at(seed, &[1]));
        let timed = timed(&graph);
        if deadlock(&timed).is_some() {
            stopping += 1;
            continue;
        }
        running += 1;
        let by_circle = period(&timed);
        broken += u64::from(by_circle.denominator() > 1);
        assert_eq!(
            period_by_states(&timed),
            Ok(by_circle),
            "seed {seed}\n{graph:?}"
        );
    }
    assert!(
        running > 2_000 && stopping > 300 && broken > 50,
        "{running} {stopping} {broken}"
    );
}

#[test]
fn the_same_under_an_order_of_all_firings_on_one_tile() {
    let mut running = 0;
    for seed in 0..GRAPHS {
        let graph = draw(&mut Random::at(seed, &[2]));
        let free = timed(&graph);
        let Some(order) = one_iteration(&free) else {
            continue;
        };
        let ordered = timed(&with_an_order(&graph, order));
        assert_eq!(deadlock(&ordered), None, "seed {seed}");
        running += 1;
        let by_circle = period(&ordered);
        assert_eq!(
            period_by_states(&ordered),
            Ok(by_circle),
            "seed {seed}\n{graph:?}"
        );
        // One at a time: an iteration takes at least all its firings.
        let iteration = |(times, &firings): (Vec<u64>, &u64)| {
            let cycles = firings / times.len() as u64;
            times.iter().sum::<u64>() * cycles
        };
        let all: u64 = times(&graph)
            .into_iter()
            .zip(ordered.firings())
            .map(iteration)
            .sum();
        assert_eq!(by_circle, Fraction::whole(all), "seed {seed}");
    }
    assert!(running > 2_000, "{running}");
}

/// The firings of one iteration in some order in which they are possible.
fn one_iteration(timed: &Timed) -> Option<Vec<ActorId>> {
    let mut state = Tokens::at_first(timed);
    let mut left = timed.firings().to_vec();
    let mut order = Vec::new();
    while let Some(actor) = (0..left.len()).find(|&a| left[a] > 0 && state.may_start(a)) {
        state.start(actor);
        state.end(actor);
        left[actor] -= 1;
        order.push(ActorId(u32::try_from(actor).expect("few")));
    }
    left.iter().all(|&left| left == 0).then_some(order)
}

#[test]
fn a_schedule_exists_at_the_period_and_none_below() {
    for seed in 0..GRAPHS / 4 {
        let graph = draw(&mut Random::at(seed, &[3]));
        let timed = timed(&graph);
        if deadlock(&timed).is_some() {
            continue;
        }
        let firings = Firings::of(&timed);
        let period = period(&timed);
        let found = schedule(&timed, &firings, period).expect("at the period");
        assert!(
            found.latency >= first_output(&timed).expect("fits"),
            "seed {seed}"
        );
        let (above, below) = (period.numerator(), period.denominator());
        let faster = Fraction::new(above * 100 - 1, below * 100).expect("above zero");
        assert!(schedule(&timed, &firings, faster).is_err(), "seed {seed}");
        let slower = Fraction::new(above * 2, below).expect("above zero");
        let slow = schedule(&timed, &firings, slower).expect("below the limit");
        assert!(slow.latency <= found.latency, "seed {seed}");
    }
}

/// The twin of the front: every distribution up to the size of its last point.
#[test]
fn no_distribution_beats_the_front() {
    let mut compared = 0;
    for seed in 0..400 {
        let mut graph = draw(&mut Random::at(seed, &[4]));
        for fifo in &mut graph.fifos {
            fifo.capacity = None;
        }
        let free = timed(&graph);
        let chosen: Vec<usize> = (0..graph.fifos.len())
            .filter(|&f| graph.fifos[f].from != graph.fifos[f].to)
            .collect();
        if deadlock(&free).is_some() || chosen.len() > 3 {
            continue;
        }
        let firings = free.firings().to_vec();
        let found = front(&graph, &firings, &times(&graph)).expect("a front");
        let largest = found.points.last().map_or(0, |point| point.size);
        if !found.complete || largest > 24 {
            continue;
        }
        compared += 1;
        each_up_to(largest, chosen.len(), &mut |sizes| {
            let mut graph = graph.clone();
            for (&fifo, &size) in chosen.iter().zip(sizes) {
                graph.fifos[fifo].capacity = Some(size);
                if size < graph.fifos[fifo].initial {
                    return;
                }
            }
            let timed = timed(&graph);
            if deadlock(&timed).is_some() {
                return;
            }
            let size: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
            let best = found
                .points
                .iter()
                .filter(|point| point.size <= size)
                .map(|p| p.period);
            let best = best
                .min()
                .unwrap_or_else(|| panic!("seed {seed}: {sizes:?} runs"));
            assert!(period(&timed) >= best, "seed {seed}: {sizes:?}");
        });
    }
    assert!(compared > 40, "{compared}");
}

fn each_up_to(most: u64, count: usize, visit: &mut impl FnMut(&[u32])) {
    fn go(left: u32, sizes: &mut Vec<u32>, count: usize, visit: &mut impl FnMut(&[u32])) {
        if sizes.len() == count {
            return visit(sizes);
        }
        for size in 1..=left {
            sizes.push(size);
            go(left - size, sizes, count, visit);
            sizes.pop();
        }
    }
    go(
        u32::try_from(most).expect("few"),
        &mut Vec::new(),
        count,
        visit,
    );
}
