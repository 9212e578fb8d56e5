//! What the slices given back to the rest of the system are worth.
//!
//! A busy thread under SCHED_FIFO runs beside an ordinary thread that always wants the same CPU.
//!
//! `cargo run --release -p punctual-linux --example give_back -- CPU`

use std::time::Duration;

use punctual_kern::{Attributes, Capacity, Constraint, NoSink, OneLevel, Pick, Policy, Shard};
use punctual_linux::{CpuPlan, RunOptions, ThreadPlan, clock_rate, job, run};
use punctual_model::{Class, CpuId, Span, Task, ThreadId};

/// The only thread has no deadline, so the core orders it itself.
struct NoPolicy;

impl Policy for NoPolicy {
    fn wake(&mut self, _: ThreadId, _: &Attributes) {}
    fn block(&mut self, _: ThreadId) {}
    fn pick(&mut self, _: punctual_model::Instant) -> Pick {
        Pick::NOBODY
    }
}

fn fly(host: u32, give_back: bool) {
    let background_turn = Span::from_ticks(clock_rate().frequency.ticks_up(10_000_000));
    let capacity = Capacity {
        threads: 1,
        pending: 4,
        background_turn,
        nodes: 0,
    };
    let mut shard = Shard::new(capacity, OneLevel::new(capacity, NoPolicy));
    let task = Task::new("spin", CpuId(0), Class::Aperiodic);
    let id = shard
        .attach(Constraint::of_task(&task, 0))
        .expect("room for one");
    let body = Box::new(|_: &punctual_linux::JobInfo| job::burn_ns(u64::MAX / 4));
    let threads = vec![ThreadPlan {
        id,
        name: task.name.clone(),
        body,
    }];
    let name = "0".to_owned();
    let plan = CpuPlan {
        host,
        name,
        shard,
        sink: NoSink,
        threads,
        children: Vec::new(),
        resources: Vec::new(),
        arrivals: Vec::new(),
    };
    let options = RunOptions {
        duration_ns: Some(5_000_000_000),
        grace_ns: 0,
        give_back,
        ..RunOptions::default()
    };
    match run(vec![plan], &options) {
        Ok(outcome) => println!("give back {give_back}: {:#?}", outcome.cpus[0].counters),
        Err(error) => println!("no run: {error}"),
    }
}

fn main() {
    let host: u32 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    // The hog: `taskset` pins it, so that nothing but this CPU will do.
    let hog = std::process::Command::new("taskset")
        .args(["-c", &host.to_string(), "sh", "-c", "while :; do :; done"])
        .spawn();
    // Long enough for the hog to get going.
    std::thread::sleep(Duration::from_millis(100));
    fly(host, false);
    fly(host, true);
    if let Ok(mut hog) = hog {
        // It ends with this program at the latest.
        let _ = hog.kill();
        let _ = hog.wait();
    }
}
