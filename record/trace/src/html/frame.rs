//! The parts that all pages have in common: one style, sections, tables, bars.

use std::fmt::Write;

use super::svg::{Escaped, clip};
use crate::short::Count;

const STYLE: &str = include_str!("style.css");

/// Begins a page: its title, the class of its verdict, the source, and the verdict with a headline.
pub fn begin(out: &mut String, source: &str, (verdict, headline): (&str, &str)) {
    let source = clip(source, 120);
    putln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}: {verdict}</title>\n<style>\n{STYLE}</style></head><body><main>\n\
         <header class=\"{verdict}\"><p class=\"source\">{}</p>\
         <h1><span class=\"verdict\">{verdict}</span> {}</h1>",
        Escaped(&source),
        Escaped(&source),
        Escaped(headline)
    );
}

/// Facts below the headline, as (value, name); they end the head of the page.
pub fn facts(out: &mut String, facts: &[(String, &str)]) {
    out.push_str("<dl class=\"facts\">");
    for (value, name) in facts {
        put!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", Escaped(value));
    }
    out.push_str("</dl></header>\n");
}

/// Begins a section; `</section>` ends it.
pub fn section(out: &mut String, title: &str, remark: &str) {
    put!(out, "<section><h2>{title}</h2>");
    if !remark.is_empty() {
        put!(out, "<p class=\"remark\">{remark}</p>");
    }
    out.push('\n');
}

/// Ends a page, behind the name of the program and its script, if it has one.
pub fn end(out: &mut String, tool: &str, script: &str) {
    put!(out, "<footer>{}</footer></main>", Escaped(&clip(tool, 120)));
    if !script.is_empty() {
        put!(out, "<script>\n{script}</script>");
    }
    out.push_str("</body></html>\n");
}

/// A column: its heading, the class of its cells (`n…`: a number), and a cell, made safe.
pub type Column<T> = (&'static str, &'static str, fn(&T) -> String);

/// Writes a row per item, with a class for the row or an empty one, and how many it leaves out.
pub fn table<T>(
    out: &mut String,
    columns: &[Column<T>],
    (items, most, what): (&[T], usize, &str),
    row_class: fn(&T) -> &'static str,
) {
    let class_of = |class: &str| match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    out.push_str("<div class=\"wide\"><table><thead><tr>");
    for (heading, class, _) in columns {
        let class = if class.starts_with("n ") { "n" } else { class };
        let class = if class == "n" { class } else { "" };
        put!(out, "<th{}>{heading}</th>", class_of(class));
    }
    out.push_str("</tr></thead><tbody>\n");
    for item in items.iter().take(most) {
        put!(out, "<tr{}>", class_of(row_class(item)));
        for (heading, class, cell) in columns {
            let (class, cell) = (class_of(class), cell(item));
            match cell.as_str() {
                "" => put!(out, "<td{class}></td>"),
                // Where there is no room for a table, each value stands behind its heading.
                cell => put!(out, "<td{class} data-of=\"{heading}\">{cell}</td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    more(out, items.len().saturating_sub(most) as u64, what);
}

/// Says how many a table leaves out.
pub(super) fn more(out: &mut String, hidden: u64, what: &str) {
    if hidden == 0 {
        return;
    }
    let hidden = Count(hidden);
    putln!(
        out,
        "<p class=\"remark\">… and {hidden} more {what} (all in the JSON).</p>"
    )
}

/// For tables whose rows are all alike.
pub fn no_class<T>(_: &T) -> &'static str {
    ""
}

/// A text of at most so many characters, made safe.
pub fn text(text: &str, most: usize) -> String {
    Escaped(&clip(text, most)).to_string()
}

/// Places on a bar, in its units, that is as long as the largest of `values`; at most 160.
pub(super) fn places<const N: usize>(values: [u64; N]) -> [u128; N] {
    let whole = u128::from(values.iter().copied().max().unwrap_or(0).max(1));
    values.map(|value| u128::from(value) * 160 / whole)
}

/// A bar up to `value`, and a mark at `limit`; its colour says whether it is beyond.
pub fn bar(value: u64, limit: u64) -> String {
    let over = if value > limit { " over" } else { "" };
    let [end, mark] = places([value, limit]);
    format!(
        "<svg class=\"bar{over}\" viewBox=\"0 0 164 12\" width=\"164\" height=\"12\" role=\"img\" \
         aria-label=\"{} %\"><rect class=\"track\" x=\"0\" y=\"4\" width=\"160\" height=\"4\" \
         rx=\"2\"/><rect class=\"value\" x=\"0\" y=\"4\" width=\"{end}\" height=\"4\" rx=\"2\"/>\
         <rect class=\"bound\" x=\"{mark}\" y=\"0\" width=\"2\" height=\"12\"/></svg>",
        u128::from(value) * 100 / u128::from(limit.max(1))
    )
}
