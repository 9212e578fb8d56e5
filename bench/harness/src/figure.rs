//! One figure: samples of a primitive and of its rivals, by turns, as quantiles and ratios.
//!
//! A machine that others use changes its speed within minutes. So ours and each rival take turns in
//! one run, each turn has a ratio, and a figure has the median of the ratios with their spread.

use std::time::Instant;

use punctual_linux::{ClockSource, clock_rate};
use serde::Serialize;

use super::counting::{self, Counted};
use super::told::does;
use punctual_terminal::machine::Fact;
use punctual_terminal::output::JSON_FORMAT;

/// Something to measure; measuring gives nanoseconds per unit of work, one sample per batch.
pub(crate) struct Bench {
    /// Its name, which filters look into.
    pub(crate) name: String,
    unit: Unit,
    ours: Measure,
    counted: Counted,
    rivals: Vec<(&'static str, MeasureRival)>,
}

type Measure = Box<dyn Fn() -> Result<Measured, String>>;
type MeasureRival = Box<dyn Fn() -> Samples>;
/// Samples in nanoseconds, or why there are none.
type Samples = Result<Vec<f64>, String>;

/// A unit of figures.
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
    /// Samples of a kind that are told apart, by the name of the kind.
    pub(crate) parts: Vec<(&'static str, Vec<f64>)>,
}

impl Measured {
    /// The next turn of the same.
    fn add(&mut self, turn: Measured) {
        self.samples.extend(turn.samples);
        let sum = |a: u64, b: u64| a.saturating_add(b);
        self.missing_ns = match (self.missing_ns, turn.missing_ns) {
            (Some(a), Some(b)) => Some(sum(a, b)),
            (a, b) => a.or(b),
        };
        for note in turn.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.observations = match (self.observations, turn.observations) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        for (name, samples) in turn.parts {
            match self.parts.iter_mut().find(|(of, _)| *of == name) {
                Some((_, all)) => all.extend(samples),
                None => self.parts.push((name, samples)),
            }
        }
    }
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
        ours: impl Fn() -> Result<Vec<f64>, String> + 'static,
    ) -> Bench {
        Bench {
            name: name.into(),
            unit: Unit::Ns,
            ours: Box::new(move || ours().map(Measured::from)),
            counted: Counted::Measured,
            rivals: Vec::new(),
        }
    }

    /// The same, with what must be said about it.
    pub(crate) fn with_notes(
        name: impl Into<String>,
        ours: impl Fn() -> Result<Measured, String> + 'static,
    ) -> Bench {
        Bench {
            unit: Unit::Ns,
            ..Bench::in_cycles(name, ours)
        }
    }

    /// A primitive of light threads, told in cycles.
    pub(crate) fn in_cycles(
        name: impl Into<String>,
        ours: impl Fn() -> Result<Measured, String> + 'static,
    ) -> Bench {
        Bench {
            name: name.into(),
            unit: Unit::cycles(),
            ours: Box::new(ours),
            counted: Counted::Measured,
            rivals: Vec::new(),
        }
    }

    /// The same with a rival, measured after it.
    pub(crate) fn against(
        mut self,
        name: &'static str,
        rival: impl Fn() -> Result<Vec<f64>, String> + 'static,
    ) -> Bench {
        self.rivals.push((name, Box::new(rival)));
        self
    }

    /// How its instructions are counted, if not in the measurement itself.
    pub(crate) fn counted(self, counted: Counted) -> Bench {
        Bench { counted, ..self }
    }

    /// Counts the instructions of its operation.
    ///
    /// # Errors
    /// Why they are not counted.
    pub(crate) fn count(&self) -> Result<u64, String> {
        self.counted.count(&self.name)
    }

    /// Executes its operation in a process that steps, which ends meanwhile.
    ///
    /// # Errors
    /// Why it did not.
    pub(crate) fn step(&self) -> Result<(), String> {
        self.counted.step(|| (self.ours)().map(drop))
    }

    /// The names of its rivals.
    #[cfg(test)]
    pub(crate) fn rivals(&self) -> impl Iterator<Item = &'static str> {
        self.rivals.iter().map(|(name, _)| *name)
    }

    /// Measures so many turns of ours and each rival; one, if there is none. In each second turn
    /// the rivals are first. A turn that fails is left out, with the reason. If the first two fail,
    /// there is no third. `goes_on` is asked before each turn but the first.
    ///
    /// # Errors
    /// Why the primitive cannot be measured here.
    pub(crate) fn measure(
        &self,
        turns: usize,
        goes_on: impl Fn() -> bool,
    ) -> Result<Figure, String> {
        let turns = if self.rivals.is_empty() { 1 } else { turns };
        let mut ours = Measured::default();
        let mut rivals: Vec<RivalTurns> =
            self.rivals.iter().map(|_| RivalTurns::default()).collect();
        let mut tries = Tries::default();
        for turn in 0..turns {
            if turn > 0 && !goes_on() {
                ours.notes.push(format!("{turn} turns of {turns}"));
                break;
            }
            let theirs_first = (turn % 2 == 1).then(|| self.turn_of_rivals(&rivals));
            let measured = (self.ours)().and_then(|measured| {
                let median = median(&measured.samples).ok_or("there are no samples")?;
                Ok((measured, median))
            });
            let Some((measured, median)) = tries.note(measured) else {
                if tries.is_given_up() {
                    break;
                }
                continue;
            };
            ours.add(measured);
            let theirs = theirs_first.unwrap_or_else(|| self.turn_of_rivals(&rivals));
            for (rival, samples) in rivals.iter_mut().zip(theirs) {
                if let Some(samples) = samples {
                    rival.take(samples, median);
                }
            }
        }
        if tries.good == 0 {
            return Err(tries.reason.unwrap_or_default());
        }
        ours.notes.extend(tries.left_out());
        for (&(name, _), rival) in self.rivals.iter().zip(&rivals) {
            let left_out = rival.tries.left_out().filter(|_| rival.tries.good > 0);
            ours.notes
                .extend(left_out.map(|what| format!("{name}: {what}")));
        }
        Ok(self.figure(ours, rivals))
    }

    /// A turn of each rival that is not given up.
    fn turn_of_rivals(&self, rivals: &[RivalTurns]) -> Vec<Option<Samples>> {
        let turn = |((_, measure), rival): (&(_, MeasureRival), &RivalTurns)| {
            (!rival.tries.is_given_up()).then(measure)
        };
        self.rivals.iter().zip(rivals).map(turn).collect()
    }

    fn figure(&self, ours: Measured, taken: Vec<RivalTurns>) -> Figure {
        let scale = self.unit.per_ns();
        let (mut rivals, mut skipped) = (Vec::new(), Vec::new());
        for (&(name, _), turns) in self.rivals.iter().zip(taken) {
            let Some(all) = Quantiles::of(turns.samples, scale) else {
                if let Some(reason) = turns.tries.reason {
                    skipped.push(Skipped { name, reason });
                }
                continue;
            };
            let ratios = Quantiles::of(turns.ratios.clone(), 1.0);
            let least = turns.ratios.into_iter().fold(f64::INFINITY, f64::min);
            rivals.push(Rival {
                name,
                does: does(&self.name, name),
                p50: all.p50,
                p99: all.p99,
                n: all.n,
                ratio: ratios.as_ref().map_or(0.0, |ratios| ratios.p50),
                least: ratios.as_ref().map_or(0.0, |_| hundredths(least)),
                most: ratios.as_ref().map_or(0.0, |ratios| ratios.max),
                turns: ratios.as_ref().map_or(0, |ratios| ratios.n),
            });
        }
        let parts = ours.parts.into_iter().map(|(name, samples)| Part {
            name,
            all: Quantiles::of(samples, scale),
        });
        let all = Quantiles::of(ours.samples, scale).unwrap_or_default();
        Figure {
            name: self.name.clone(),
            unit: self.unit,
            p50: all.p50,
            p99: all.p99,
            max: all.max,
            n: ours.observations.unwrap_or(all.n),
            instructions: None,
            not_counted: None,
            missing_ns: ours.missing_ns,
            parts: parts.collect(),
            notes: ours.notes,
            rivals,
            skipped,
        }
    }
}

/// The turns of a rival.
#[derive(Default)]
struct RivalTurns {
    samples: Vec<f64>,
    /// By turn, how many times longer it took than ours.
    ratios: Vec<f64>,
    tries: Tries,
}

impl RivalTurns {
    /// One turn of it, and the median of ours in that turn.
    fn take(&mut self, samples: Samples, ours: f64) {
        let measured = samples.and_then(|samples| {
            let median = median(&samples).ok_or("there are no samples")?;
            Ok((samples, median))
        });
        if let Some((samples, median)) = self.tries.note(measured) {
            // A distance between two CPUs may be nothing, and nothing has no multiples.
            self.ratios.extend((ours > 0.0).then(|| median / ours));
            self.samples.extend(samples);
        }
    }
}

/// How turns of one went.
#[derive(Default)]
struct Tries {
    good: usize,
    failed: usize,
    /// Why the first that failed did.
    reason: Option<String>,
}

impl Tries {
    fn note<T>(&mut self, turn: Result<T, String>) -> Option<T> {
        match turn {
            Ok(measured) => {
                self.good += 1;
                Some(measured)
            }
            Err(reason) => {
                self.failed += 1;
                let _ = self.reason.get_or_insert(reason);
                None
            }
        }
    }

    /// It cannot be measured here.
    fn is_given_up(&self) -> bool {
        self.good == 0 && self.failed >= 2
    }

    /// The turns that count, and why the others do not.
    fn left_out(&self) -> Option<String> {
        let reason = self.reason.as_ref()?;
        let all = self.good + self.failed;
        Some(format!("{} turns of {all}: {reason}", self.good))
    }
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len().checked_sub(1)? / 2).copied()
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
    /// Those of one operation of ours, outside of the kernel and of libraries.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_counted: Option<String>,
    /// Time that the machine took while ours was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_ns: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    rivals: Vec<Rival>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
}

impl Figure {
    /// The same with its instructions, or the reason why they are not counted.
    pub(crate) fn with_count(self, count: Result<u64, String>) -> Figure {
        let (instructions, not_counted) = match count {
            Ok(instructions) => (Some(instructions), None),
            Err(why) => (None, Some(why)),
        };
        Figure {
            instructions,
            not_counted,
            ..self
        }
    }

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
    /// Its operation, and how far that is the same.
    does: &'static str,
    p50: f64,
    p99: f64,
    n: usize,
    /// How many times longer it takes, at the median of a turn; the median of all turns, the least
    /// and the most. Without a turn in which ours took any time they are 0.
    ratio: f64,
    least: f64,
    most: f64,
    turns: usize,
}

/// Samples of a kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Part {
    name: &'static str,
    /// `None`: there was none.
    #[serde(flatten)]
    all: Option<Quantiles>,
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

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
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

/// Nanoseconds that `work` takes per unit, when it does `units` of them. Where instructions are
/// counted it is stepped through, and takes none.
pub(crate) fn time(units: u32, work: impl FnOnce()) -> f64 {
    if counting::is_on() {
        counting::batch(units, work);
        return 0.0;
    }
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / f64::from(units.max(1))
}

impl Rival {
    fn told(&self) -> String {
        let Rival {
            name,
            p50,
            ratio,
            least,
            most,
            ..
        } = self;
        match self.turns {
            0 => format!("{name} {p50:.1} (no ratio: ours took nothing)"),
            1 => format!("{name} {p50:.1} ({ratio}x)"),
            _ => format!("{name} {p50:.1} ({ratio}x: {least} to {most})"),
        }
    }
}

mod render;
#[cfg(test)]
mod tests;

pub(crate) use render::render;
