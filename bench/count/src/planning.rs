//! Plans of groups: the planner alone, without clock or threads

use crate::groups::{Planning, SIZES, row};

use crate::scenario::{Reading, Scenario};
use crate::stepper::{begin, mark};

/// Sets of one row, each planned once and once before.
const SETS: usize = 3;

pub(crate) fn scenarios() -> Vec<Scenario> {
    // Larger ones say nothing that these do not, and each instruction is stepped.
    let sizes = SIZES.into_iter().filter(|&(segments, _)| segments <= 100);
    let scenario = |(segments, window)| Scenario {
        rows: vec![row(segments, window)],
        reading: Reading::Mean,
        windows: SETS,
        program: Box::new(move || plans(segments, window)),
    };
    sizes.map(scenario).collect()
}

fn plans(segments: usize, window: usize) -> Result<(), String> {
    let mut sets = Vec::new();
    for seed in (0..).take(SETS) {
        let mut set = Planning::new(segments, window, seed)?;
        set.plan()?;
        sets.push(set);
    }
    begin();
    loop {
        for set in &mut sets {
            mark(0);
            set.plan()?;
        }
    }
}
