//! Those who take time from a run have names, whatever the kernel tells this user of a CPU.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Log, alone, input, periodic, test_cpu, until_stopped};
use crate::holes::compute;
use punctual_linux::{RunOptions, TakingThread, run};

/// So much is to be lost, so that the looks in which a run begins and ends do not count.
const LOST: Duration = Duration::from_millis(200);

/// Those who took time from jobs of 5 ms under the class of everybody, until they have lost
/// [`LOST`], and how much they lost.
fn takers() -> (Vec<TakingThread>, Duration) {
    let options = RunOptions {
        real_time: false,
        ..until_stopped()
    };
    let stop = Arc::clone(&options.stop);
    let all = Arc::new(AtomicU64::new(0));
    let (told, begun) = (Arc::clone(&all), Instant::now());
    let body = periodic("body", 1, 10_000, 8_000, move |_| {
        let start = Instant::now();
        compute(5_000_000);
        let lost = start.elapsed().saturating_sub(Duration::from_millis(5));
        let lost = u64::try_from(lost.as_nanos()).expect("short");
        let lost = lost + told.fetch_add(lost, Ordering::Relaxed);
        let is_long = begun.elapsed() > Duration::from_secs(20);
        if Duration::from_nanos(lost) > LOST || is_long {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let log = Log::with_room(1_000_000);
    let mut outcome = run(vec![input(vec![body], 10_000, log)], &options).expect("a run");
    let lost = Duration::from_nanos(all.load(Ordering::Relaxed));
    (outcome.cpus.remove(0).takers, lost)
}

/// At least half of what was lost went to this one, and nothing to that `innocent` of another CPU.
/// Others may take more on a busy machine: then it is tried again, and after a while a part is
/// enough.
fn assert_named(name: &str, innocent: &str) {
    let (begun, mut most) = (Instant::now(), Duration::ZERO);
    loop {
        let (takers, lost) = takers();
        let had = |is_one: &dyn Fn(&str) -> bool| {
            let of_it = takers.iter().filter(|taker| is_one(&taker.name));
            Duration::from_nanos(of_it.map(|taker| taker.ns).sum())
        };
        assert_eq!(had(&|of| of == innocent), Duration::ZERO, "{innocent}");
        let (own, others) = (had(&|of| of == name), had(&|of| of != name));
        if lost >= LOST && own * 2 >= lost {
            return;
        }
        most = most.max(own);
        let time = begun.elapsed();
        if time > Duration::from_secs(15) && most > Duration::from_millis(1) {
            println!("{name} had {most:?} at most; others {others:?} of {lost:?}");
            return;
        }
        let is_long = time > Duration::from_secs(60);
        assert!(!is_long, "{name} {own:?}, others {others:?} of {lost:?}");
    }
}

/// A thread of this process that never rests, on one CPU.
struct Busy(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Busy {
    fn start(name: &str, cpu: u32) -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let (tell, is_there) = channel();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            pin_to(cpu);
            tell.send(()).expect("heard");
            while !ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        is_there.recv().expect("it starts");
        Busy(over, Some(thread.expect("a thread")))
    }

    /// One that takes nothing from the CPU of the tests, if there is another.
    fn elsewhere(name: &str) -> Option<Busy> {
        let innocent = (test_cpu() > 0).then(|| Busy::start(name, 0));
        if innocent.is_none() {
            println!("skipped the innocent: it needs two CPUs");
        }
        innocent
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(thread::JoinHandle::join);
    }
}

fn of_this_program(thread: &str) -> String {
    let program = std::fs::read_to_string("/proc/self/comm").expect("Linux");
    format!("{thread} of {}", program.trim_end())
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
    let _innocent = Busy::elsewhere("innocent");
    assert_named("sh", &of_this_program("innocent"));
}

#[test]
fn a_thread_of_the_same_process_is_named_with_its_program() {
    let _alone = alone();
    let _hog = Busy::start("hog", test_cpu());
    let _innocent = Busy::elsewhere("innocent");
    assert_named(&of_this_program("hog"), &of_this_program("innocent"));
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
