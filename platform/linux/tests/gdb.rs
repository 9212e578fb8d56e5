//! Frames that debuggers walk: of a thread that runs, of one that was preempted, of one that left.

mod common;

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Log, alone, background, for_ms, input, periodic};
use punctual_linux::{end_run, run};

static TURNS: AtomicU64 = AtomicU64::new(0);
/// The program ends by itself after so many, which is a minute; the debugger ends it before. While
/// it has stopped the program, jobs queue.
const ENOUGH: u64 = 6_000;

#[inline(never)]
fn deep_in_high() {
    TURNS.fetch_add(1, Ordering::Relaxed);
}

#[inline(never)]
fn high_works() {
    deep_in_high();
    black_box(());
}

#[inline(never)]
fn deep_in_low() {
    while TURNS.load(Ordering::Relaxed) < ENOUGH {
        std::hint::spin_loop();
    }
}

#[inline(never)]
fn low_works() {
    deep_in_low();
    end_run();
}

#[test]
#[ignore = "the program that the other test debugs"]
fn program() {
    let _alone = alone();
    let high = periodic("high", 2, 10_000, 5_000, |_| high_works());
    let low = background("low", 0, |_| low_works());
    let sink = Log::with_room(1_000);
    run(
        vec![input(vec![high, low], 10_000, sink)],
        &for_ms(3_600_000),
    )
    .expect("a run");
}

/// What the debugger is told. The way back of a thread that does not run is in its record, as the
/// guide says.
const COMMANDS: &str = r#"
set pagination off
set confirm off
set width 0
handle all nostop noprint pass
handle SIGTRAP SIGINT stop print nopass
break gdb::deep_in_low
run --ignored --exact program --nocapture
frame function punctual_linux::run::life::main
set $low = light
echo == runs\n
backtrace
delete
break punctual_linux::entry::signal::take
continue
echo == preempted\n
backtrace
continue
echo == preempted\n
backtrace
continue
echo == preempted\n
backtrace
delete
break gdb::deep_in_high
continue
echo == left\n
set $record = (*$low).context.__0.value
set $rip = $record.instruction
set $rsp = $record.stack_pointer
set $rbp = $record.rbp
set $rbx = $record.rbx
backtrace
echo == end\n
kill
"#;

/// What the debugger says; `None`, with a loud line, where there is none, or it may not debug.
fn debugged() -> Option<String> {
    let program = std::env::current_exe().expect("this program");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch"]);
    let lines = COMMANDS.lines().filter(|line| !line.is_empty());
    gdb.args(lines.flat_map(|line| ["-ex", line])).arg(program);
    let output = match gdb.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("*** NOT CHECKED: what a debugger sees: gdb does not start: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("not permitted") || errors.contains("ptrace") {
        eprintln!("*** NOT CHECKED: what a debugger sees: it may not debug here: {errors}");
        return None;
    }
    Some(format!("{said}\n{errors}"))
}

/// Whether these functions stand in these frames in this order, and the last one ends them.
fn shows(frames: &str, functions: &[&str]) -> bool {
    let mut rest = frames.lines().filter(|line| line.starts_with('#'));
    functions
        .iter()
        .all(|name| rest.any(|line| line.contains(name)))
        && rest.next().is_none()
}

#[test]
fn a_debugger_walks_from_every_thread_to_its_first_frame_and_stops_there() {
    if cfg!(not(debug_assertions)) {
        eprintln!("*** NOT CHECKED: what a debugger sees: an optimised build has other frames");
        return;
    }
    let _alone = alone();
    let Some(said) = debugged() else { return };
    let parts: Vec<&str> = said.split("== ").skip(1).collect();
    let part = |name: &'static str| parts.iter().filter(move |part| part.starts_with(name));
    let body = [
        "deep_in_low",
        "low_works",
        "life::work",
        "life::main",
        "dispatch::start",
    ];
    assert!(part("runs").any(|frames| shows(frames, &body)), "{said}");
    // Its handler stands on the same stack: through the kernel's frame to what it interrupted.
    let through = ["signal::take", "signal_entry", "<signal handler called>"];
    let preempted = [&through[..], &body].concat();
    // A signal may also find another thread.
    assert!(
        part("preempted").any(|frames| shows(frames, &preempted)),
        "{said}"
    );
    let left = [&["dispatch", "switch::switch_"], &preempted[..]].concat();
    assert!(part("left").any(|frames| shows(frames, &left)), "{said}");
}
