//! Whole programs in place of light threads: they run when it is their turn, and end with the run.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Wall};

use common::{Log, Spec, alone, for_ms, periodic, plan, test_cpu};
use punctual_kern::TraceEvent;
use punctual_linux::{CpuOutcome, Ending, Mode, Program, RunOptions, run, start_program};
use punctual_model::{Class, CpuId, Priority, Span, Task, Work};

/// A program that loops for good, with a child that does too.
const ENDLESS: [&str; 3] = ["sh", "-c", "(while :; do :; done) & while :; do :; done"];

/// A reservation of 4 ms in every 10 ms, more urgent than nobody, whose work is a program.
fn reserved(command: &[&str]) -> (Spec, Program) {
    let words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let priority = RunOptions::default().priority;
    let started = start_program(&words, Path::new("."), test_cpu(), priority);
    let (body, program) = started.expect("a shell");
    let class = Class::Reservation {
        period: Span::from_ms(10),
        slice: Work::from_ms(4),
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

fn fly(program: Spec, ms: u64) -> (u64, CpuOutcome<Log>, Mode) {
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let urgent = periodic("urgent", 9, 1_000, 100, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let plan = plan(vec![urgent, program], 1_000, Log::with_room(200_000));
    let outcome = run(vec![plan], &for_ms(ms)).expect("a run");
    assert_eq!(outcome.ending, Ending::Complete);
    assert_eq!(outcome.panics, []);
    let mode = outcome.mode;
    let cpu = outcome.cpus.into_iter().next().expect("one CPU");
    (count.load(Ordering::Relaxed), cpu, mode)
}

#[test]
fn a_program_runs_in_its_slice_and_others_are_on_time_beside_it() {
    let _alone = alone();
    let (spec, program) = reserved(&ENDLESS);
    let before = processor_time(program.leader());
    let (jobs, cpu, _) = fly(spec, 500);
    let used = processor_time(program.leader()) - before;
    let stolen = cpu.counters.missing_ns / 1_000_000;
    assert!(jobs + stolen >= 490, "{jobs} jobs, {stolen} ms stolen");
    // Two loops share 40 % and what is idle; the one that is looked at has at least a part of it.
    assert!(used >= 5 || stolen > 100, "{used} hundredths of a second");
    let switched = |thread: usize| {
        let events = cpu.sink.traces.iter();
        events
            .filter(|(_, event)| {
                matches!(event, TraceEvent::Switched { to: Some(to), .. } if to.index() == thread)
            })
            .count()
    };
    assert!(switched(1) >= 40, "{} turns of the program", switched(1));
    assert!(cpu.waits.is_empty(), "{:?}", cpu.waits);
}

#[test]
fn a_program_and_its_children_end_with_the_run() {
    let _alone = alone();
    let (spec, program) = reserved(&ENDLESS);
    let leader = program.leader();
    let _ = fly(spec, 50);
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
    let (jobs, cpu, _) = fly(spec, 100);
    let stolen = cpu.counters.missing_ns / 1_000_000;
    assert!(jobs + stolen >= 90, "{jobs} jobs, {stolen} ms stolen");
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
