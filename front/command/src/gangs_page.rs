//! The verdicts on gangs, as sections of the page of a verdict.

use std::fmt::Write as _;

use punctual_analysis::{BarrierVerdict, GangVerdict, SkewVerdict, Verdict};
use punctual_model::System;
use punctual_trace::html::{self, Column, Escaped, no_class, table, text};

use crate::gangs::decision;
use crate::words::span;

/// Most gangs, and most supersteps and barriers of one.
const MAX_LINES: usize = 400;
/// Most characters of an explanation.
const MAX_EXPLANATION: usize = 600;

/// Of each gang its answer, its supersteps and its barriers.
pub(crate) fn sections(out: &mut String, system: &System, verdict: &Verdict) {
    for gang in verdict.gangs.iter().take(MAX_LINES) {
        let title = format!("Gang {}", Escaped(&gang.name));
        let decision = decision(system, verdict, gang);
        html::section(out, &title, &Escaped(&decision).to_string());
        of_gang(out, gang);
        out.push_str("</section>\n");
    }
}

fn of_gang(out: &mut String, gang: &GangVerdict) {
    let columns: &[Column<SkewVerdict>] = &[
        ("superstep", "name", |s| text(&s.name, 60)),
        ("members", "n", |s| s.members.len().to_string()),
        ("skew", "n max", |s| span(s.bound)),
        ("test", "", |s| text(&s.test.to_string(), 100)),
        ("why", "detail", |s| text(&s.explanation, MAX_EXPLANATION)),
    ];
    table(
        out,
        columns,
        (&gang.supersteps, MAX_LINES, "supersteps"),
        no_class,
    );
    let columns: &[Column<BarrierVerdict>] = &[
        ("barrier after", "name", |b| text(&b.before, 60)),
        ("before", "", |b| text(&b.next, 60)),
        ("left out", "", |b| {
            if b.left_out { "yes" } else { "no" }.into()
        }),
        ("why", "detail", |b| text(&b.reason, MAX_EXPLANATION)),
    ];
    if !gang.barriers.is_empty() {
        table(
            out,
            columns,
            (&gang.barriers, MAX_LINES, "barriers"),
            no_class,
        );
    }
    let granted = gang.supersteps.iter().flat_map(|step| &step.assumptions);
    let mut granted: Vec<&String> = granted.collect();
    granted.sort_unstable();
    granted.dedup();
    for granted in granted {
        let line = format!("taken for granted: {granted}");
        let _ = write!(out, "<p class=\"line\">{}</p>", Escaped(&line));
    }
}
