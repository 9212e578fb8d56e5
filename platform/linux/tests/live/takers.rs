//! Those who take time from a run have names, whatever the kernel tells this user of a CPU.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Log, alone, input, periodic, test_cpu, until_stopped};
use crate::holes::compute;
use punctual_linux::{RunOptions, TakingThread, run};

/// Those who took time from jobs of 5 ms under the class of everybody, until they have lost 100 ms.
fn takers() -> Vec<TakingThread> {
    let options = RunOptions {
        real_time: false,
        ..until_stopped()
    };
    let stop = Arc::clone(&options.stop);
    let (mut lost, begun) = (Duration::ZERO, Instant::now());
    let body = periodic("body", 1, 10_000, 8_000, move |_| {
        let start = Instant::now();
        compute(5_000_000);
        lost += start.elapsed().saturating_sub(Duration::from_millis(5));
        let is_long = begun.elapsed() > Duration::from_secs(20);
        if lost > Duration::from_millis(100) || is_long {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let log = Log::with_room(1_000_000);
    let mut outcome = run(vec![input(vec![body], 10_000, log)], &options).expect("a run");
    outcome.cpus.remove(0).takers
}

/// Others may take more on a busy machine: then it is tried again.
fn assert_named(name: &str) {
    let begun = Instant::now();
    loop {
        let takers = takers();
        if takers
            .iter()
            .any(|taker| taker.name == name && taker.ns > 1_000_000)
        {
            return;
        }
        let is_long = begun.elapsed() > Duration::from_secs(60);
        assert!(!is_long, "{name}: {takers:?}");
    }
}

/// A process of its own that never rests, on the CPU of the tests.
struct Hog(Child);

impl Hog {
    fn start() -> Hog {
        let mut command = Command::new("taskset");
        let cpu = test_cpu().to_string();
        // Bounded, should the test be killed.
        let script = "exec timeout 90 sh -c 'while :; do :; done'";
        command.args(["-c", &cpu, "sh", "-c", script]);
        Hog(command.spawn().expect("taskset and a shell"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // `timeout` passes the signal on to the loop.
        let number = self.0.id().to_string();
        let _ = Command::new("kill").arg(number).status();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_takes_time_from_a_run_is_named_to_every_user() {
    let _alone = alone();
    let _hog = Hog::start();
    assert_named("sh");
}

#[test]
fn a_thread_of_the_same_process_is_named_with_its_program() {
    let _alone = alone();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let hog = thread::Builder::new().name("hog".into()).spawn(move || {
        pin_to(test_cpu());
        while !ends.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let hog = hog.expect("a thread");
    let program = std::fs::read_to_string("/proc/self/comm").expect("Linux");
    assert_named(&format!("hog of {}", program.trim_end()));
    over.store(true, Ordering::Relaxed);
    hog.join().expect("it does not panic");
}

fn pin_to(cpu: u32) {
    // SAFETY: all zeros is an empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: both read what they are given, and concern the calling thread.
    let done = unsafe {
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    assert_eq!(done, 0);
}
