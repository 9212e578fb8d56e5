//! Planners and dispatchers of groups that are wrong on purpose: a run must contradict each

use punctual_model::{Mode, Span};
use punctual_rules::Rule;
use punctual_sim::{Groups, Misplanning};

use crate::groups::{Broken, Misplan};

/// A mistake about groups.
#[derive(Clone, Debug)]
pub struct WrongGroups {
    /// The mistake.
    pub mistake: &'static str,
    /// How it is planted.
    pub misplan: Misplan,
    /// Its own contradictions: another one does not count as finding it.
    pub own: &'static [Broken],
}

/// All of them.
pub const ALL: [WrongGroups; 8] = [
    WrongGroups {
        mistake: "takes a resource that one has alone for free",
        misplan: all_shared,
        own: &[Broken::Exclusion],
    },
    WrongGroups {
        mistake: "moves segments that start before the cutoff",
        misplan: without_cutoff,
        own: &[Broken::Rule(Rule::PlanInTime), Broken::Plan, Broken::Step],
    },
    WrongGroups {
        mistake: "starts a segment early before what it depends on is done",
        misplan: without_needs,
        own: &[Broken::Exclusion, Broken::Precedence],
    },
    WrongGroups {
        mistake: "plans a segment as if it came after nobody",
        misplan: without_precedence,
        own: &[Broken::Precedence],
    },
    WrongGroups {
        mistake: "ends a killed segment inside its section",
        misplan: cut_inside,
        own: &[Broken::Cut],
    },
    WrongGroups {
        mistake: "forgets whom a segment kills",
        misplan: without_kills,
        own: &[Broken::Kill],
    },
    WrongGroups {
        mistake: "kills whom nobody names",
        misplan: kills_itself,
        own: &[Broken::Kill],
    },
    WrongGroups {
        mistake: "plans up to a deadline that is later",
        misplan: later_deadlines,
        own: &[Broken::Deadline],
    },
];

fn all_shared(groups: &mut Groups) {
    let kinds = groups.kinds.iter_mut();
    for segment in kinds.flat_map(|kind| &mut kind.segments) {
        for used in &mut segment.uses {
            used.mode = Mode::Shared;
        }
    }
}

fn without_cutoff(groups: &mut Groups) {
    groups.misplanning = Some(Misplanning::Moves);
}

fn without_needs(groups: &mut Groups) {
    groups.misplanning = Some(Misplanning::Hastens);
}

fn without_precedence(groups: &mut Groups) {
    let kinds = groups.kinds.iter_mut();
    for segment in kinds.flat_map(|kind| &mut kind.segments) {
        segment.after.clear();
    }
}

fn cut_inside(groups: &mut Groups) {
    groups.misplanning = Some(Misplanning::Cuts);
}

fn without_kills(groups: &mut Groups) {
    let kinds = groups.kinds.iter_mut();
    for segment in kinds.flat_map(|kind| &mut kind.segments) {
        segment.kills.clear();
    }
}

fn kills_itself(groups: &mut Groups) {
    for (at, kind) in groups.kinds.iter_mut().enumerate() {
        if let Some(first) = kind.segments.first_mut() {
            first.kills.push(at);
        }
    }
}

fn later_deadlines(groups: &mut Groups) {
    let kinds = groups.kinds.iter_mut();
    for segment in kinds.flat_map(|kind| &mut kind.segments) {
        let deadline = segment.deadline.ticks();
        segment.deadline = Span::from_ticks(deadline.saturating_add(deadline / 2));
    }
}
