//! Whole programs in place of light threads: they run when it is their turn, and end with the run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Wall};

use crate::common::{Spec, alone, input, periodic, test_cpu, until_stopped};
use crate::holes::{above_everybody_here, compute};
use punctual_kern::{Sink, TraceEvent};
use punctual_linux::{CpuOutcome, Ending, JobInfo, Program, RunOptions, job, run, start_program};
use punctual_model::{Class, CpuId, Instant, Late, Ns, Priority, Span, Task, ThreadId, Work};

/// A program that loops for good, with a child that does too.
const ENDLESS: [&str; 3] = ["sh", "-c", "(while :; do :; done) & while :; do :; done"];

/// A reservation of 4 ms in every 10 ms, more urgent than nobody, whose work is a program.
fn reserved(command: &[&str]) -> (Spec, Program) {
    of_slice(command, Work::from_ms(4))
}

/// The same with so much of every 10 ms.
fn of_slice(command: &[&str], slice: Work<Ns>) -> (Spec, Program) {
    let words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let priority = RunOptions::default().priority;
    let started = start_program(&words, Path::new("."), test_cpu(), priority);
    let (body, program) = started.expect("a shell");
    let class = Class::Reservation {
        period: Span::from_ms(10),
        slice,
    };
    let mut task = Task::new("program", CpuId(0), class);
    task.priority = Priority::new(1);
    (Spec { task, body }, program)
}

/// Processor time of a process and of its children that ended, in hundredths of a second.
fn processor_time(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let numbers = fields
        .split(' ')
        .filter_map(|field| field.parse::<u64>().ok());
    // After the name: the state, then ten others; utime and stime stand eleventh and twelfth among
    // the numbers.
    numbers.skip(9).take(3).sum()
}

/// The thread in whose place the program runs.
const PROGRAM: usize = 1;

/// Sees what the scheduler does with the program while it does it.
#[derive(Debug, Default)]
struct Watch {
    /// Times that another thread took the processor from it.
    taken: Arc<AtomicU64>,
    /// It waits, for good.
    rests: Arc<AtomicBool>,
    /// Turns that it got although it waits.
    woken: u64,
    /// It has the processor.
    runs: Arc<AtomicBool>,
}

impl Sink for Watch {
    fn trace(&mut self, _: Instant, event: TraceEvent) {
        let is_program = |thread: ThreadId| thread.index() == PROGRAM;
        if let TraceEvent::Switched { to, .. } = event {
            self.runs
                .store(to.is_some_and(is_program), Ordering::Relaxed);
        }
        match event {
            TraceEvent::Switched {
                from: Some(from),
                to: Some(_),
                preempted: true,
            } if is_program(from) => {
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            TraceEvent::Switched { to: Some(to), .. } if is_program(to) => {
                self.woken += u64::from(self.rests.load(Ordering::Relaxed));
            }
            TraceEvent::Blocked { thread, .. } if is_program(thread) => {
                self.rests.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// Flies a program beside a thread of every millisecond, whose jobs say whether it is enough.
fn fly(
    program: Spec,
    watch: Watch,
    mut enough: impl FnMut(&JobInfo) -> bool + Send + 'static,
) -> CpuOutcome<Watch> {
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let mut urgent = periodic("urgent", 9, 1_000, 100, move |info| {
        stop.fetch_or(enough(info), Ordering::Relaxed);
    });
    // A loaded machine may have less for it than it asks: then what it missed is not made up for.
    urgent.task.late = Late::Skip;
    let input = input(vec![urgent, program], 1_000, watch);
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.panics, []);
    outcome.cpus.into_iter().next().expect("one CPU")
}

#[test]
fn a_program_runs_in_its_slice_and_others_are_on_time_beside_it() {
    let _alone = alone();
    let (spec, program) = reserved(&ENDLESS);
    let watch = Watch::default();
    let taken = Arc::clone(&watch.taken);
    let used = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let (uses, is_over) = (Arc::clone(&used), Arc::clone(&over));
    let leader = program.leader();
    let before = processor_time(leader);
    // Not by a job: to read a file may take it longer than it has.
    let look = std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let now = processor_time(leader).saturating_sub(before);
            uses.store(now, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut in_time = 0;
    let cpu = fly(spec, watch, move |info| {
        let due = info.absolute_deadline_ns;
        in_time += u64::from(job::now_ns() < due);
        // Two loops share 40 % and what is idle; this is the processor time of one of them.
        let used = used.load(Ordering::Relaxed) >= 3;
        used && in_time >= 100 && taken.load(Ordering::Relaxed) >= 40
    });
    over.store(true, Ordering::Relaxed);
    look.join().expect("it only looks");
    drop(program);
    assert!(!cpu.sink.rests.load(Ordering::Relaxed), "it never waits");
    assert!(cpu.waits.is_empty(), "{:?}", cpu.waits);
}

/// Asserts on its sleeps: they do not depend on others that want the CPU.
#[test]
fn an_idle_cpu_stays_awake_where_a_program_is_kept_out_of_its_idle_time() {
    let _alone = alone();
    let mut sleeps = [0; 2];
    for (keeps, sleeps) in [false, true].into_iter().zip(&mut sleeps) {
        let (spec, program) = reserved(&ENDLESS);
        if keeps {
            program.keep_out_of_idle_time();
        }
        let before = program.processor_ns();
        let mut jobs = 0;
        let cpu = fly(spec, Watch::default(), move |_| {
            jobs += 1;
            jobs == 200
        });
        assert!(program.processor_ns() >= before && before.is_some());
        // What it gives back to the machine is none of its idle time.
        *sleeps = cpu.counters.sleeps.saturating_sub(cpu.counters.given_back);
    }
    // Before the first turn it sleeps as any other does.
    assert!(sleeps[0] > 40 && sleeps[1] < 10, "{sleeps:?}");
}

/// Bursts of a thread above the run; those that begin in a turn of the program hold it up.
#[test]
fn what_holds_up_a_program_is_missing_where_the_kernel_tells_who_ran() {
    const BURSTS: u64 = 40;
    const BURST_NS: u64 = 3_000_000;
    let _alone = alone();
    let (spec, _program) = of_slice(&ENDLESS, Work::from_ms(8));
    let watch = Watch::default();
    let runs = Arc::clone(&watch.runs);
    let bursts = Arc::new(AtomicU64::new(0));
    let held_up = Arc::clone(&bursts);
    let injector = std::thread::spawn(move || {
        let is_above = above_everybody_here();
        let begun = Wall::now();
        while is_above && held_up.load(Ordering::Relaxed) < BURSTS {
            let holds_up = runs.load(Ordering::Relaxed);
            // By what it executes: others may hold it up in its turn.
            compute(BURST_NS);
            held_up.fetch_add(u64::from(holds_up), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(7));
            assert!(begun.elapsed() < Duration::from_secs(60), "a slow machine");
        }
        held_up.store(BURSTS, Ordering::Relaxed);
        is_above
    });
    let cpu = fly(spec, watch, move |_| {
        bursts.load(Ordering::Relaxed) >= BURSTS
    });
    let is_above = injector.join().expect("it does not panic");
    if !is_above || cpu.takers.is_empty() {
        eprintln!("skipped: no priority above a run, or nobody tells who had the CPU");
        return;
    }
    let (missing, taken) = (cpu.counters.missing_ns, BURSTS * BURST_NS);
    assert!(missing > taken / 2, "{missing} of {taken} ns");
}

#[test]
fn a_program_and_its_children_end_with_the_run() {
    let _alone = alone();
    let (spec, program) = reserved(&ENDLESS);
    let leader = program.leader();
    let mut jobs = 0;
    let _ = fly(spec, Watch::default(), move |_| {
        jobs += 1;
        jobs == 50
    });
    assert!(Path::new(&format!("/proc/{leader}")).exists());
    drop(program);
    let start = Wall::now();
    // The children are killed with it, and somebody else collects them.
    while members_of(leader) > 0 {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "they are still there"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many living processes are in the group.
fn members_of(group: u32) -> usize {
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let stats = processes.filter_map(|p| std::fs::read_to_string(p.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let mut fields = stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            let living = fields
                .next()
                .is_some_and(|state| state != "Z" && state != "X");
            living && fields.nth(1) == Some(&group.to_string())
        })
        .count()
}

#[test]
fn a_program_that_ends_by_itself_leaves_its_slice_to_others() {
    let _alone = alone();
    let (spec, mut program) = reserved(&["sh", "-c", "exit 3"]);
    let watch = Watch::default();
    let rests = Arc::clone(&watch.rests);
    let mut jobs = 0;
    let cpu = fly(spec, watch, move |_| {
        jobs += u64::from(rests.load(Ordering::Relaxed));
        jobs == 50
    });
    assert_eq!(cpu.sink.woken, 0, "turns of a program that has ended");
    assert_eq!(program.ended().as_deref(), Some("exit status: 3"));
}

#[test]
fn what_is_no_program_is_refused_in_words() {
    let words = ["punctual-no-such-program".to_owned()];
    let refused = start_program(&words, Path::new("."), test_cpu(), 50);
    let error = refused.err().expect("it does not exist");
    assert!(
        error
            .to_string()
            .starts_with("cannot start `punctual-no-such-program`"),
        "{error}"
    );
}
