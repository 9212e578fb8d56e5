//! Prints what this machine can promise, and what its scheduler takes for itself.

use punctual_linux::{RunOptions, measure_overheads, probe};

fn main() {
    let host = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    for finding in probe(host) {
        println!(
            "{:<18} {:?}: {}",
            finding.name, finding.status, finding.value
        );
    }
    let start = std::time::Instant::now();
    match measure_overheads(host, &RunOptions::default()) {
        Ok(overheads) => println!("{overheads:#?}\nmeasured in {:?}", start.elapsed()),
        Err(error) => println!("not measured: {error}"),
    }
}
