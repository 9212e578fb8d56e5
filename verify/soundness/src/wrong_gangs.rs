//! Analyses of gangs that are wrong on purpose, as `mutants` has others.

use punctual_analysis::{SkewVerdict, Verdict};
use punctual_model::{Span, System};

use crate::gangs::{GangAnalysis, gang_analysis};

/// A wrong analysis of gangs.
#[derive(Clone, Debug)]
pub struct WrongGangs {
    /// The mistake.
    pub mistake: &'static str,
    /// The wrong analysis.
    pub analysis: GangAnalysis,
}

/// All of them.
pub const ALL: [WrongGangs; 5] = [
    WrongGangs {
        mistake: "takes the clocks of all CPUs for equal",
        analysis: with_equal_clocks,
    },
    WrongGangs {
        mistake: "takes it that all CPUs decide alike",
        analysis: always_alike,
    },
    WrongGangs {
        mistake: "forgets what the machine takes from one CPU alone",
        analysis: without_missing_time,
    },
    WrongGangs {
        mistake: "leaves a barrier out where the work alone ends in time",
        analysis: by_work_alone,
    },
    WrongGangs {
        mistake: "leaves a barrier out as if clocks were equal",
        analysis: barriers_with_equal_clocks,
    },
];

fn each_skew(verdict: &mut Verdict, mut change: impl FnMut(&mut SkewVerdict)) {
    let gangs = verdict.gangs.iter_mut();
    gangs
        .flat_map(|gang| &mut gang.supersteps)
        .for_each(&mut change);
}

fn with_equal_clocks(system: &System) -> Option<Verdict> {
    let mut verdict = gang_analysis(system)?;
    let error = system.machine.clock_error;
    each_skew(&mut verdict, |skew| {
        skew.bound = skew.bound.map(|bound| bound.saturating_sub(error));
    });
    Some(verdict)
}

fn always_alike(system: &System) -> Option<Verdict> {
    let mut verdict = gang_analysis(system)?;
    let error = system.machine.clock_error;
    each_skew(&mut verdict, |skew| skew.bound = Some(error));
    Some(verdict)
}

fn without_missing_time(system: &System) -> Option<Verdict> {
    let mut verdict = gang_analysis(system)?;
    let mut other = system.clone();
    other.machine.missing_time = None;
    let mut bounds = gang_analysis(&other)?.gangs.into_iter();
    for gang in &mut verdict.gangs {
        gang.supersteps = bounds.next()?.supersteps;
    }
    Some(verdict)
}

fn by_work_alone(system: &System) -> Option<Verdict> {
    let mut verdict = gang_analysis(system)?;
    for gang in &mut verdict.gangs {
        for barrier in &mut gang.barriers {
            let superstep = &system.gangs[gang.gang].supersteps[barrier.barrier.before];
            let first = system.gangs[gang.gang].supersteps[0].members[0];
            let task = &system.tasks[superstep.members[0].index()];
            let since = task.phase.saturating_sub(system.tasks[first.index()].phase);
            let end = since.saturating_add(task.class.budget()?.as_span());
            let until = end.saturating_add(barrier.clock_error);
            barrier.left_out = until <= barrier.begins?;
        }
    }
    Some(verdict)
}

fn barriers_with_equal_clocks(system: &System) -> Option<Verdict> {
    let mut verdict = gang_analysis(system)?;
    for barrier in verdict.gangs.iter_mut().flat_map(|gang| &mut gang.barriers) {
        let end = barrier.worst_end.unwrap_or(Span::MAX);
        barrier.left_out = end <= barrier.begins?;
    }
    Some(verdict)
}
