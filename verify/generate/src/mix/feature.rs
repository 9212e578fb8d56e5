//! The features of the model that a random system may have.

use punctual_model::System;

use super::base::Scale;
use super::{hierarchy, locks, machine, resources, slices, tasks};
use crate::random::Random;

/// Something that makes a system harder than synchronous independent periodic tasks on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Feature {
    /// Up to three CPUs, each with its policy.
    SeveralCpus,
    /// Schedulers with servers below a CPU.
    Servers,
    /// Schedulers below schedulers.
    Nesting,
    /// A CPU that divides time into slots.
    Slots,
    /// Children that decide on their own supply.
    OwnTime,
    /// Slices of a scheduler's supply in other hands.
    Slices,
    /// First arrivals apart.
    Phases,
    /// Sporadic tasks.
    Sporadic,
    /// Reservations: guaranteed slices of endless bodies.
    Reservation,
    /// Work that comes once and has a deadline.
    Once,
    /// Work without deadline.
    Aperiodic,
    /// Releases that follow their arrival late.
    Jitter,
    /// Jobs that wait for something else than the processor.
    Suspension,
    /// Stretches without preemption.
    Section,
    /// Tasks that wait for others, on this CPU or another.
    Precedence,
    /// Resources with their protocols.
    Resources,
    /// Late releases dropped, and short backlogs.
    Late,
    /// Switches, timers, preemptions and caches that cost time.
    Overheads,
    /// Time that the machine takes.
    MissingTime,
    /// Supply set aside above all tasks.
    Reserves,
    /// Responses and chains required beyond deadlines.
    Requirements,
    /// Jobs that need more than they may are demoted, stopped or told, instead of throttled.
    OverrunRules,
    /// Tasks of a server that lock.
    ServerLocks,
}

impl Feature {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Feature; 23] = [
        Feature::SeveralCpus,
        Feature::Servers,
        Feature::Nesting,
        Feature::Slots,
        Feature::OwnTime,
        Feature::Phases,
        Feature::Sporadic,
        Feature::Reservation,
        Feature::Once,
        Feature::Aperiodic,
        Feature::Jitter,
        Feature::Suspension,
        Feature::Section,
        Feature::Precedence,
        Feature::Resources,
        Feature::Late,
        Feature::Overheads,
        Feature::MissingTime,
        Feature::Reserves,
        Feature::Requirements,
        Feature::OverrunRules,
        Feature::Slices,
        Feature::ServerLocks,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::SeveralCpus => "several-cpus",
            Feature::Servers => "servers",
            Feature::Nesting => "nesting",
            Feature::Slots => "slots",
            Feature::OwnTime => "own-time",
            Feature::Slices => "slices",
            Feature::Phases => "phases",
            Feature::Sporadic => "sporadic",
            Feature::Reservation => "reservation",
            Feature::Once => "once",
            Feature::Aperiodic => "aperiodic",
            Feature::Jitter => "jitter",
            Feature::Suspension => "suspension",
            Feature::Section => "section",
            Feature::Precedence => "precedence",
            Feature::Resources => "resources",
            Feature::Late => "late",
            Feature::Overheads => "overheads",
            Feature::MissingTime => "missing-time",
            Feature::Reserves => "reserves",
            Feature::Requirements => "requirements",
            Feature::OverrunRules => "overrun-rules",
            Feature::ServerLocks => "server-locks",
        }
    }

    /// Whether it makes a tree of schedulers.
    pub const fn is_hierarchy(self) -> bool {
        matches!(
            self,
            Feature::Servers
                | Feature::Nesting
                | Feature::Slots
                | Feature::OwnTime
                | Feature::Slices
                | Feature::ServerLocks
        )
    }

    /// Whether it comes last, from a stream of its own: systems without it stay what they are.
    pub(super) const fn comes_last(self) -> bool {
        matches!(self, Feature::Slices | Feature::ServerLocks)
    }

    /// How many of 1,000 systems have it in a usual mix: about three features per system.
    pub const fn usual_per_mille(self) -> u32 {
        match self {
            Feature::SeveralCpus | Feature::Phases | Feature::Sporadic | Feature::Section => 250,
            Feature::Servers => 300,
            // They need a scheduler to begin with.
            Feature::Nesting | Feature::OwnTime | Feature::Slices => 500,
            Feature::Jitter | Feature::Precedence | Feature::Resources | Feature::ServerLocks => {
                200
            }
            Feature::Slots | Feature::Suspension | Feature::Aperiodic => 150,
            _ => 100,
        }
    }

    /// Applies it to some part of the system.
    pub(super) fn apply(self, random: &mut Random, scale: Scale, system: &mut System) {
        let apply = match self {
            Feature::SeveralCpus => machine::several_cpus,
            Feature::Servers => hierarchy::servers,
            Feature::Nesting => hierarchy::nesting,
            Feature::Slots => hierarchy::slots,
            Feature::OwnTime => hierarchy::own_time,
            Feature::Slices => slices::slices,
            Feature::Phases => tasks::phases,
            Feature::Sporadic => tasks::sporadic,
            Feature::Reservation => tasks::reservation,
            Feature::Once => tasks::once,
            Feature::Aperiodic => tasks::aperiodic,
            Feature::Jitter => tasks::jitter,
            Feature::Suspension => tasks::suspension,
            Feature::Section => tasks::section,
            Feature::Precedence => tasks::precedence,
            Feature::Resources => resources::resources,
            Feature::Late => tasks::late,
            Feature::Overheads => machine::overheads,
            Feature::MissingTime => machine::missing_time,
            Feature::Reserves => machine::reserves,
            Feature::Requirements => machine::requirements,
            Feature::OverrunRules => tasks::overrun_rules,
            Feature::ServerLocks => locks::server_locks,
        };
        apply(random, scale, system);
    }
}
