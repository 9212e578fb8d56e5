//! Drawings of results: charts with lines, points or bars, one below the other.

use std::fmt::Write;
use std::path::Path;

use punctual_terminal::ending::Failure;
use punctual_terminal::output::PromisedFile;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
/// Height of the drawn area of a chart.
const HEIGHT: f64 = 250.0;
const LINE: f64 = 17.0;
/// Letters that fit into a line, and into a half of it.
const LETTERS: usize = 92;

/// Colours that also differ in print and for the colour-blind (Okabe and Ito 2008), with dashes.
const STYLES: [(&str, &str); 7] = [
    ("#0072b2", ""),
    ("#d55e00", "8 3"),
    ("#009e73", "2 3"),
    ("#cc79a7", "10 3 2 3"),
    ("#000000", "5 5"),
    ("#e69f00", ""),
    ("#56b4e9", "8 3"),
];

/// How values become places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scale {
    /// Equal differences are equal lengths.
    Linear,
    /// Equal ratios are equal lengths; values are above 0.
    Log,
}

/// One axis of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// The values that are drawn at least.
    pub includes: Vec<f64>,
    /// Values with a number beside them; chosen by the drawing where there are none.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// A linear axis that begins at 0.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            scale: Scale::Linear,
            includes: vec![0.0],
            ticks: Vec::new(),
        }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            scale: Scale::Log,
            includes: Vec::new(),
            ticks: Vec::new(),
        }
    }

    /// The same, with numbers at these values.
    #[must_use]
    pub fn at(self, ticks: &[f64]) -> Axis {
        Axis {
            ticks: ticks.to_vec(),
            ..self
        }
    }

    /// The same, with room for these values.
    #[must_use]
    pub fn with(mut self, values: &[f64]) -> Axis {
        self.includes.extend(values);
        self
    }
}

/// The way in which values are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A line through all.
    Line,
    /// A line through all, which is thin: one of several that belong together.
    Thin,
    /// A dot for each.
    Points,
    /// A bar from the axis to each.
    Bars,
}

/// Values that belong together.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its words in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Its colour, by number.
    pub style: usize,
    /// The values, in the order of the line.
    pub points: Vec<(f64, f64)>,
}

/// One chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// Facts that it takes to read it.
    pub notes: Vec<String>,
    /// From left to right.
    pub x: Axis,
    /// From below to above.
    pub y: Axis,
    /// All values.
    pub series: Vec<Series>,
}

/// Writes charts; a name that ends in `.html` gets a page around them.
///
/// # Errors
/// A file that cannot be written.
pub fn write(charts: &[Chart], title: &str, path: &Path) -> Result<(), Failure> {
    let svg = draw(charts);
    let title = escaped(title);
    let page = path.extension().is_some_and(|ending| ending == "html");
    PromisedFile::open(path)?.fill(|out| {
        if page {
            write!(
                out,
                "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
                 <title>{title}</title>\n{svg}</html>\n"
            )
        } else {
            write!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}")
        }
    })
}

/// Charts one below the other, as SVG.
pub fn draw(charts: &[Chart]) -> String {
    let frames: Vec<Frame<'_>> = charts.iter().map(Frame::new).collect();
    let total: f64 = frames.iter().map(Frame::height).sum();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{total}\" \
         viewBox=\"0 0 {WIDTH} {total}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut shift = 0.0;
    for frame in &frames {
        push(
            &mut svg,
            format_args!("<g transform=\"translate(0 {shift})\">\n"),
        );
        frame.draw(&mut svg);
        svg.push_str("</g>\n");
        shift += frame.height();
    }
    svg.push_str("</svg>\n");
    svg
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(text);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text as lines that fit.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > LETTERS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            let space = if line.is_empty() { "" } else { " " };
            *line += space;
            *line += word;
        }
    }
    lines
}

/// The range of an axis, from place 0 to place 1.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Range {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Range {
        let usable =
            |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        let all = values.chain(axis.includes.iter().chain(&axis.ticks).copied());
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in all.filter(usable) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        let ticks = match (axis.ticks.is_empty(), axis.scale) {
            (false, _) => axis.ticks.clone(),
            (true, Scale::Linear) => {
                let step = step(high - low);
                low = (low / step).floor() * step;
                high = (high / step).ceil() * step;
                multiples(low, high, step)
            }
            (true, Scale::Log) => {
                let decades = (low.log10().floor(), high.log10().ceil());
                (low, high) = (
                    10_f64.powf(decades.0),
                    10_f64.powf(decades.1.max(decades.0 + 1.0)),
                );
                let exponents = multiples(low.log10(), high.log10(), 1.0);
                exponents.into_iter().map(|e| 10_f64.powf(e)).collect()
            }
        };
        if low == high {
            (low, high) = match axis.scale {
                Scale::Linear => (low - 1.0, high + 1.0),
                Scale::Log => (low / 2.0, high * 2.0),
            };
        }
        Range {
            scale: axis.scale,
            low,
            high,
            ticks,
        }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => {
                (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        part.clamp(0.0, 1.0)
    }
}

/// A step of 1, 2 or 5 times a power of ten, so that there are about five.
fn step(length: f64) -> f64 {
    let rough = (length / 5.0).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let digit = rough / power;
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| digit <= *nice);
    nice.unwrap_or(10.0) * power
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let count = ((high - low) / step).round().clamp(0.0, 40.0);
    let mut all = Vec::new();
    let mut n = 0.0;
    while n <= count {
        all.push(low + n * step);
        n += 1.0;
    }
    all
}

/// A number as short as it may be.
fn number(value: f64) -> String {
    let text = match value.abs() {
        large if large >= 1_000_000.0 => return number(value / 1_000_000.0) + "M",
        size if size >= 100.0 || value == 0.0 => return format!("{value:.0}"),
        size if size >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.6}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A chart with its places.
struct Frame<'a> {
    chart: &'a Chart,
    notes: Vec<String>,
    x: Range,
    y: Range,
}

impl Frame<'_> {
    fn new(chart: &Chart) -> Frame<'_> {
        let all = || chart.series.iter().flat_map(|series| &series.points);
        Frame {
            chart,
            notes: chart.notes.iter().flat_map(|note| lines(note)).collect(),
            x: Range::new(&chart.x, all().map(|(x, _)| *x)),
            y: Range::new(&chart.y, all().map(|(_, y)| *y)),
        }
    }

    fn top(&self) -> f64 {
        let lines = u32::try_from(self.notes.len()).unwrap_or(0);
        44.0 + LINE * f64::from(lines)
    }

    fn height(&self) -> f64 {
        let named = self.chart.series.iter().filter(|s| !s.name.is_empty());
        let rows = u32::try_from(named.count().div_ceil(2)).unwrap_or(0);
        self.top() + HEIGHT + 46.0 + LINE * f64::from(rows) + 14.0
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.top() + (1.0 - self.y.place(value)) * HEIGHT
    }

    fn draw(&self, svg: &mut String) {
        let title = escaped(&self.chart.title);
        push(
            svg,
            format_args!(
                "<text x=\"12\" y=\"20\" font-weight=\"bold\" font-size=\"13\">{title}</text>\n"
            ),
        );
        let mut y = 20.0;
        for note in &self.notes {
            y += LINE;
            let note = escaped(note);
            push(
                svg,
                format_args!("<text x=\"12\" y=\"{y}\" fill=\"#444\">{note}</text>\n"),
            );
        }
        self.axes(svg);
        for series in &self.chart.series {
            self.series(svg, series);
        }
        self.legend(svg);
    }

    fn axes(&self, svg: &mut String) {
        let (top, bottom) = (self.top(), self.top() + HEIGHT);
        let right = WIDTH - RIGHT;
        let label = escaped(&self.chart.y.label);
        push(
            svg,
            format_args!(
                "<text x=\"12\" y=\"{:.1}\" font-style=\"italic\">{label}</text>\n",
                top - 8.0
            ),
        );
        for tick in &self.y.ticks {
            let (y, text) = (self.y(*tick), number(*tick));
            push(
                svg,
                format_args!(
                    "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
                     stroke=\"#ddd\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">\
                     {text}</text>\n",
                    LEFT - 6.0,
                    y + 4.0
                ),
            );
        }
        let mut free = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let (x, text) = (self.x(*tick), number(*tick));
            push(
                svg,
                format_args!(
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom:.1}\" y2=\"{:.1}\" stroke=\"#888\"/>\n",
                    bottom + 4.0
                ),
            );
            // Numbers that would touch are left out.
            let half = 4.0 * f64::from(u32::try_from(text.len()).unwrap_or(0));
            if x - half > free {
                free = x + half + 4.0;
                push(
                    svg,
                    format_args!(
                        "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>\n",
                        bottom + 18.0
                    ),
                );
            }
        }
        let label = escaped(&self.chart.x.label);
        push(
            svg,
            format_args!(
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\" \
                 stroke=\"#888\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 font-style=\"italic\">{label}</text>\n",
                f64::midpoint(LEFT, right),
                bottom + 36.0
            ),
        );
    }

    fn series(&self, svg: &mut String, series: &Series) {
        let (colour, dashes) = STYLES[series.style % STYLES.len()];
        match series.mark {
            Mark::Line | Mark::Thin => {
                let mut places = String::new();
                for (x, y) in &series.points {
                    push(
                        &mut places,
                        format_args!("{:.1},{:.1} ", self.x(*x), self.y(*y)),
                    );
                }
                let width = if series.mark == Mark::Line { 2 } else { 1 };
                push(
                    svg,
                    format_args!(
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" \
                         stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"/>\n",
                        places.trim_end()
                    ),
                );
            }
            Mark::Points => {
                // One path of lines without length and with round ends: smaller than circles.
                let mut places = String::new();
                for (x, y) in &series.points {
                    push(
                        &mut places,
                        format_args!("M{:.1} {:.1}h0", self.x(*x), self.y(*y)),
                    );
                }
                push(
                    svg,
                    format_args!(
                        "<path d=\"{places}\" stroke=\"{colour}\" stroke-width=\"3.6\" \
                         stroke-linecap=\"round\" stroke-opacity=\"0.7\"/>\n"
                    ),
                );
            }
            Mark::Bars => {
                let bottom = self.top() + HEIGHT;
                for (x, y) in &series.points {
                    let (x, y) = (self.x(*x), self.y(*y));
                    push(
                        svg,
                        format_args!(
                            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom:.1}\" y2=\"{y:.1}\" \
                             stroke=\"{colour}\" stroke-width=\"3\"/>\n"
                        ),
                    );
                }
            }
        }
    }

    fn legend(&self, svg: &mut String) {
        let named = self.chart.series.iter().filter(|s| !s.name.is_empty());
        let first = self.top() + HEIGHT + 46.0;
        for (index, series) in (0_u32..).zip(named) {
            let y = first + LINE * f64::from(index / 2) + 8.0;
            let x = LEFT + f64::from(index % 2) * (WIDTH - LEFT - RIGHT) / 2.0;
            let (colour, dashes) = STYLES[series.style % STYLES.len()];
            match series.mark {
                Mark::Points => push(
                    svg,
                    format_args!(
                        "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n",
                        x + 14.0
                    ),
                ),
                mark => {
                    let width = match mark {
                        Mark::Bars => 6,
                        Mark::Thin => 1,
                        _ => 2,
                    };
                    push(
                        svg,
                        format_args!(
                            "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
                             stroke=\"{colour}\" stroke-width=\"{width}\" \
                             stroke-dasharray=\"{dashes}\"/>\n",
                            x + 28.0
                        ),
                    );
                }
            }
            let name = escaped(&series.name);
            push(
                svg,
                format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>\n",
                    x + 34.0,
                    y + 4.0
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_axis_are_round_and_include_every_value() {
        let range = Range::new(&Axis::linear(""), [3.0, 47.0].into_iter());
        assert_eq!(range.ticks, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!((range.place(0.0), range.place(25.0)), (0.0, 0.5));
        let range = Range::new(&Axis::log(""), [3.0, 470.0].into_iter());
        assert_eq!(range.ticks, [1.0, 10.0, 100.0, 1_000.0]);
        assert!((range.place(10.0) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_drawing_has_its_series_and_no_text_that_breaks_it() {
        let chart = Chart {
            title: "a < b & c".into(),
            notes: vec!["virtual time".into()],
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            series: [Mark::Line, Mark::Points, Mark::Bars]
                .map(|mark| Series {
                    name: "s".into(),
                    mark,
                    style: 0,
                    points: vec![(1.0, 2.0), (2.0, 3.0)],
                })
                .to_vec(),
        };
        let svg = draw(&[chart.clone(), chart]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("h0").count(), 4);
        assert!(svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"));
    }
}
