//! Every model holds, and no mistake in a single access of the modelled files passes unnoticed.

use std::path::Path;
use std::process::Command;

use punctual_interleave::check::{Result, run};
use punctual_interleave::models;

#[test]
fn every_property_holds_in_every_order_and_every_mistake_in_one_access_is_noticed() {
    let program = Path::new(env!("CARGO_BIN_EXE_punctual-interleave"));
    let mut result = Result::default();
    for model in models() {
        assert_ne!(run(model, program, &mut result), 0, "{}", model.property);
    }
    let unnoticed: Vec<String> = result.unnoticed.iter().map(ToString::to_string).collect();
    assert_eq!(unnoticed, [""; 0]);
    // Models that met nothing would notice nothing.
    let noticed = result.noticed.len();
    assert!(noticed > 25, "{noticed} mistakes were noticed");
}

/// Else everything would count as noticed.
#[test]
fn a_mistake_at_a_place_that_does_not_exist_is_noticed_by_nobody_and_a_word_too_few_is_an_error() {
    let program = env!("CARGO_BIN_EXE_punctual-interleave");
    let model = models().next().expect("there are models");
    let code = |words: &[&str]| {
        let mut child = Command::new(program);
        child.arg(model.property).args(words);
        child.status().expect("it starts").code()
    };
    assert_eq!(code(&["nowhere.rs", "1", "1", "0"]), Some(0));
    assert_eq!(code(&["nowhere.rs"]), Some(2));
}
