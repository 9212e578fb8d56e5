//! What a study asks: from a file, from flags, or by default.

use std::path::Path;

use clap::ValueEnum;
use punctual_generate::{Deadlines, Generator, Periods, SetParameters};
use punctual_model::{Ns, PolicyKind, Span};
use serde::{Deserialize, Serialize};

use punctual_terminal::ending::Failure;

/// Most sets of a study, at all points together: the units of all are in memory.
const MOST_SETS: u64 = 100_000_000;

/// Most tasks of one set.
const MOST_TASKS: usize = 100_000;

/// A policy that judges sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Policy {
    FixedPriority,
    FixedPriorityNonPreemptive,
    Edf,
    Fifo,
}

impl Policy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Policy::FixedPriority => "fixed-priority",
            Policy::FixedPriorityNonPreemptive => "fixed-priority-non-preemptive",
            Policy::Edf => "edf",
            Policy::Fifo => "fifo",
        }
    }

    pub(super) fn kind(self) -> PolicyKind<Ns> {
        match self {
            Policy::FixedPriority => PolicyKind::FixedPriority { preemptive: true },
            Policy::FixedPriorityNonPreemptive => PolicyKind::FixedPriority { preemptive: false },
            Policy::Edf => PolicyKind::EarliestDeadlineFirst,
            Policy::Fifo => PolicyKind::Fifo,
        }
    }
}

/// A generator by its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Source {
    UunifastDiscard,
    FixedSum,
    #[serde(rename = "waters-2015")]
    #[value(name = "waters-2015")]
    Waters2015,
}

impl Source {
    pub(super) fn generator(self) -> Generator {
        match self {
            Source::UunifastDiscard => Generator::UUniFastDiscard,
            Source::FixedSum => Generator::FixedSum,
            Source::Waters2015 => Generator::Waters2015,
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.generator().name()
    }

    /// Its number in the seeds of sets: never changes.
    pub(super) fn number(self) -> u64 {
        match self {
            Source::UunifastDiscard => 1,
            Source::FixedSum => 2,
            Source::Waters2015 => 3,
        }
    }
}

/// How deadlines follow from periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DeadlineRule {
    Implicit,
    Constrained,
    Arbitrary,
}

/// The keys of a study file, which are the flags as well.
#[derive(Debug, Default, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Flags {
    /// Who judges every set
    #[arg(long, value_enum, value_delimiter = ',', value_name = "POLICY,...")]
    policies: Option<Vec<Policy>>,
    /// Where the shares of the tasks come from
    #[arg(long, value_enum, value_delimiter = ',', value_name = "GENERATOR,...")]
    generators: Option<Vec<Source>>,
    /// Tasks per set
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    tasks: Option<Vec<usize>>,
    /// Utilizations of the sets: FROM..TO:STEP, or a list
    #[arg(long, value_name = "50%..100%:5%")]
    utilization: Option<String>,
    /// Sets per point
    #[arg(long, value_name = "N")]
    sets: Option<u64>,
    /// How deadlines follow from periods
    #[arg(long, value_enum)]
    deadlines: Option<DeadlineRule>,
    /// Periods, log-uniform: FROM..TO:STEP
    #[arg(long, value_name = "10ms..1s:1ms")]
    periods: Option<String>,
    /// The largest share of one task
    #[arg(long, value_name = "PERCENT")]
    largest_share: Option<String>,
    /// Seed of all sets
    #[arg(long)]
    seed: Option<u64>,
}

/// Periods of a study, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct PeriodRange {
    low: u64,
    high: u64,
    step: u64,
}

/// A whole study: the first line of its results.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Sets {
    policies: Vec<Policy>,
    generators: Vec<Source>,
    tasks: Vec<usize>,
    utilization_ppm: Vec<u32>,
    sets: u64,
    deadlines: DeadlineRule,
    periods_ns: PeriodRange,
    largest_share_ppm: u32,
    seed: u64,
}

impl Sets {
    /// Reads the file, lets flags override it, and fills in what is left out.
    pub(super) fn of(file: Option<&Path>, flags: &Flags) -> Result<Sets, Failure> {
        let file = match file {
            Some(path) => read(path)?,
            None => Flags::default(),
        };
        let text = |flag: &Option<String>, file: &Option<String>, default: &str| {
            flag.clone()
                .or_else(|| file.clone())
                .unwrap_or_else(|| default.into())
        };
        let utilization = text(&flags.utilization, &file.utilization, "50%..100%:5%");
        let periods = text(&flags.periods, &file.periods, "10ms..1s:1ms");
        let share = text(&flags.largest_share, &file.largest_share, "100%");
        let list = |what: &str, error: String| Failure::input(format!("{what}: {error}"));
        let study = Sets {
            policies: (flags.policies.clone().or(file.policies))
                .unwrap_or_else(|| vec![Policy::FixedPriority, Policy::Edf]),
            generators: (flags.generators.clone().or(file.generators))
                .unwrap_or_else(|| vec![Source::UunifastDiscard]),
            tasks: flags
                .tasks
                .clone()
                .or(file.tasks)
                .unwrap_or_else(|| vec![10]),
            utilization_ppm: percents(&utilization).map_err(|e| list("utilization", e))?,
            sets: flags.sets.or(file.sets).unwrap_or(1_000),
            deadlines: (flags.deadlines.or(file.deadlines)).unwrap_or(DeadlineRule::Implicit),
            periods_ns: period_range(&periods).map_err(|e| list("periods", e))?,
            largest_share_ppm: percent(&share).map_err(|e| list("largest-share", e))?,
            seed: flags.seed.or(file.seed).unwrap_or(1),
        };
        study.judge()?;
        Ok(study)
    }

    /// Whether it means something, and is not larger than the limits.
    pub(super) fn judge(&self) -> Result<(), Failure> {
        let empty = [
            ("policies", self.policies.is_empty()),
            ("generators", self.generators.is_empty()),
            ("tasks", self.tasks.is_empty()),
            ("utilization", self.utilization_ppm.is_empty()),
            ("sets", self.sets == 0),
        ];
        if let Some((what, _)) = empty.iter().find(|(_, empty)| *empty) {
            return Err(Failure::input(format!("{what}: a study of none")));
        }
        if self.tasks.iter().any(|n| *n == 0 || *n > MOST_TASKS) {
            let wrong = format!("tasks: a set has 1 to {MOST_TASKS} of them");
            return Err(Failure::input(wrong));
        }
        let points = self.point_count() as u64;
        if points.saturating_mul(self.sets) > MOST_SETS {
            return Err(Failure::input(format!(
                "sets: {} at each of {points} points are more than {MOST_SETS} in all",
                self.sets
            )));
        }
        // What cannot be drawn is told before hours are spent on what can.
        for (generator, tasks, ppm) in self.points() {
            let parameters = self.parameters(generator, tasks, ppm);
            let drawn = parameters.draw(&mut punctual_generate::Random::new(self.seed));
            drawn.map_err(|error| Failure::input(error.to_string()))?;
        }
        Ok(())
    }

    pub(super) fn policies(&self) -> &[Policy] {
        &self.policies
    }

    pub(super) fn sets(&self) -> u64 {
        self.sets
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// How many combinations are studied.
    pub(super) fn point_count(&self) -> usize {
        let lists = [
            self.generators.len(),
            self.tasks.len(),
            self.utilization_ppm.len(),
        ];
        lists.into_iter().fold(1, usize::saturating_mul)
    }

    /// Every combination that is studied, in order.
    pub(super) fn points(&self) -> Vec<(Source, usize, u32)> {
        let mut points = Vec::new();
        for generator in &self.generators {
            for tasks in &self.tasks {
                for ppm in &self.utilization_ppm {
                    points.push((*generator, *tasks, *ppm));
                }
            }
        }
        points
    }

    pub(super) fn parameters(
        &self,
        source: Source,
        tasks: usize,
        utilization_ppm: u32,
    ) -> SetParameters {
        SetParameters {
            generator: source.generator(),
            tasks,
            utilization_ppm,
            largest_share_ppm: self.largest_share_ppm,
            periods: Periods::LogUniform {
                low: Span::from_ns(self.periods_ns.low),
                high: Span::from_ns(self.periods_ns.high),
                step: Span::from_ns(self.periods_ns.step),
            },
            deadlines: match self.deadlines {
                DeadlineRule::Implicit => Deadlines::Implicit,
                DeadlineRule::Constrained => Deadlines::Constrained,
                DeadlineRule::Arbitrary => Deadlines::Arbitrary,
            },
        }
    }
}

fn read(path: &Path) -> Result<Flags, Failure> {
    let text = punctual_terminal::input::text(path)?;
    toml::from_str(&text).map_err(|error| {
        Failure::input(format!("{}: {}", path.display(), error.to_string().trim()))
    })
}

/// `12.5%` in parts per million, at most four digits behind the point.
fn percent(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is not a percentage such as 12.5%");
    let number = text.trim().strip_suffix('%').ok_or_else(wrong)?.trim();
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || rest.len() > 4 || !(rest.is_empty() || digits(rest)) {
        return Err(wrong());
    }
    format!("{whole}{rest:0<4}").parse().map_err(|_| wrong())
}

/// `50%..100%:5%`, or a list such as `50%,75%`.
fn percents(text: &str) -> Result<Vec<u32>, String> {
    let Some((low, rest)) = text.split_once("..") else {
        return text.split(',').map(percent).collect();
    };
    let (high, step) = rest.split_once(':').unwrap_or((rest, "5%"));
    let (low, high, step) = (percent(low)?, percent(high)?, percent(step)?);
    if step == 0 || low > high {
        return Err(format!("`{text}` contains nothing"));
    }
    Ok((low..=high).step_by(step as usize).collect())
}

fn period_range(text: &str) -> Result<PeriodRange, String> {
    let (low, rest) = text
        .split_once("..")
        .ok_or_else(|| format!("`{text}` is not a range such as 10ms..1s:1ms"))?;
    let (high, step) = rest.split_once(':').unwrap_or((rest, "1ns"));
    let ns = |text: &str| punctual_terminal::input::duration(text.trim()).map(Span::as_ns);
    let (low, high, step) = (ns(low)?, ns(high)?, ns(step)?);
    if low > high {
        return Err(format!("`{text}` contains nothing"));
    }
    Ok(PeriodRange { low, high, step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_exact() {
        assert_eq!(percent("12.5%"), Ok(125_000));
        assert_eq!(percent("100%"), Ok(1_000_000));
        assert_eq!(percent("0.0001%"), Ok(1));
        for wrong in ["", "5", "%", "1.23456%", "-3%", "1.%x", "a%", "99999%%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        let expected = vec![500_000, 750_000, 1_000_000];
        assert_eq!(percents("50%..100%:25%"), Ok(expected));
        assert_eq!(percents("70%, 80%"), Ok(vec![700_000, 800_000]));
        assert!(percents("90%..80%").is_err());
        assert!(percents("50%..60%:0%").is_err());
    }

    #[test]
    fn what_no_generator_can_draw_is_told_before_the_work() {
        let flags = Flags {
            utilization: Some("60%".into()),
            largest_share: Some("5%".into()),
            ..Flags::default()
        };
        let failure = Sets::of(None, &flags).expect_err("ten tasks of 5 % are 50 %");
        assert!(failure.to_string().contains("10 tasks of at most 5 %"));
    }
}
