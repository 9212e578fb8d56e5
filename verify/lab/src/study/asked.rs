//! The question of a study: the header of its file of results.

use serde::{Deserialize, Serialize};

use punctual_lab::Study;
use punctual_terminal::ending::Failure;

use crate::answers::{Found, Row, World};
use crate::costs::Costs;
use crate::plans::{self, Pacing};
use crate::{bsp, gang_admission, live, skew, slots};

/// More members are no gang of `core/gang` in virtual time.
const MOST_MEMBERS: u64 = 255;
/// More observations of one kind are not kept.
const MOST_OBSERVATIONS: u64 = 100_000;
/// Observations of one unit on Linux: a run that was ended loses no more.
const AT_ONCE: u64 = 50;

/// The question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Question {
    /// How far apart clocks are, so often for each pair of CPUs.
    Clocks { rounds: u64 },
    /// The time of each step of an admission.
    GangAdmission { members: Vec<u64>, rounds: u64 },
    /// How far apart members start.
    Skew { members: Vec<u64>, events: u64 },
    /// The rate of bulk synchronous work. Period 0 is aperiodic.
    Bsp {
        members: Vec<u64>,
        grains: Vec<u64>,
        periods_us: Vec<u64>,
        /// Whether plain threads do it as well that the kernel holds to the same.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rivals: bool,
    },
    /// The share of sets that are planned.
    PlanSuccess { sets: u64 },
    /// The share of switches within a process, over thousandths.
    PlanSwitches {
        probabilities: Vec<u64>,
        runs: u64,
        seconds: u64,
    },
    /// The share of groups that are accepted: loads in tenths, multipliers in hundredths.
    PlanHomes {
        loads: Vec<u64>,
        multipliers: Vec<u64>,
        runs: u64,
        seconds: u64,
    },
    /// Evaluations and time of an answer.
    PlanTimes {
        allowed_us: Vec<u64>,
        sizes: Vec<u64>,
        sets: u64,
        pacing: Pacing,
    },
    /// Finishing times over the length of a slot in cycles.
    Slots { lengths: Vec<u64> },
}

impl Question {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Question::Clocks { .. } => "clocks",
            Question::GangAdmission { .. } => "gang-admission",
            Question::Skew { .. } => "skew",
            Question::Bsp { .. } => "bsp",
            Question::PlanSuccess { .. } => "plan-success",
            Question::PlanSwitches { .. } => "plan-switches",
            Question::PlanHomes { .. } => "plan-homes",
            Question::PlanTimes { .. } => "plan-times",
            Question::Slots { .. } => "slots",
        }
    }

    /// Whether it is about gangs: no other study has prices, or can be done on Linux.
    pub(crate) fn has_prices(&self) -> bool {
        matches!(
            self,
            Question::Clocks { .. }
                | Question::GangAdmission { .. }
                | Question::Skew { .. }
                | Question::Bsp { .. }
        )
    }
}

impl Question {
    /// Whether a study without prices means something.
    fn check_rest(&self) -> Result<(), Failure> {
        match self {
            Question::PlanSuccess { sets } => listed("sets", &[*sets], MOST_OBSERVATIONS),
            Question::PlanSwitches {
                probabilities,
                runs,
                seconds,
            } => {
                let more: Vec<u64> = probabilities
                    .iter()
                    .map(|of| of.saturating_add(1))
                    .collect();
                listed("probabilities, with 1 added", &more, 1_001)?;
                of_runs(*runs, *seconds)
            }
            Question::PlanHomes {
                loads,
                multipliers,
                runs,
                seconds,
            } => {
                listed("loads", loads, 1_000)?;
                listed("multipliers", multipliers, 1_000)?;
                of_runs(*runs, *seconds)
            }
            Question::PlanTimes {
                allowed_us,
                sizes,
                sets,
                pacing,
            } => {
                listed("allowed", allowed_us, 1_000_000)?;
                listed("sizes", sizes, 1_000)?;
                listed("sets", &[*sets], MOST_OBSERVATIONS)?;
                listed("evaluation", &[pacing.evaluation_ns], 1_000_000)?;
                listed("segment", &[pacing.segment_ns], 1_000_000)?;
                listed("margin", &[pacing.margin_percent], 99)
            }
            Question::Slots { lengths } => listed("lengths", lengths, 10_000_000),
            _ => Ok(()),
        }
    }
}

/// A question about a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) world: World,
    pub(crate) seed: u64,
    /// In virtual time the steps cost so much; on Linux it says which machine that is.
    pub(crate) costs: Costs,
}

/// A piece: its first number, and a second one.
pub(crate) type Unit = (u64, u64);

fn listed(what: &str, values: &[u64], most: u64) -> Result<(), Failure> {
    let wrong = values.iter().find(|value| **value == 0 || **value > most);
    match (values.is_empty(), wrong) {
        (true, _) => Err(Failure::input(format!("{what}: a study of none"))),
        (_, Some(value)) => Err(Failure::input(format!(
            "{what}: {value} is none of 1 to {most}"
        ))),
        (false, None) => Ok(()),
    }
}

/// Fewer runs have no interval, and longer ones no room for their segments.
fn of_runs(runs: u64, seconds: u64) -> Result<(), Failure> {
    if runs < 5 {
        return Err(Failure::input(format!(
            "runs: {runs} are too few for an interval"
        )));
    }
    listed("runs", &[runs], 1_000)?;
    listed("seconds", &[seconds], 10_000)
}

impl Study for Asked {
    const NAME: &'static str = "a study";
    type Unit = Unit;
    type Line = Found;

    fn check(&self) -> Result<(), Failure> {
        self.costs.check().map_err(Failure::input)?;
        if !self.question.has_prices() && self.world == World::Linux {
            return Err(Failure::input(format!(
                "{}: this study is of virtual time; `punctual bench` has plans and graphs here",
                self.question.name()
            )));
        }
        let most = |members: &[u64]| match self.world {
            World::Sim => listed("members", members, MOST_MEMBERS),
            World::Linux if members == [2] => Ok(()),
            World::Linux => Err(Failure::input("members: on Linux a study has 2 of them")),
        };
        match &self.question {
            Question::Clocks { rounds } => {
                if self.world == World::Sim {
                    let what = "clocks: virtual time has the clocks that it is told";
                    return Err(Failure::input(what).with_help("--on linux"));
                }
                listed("rounds", &[*rounds], MOST_OBSERVATIONS)
            }
            Question::GangAdmission { members, rounds } => {
                most(members)?;
                listed("rounds", &[*rounds], MOST_OBSERVATIONS)
            }
            Question::Skew { members, events } => {
                most(members)?;
                listed("events", &[*events], MOST_OBSERVATIONS)
            }
            Question::Bsp {
                members,
                grains,
                periods_us,
                rivals,
            } => {
                if *rivals && self.world == World::Sim {
                    let what = "rivals: virtual time has none; the kernel holds them";
                    return Err(Failure::input(what).with_help("--on linux"));
                }
                most(members)?;
                listed("grains", grains, 1_024)?;
                let periods: Vec<u64> = periods_us
                    .iter()
                    .map(|period| period.max(&1))
                    .copied()
                    .collect();
                listed("periods", &periods, 1_000_000)
            }
            of => of.check_rest(),
        }
    }

    fn unit_count(&self) -> usize {
        self.units().len()
    }

    fn units(&self) -> Vec<Unit> {
        let on_linux = self.world == World::Linux;
        let parts = |all: u64| match on_linux {
            true => (0..all.div_ceil(AT_ONCE))
                .map(|at| AT_ONCE.min(all - at * AT_ONCE))
                .collect(),
            false => vec![all],
        };
        let cross = |first: &[u64], second: &[u64]| {
            let of = |one: &u64| {
                second
                    .iter()
                    .map(|other| (*one, *other))
                    .collect::<Vec<_>>()
            };
            first.iter().flat_map(of).collect()
        };
        match &self.question {
            Question::Clocks { rounds } => cross(&[0], &parts(*rounds)),
            Question::GangAdmission { members, rounds } => cross(members, &parts(*rounds)),
            Question::Skew { members, events } => cross(members, &[*events]),
            Question::Bsp {
                members,
                periods_us,
                ..
            } => cross(members, periods_us),
            Question::PlanSuccess { .. } => plans::SETTINGS.to_vec(),
            Question::PlanSwitches { probabilities, .. } => cross(probabilities, &[0]),
            Question::PlanHomes {
                loads, multipliers, ..
            } => cross(loads, multipliers),
            Question::PlanTimes {
                allowed_us, sizes, ..
            } => cross(allowed_us, sizes),
            Question::Slots { lengths } => cross(lengths, &[0, 1]),
        }
    }

    fn evaluate(&self, number: usize, unit: &Unit) -> Result<Found, Failure> {
        let rows = match self.world {
            World::Sim => self.simulate(*unit),
            World::Linux => live::measure(self, *unit),
        };
        let rows =
            rows.map_err(|what| Failure::run(format!("{}: {what}", self.question.name())))?;
        Ok(Found { unit: number, rows })
    }

    fn unit_of(line: &Found) -> usize {
        line.unit
    }

    fn fits(&self, line: &Found, number: usize, unit: &Unit) -> bool {
        let is_of = |row: &Row| match &self.question {
            Question::Clocks { .. } => true,
            Question::Bsp { .. } => (row.at(0), row.at(2)) == *unit,
            of if !of.has_prices() => (row.at(0), row.at(1)) == *unit,
            _ => row.at(0) == unit.0,
        };
        line.unit == number && !line.rows.is_empty() && line.rows.iter().all(is_of)
    }
}

impl Asked {
    fn simulate(&self, (first, second): Unit) -> Result<Vec<Row>, String> {
        let (costs, seed) = (&self.costs, self.seed);
        match &self.question {
            Question::Clocks { .. } => Err("virtual time has the clocks that it is told".into()),
            Question::GangAdmission { .. } => gang_admission::unit(costs, first, second, seed),
            Question::Skew { .. } => skew::unit(costs, first, second, seed),
            Question::Bsp { grains, .. } => bsp::unit(costs, (first, second), grains, seed),
            Question::PlanSuccess { sets } => plans::success((first, second), *sets, seed),
            Question::PlanSwitches { runs, seconds, .. } => {
                plans::switches(first, (*runs, *seconds), seed)
            }
            Question::PlanHomes { runs, seconds, .. } => {
                plans::homes((first, second), (*runs, *seconds), seed)
            }
            Question::PlanTimes { sets, pacing, .. } => {
                plans::times((first, second), (*sets, *pacing), seed)
            }
            Question::Slots { .. } => slots::unit(first, second),
        }
    }
}
