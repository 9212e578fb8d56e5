//! From windows to figures.

use std::collections::BTreeMap;
use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::scenario::{self, Reading, Scenario};
use crate::stepper::Told;
use crate::{
    CHILD, decisions, gangs, live, many_threads, planning, slots, switching, virtual_time,
};

/// The instructions of a window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Window {
    /// Those of the program itself.
    own: u64,
    /// Those of libraries, which differ from machine to machine.
    foreign: u64,
    /// The lines of code that those of the program are in.
    lines: u64,
    /// The lines of data that are not in the cache, where there is one.
    misses: u64,
}

/// A figure.
pub(crate) struct Count {
    pub(crate) row: String,
    /// Instructions per operation; of a row about the cache, what a hundred do not find there.
    pub(crate) own: u64,
    /// Those of libraries beside them.
    pub(crate) foreign: u64,
    /// The 64-byte lines of code of the program that an operation touches; of several operations,
    /// together.
    pub(crate) lines: u64,
}

/// No scenario takes longer, on however busy a machine. One with a cache takes millions of steps.
const MOST: Duration = Duration::from_secs(120);
const MOST_OF_CACHE: Duration = Duration::from_secs(900);

/// Counts the rows whose names contain the filter, those about the cache or all others; `each`
/// hears of every figure at once.
pub(crate) fn count(
    filter: &str,
    of_cache: bool,
    mut each: impl FnMut(Count),
) -> Result<(), String> {
    let nothing = read(&scenario::nothing())?
        .first()
        .map_or(0, |count| count.own);
    let mut found = false;
    for scenario in all() {
        let has_row = scenario.rows.iter().any(|row| row.contains(filter));
        if !has_row || scenario.reading.is_of_cache() != of_cache {
            continue;
        }
        let mut counts = read(&scenario)?;
        if matches!(scenario.reading, Reading::Mean | Reading::Mode) {
            let less = |count: &mut Count| count.own = count.own.saturating_sub(nothing);
            counts.iter_mut().for_each(less);
        }
        counts.retain(|count| count.row.contains(filter));
        found = true;
        counts.into_iter().for_each(&mut each);
    }
    match found {
        true => Ok(()),
        false => Err(format!("no row contains `{filter}`")),
    }
}

/// All that is counted.
pub(crate) fn all() -> Vec<Scenario> {
    let groups = [
        decisions::scenarios(),
        switching::scenarios(),
        live::scenarios(),
        virtual_time::scenarios(),
        planning::scenarios(),
        slots::scenarios(),
        many_threads::scenarios(),
        gangs::scenarios(),
    ];
    groups.into_iter().flatten().collect()
}

/// The figures of a scenario, as the windows of its process have them.
fn read(scenario: &Scenario) -> Result<Vec<Count>, String> {
    let words = told(scenario).map_err(|error| format!("{}: {error}", scenario.name()))?;
    let mut counts = Vec::new();
    for (operation, row) in (0..).zip(&scenario.rows) {
        let of_row = words.iter().filter(|[of, ..]| *of == operation);
        let windows: Vec<Window> = of_row
            .map(|&[_, own, foreign, lines, misses]| Window {
                own,
                foreign,
                lines,
                misses,
            })
            .collect();
        let Window {
            own,
            foreign,
            lines,
            misses: _,
        } = scenario.reading.figure(&windows);
        counts.push(Count {
            row: row.clone(),
            own,
            foreign,
            lines,
        });
    }
    Ok(counts)
}

/// Has a process execute the scenario, and hears what it tells.
fn told(scenario: &Scenario) -> Result<Vec<Told>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args([CHILD, scenario.name()])
        .stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let most = match scenario.reading.is_of_cache() {
        true => MOST_OF_CACHE,
        false => MOST,
    };
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() < most => thread::sleep(Duration::from_millis(5)),
            None => {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end after {} s", most.as_secs()));
            }
        }
    };
    // What it tells is less than a pipe holds.
    let mut bytes = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
    }
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words
        .iter()
        .map(|bytes| u64::from_ne_bytes(*bytes))
        .collect();
    let (told, _) = words.as_chunks();
    match status.success() && told.len() == scenario.windows {
        true => Ok(told.to_vec()),
        false => Err(format!("{} windows, and {status}", told.len())),
    }
}

impl Reading {
    fn figure(self, windows: &[Window]) -> Window {
        let over = |operations: u64| mean(windows, operations * windows.len().max(1) as u64);
        match (self, windows) {
            (Reading::Growth(operations), [few, many]) => Window {
                own: many.own.saturating_sub(few.own).div_ceil(operations),
                foreign: many
                    .foreign
                    .saturating_sub(few.foreign)
                    .div_ceil(operations),
                lines: many.lines,
                misses: 0,
            },
            (Reading::Mode, windows) => most_frequent(windows),
            (Reading::Mean | Reading::Growth(_), _) => over(1),
            (Reading::Each(operations), windows) => Window {
                lines: mode(windows.iter().map(|window| window.lines)),
                ..over(operations)
            },
            (Reading::Misses(operations), windows) => {
                let misses: u64 = windows.iter().map(|window| window.misses).sum();
                let all = operations * windows.len().max(1) as u64;
                Window {
                    own: (misses * 100).div_ceil(all),
                    ..Window::default()
                }
            }
        }
    }
}

/// Of these windows, the part of one of so many operations.
fn mean(windows: &[Window], operations: u64) -> Window {
    let each = |of: fn(&Window) -> u64| windows.iter().map(of).sum::<u64>().div_ceil(operations);
    Window {
        own: each(|window| window.own),
        foreign: each(|window| window.foreign),
        lines: each(|window| window.lines),
        misses: each(|window| window.misses),
    }
}

/// A window of the length that most have, the shortest of several: of these one with the lines that
/// most of them have.
fn most_frequent(windows: &[Window]) -> Window {
    let own = mode(windows.iter().map(|window| window.own));
    mode(windows.iter().filter(|window| window.own == own).copied())
}

/// The value that occurs most often; the least of several.
fn mode<T: Ord + Default>(of: impl Iterator<Item = T>) -> T {
    let mut times = BTreeMap::new();
    for one in of {
        *times.entry(one).or_insert(0) += 1;
    }
    let most = times.values().copied().max();
    let found = times.into_iter().find(|(_, count)| Some(*count) == most);
    found.map_or_else(T::default, |(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(lengths: &[u64]) -> Vec<Window> {
        let window = |&own: &u64| Window {
            own,
            ..Window::default()
        };
        lengths.iter().map(window).collect()
    }

    #[test]
    fn a_figure_is_the_mean_the_mode_or_the_growth() {
        let figure = |reading: Reading, lengths: &[u64]| reading.figure(&windows(lengths)).own;
        assert_eq!(figure(Reading::Mean, &[1, 2, 2]), 2);
        assert_eq!(figure(Reading::Mode, &[900, 7, 9, 7, 8]), 7);
        assert_eq!(figure(Reading::Mode, &[9, 8, 9, 8]), 8);
        assert_eq!(figure(Reading::Growth(10), &[100, 401]), 31);
        assert_eq!(figure(Reading::Each(64), &[640, 6_400]), 55);
    }

    #[test]
    fn misses_are_told_of_a_hundred_operations() {
        let window = |misses| Window {
            own: 60_000,
            misses,
            ..Window::default()
        };
        let windows = [330, 345].map(window);
        assert_eq!(Reading::Misses(64).figure(&windows).own, 528);
    }

    #[test]
    fn windows_of_one_length_are_counted_together_whatever_lines_they_touch() {
        let window = |(own, lines)| Window {
            own,
            lines,
            ..Window::default()
        };
        let windows = [(7, 3), (9, 5), (7, 4), (9, 5), (7, 4)].map(window);
        let Window { own, lines, .. } = Reading::Mode.figure(&windows);
        assert_eq!((own, lines), (7, 4));
        let split = [(9, 5), (9, 5), (7, 2), (7, 3), (7, 4)].map(window);
        let Window { own, lines, .. } = Reading::Mode.figure(&split);
        assert_eq!((own, lines), (7, 2));
    }
}
