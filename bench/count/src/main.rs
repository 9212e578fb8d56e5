//! Instructions per operation, counted by single steps and held against ceilings.
//!
//! Started by `cargo xtask count`. Each scenario is a child process that repeats operations between
//! marks and steps through itself. A count does not depend on the speed of the machine nor on other
//! programs there, so a test can hold it (`doc/counting.md`).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod cache;
mod ceilings;
mod count;
mod decisions;
mod gangs;
mod interrupt;
mod live;
mod many_threads;
mod operands;
mod planning;
mod scenario;
mod slots;
mod stepper;
mod switching;
mod virtual_time;

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use ceilings::{Ceilings, FILE, Judgement};
use count::{Count, count};

/// The argument by which a child knows that it is one; its scenario follows.
const CHILD: &str = "--child";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == CHILD => be_child(rest),
        _ => count_all(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("count: {message}");
            ExitCode::from(3)
        }
    }
}

/// Repeats the operations of a scenario until the parent has seen enough.
fn be_child(arguments: &[String]) -> Result<bool, String> {
    let name = arguments.first().map_or("", String::as_str);
    let mut all = [scenario::nothing()].into_iter().chain(count::all());
    let scenario = all.find(|scenario| scenario.name() == name);
    let scenario = scenario.ok_or_else(|| format!("there is no scenario `{name}`"))?;
    stepper::prepare(scenario.windows, scenario.reading.is_of_cache())
        .map_err(|error| format!("nothing can be stepped: {error}"))?;
    (scenario.program)()?;
    Err(format!("`{name}` made too few marks"))
}

/// Counts all rows whose names contain the filter, and judges or sets their ceilings. Whether all
/// are held.
fn count_all(arguments: &[String]) -> Result<bool, String> {
    let is_option = |argument: &&String| argument.starts_with("--");
    let (options, filters): (Vec<&String>, Vec<&String>) = arguments.iter().partition(is_option);
    let has = |name: &str| options.iter().any(|option| *option == name);
    let (sets, of_cache) = (has("--set"), has("--misses"));
    if options.len() > usize::from(sets) + usize::from(of_cache) {
        return Err(format!("{options:?}: the options are --set and --misses"));
    }
    let filter = filters.first().map_or("", |filter| filter.as_str());
    let mut ceilings = Ceilings::read(Path::new(FILE))?;
    let counted_are = match of_cache {
        true => "of 100",
        false => "instructions",
    };
    println!(
        "{:<36} {counted_are:>12} {:>10}  libraries  code lines",
        "operation", "ceiling"
    );
    let mut counted = Vec::new();
    let mut held = true;
    count(filter, of_cache, |counted_row| {
        let Count {
            row,
            own,
            foreign,
            lines,
        } = counted_row;
        let ceiling = ceilings
            .of(&row)
            .map_or("-".to_owned(), |ceiling| ceiling.to_string());
        let judgement = ceilings.judge(&row, own);
        let remark = match judgement {
            _ if sets => "",
            Judgement::Held => "",
            Judgement::Low => "  below 95 %: `cargo xtask count --set` lowers the ceiling",
            Judgement::Above => "  ABOVE ITS CEILING",
            Judgement::Unknown => "  HAS NO CEILING",
        };
        held &= matches!(judgement, Judgement::Held | Judgement::Low);
        println!("{row:<36} {own:>12} {ceiling:>10} {foreign:>10} {lines:>11}{remark}");
        counted.push((row, own));
    })?;
    if sets {
        if filter.is_empty() {
            // Rows that nothing counts any more go.
            ceilings.forget(of_cache);
        }
        ceilings.set(&counted);
        fs::write(FILE, ceilings.text()).map_err(|error| format!("{FILE}: {error}"))?;
    }
    Ok(sets || held)
}
