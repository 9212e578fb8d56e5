//! Numbers as every command writes them.

use punctual_model::{Ns, Span, readable};

/// `1 task`, `2 tasks`, `1,500 jobs`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    let mut digits = n.to_string();
    let all = digits.len();
    for place in (1..all).rev() {
        if (all - place).is_multiple_of(3) {
            digits.insert(place, ',');
        }
    }
    format!("{digits} {noun}{plural}")
}

/// A span, or that there is none.
pub(crate) fn span(span: Option<Span<Ns>>) -> String {
    span.map_or("-".into(), |span| readable(span.as_ns()).to_string())
}
