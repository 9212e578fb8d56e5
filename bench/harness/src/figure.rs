//! One figure: samples of a primitive and of its rivals, as quantiles and ratios.

use std::fmt::Write as _;
use std::time::Instant;

use punctual_linux::{ClockSource, clock_rate};
use punctual_model::readable;
use serde::Serialize;

use punctual_terminal::machine::Fact;
use punctual_terminal::output::JSON_FORMAT;
use punctual_terminal::table::Table;

/// Something to measure; measuring gives nanoseconds per unit of work, one sample per batch.
pub(crate) struct Bench {
    /// Its name, which filters look into.
    pub(crate) name: String,
    unit: Unit,
    ours: Measure,
    rivals: Vec<(&'static str, MeasureRival)>,
}

type Measure = Box<dyn FnOnce() -> Result<Measured, String>>;
type MeasureRival = Box<dyn FnOnce() -> Result<Vec<f64>, String>>;

/// What figures are told in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Cycles of the time-stamp counter, which does not follow the processor's own frequency.
    Cycles,
}

impl Unit {
    /// How many of them a nanosecond has.
    fn per_ns(self) -> f64 {
        match self {
            Unit::Ns => 1.0,
            Unit::Cycles => clock_rate().frequency.hertz() as f64 / 1e9,
        }
    }

    /// The unit of durations of some tens of instructions, where the machine has such a counter.
    fn cycles() -> Unit {
        match clock_rate().source {
            ClockSource::TimeStampCounter => Unit::Cycles,
            _ => Unit::Ns,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Cycles => "cycles",
        }
    }
}

/// Samples in cycles of the time-stamp counter as samples in nanoseconds.
///
/// # Errors
/// Where the rate of the counter is not known.
pub(crate) fn of_cycles(samples: Vec<f64>) -> Result<Measured, String> {
    let rate = clock_rate();
    if rate.source != ClockSource::TimeStampCounter {
        return Err("the rate of the time-stamp counter is not known here".into());
    }
    let ns = 1e9 / rate.frequency.hertz() as f64;
    Ok(Measured::from(
        samples
            .into_iter()
            .map(|cycles| cycles * ns)
            .collect::<Vec<f64>>(),
    ))
}

/// Samples in nanoseconds, and what must be said with them.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) samples: Vec<f64>,
    /// Time that the machine took meanwhile; `None`: nobody has looked.
    pub(crate) missing_ns: Option<u64>,
    /// What was lost, and what else limits the figure.
    pub(crate) notes: Vec<String>,
    /// How many observations are behind the samples, if it is not their number.
    pub(crate) observations: Option<usize>,
}

impl From<Vec<f64>> for Measured {
    fn from(samples: Vec<f64>) -> Measured {
        Measured {
            samples,
            ..Measured::default()
        }
    }
}

impl Bench {
    /// A primitive of some microseconds or more.
    pub(crate) fn new(
        name: impl Into<String>,
        ours: impl FnOnce() -> Result<Vec<f64>, String> + 'static,
    ) -> Bench {
        Bench {
            name: name.into(),
            unit: Unit::Ns,
            ours: Box::new(|| ours().map(Measured::from)),
            rivals: Vec::new(),
        }
    }

    /// The same, with what must be said about it.
    pub(crate) fn with_notes(
        name: impl Into<String>,
        ours: impl FnOnce() -> Result<Measured, String> + 'static,
    ) -> Bench {
        Bench {
            unit: Unit::Ns,
            ..Bench::in_cycles(name, ours)
        }
    }

    /// A primitive of light threads, told in cycles.
    pub(crate) fn in_cycles(
        name: impl Into<String>,
        ours: impl FnOnce() -> Result<Measured, String> + 'static,
    ) -> Bench {
        Bench {
            name: name.into(),
            unit: Unit::cycles(),
            ours: Box::new(ours),
            rivals: Vec::new(),
        }
    }

    /// The same with a rival, measured after it.
    pub(crate) fn against(
        mut self,
        name: &'static str,
        rival: impl FnOnce() -> Result<Vec<f64>, String> + 'static,
    ) -> Bench {
        self.rivals.push((name, Box::new(rival)));
        self
    }

    /// Measures. A rival that cannot be measured here is skipped, with the reason.
    ///
    /// # Errors
    /// Why the primitive cannot be measured here.
    pub(crate) fn measure(self) -> Result<Figure, String> {
        let scale = self.unit.per_ns();
        let measured = (self.ours)()?;
        let ours = Quantiles::of(measured.samples, scale).ok_or("there are no samples")?;
        let (mut rivals, mut skipped) = (Vec::new(), Vec::new());
        for (name, measure) in self.rivals {
            let samples = measure();
            let reason = samples.as_ref().err().cloned();
            let Some(rival) = samples.ok().and_then(|all| Quantiles::of(all, scale)) else {
                let reason = reason.unwrap_or_else(|| "there are no samples".into());
                skipped.push(Skipped { name, reason });
                continue;
            };
            rivals.push(Rival {
                name,
                p50: rival.p50,
                p99: rival.p99,
                n: rival.n,
                ratio: hundredths(rival.p50 / ours.p50.max(f64::MIN_POSITIVE)),
            });
        }
        let Quantiles { p50, p99, max, n } = ours;
        Ok(Figure {
            name: self.name,
            unit: self.unit,
            p50,
            p99,
            max,
            n: measured.observations.unwrap_or(n),
            missing_ns: measured.missing_ns,
            notes: measured.notes,
            rivals,
            skipped,
        })
    }
}

/// A measured primitive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Figure {
    name: String,
    unit: Unit,
    p50: f64,
    p99: f64,
    max: f64,
    n: usize,
    /// Time that the machine took while ours was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_ns: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    rivals: Vec<Rival>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
}

impl Figure {
    /// What limits the figure, and which rivals are not there.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = String> + '_ {
        let skipped = self.skipped.iter();
        let skipped = skipped.map(|s| format!("{} is skipped: {}", s.name, s.reason));
        self.notes.iter().cloned().chain(skipped)
    }
}

/// Something else that does the same, measured in the same run.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Rival {
    name: &'static str,
    p50: f64,
    p99: f64,
    n: usize,
    /// How many times longer it takes, at the median.
    ratio: f64,
}

/// A rival that is not there, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Skipped {
    name: &'static str,
    reason: String,
}

/// The JSON of `bench` (`punctual schema bench`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Report<'a> {
    format: u32,
    machine: &'a [Fact],
    figures: &'a [Figure],
}

impl<'a> Report<'a> {
    /// The figures of a machine.
    pub(crate) fn new(machine: &'a [Fact], figures: &'a [Figure]) -> Report<'a> {
        Report {
            format: JSON_FORMAT,
            machine,
            figures,
        }
    }
}

struct Quantiles {
    p50: f64,
    p99: f64,
    max: f64,
    n: usize,
}

impl Quantiles {
    /// Of samples in nanoseconds, told in a unit of which a nanosecond has so many.
    fn of(mut samples: Vec<f64>, scale: f64) -> Option<Quantiles> {
        samples.sort_by(f64::total_cmp);
        let last = samples.len().checked_sub(1)?;
        // The smallest sample that so many hundredths of all samples do not exceed.
        let at = |percent: usize| samples[(samples.len() * percent).div_ceil(100).max(1) - 1];
        let [p50, p99, max] = [at(50), at(99), samples[last]].map(|ns| hundredths(ns * scale));
        Some(Quantiles {
            p50,
            p99,
            max,
            n: samples.len(),
        })
    }
}

/// More digits would be noise.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Nanoseconds that `work` takes per unit, when it does `units` of them.
pub(crate) fn time(units: u32, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / f64::from(units.max(1))
}

/// The figures for people.
pub(crate) fn render(facts: &[Fact], figures: &[Figure]) -> String {
    let mut text = String::new();
    for fact in facts {
        let _ = writeln!(text, "{:9} {}", fact.name, fact.value);
    }
    let number = |value: f64| format!("{value:.1}");
    let mut table = Table::new(&[
        "figure",
        "unit",
        ">p50",
        ">p99",
        ">max",
        ">n",
        ">missing",
        "rivals, p50 (times ours)",
    ]);
    for figure in figures {
        let rival = |r: &Rival| format!("{} {} ({}x)", r.name, number(r.p50), r.ratio);
        let missing = figure
            .missing_ns
            .map_or_else(String::new, |ns| readable(ns).to_string());
        table.row(vec![
            figure.name.clone(),
            figure.unit.name().into(),
            number(figure.p50),
            number(figure.p99),
            number(figure.max),
            figure.n.to_string(),
            missing,
            figure
                .rivals
                .iter()
                .map(rival)
                .collect::<Vec<_>>()
                .join(", "),
        ]);
    }
    let _ = write!(text, "\n{table}");
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_ratios_are_those_of_the_samples() {
        let ours = || Ok((1..=100).map(f64::from).collect());
        let bench = Bench::new("ours", ours).against("rival", || Ok(vec![500.0; 3]));
        let figure = bench.measure().expect("samples");
        assert_eq!(
            (figure.p50, figure.p99, figure.max, figure.n),
            (50.0, 99.0, 100.0, 100)
        );
        assert_eq!(figure.rivals[0].ratio, 10.0);
        assert_eq!(figure.rivals[0].n, 3);
    }

    #[test]
    fn without_samples_there_is_no_figure_and_a_rival_that_fails_is_skipped_with_its_reason() {
        assert!(Bench::new("empty", || Ok(vec![])).measure().is_err());
        let bench = Bench::new("ours", || Ok(vec![1.0])).against("gone", || Err("no".into()));
        let figure = bench.measure().expect("a sample");
        assert!(figure.rivals.is_empty());
        let remarks: Vec<String> = figure.remarks().collect();
        assert_eq!(remarks, ["gone is skipped: no"]);
    }
}
