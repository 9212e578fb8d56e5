//! Code that may do anything, as a reservation below a control task.
//!
//! `cargo run --release --example kernel_backed -p punctual`

use std::error::Error;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use punctual::{Constraint, PolicyKind, Program, Span, Work};

fn main() -> Result<(), Box<dyn Error>> {
    let mut program = Program::new();
    let cpu = program.cpu(0, PolicyKind::EarliestDeadlineFirst);

    let every = Constraint::periodic(Span::from_ms(5), Work::from_us(500));
    program.task(cpu, "control", every, |_| {});

    // 3 ms in every 10 ms, in which it sleeps, starts a program, and waits for that.
    let share = (Work::from_ms(3), Span::from_ms(10));
    program.backed(cpu, "housekeeping", share, |group| {
        while !group.is_over() {
            sleep(Duration::from_millis(20));
            match Command::new("date").output() {
                Ok(date) => eprint!("{}", String::from_utf8_lossy(&date.stdout)),
                Err(error) => eprintln!("no date: {error}"),
            }
            sleep(Duration::from_millis(200));
        }
    })?;

    println!("{}", program.run_for(Span::from_ms(1_000))?);
    Ok(())
}
