//! From windows to figures.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use crate::child;
use crate::scenario::{self, Reading, Scenario};
use crate::stepper;
use crate::{decisions, gangs, live, many_threads, planning, slots, switching, virtual_time};

/// The argument by which a child knows that it is one; its scenario follows.
const CHILD: &str = "--child";

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
#[derive(Debug)]
pub struct Count {
    /// Its operation.
    pub row: String,
    /// Instructions per operation; of a row about the cache, what a hundred do not find there.
    pub own: u64,
    /// Those of libraries beside them.
    pub foreign: u64,
    /// The 64-byte lines of code of the program that an operation touches; of several operations,
    /// together.
    pub lines: u64,
}

/// No scenario takes longer, on however busy a machine. One with a cache takes millions of steps.
const MOST: Duration = Duration::from_secs(120);
const MOST_OF_CACHE: Duration = Duration::from_secs(900);

/// Repeats the operations of a scenario until the parent has seen enough, if this process was
/// started for that. A program that calls [`count`] calls this before anything else.
///
/// # Errors
/// A scenario that is not there, that cannot be stepped, or that makes too few marks.
pub fn execute_if_child() -> Result<(), String> {
    let arguments: Vec<String> = env::args().skip(1).take(2).collect();
    let [first, name] = arguments.as_slice() else {
        return Ok(());
    };
    if first != CHILD {
        return Ok(());
    }
    let mut all = [scenario::nothing()].into_iter().chain(all());
    let scenario = all.find(|scenario| scenario.name() == name);
    let scenario = scenario.ok_or_else(|| format!("there is no scenario `{name}`"))?;
    stepper::prepare(scenario.windows, scenario.reading.is_of_cache())
        .map_err(|error| format!("nothing can be stepped: {error}"))?;
    (scenario.program)()?;
    Err(format!("`{name}` made too few marks"))
}

/// Counts the rows whose names contain the filter, those about the cache or all others; `each`
/// hears of every figure at once.
///
/// # Errors
/// No such row, and a scenario that fails.
pub fn count(filter: &str, of_cache: bool, mut each: impl FnMut(Count)) -> Result<(), String> {
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
    let arguments = [CHILD, scenario.name()];
    let most = match scenario.reading.is_of_cache() {
        true => MOST_OF_CACHE,
        false => MOST,
    };
    let words = child::told(&arguments, scenario.windows, most);
    let words = words.map_err(|error| format!("{}: {error}", scenario.name()))?;
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
