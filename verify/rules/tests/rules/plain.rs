//! Tasks that run to completion keep to Fig. 6, and a log in which one does not is rejected.

use punctual_model::{Graph, System, Work};
use punctual_rules::{Rule, check};
use punctual_trace::{Call, Log, Mode, Moved, State};

use crate::firing::{log_of, system};

/// On the tiles of the other tests: `ask` and `answer` wait for each other, `third` goes on, and
/// `store` on the other CPU reads what `third` writes.
fn plain() -> System {
    let mut system = system();
    let tiles = [0, 1].map(|at| system.graphs[0].actors[at].tile);
    let mut graph = Graph::new("g");
    graph.plain = true;
    let ask = graph.actor("ask", tiles[0], Work::from_us(3));
    let answer = graph.actor("answer", tiles[0], Work::from_us(7));
    let third = graph.actor("third", tiles[0], Work::from_us(5));
    let store = graph.actor("store", tiles[1], Work::from_us(18));
    for (actor, times) in graph.actors.iter_mut().zip([20, 20, 40, 20]) {
        actor.times = Some(times);
    }
    graph.fifo("questions", ask, answer).capacity = Some(1);
    graph.fifo("answers", answer, ask).initial = 1;
    let words = graph.fifo("words", third, store);
    (words.consume, words.capacity) = (vec![2], Some(2));
    let state = graph.fifo("state", store, store);
    (state.initial, state.capacity) = (1, Some(1));
    system.graphs = vec![graph];
    system
}

fn log() -> Log {
    let mut log = log_of(&plain());
    log.header.mode = Mode::Virtual;
    log
}

fn rejected(rule: Rule, change: impl FnOnce(&mut Log)) {
    let mut log = log();
    change(&mut log);
    let found = check(&log);
    let broken = found.iter().any(|violation| violation.rule == rule);
    assert!(broken, "{rule:?} is kept: {found:?}");
}

fn place(log: &Log, is: impl Fn(&Moved) -> bool) -> usize {
    let mut moves = log.cpus[0].moves.iter();
    moves.position(is).expect("such a transition")
}

#[test]
fn tasks_that_run_to_completion_obey_the_rules_and_finish() {
    let log = log();
    assert_eq!(check(&log), []);
    let all = || log.cpus.iter().flat_map(|cpu| &cpu.moves);
    let finished = all().filter(|moved| moved.state == State::Finished);
    assert_eq!(finished.count(), 4);
    assert!(all().any(|moved| moved.preempted));
    for word in ["reads", "writes", "lacks-tokens", "lacks-space"] {
        let calls = all().filter_map(|moved| moved.call);
        let named = calls.filter(|(call, goes_on)| call.name(*goes_on) == word);
        assert!(named.count() > 5, "{word}");
    }
}

#[test]
fn a_state_beside_figure_6_is_found() {
    rejected(Rule::ActorStates, |log| {
        let at = place(log, |moved| moved.state == State::Finished);
        log.cpus[0].moves[at].state = State::Run;
    });
    rejected(Rule::ActorStates, |log| {
        let at = place(log, |moved| moved.preempted);
        log.cpus[0].moves[at].preempted = false;
    });
    rejected(Rule::ActorStates, |log| log.cpus[0].moves[5].firing += 1);
    rejected(Rule::ActorStates, |log| {
        let moved = log.cpus[1].moves[0];
        log.cpus[0].moves.insert(0, moved);
    });
    // Another begins while it runs.
    rejected(Rule::ActorStates, |log| {
        let at = place(log, |moved| matches!(moved.call, Some((_, false))));
        let _ = log.cpus[0].moves.remove(at);
    });
}

#[test]
fn a_wait_without_a_reason_and_a_call_without_tokens_are_found() {
    rejected(Rule::FiringRules, |log| {
        let at = place(log, |moved| matches!(moved.call, Some((_, true))));
        let call = log.cpus[0].moves[at].call.expect("one").0;
        log.cpus[0].moves[at].call = Some((call, false));
    });
    rejected(Rule::FiringRules, |log| {
        let at = place(log, |moved| matches!(moved.call, Some((_, false))));
        let call = log.cpus[0].moves[at].call.expect("one").0;
        log.cpus[0].moves[at].call = Some((call, true));
    });
    rejected(Rule::FiringRules, |log| {
        let at = place(log, |moved| {
            matches!(moved.call, Some((Call::Read(..), true)))
        });
        log.cpus[0].moves[at].call = Some((Call::Read(2, 2), true));
    });
    // Its tokens come from another CPU, and it takes them before they do.
    rejected(Rule::FiringRules, |log| {
        for moved in &mut log.cpus[1].moves {
            let early = moved.at.ticks().saturating_sub(1);
            moved.at = punctual_model::Instant::from_ticks(early);
        }
    });
    rejected(Rule::FiringRules, |log| {
        log.graphs[0].graph.fifos[3].initial = 0
    });
    rejected(Rule::TokensConserved, |log| {
        log.graphs[0].graph.fifos[2].initial = 3
    });
}

#[test]
fn a_tile_that_idles_beside_a_task_that_can_go_on_is_found() {
    // Everything behind the first wait is gone, and the other two have never begun.
    rejected(Rule::WorkConserving, |log| {
        let at = place(log, |moved| matches!(moved.call, Some((_, false))));
        log.cpus[0].moves.truncate(at + 1);
    });
}

#[test]
fn no_transition_of_a_task_can_be_left_out_or_doubled_unnoticed() {
    let whole = log();
    for cpu in 0..2 {
        for at in 0..60 {
            let mut log = whole.clone();
            let left_out = log.cpus[cpu].moves.remove(at);
            // `store` is alone: as far as the log says, it may have worked before its next call.
            let may_work = cpu == 1 && matches!(left_out.call, Some((_, false)));
            let noticed = !check(&log).is_empty();
            assert!(noticed || may_work, "CPU {cpu}: {left_out:?} left out");
            let mut log = whole.clone();
            let moved = log.cpus[cpu].moves[at];
            log.cpus[cpu].moves.insert(at, moved);
            assert!(!check(&log).is_empty(), "CPU {cpu}: {moved:?} doubled");
        }
    }
}
