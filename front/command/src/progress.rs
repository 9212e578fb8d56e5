//! The bar that tells how far a run is, on terminals alone.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual::Progress;

/// Times per second that the bar is drawn, at most.
const DRAWN_PER_SECOND: u8 = 10;

/// A bar on standard error; it is not there when that is no terminal.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar named `label`; none when `quiet`.
    pub(crate) fn new(label: &'static str, quiet: bool) -> Bar {
        if quiet || !io::stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let target = ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND);
        let bar = ProgressBar::with_draw_target(None, target).with_message(label);
        // The template is a constant; if it were wrong, the plain bar would do.
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3} % {prefix}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar(bar)
    }

    /// Moves the bar.
    pub(crate) fn show(&self, progress: Progress) {
        let (passed, total) = (progress.passed.as_ns(), progress.total.as_ns());
        self.0.set_length(total);
        let tenths = |ns| Duration::from_nanos(ns).as_secs_f64();
        self.0.set_prefix(format!(
            "{:.1} of {:.1} s",
            tenths(passed.min(total)),
            tenths(total)
        ));
        self.0.set_position(passed.min(total));
    }

    /// Removes the bar: what follows is the report.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
