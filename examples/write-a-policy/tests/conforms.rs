//! The attempts break what the guide says they break, and the last one conforms.

use punctual_conform::{Broken, Claims, Options, Order, Property, Ties, check};
use write_a_policy::{Turns, first, second};

/// What all three claim.
const CLAIMS: Claims = Claims {
    order: Order::FixedPriority,
    ties: Ties::Turns,
    ..Claims::ANY_ORDER
};

fn broken(result: Result<impl Sized, Broken>) -> Broken {
    match result {
        Ok(_) => panic!("it is wrong, and was not caught"),
        Err(broken) => broken,
    }
}

#[test]
fn the_first_attempt_never_ends_a_turn() {
    let broken = broken(check(&CLAIMS, first::Turns::new, &Options::default()));
    assert_eq!(broken.property, Property::FairTurns);
}

#[test]
fn the_second_attempt_lets_those_starve_who_are_updated() {
    let broken = broken(check(&CLAIMS, second::Turns::new, &Options::default()));
    assert_eq!(broken.property, Property::FairTurns);
    let updates = |line: &String| line.starts_with("update");
    assert!(broken.history.iter().any(updates), "{broken}");
}

#[test]
fn turns_conforms() {
    let report = check(&CLAIMS, Turns::new, &Options::default());
    let report = report.unwrap_or_else(|broken| panic!("{broken}"));
    assert!(report.seam.turns > 100, "{report}");
}
