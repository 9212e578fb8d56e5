//! Three actors in a row, on one tile

use punctual::System;
use punctual::graph::{Application, Firing, GraphError};

/// The file, also for `punctual check` and `punctual sim`.
pub const FILE: &str = include_str!("../stream.toml");

/// Two numbers per firing, from where the last firing ended.
fn count(firing: &mut Firing<'_>) {
    let first = firing.inputs.tokens(0)[0];
    firing.outputs.tokens(0)[0] = first.wrapping_add(2);
    let numbers = firing.outputs.tokens(1);
    (numbers[0], numbers[1]) = (first, first.wrapping_add(1));
}

fn double(firing: &mut Firing<'_>) {
    let number = firing.inputs.tokens(0)[0];
    firing.outputs.tokens(0)[0] = number.wrapping_mul(2);
}

fn check(firing: &mut Firing<'_>) {
    let expected = firing.number.wrapping_mul(2).to_le_bytes()[0];
    assert_eq!(firing.inputs.tokens(0), [expected]);
}

/// The system, and its application with a function for each actor.
pub fn stream() -> Result<(System, Application), GraphError> {
    let file = punctual_spec::parse(FILE, "stream.toml");
    let system = file.expect("the file of this example").system;
    let mut application = Application::new(&system.graphs[0])?;
    application.actor("count", count)?;
    application.actor("double", double)?;
    application.actor("check", check)?;
    Ok((system, application))
}
