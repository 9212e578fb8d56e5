//! The shares over the utilization, as a drawing.
//!
//! A chart per generator and size, a line per policy.

use std::path::Path;

use punctual_lab::svg::{self, Axis, Chart, Mark, Series};
use punctual_terminal::ending::Failure;

use super::points::{Point, Results};

/// Writes the drawing; a name that ends in `.html` gets a page around it.
pub(super) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    let points = results.points();
    let charts = points.chunk_by(|a, b| (a.generator, a.tasks) == (b.generator, b.tasks));
    let charts: Vec<Chart> = charts.filter_map(|points| chart(results, points)).collect();
    svg::write(&charts, "punctual sweep", path)
}

fn chart(results: &Results, points: &[Point]) -> Option<Chart> {
    let first = points.first()?;
    let (generator, tasks, sets) = (first.generator.name(), first.tasks, first.sets);
    let percent = |point: &Point| f64::from(point.utilization_ppm) / 10_000.0;
    let policies = results.study().policies().iter().enumerate();
    let series = policies.map(|(index, policy)| Series {
        name: policy.name().into(),
        mark: Mark::Line,
        style: index,
        points: points
            .iter()
            .map(|point| {
                let admitted = point.admitted.get(index).copied().unwrap_or(0);
                (percent(point), 100.0 * share(admitted, point.sets))
            })
            .collect(),
    });
    let at: Vec<f64> = points.iter().map(percent).collect();
    Some(Chart {
        title: format!("{generator}, {tasks} tasks, {sets} sets per point"),
        notes: Vec::new(),
        x: Axis {
            includes: Vec::new(),
            ..Axis::linear("utilization in percent").at(&at)
        },
        y: Axis::linear("admitted sets in percent").at(&[0.0, 25.0, 50.0, 75.0, 100.0]),
        series: series.collect(),
    })
}

/// A count as a drawing needs it.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is lost above 2^53 cannot be seen"
)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
