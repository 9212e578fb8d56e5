//! The program behind `cargo xtask count`: instructions of all scenarios, held against ceilings.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use punctual_count::{Ceilings, Count, FILE, Judgement, count, execute_if_child};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = execute_if_child().and_then(|()| count_all(&arguments));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("count: {message}");
            ExitCode::from(3)
        }
    }
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
