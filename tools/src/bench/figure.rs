//! One figure: samples of a primitive and of its rivals, as quantiles and ratios.

use std::fmt::Write as _;
use std::time::Instant;

use serde::Serialize;

use crate::machine::Fact;
use crate::output::JSON_FORMAT;
use crate::table::{Align, Table};

/// Something to measure; measuring gives nanoseconds per unit of work, one sample per batch.
pub(crate) struct Bench {
    /// Its name, which filters look into.
    pub(crate) name: String,
    ours: Measure,
    rivals: Vec<(&'static str, Measure)>,
}

type Measure = Box<dyn FnOnce() -> Result<Vec<f64>, String>>;

impl Bench {
    /// A primitive.
    pub(crate) fn new(
        name: impl Into<String>,
        ours: impl FnOnce() -> Result<Vec<f64>, String> + 'static,
    ) -> Bench {
        Bench {
            name: name.into(),
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

    /// Measures. A rival that cannot be measured here is left out.
    ///
    /// # Errors
    /// Why the primitive cannot be measured here.
    pub(crate) fn measure(self) -> Result<Figure, String> {
        let ours = Quantiles::of((self.ours)()?).ok_or("there are no samples")?;
        let mut rivals = Vec::new();
        for (name, measure) in self.rivals {
            if let Some(rival) = measure().ok().and_then(Quantiles::of) {
                let ratio = hundredths(rival.p50 / ours.p50.max(f64::MIN_POSITIVE));
                rivals.push(Rival {
                    name,
                    p50: rival.p50,
                    p99: rival.p99,
                    ratio,
                });
            }
        }
        let Quantiles { p50, p99, max, n } = ours;
        Ok(Figure {
            name: self.name,
            unit: "ns",
            p50,
            p99,
            max,
            n,
            rivals,
        })
    }
}

/// A measured primitive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    p50: f64,
    p99: f64,
    max: f64,
    n: usize,
    rivals: Vec<Rival>,
}

/// Something else that does the same, measured in the same run.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Rival {
    name: &'static str,
    p50: f64,
    p99: f64,
    /// How many times longer it takes, at the median.
    ratio: f64,
}

/// The JSON of `bench` (SEMANTICS §6).
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
    fn of(mut samples: Vec<f64>) -> Option<Quantiles> {
        samples.sort_by(f64::total_cmp);
        let last = samples.len().checked_sub(1)?;
        // The smallest sample that so many hundredths of all samples do not exceed.
        let at = |percent: usize| samples[(samples.len() * percent).div_ceil(100).max(1) - 1];
        let [p50, p99, max] = [at(50), at(99), samples[last]].map(hundredths);
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
        ("figure (ns)", Align::Left),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("n", Align::Right),
        ("per second", Align::Right),
        ("rivals, p50", Align::Left),
    ]);
    for figure in figures {
        let rival = |r: &Rival| format!("{} {} ({}x)", r.name, number(r.p50), r.ratio);
        table.row(vec![
            figure.name.clone(),
            number(figure.p50),
            number(figure.p99),
            number(figure.max),
            figure.n.to_string(),
            rate(figure.p50),
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

/// How often per second something happens that takes so many nanoseconds.
fn rate(ns: f64) -> String {
    match 1e9 / ns.max(f64::MIN_POSITIVE) {
        rate if rate >= 1e6 => format!("{:.1} M", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.1} k", rate / 1e3),
        rate => format!("{rate:.1}"),
    }
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
        assert_eq!(rate(80.0), "12.5 M");
    }

    #[test]
    fn without_samples_there_is_no_figure_and_a_rival_that_fails_is_left_out() {
        assert!(Bench::new("empty", || Ok(vec![])).measure().is_err());
        let bench = Bench::new("ours", || Ok(vec![1.0])).against("gone", || Err("no".into()));
        assert!(bench.measure().expect("a sample").rivals.is_empty());
    }
}
