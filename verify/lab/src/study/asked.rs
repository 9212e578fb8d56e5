//! The question of a study: the header of its file of results.

use serde::{Deserialize, Serialize};

use punctual_lab::Study;
use punctual_terminal::ending::Failure;

use crate::answers::{Found, Row, World};
use crate::costs::Costs;
use crate::{bsp, gang_admission, live, skew};

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
    },
}

impl Question {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Question::Clocks { .. } => "clocks",
            Question::GangAdmission { .. } => "gang-admission",
            Question::Skew { .. } => "skew",
            Question::Bsp { .. } => "bsp",
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

impl Study for Asked {
    const NAME: &'static str = "a study";
    type Unit = Unit;
    type Line = Found;

    fn check(&self) -> Result<(), Failure> {
        self.costs.check().map_err(Failure::input)?;
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
            } => {
                most(members)?;
                listed("grains", grains, 1_024)?;
                let periods: Vec<u64> = periods_us
                    .iter()
                    .map(|period| period.max(&1))
                    .copied()
                    .collect();
                listed("periods", &periods, 1_000_000)
            }
        }
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
        }
    }
}
