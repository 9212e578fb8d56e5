//! Every model, its orders and its mutants, as a table.

use std::process::ExitCode;
use std::time::Instant;

use punctual_interleave::check::{Result, child, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return match child(&arguments) {
            Some(()) => ExitCode::SUCCESS,
            None => ExitCode::from(2),
        };
    }
    let Ok(program) = std::env::current_exe() else {
        eprintln!("interleave: this program does not know where it is");
        return ExitCode::from(2);
    };
    println!("{:>8} {:>8} {:>6}  property", "orders", "mistakes", "s");
    let (mut result, start, mut orders) = (Result::default(), Instant::now(), 0);
    for model in punctual_interleave::models() {
        let (begin, before) = (Instant::now(), result.noticed.len());
        let gone_through = run(model, &program, &mut result);
        println!(
            "{gone_through:>8} {:>8} {:>6.1}  {}",
            result.noticed.len() - before,
            begin.elapsed().as_secs_f64(),
            model.property
        );
        orders += gone_through;
    }
    for mutant in &result.unnoticed {
        println!("noticed by no model: {mutant}");
    }
    let seconds = start.elapsed().as_secs_f64();
    let (noticed, unnoticed) = (result.noticed.len(), result.unnoticed.len());
    println!("{orders} orders, {noticed} mistakes noticed, {unnoticed} not, {seconds:.0} s");
    match unnoticed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
