//! Quantiles, ratios, turns, and what is said about them.

use super::*;
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn quantiles_and_ratios_are_those_of_the_samples() {
    let ours = || Ok((1..=100).map(f64::from).collect());
    let bench = Bench::new("ours", ours).against("rival", || Ok(vec![500.0; 3]));
    let figure = bench.measure(3, || true).expect("samples");
    assert_eq!(
        (figure.p50, figure.p99, figure.max, figure.n),
        (50.0, 99.0, 100.0, 300)
    );
    assert_eq!(figure.rivals[0].ratio, 10.0);
    assert_eq!((figure.rivals[0].n, figure.rivals[0].turns), (9, 3));
}

#[test]
fn a_ratio_is_that_of_a_turn_and_has_its_spread_over_the_turns() {
    let calls = Rc::new(Cell::new(0));
    // Of two calls, one of ours and one of theirs, in either order.
    let turn = move || {
        calls.set(calls.get() + 1);
        f64::from((calls.get() + 1) / 2)
    };
    let theirs = turn.clone();
    let ours = move || Ok(vec![10.0 * turn()]);
    // The machine slows down, and the rival with it, but in one turn.
    let rival = move || {
        let turn = theirs();
        let slower = if turn == 4.0 { 3.0 } else { 2.0 };
        Ok(vec![slower * 10.0 * turn])
    };
    let bench = Bench::new("ours", ours).against("rival", rival);
    let figure = bench.measure(5, || true).expect("samples");
    let rival = &figure.rivals[0];
    assert_eq!([rival.ratio, rival.least, rival.most], [2.0, 2.0, 3.0]);
    assert_eq!((figure.n, rival.turns), (5, 5));
    assert!(rival.told().contains("(2x: 2 to 3)"), "{}", rival.told());
}

#[test]
fn a_turn_in_which_ours_took_nothing_has_no_ratio() {
    let bench = Bench::new("ours", || Ok(vec![0.0])).against("rival", || Ok(vec![2.0]));
    let figure = bench.measure(2, || true).expect("samples");
    let rival = &figure.rivals[0];
    assert_eq!(
        (rival.ratio, rival.least, rival.most, rival.turns),
        (0.0, 0.0, 0.0, 0)
    );
    assert!(rival.told().contains("no ratio"), "{}", rival.told());
}

#[test]
fn ours_and_rivals_take_turns_in_being_first() {
    let order = Rc::new(Cell::new(String::new()));
    let heard = |who: &'static str| {
        let order = Rc::clone(&order);
        move || {
            order.set(order.take() + who);
            Ok(vec![1.0])
        }
    };
    let bench = Bench::new("ours", heard("o")).against("rival", heard("r"));
    assert!(bench.measure(4, || true).is_ok());
    assert_eq!(order.take(), "orroorro");
}

#[test]
fn a_turn_that_fails_is_left_out_and_said_and_the_others_count() {
    let fails_in = |turn: u32| {
        let turns = Cell::new(0);
        move || {
            turns.set(turns.get() + 1);
            match turns.get() == turn {
                true => Err("busy".into()),
                false => Ok(vec![1.0]),
            }
        }
    };
    let bench = Bench::new("ours", fails_in(4)).against("rival", fails_in(1));
    let figure = bench.measure(10, || true).expect("samples");
    assert_eq!((figure.n, figure.rivals[0].turns), (9, 8));
    let remarks: Vec<String> = figure.remarks().collect();
    assert_eq!(
        remarks,
        ["9 turns of 10: busy", "rival: 8 turns of 9: busy"]
    );
}

#[test]
fn samples_of_a_kind_are_told_in_rows_of_their_own() {
    let ours = || {
        Ok(Measured {
            samples: vec![1.0, 9.0],
            parts: vec![("in time", vec![1.0]), ("late", vec![])],
            ..Measured::default()
        })
    };
    let bench = Bench::with_notes("ours", ours).against("rival", || Ok(vec![1.0]));
    let figure = bench.measure(2, || true).expect("samples");
    let part = |index: usize| figure.parts[index].all.map(|all| (all.max, all.n));
    assert_eq!((part(0), part(1)), (Some((1.0, 2)), None));
    assert!(render(&[], &[figure]).contains("in time"));
}

#[test]
fn without_samples_there_is_no_figure_and_a_rival_that_fails_is_skipped_with_its_reason() {
    assert!(
        Bench::new("empty", || Ok(vec![]))
            .measure(1, || true)
            .is_err()
    );
    let bench = Bench::new("ours", || Ok(vec![1.0])).against("gone", || Err("no".into()));
    let figure = bench.measure(10, || true).expect("a sample");
    assert!(figure.rivals.is_empty());
    let remarks: Vec<String> = figure.remarks().collect();
    assert_eq!(remarks, ["gone is skipped: no"]);
}
