//! Rounds of gangs: the protocol alone, all members by one thread
//!
//! A row is one round or one admission of all members, with what it costs to look whether a member
//! still waits.

use crate::crews::{Crew, FORMS, SIZES};
use punctual_gang::{Form, Gang, Operation};

use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, mark};

/// Rounds before those that are counted, and counted ones.
const WARM_UP: u64 = 2;
const WINDOWS: usize = 2;

const OPERATIONS: [&str; 3] = ["barrier", "reduce", "admit"];

pub(crate) fn scenarios() -> Vec<Scenario> {
    let of = |(form, name): (Form, &str), members: usize| Scenario {
        rows: OPERATIONS
            .iter()
            .map(|operation| format!("gang.{operation}.{name}.{members}"))
            .collect(),
        reading: Reading::Mean,
        windows: OPERATIONS.len() * WINDOWS,
        program: Box::new(move || rounds(form, members)),
    };
    // Larger ones say nothing that these do not, and each instruction is stepped.
    let sizes = SIZES.into_iter().filter(|members| *members <= 64);
    let forms = FORMS.into_iter();
    forms
        .flat_map(|form| sizes.clone().map(move |members| of(form, members)))
        .collect()
}

fn rounds(form: Form, members: usize) -> Result<(), String> {
    let gang = Gang::new(members, form, 1).map_err(|error| error.to_string())?;
    let mut crew = Crew::join(&gang)?;
    let sum = Operation::Reduce {
        value: 1,
        fold: u64::wrapping_add,
    };
    for turn in 0.. {
        if turn == WARM_UP {
            begin();
        }
        mark(0);
        let met = crew.round(Operation::Barrier);
        mark(1);
        let reduced = crew.round(sum);
        mark(2);
        let admitted = crew.admit();
        mark(NONE);
        met?;
        admitted?;
        if reduced? != members as u64 {
            return Err("a reduction forgot somebody".into());
        }
    }
    Ok(())
}
