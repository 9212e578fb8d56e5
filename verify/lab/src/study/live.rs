//! The studies on the CPUs of this machine, and the prices that it asks.

mod admission;
mod bsp;
mod clocks;
mod prices;
mod starts;

use punctual_model::PolicyKind;
use punctual_model::{Ns, Span};

use crate::answers::Row;
use crate::asked::{Asked, Question, Unit};
pub(crate) use prices::costs;

/// The policy of every live study.
const POLICY: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// A member that is silent for so long is named, and the study ends.
const LIMIT: Span<Ns> = Span::from_ms(5_000);

/// Measures a unit.
pub(crate) fn measure(asked: &Asked, (first, second): Unit) -> Result<Vec<Row>, String> {
    match &asked.question {
        Question::Clocks { .. } => clocks::unit(second),
        Question::GangAdmission { .. } => admission::unit(second),
        Question::Skew { .. } => starts::unit(&asked.costs, second),
        Question::Bsp { grains, .. } => bsp::unit(&asked.costs, (first, second), grains),
    }
}

/// The last two CPUs that this process may use.
fn two_cpus() -> Result<[u32; 2], String> {
    let all = punctual_linux::allowed_cpus().map_err(|error| error.to_string())?;
    match all.as_slice() {
        [.., first, second] => Ok([*first, *second]),
        _ => Err("this process may use one CPU only".into()),
    }
}
