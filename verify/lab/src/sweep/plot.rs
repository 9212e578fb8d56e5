//! The shares over the utilization, as a drawing.
//!
//! A panel per generator and size, a line per policy.

use std::fmt::Write;
use std::path::Path;

use super::results::{Point, Results};
use punctual_terminal::ending::Failure;
use punctual_terminal::output::PromisedFile;

const PANEL: (f64, f64) = (560.0, 320.0);
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 50.0;

/// Colours that also differ in print and for the colour-blind (Okabe and Ito 2008), with dashes.
const STYLES: [(&str, &str); 4] = [
    ("#0072b2", ""),
    ("#d55e00", "8 3"),
    ("#009e73", "2 3"),
    ("#cc79a7", "10 3 2 3"),
];

/// Writes the drawing; a name that ends in `.html` gets a page around it.
pub(super) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    let svg = draw(results);
    let page = path.extension().is_some_and(|ending| ending == "html");
    PromisedFile::open(path)?.fill(|out| {
        if page {
            write!(
                out,
                "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
                 <title>punctual sweep</title>\n{svg}</html>\n"
            )
        } else {
            write!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}")
        }
    })
}

fn draw(results: &Results) -> String {
    let points = results.points();
    let panels: Vec<&[Point]> = points
        .chunk_by(|a, b| (a.generator, a.tasks) == (b.generator, b.tasks))
        .collect();
    let (width, height) = PANEL;
    let total = height * f64::from(u32::try_from(panels.len()).unwrap_or(1));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{total}\" \
         viewBox=\"0 0 {width} {total}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, points) in (0_u32..).zip(&panels) {
        let shift = height * f64::from(index);
        push(
            &mut svg,
            format_args!("<g transform=\"translate(0 {shift})\">\n"),
        );
        panel(&mut svg, results, points);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(text);
}

/// Where values are drawn.
struct Axes {
    low: f64,
    high: f64,
}

impl Axes {
    fn x(&self, ppm: u32) -> f64 {
        let width = PANEL.0 - LEFT - RIGHT;
        LEFT + (f64::from(ppm) - self.low) / (self.high - self.low) * width
    }

    fn y(share: f64) -> f64 {
        TOP + (1.0 - share) * (PANEL.1 - TOP - BOTTOM)
    }
}

fn panel(svg: &mut String, results: &Results, points: &[Point]) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let (low, high) = (
        f64::from(first.utilization_ppm),
        f64::from(last.utilization_ppm),
    );
    let axes = Axes {
        low,
        high: high.max(low + 1.0),
    };
    let (generator, tasks, sets) = (first.generator.name(), first.tasks, first.sets);
    push(
        svg,
        format_args!(
            "<text x=\"{LEFT}\" y=\"22\" font-weight=\"bold\">{generator}, {tasks} tasks, {sets} \
             sets per point</text>\n"
        ),
    );
    frame(svg, &axes, points);
    for (index, policy) in results.study().policies().iter().enumerate() {
        line(svg, &axes, points, index);
        legend(svg, index, policy.name());
    }
}

fn frame(svg: &mut String, axes: &Axes, points: &[Point]) {
    let (left, right) = (LEFT, PANEL.0 - RIGHT);
    for quarter in 0..=4_u32 {
        let share = f64::from(quarter) / 4.0;
        let (y, percent) = (Axes::y(share), quarter * 25);
        push(
            svg,
            format_args!(
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
                 stroke=\"#ddd\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent} \
                 %</text>\n",
                left - 6.0,
                y + 4.0
            ),
        );
    }
    let every = points.len().div_ceil(12).max(1);
    for point in points.iter().step_by(every) {
        let x = axes.x(point.utilization_ppm);
        let percent = f64::from(point.utilization_ppm) / 10_000.0;
        push(
            svg,
            format_args!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{percent}</text>\n",
                PANEL.1 - BOTTOM + 18.0
            ),
        );
    }
    push(
        svg,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">utilization in percent; \
             upwards, the share of admitted sets</text>\n",
            f64::midpoint(left, right),
            PANEL.1 - 12.0
        ),
    );
}

fn style(index: usize) -> (&'static str, &'static str) {
    STYLES[index % STYLES.len()]
}

/// A count as a drawing needs it.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is lost above 2^53 cannot be seen"
)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn line(svg: &mut String, axes: &Axes, points: &[Point], index: usize) {
    let (colour, dashes) = style(index);
    let mut places = String::new();
    for point in points {
        let admitted = point.admitted.get(index).copied().unwrap_or(0);
        let (x, y) = (
            axes.x(point.utilization_ppm),
            Axes::y(share(admitted, point.sets)),
        );
        push(&mut places, format_args!("{x:.1},{y:.1} "));
    }
    push(
        svg,
        format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>\n",
            places.trim_end()
        ),
    );
}

fn legend(svg: &mut String, index: usize, name: &str) {
    let (colour, dashes) = style(index);
    let y = Axes::y(0.0) - 14.0 - 16.0 * f64::from(u32::try_from(index).unwrap_or(0));
    let (from, to, text) = (LEFT + 10.0, LEFT + 40.0, LEFT + 46.0);
    push(
        svg,
        format_args!(
            "<line x1=\"{from}\" x2=\"{to}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
             stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\n\
             <text x=\"{text}\" y=\"{:.1}\">{name}</text>\n",
            y + 4.0
        ),
    );
}
