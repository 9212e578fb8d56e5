//! The differences per iteration as a drawing: a panel per application, one point per iteration.

use std::fmt::Write as _;

use crate::Series;
use crate::measure::Difference;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 80.0;
const GAP: f64 = 60.0;

/// Colours that also differ for the colour-blind (Okabe and Ito 2008).
const SLOTS: &str = "#0072b2";
const PRIORITIES: &str = "#d55e00";

type Pick = fn(&Difference) -> i64;

/// One self-contained SVG.
pub(crate) fn draw(all: &[Series]) -> String {
    let mut scenarios: Vec<&str> = all.iter().map(|series| series.scenario).collect();
    scenarios.dedup();
    let panels: [(&str, Pick); 3] = [
        ("start", |d| d.start_ns),
        ("finish", |d| d.finish_ns),
        ("finish over missing time", |d| d.over_ns),
    ];
    let mut body = String::new();
    let mut top = GAP;
    for scenario in &scenarios {
        for (what, pick) in panels {
            let lines: Vec<&Series> = all.iter().filter(|s| s.scenario == *scenario).collect();
            panel(&mut body, top, (scenario, what), &lines, pick);
            top += HEIGHT + GAP;
        }
    }
    let width = LEFT + WIDTH + 30.0;
    let height = top + 20.0;
    legend(&mut body, top - 4.0);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">Difference between two runs with another \
         neighbour, per iteration; logarithmic, in microseconds</text>\n{body}</svg>\n"
    )
}

/// Where a size stands on the scale: 0.1 us at the bottom, 100 ms at the top.
fn height(ns: i64) -> f64 {
    let us = (ns.unsigned_abs() as f64 / 1e3).max(0.1);
    ((us.log10() + 1.0) / 6.0).min(1.0) * HEIGHT
}

/// What the marks mean, below the last panel.
fn legend(out: &mut String, y: f64) {
    let _ = writeln!(
        out,
        "<circle cx=\"{:.0}\" cy=\"{:.0}\" r=\"2.2\" fill=\"#444\" stroke=\"#444\"/>\
         <text x=\"{:.0}\" y=\"{y:.0}\">undisturbed</text>\
         <circle cx=\"{:.0}\" cy=\"{:.0}\" r=\"2.2\" fill=\"none\" stroke=\"#444\"/>\
         <text x=\"{:.0}\" y=\"{y:.0}\">the machine stood still meanwhile</text>\
         <text x=\"{:.0}\" y=\"{y:.0}\">lowest line: 0.1 us or less</text>",
        LEFT + 4.0,
        y - 4.0,
        LEFT + 14.0,
        LEFT + 104.0,
        y - 4.0,
        LEFT + 114.0,
        LEFT + 340.0,
    );
}

fn panel(out: &mut String, top: f64, name: (&str, &str), lines: &[&Series], pick: Pick) {
    let (scenario, what) = name;
    let bottom = top + HEIGHT;
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.0}\">{what} of {scenario}</text>\n\
         <rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" \
         stroke=\"#888\"/>",
        top - 8.0
    );
    let middle = LEFT + WIDTH / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\">iteration, in the order of the \
         rounds</text>",
        bottom + 16.0
    );
    for (decade, label) in ["0.1", "1", "10", "100", "1 000", "10 000", "100 000"]
        .iter()
        .enumerate()
    {
        let y = bottom - decade as f64 / 6.0 * HEIGHT;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (row, series) in lines.iter().enumerate() {
        let colour = if series.sharing == "slots" {
            SLOTS
        } else {
            PRIORITIES
        };
        let count = series.differences.len().max(1) as f64;
        for (index, difference) in series.differences.iter().enumerate() {
            let x = LEFT + (index as f64 + 0.5) / count * WIDTH;
            let y = bottom - height(pick(difference));
            // Hollow: the machine stood still in one of the two.
            let fill = if difference.disturbed { "none" } else { colour };
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"{fill}\" stroke=\"{colour}\"/>"
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\" text-anchor=\"end\" \
             stroke=\"white\" stroke-width=\"4\" paint-order=\"stroke\">{}</text>",
            LEFT + WIDTH - 6.0,
            top + 16.0 + 16.0 * row as f64,
            series.sharing
        );
    }
}
