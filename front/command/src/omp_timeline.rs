//! The timeline of a program of OpenMP, as Slite Fig. 11: a row for each carrier.

use std::fmt::Write;

use crate::omp_record::{Record, Span, State};

/// The width of the drawing, of the names before it, the height of a row and of a bar in it.
const WIDTH: u64 = 1_000;
const NAMES: u64 = 150;
const ROW: u64 = 34;
const BAR: u64 = 22;
/// Bars at most; the longest are drawn.
const MOST: usize = 20_000;
/// Room for a letter.
const LETTER: u64 = 8;
/// Fills of items, by member.
const FILLS: [&str; 6] = [
    "#7fb3d5", "#f5b041", "#82c99d", "#c39bd3", "#e59866", "#aab7b8",
];

/// Draws records below each other, on one scale: each from its first event on, below its name.
pub(crate) fn draw(records: &[(&str, &Record)]) -> String {
    let blocks: Vec<Block<'_>> = records
        .iter()
        .map(|(name, record)| (*name, *record, record.spans()))
        .collect();
    let ends = blocks.iter().map(|(_, _, rows)| ends_of(rows));
    let length = ends.map(|(first, last)| last - first).max();
    let length = length.unwrap_or(0).max(1);
    let named = u64::from(blocks.len() > 1);
    let rows: u64 = blocks
        .iter()
        .map(|(_, _, rows)| rows.len() as u64 + named)
        .sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" \
         font-family=\"sans-serif\" font-size=\"12\"><title>Carriers and the items they ran</title>",
        NAMES + WIDTH + 10,
        (rows + 1) * ROW
    );
    let mut number = 0;
    for (name, record, rows) in &blocks {
        let scale = Scale {
            first: ends_of(rows).0,
            length,
        };
        if named > 0 {
            let y = number * ROW + 23;
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "<text x=\"{NAMES}\" y=\"{y}\" font-weight=\"bold\">{}</text>",
                escaped(name)
            );
        }
        number += named;
        for (name, spans) in rows {
            let top = number * ROW + 6;
            let _ = write!(out, "<text x=\"0\" y=\"{}\">{name}</text>", top + 15);
            for span in longest(spans) {
                bar(&mut out, record, &scale, top, span);
            }
            number += 1;
        }
    }
    let base = rows * ROW + 20;
    let _ = write!(
        out,
        "<text x=\"{NAMES}\" y=\"{base}\">0</text><text x=\"{}\" y=\"{base}\" \
         text-anchor=\"end\">{}.{:03} ms; grey: looks for work, empty: asleep</text></svg>",
        NAMES + WIDTH,
        length / 1_000_000,
        length / 1_000 % 1_000
    );
    out
}

/// A record with its name and its rows.
type Block<'a> = (&'a str, &'a Record, Vec<(String, Vec<Span>)>);

/// The first instant of a record and the last one.
fn ends_of(rows: &[(String, Vec<Span>)]) -> (u64, u64) {
    let ends = rows.iter().flat_map(|(_, spans)| spans);
    let (first, last) = ends.fold((u64::MAX, 0), |(first, last), (from, until, _)| {
        (first.min(*from), last.max(*until))
    });
    (first.min(last), last)
}

struct Scale {
    first: u64,
    length: u64,
}

impl Scale {
    fn at(&self, time: u64) -> u64 {
        let past = u128::from(time.saturating_sub(self.first)) * u128::from(WIDTH);
        NAMES + u64::try_from(past / u128::from(self.length)).unwrap_or(WIDTH)
    }
}

/// The longest spans, in their order.
fn longest(spans: &[Span]) -> impl Iterator<Item = &Span> {
    let mut lengths: Vec<u64> = spans.iter().map(|(from, until, _)| until - from).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let least = lengths.get(MOST).copied().unwrap_or(0);
    spans
        .iter()
        .filter(move |(from, until, _)| until - from >= least)
}

fn bar(out: &mut String, record: &Record, scale: &Scale, top: u64, span: &Span) {
    let (from, until, state) = *span;
    let (x, end) = (scale.at(from), scale.at(until));
    let width = (end - x).max(1);
    let (fill, title, name) = match state {
        State::Sleeps => return,
        State::Looks => ("#d5d8dc", "looks for work".to_owned(), String::new()),
        State::Runs(item, function, member) => {
            let fill = FILLS[usize::try_from(member).unwrap_or(0) % FILLS.len()];
            let function = record.function(function);
            let title = format!("item {item} of member {member}: {function}");
            let function = function.rsplit('/').next().unwrap_or(function);
            let short = function.rsplit('+').next().unwrap_or(function);
            (fill, title, format!("{short} (member {member})"))
        }
    };
    let title = escaped(&title);
    let (length, y) = ((until - from) / 1_000, top + 15);
    let _ = write!(
        out,
        "<g><title>{title}, {length} us</title><rect x=\"{x}\" y=\"{top}\" width=\"{width}\" \
         height=\"{BAR}\" fill=\"{fill}\" stroke=\"#566573\" stroke-width=\"0.3\"/>"
    );
    if !name.is_empty() && width > LETTER * name.len() as u64 {
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{y}\">{}</text>",
            x + 3,
            escaped(&name)
        );
    }
    out.push_str("</g>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::omp_record::read;

    const SAMPLE: &str = "punctual-openmp record 1\nclock 2000 cycles 1000 ns\n\
        carrier 0 program lost 0\nRuns 0 1 0 5 70 0\nfunction 70 a.out+0x46\n\
        Offered 0 3 100 9 8 2\nAnnounced 0 4 110 9 0 0\nLooked 0 8 300 5 8 0\n\
        Looked 0 10 400 9 8 0\nHub 0 11 500 0 0 0\nRuns 0 12 600 5 70 0\nHub 0 14 900 0 0 0\n\
        carrier 1 pool lost 0\nAsleep 1 2 50 0 0 0\nWoken 1 20 700 19 0 0\n\
        Taken 1 22 710 9 21 0\nRuns 1 23 711 9 71 1\nHub 1 24 800 0 0 0\n";

    #[test]
    fn a_record_is_drawn_and_a_carrier_that_looked_twice_is_named() {
        let record = read(SAMPLE).expect("a record");
        let svg = draw(&[("one", &record)]);
        assert_eq!(svg.matches("<rect").count(), 5, "{svg}");
        assert!(!svg.contains(">one<"), "{svg}");
        assert!(
            svg.contains("item 5 of member 0: a.out+0x46, 0 us"),
            "{svg}"
        );
        let findings = record.check();
        assert_eq!((findings.items, findings.looks, findings.sleeps), (1, 2, 1));
        let expected = "carrier 0 looked twice, 5 to 10, while an item waited from 3 to 21";
        assert_eq!(findings.idle, [expected]);
    }

    #[test]
    fn records_are_drawn_below_each_other_on_one_scale() {
        let record = read(SAMPLE).expect("a record");
        let other = SAMPLE.replace("clock 2000", "clock 1000");
        let other = read(&other).expect("a record");
        let svg = draw(&[("one", &record), ("two & more", &other)]);
        assert_eq!(svg.matches("<rect").count(), 10, "{svg}");
        assert!(
            svg.contains(">one<") && svg.contains(">two &amp; more<"),
            "{svg}"
        );
        // The same events in half the time take half the room.
        assert!(
            svg.contains("width=\"333\"") && svg.contains("width=\"166\""),
            "{svg}"
        );
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let told = read("punctual-openmp record 1\nclock 1 cycles 1 ns\nRuns 1\n");
        assert_eq!(told.err().as_deref(), Some("this is no event: Runs 1"));
        assert!(read("something else").is_err());
        let late = SAMPLE.replace("Looked 0 8 300 5 8 0", "Looked 0 8 300 8 8 0");
        let told = read(&late);
        assert_eq!(
            told.err().as_deref(),
            Some("this is no event: Looked 0 8 300 8 8 0")
        );
    }
}
