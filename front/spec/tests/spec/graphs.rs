//! Every mistake of a graph has a file, as in `mistakes`.

use punctual_model::{ActorId, OrderRule, Preempted, When};

use crate::mistakes::check;

#[test]
fn fifo_between_graphs() {
    check("fifo-between-graphs");
}

#[test]
fn fifo_with_two_producers() {
    check("fifo-with-two-producers");
}

#[test]
fn actor_on_no_tile() {
    check("actor-on-no-tile");
}

#[test]
fn actor_that_is_not_there() {
    check("actor-that-is-not-there");
}

#[test]
fn cycle_of_nothing() {
    check("cycle-of-nothing");
}

#[test]
fn phases_that_do_not_fit() {
    check("phases-that-do-not-fit");
}

#[test]
fn tile_of_two_graphs() {
    check("tile-of-two-graphs");
}

#[test]
fn tile_without_slots() {
    check("tile-without-slots");
}

#[test]
fn tile_with_a_task() {
    check("tile-with-a-task");
}

#[test]
fn graph_in_two_parts() {
    check("graph-in-two-parts");
}

#[test]
fn order_that_is_none() {
    check("order-that-is-none");
}

#[test]
fn required_of_graphs() {
    check("required-of-graphs");
}

#[test]
fn latency_without_throughput() {
    check("latency-without-throughput");
}

#[test]
fn tile_that_divides() {
    check("tile-that-divides");
}

#[test]
fn orders_that_mean_nothing() {
    check("orders-that-mean-nothing");
}

#[test]
fn orders_at_the_wrong_time() {
    check("orders-at-the-wrong-time");
}

#[test]
fn copies_of_nothing() {
    check("copies-of-nothing");
}

#[test]
fn order_of_round_robin() {
    check("order-of-round-robin");
}

#[test]
fn graphs_that_are_not_real_time() {
    check("graphs-that-are-not-real-time");
}

/// Such a graph comes in and goes out again, and needs no FIFO between its parts.
#[test]
fn a_graph_that_is_not_real_time_arrives_and_is_written_again() {
    let text = include_str!("../valid/graph-not-real-time.toml");
    let system = punctual_spec::parse(text, "plain.toml")
        .expect("valid")
        .system;
    let again = punctual_spec::write(&system);
    let again = punctual_spec::parse(&again, "again.toml")
        .expect("valid")
        .system;
    assert_eq!(again.graphs, system.graphs);
    let plain: Vec<bool> = system.graphs.iter().map(|graph| graph.plain).collect();
    assert_eq!(plain, [true, false]);
    let actors = system.graphs[0].actors.iter();
    let times: Vec<Option<u32>> = actors.map(|actor| actor.times).collect();
    assert_eq!(times, [Some(20), Some(10), Some(3), None]);
}

#[test]
fn every_order_of_a_tile_arrives_and_is_written_again() {
    let text = include_str!("../valid/graph-orders.toml");
    let system = punctual_spec::parse(text, "orders.toml")
        .expect("valid")
        .system;
    let again = punctual_spec::write(&system);
    let again = punctual_spec::parse(&again, "again.toml")
        .expect("valid")
        .system;
    assert_eq!(again.graphs, system.graphs);
    assert_eq!(system.graphs[0].varying(), Some(ActorId(0)));
    let found: Vec<(When, &OrderRule)> = system.graphs[0]
        .orders
        .iter()
        .map(|order| (order.when, &order.by))
        .collect();
    let between = When::BetweenSlots;
    let owners = OrderRule::Tdm(vec![ActorId(2)]);
    let expected = [
        (between(Preempted::Continues), &OrderRule::RoundRobin),
        (between(Preempted::PassedOver), &OrderRule::RoundRobin),
        (between(Preempted::PassedOver), &owners),
        (When::OwnTime, &OrderRule::RoundRobin),
        (When::Inline, &OrderRule::RoundRobin),
    ];
    assert_eq!(found, expected);
}

#[test]
fn orders_inline_that_mean_nothing() {
    check("orders-inline-that-mean-nothing");
    check("order-inline-with-preempted");
}

#[test]
fn actor_that_varies_in_phases() {
    check("actor-that-varies-in-phases");
}
