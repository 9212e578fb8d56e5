//! Programs in C, linked with the library as users link them, do what they say.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use punctual_graph::{ActorBook, Application, State, TaskScheduler, Tasks};
use punctual_model::{ActorId, CpuId, Graph, GraphId, Tile, Work};
use tempfile::TempDir;

mod libraries;
mod posix;

/// Each has the CPU for itself: they measure it before they promise anything.
static CPU: Mutex<()> = Mutex::new(());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Where cargo has put the library: beside this test. (One folder up is that of the last `build`.)
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.parent().expect("target/PROFILE/deps");
    folder.to_path_buf()
}

/// A folder with the library under the names that linkers look for.
fn linked() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = built().join("libpunctual_library.so");
    symlink(shared, folder.path().join("libpunctual.so.0")).expect("a link");
    symlink("libpunctual.so.0", folder.path().join("libpunctual.so")).expect("a link");
    folder
}

const C: [&str; 2] = ["cc", "-std=c11"];
/// As distributions compile.
const FORTIFIED: [&str; 5] = [
    "cc",
    "-std=gnu11",
    "-pthread",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=2",
];
/// For sources that are C, too.
const CPP: [&str; 4] = ["c++", "-std=c++17", "-x", "c++"];

/// Compiles a program; `None`, loudly, where there is no compiler.
fn compile(source: &str, compiler: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = linked();
    let program = folder.path().join("program");
    let compiled = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
        .args([&program, &root().join(source)])
        .arg("-I")
        .arg(root().join("runtime/capi/include"))
        .arg("-L")
        .arg(folder.path())
        .arg("-lpunctual")
        .output();
    let Ok(compiled) = compiled else {
        eprintln!("NOT TESTED: there is no `{}` here", compiler[0]);
        return None;
    };
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(compiled.status.success(), "{source}: {said}");
    let bytes = std::fs::read(&program).expect("a program");
    let name = b"libpunctual.so.0\0";
    assert!(
        bytes.windows(name.len()).any(|window| window == name),
        "its soname"
    );
    Some((folder, program))
}

/// A program that is ended after five minutes, whatever it waits for.
fn bounded(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--kill-after=5", "300"]);
    command.arg(program);
    command
}

/// Compiles a program and runs it in a folder of its own: no file stays behind, however it ends.
fn run(source: &str, compiler: &[&str]) -> Option<Output> {
    let (folder, program) = compile(source, compiler)?;
    let alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = bounded(&program)
        .current_dir(folder.path())
        .env("LD_LIBRARY_PATH", folder.path())
        .output();
    drop(alone);
    Some(ran.expect("a program that starts"))
}

/// Interrupts a program, as Ctrl-C does, when it says that its run has begun.
fn interrupt(arguments: &[&str]) -> Option<(ExitStatus, String)> {
    let (folder, program) = compile("runtime/capi/library/tests/c/interrupted.c", &C)?;
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(&program);
    command.args(arguments).stdout(Stdio::piped());
    let mut child = command
        .env("LD_LIBRARY_PATH", folder.path())
        .spawn()
        .expect("a program that starts");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    assert_eq!(line, "running\n");
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("`kill` starts").success());
    let status = child.wait().expect("it ends");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    Some((status, rest))
}

/// What a program in C says that ends well.
fn says(source: &str) -> Option<String> {
    says_by(source, &C)
}

fn says_by(source: &str, compiler: &[&str]) -> Option<String> {
    let ran = run(source, compiler)?;
    let [said, complained] = [&ran.stdout, &ran.stderr].map(|out| String::from_utf8_lossy(out));
    assert!(
        ran.status.success(),
        "{source}: {}: {said}{complained}",
        ran.status
    );
    Some(said.into_owned())
}

#[test]
fn a_control_loop_in_c_executes_all_its_jobs() {
    if let Some(ran) = run("examples/c/control.c", &C) {
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(said.starts_with("100 jobs, "), "{said}");
        // A machine that takes a CPU away makes jobs late: that is 1 and no failure of the run.
        let late = !said.starts_with("100 jobs, 0 late");
        assert_eq!(ran.status.code(), Some(i32::from(late)), "{said}");
    }
}

#[test]
fn a_control_loop_in_c_that_was_late_exits_with_1() {
    if let Some(ran) = run("runtime/capi/library/tests/c/late.c", &C) {
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(said.starts_with("100 jobs, "), "{said}");
        assert!(!said.contains(" 0 late"), "{said}");
        assert_eq!(ran.status.code(), Some(1), "{said}");
    }
}

#[test]
fn a_producer_and_a_consumer_in_c_lose_nothing_and_keep_the_order() {
    if let Some(said) = says("examples/c/pipeline.c") {
        assert_eq!(said, "1000 sent, 1000 received, in order\n");
    }
}

#[test]
fn a_program_in_c_hears_who_would_be_late_and_what_would_mend_it() {
    if let Some(said) = says("examples/c/admission.c") {
        assert!(said.contains("one-too-many: not admitted"), "{said}");
        assert!(
            said.contains("overloaded") && said.contains("mends it"),
            "{said}"
        );
        assert!(said.contains("\"verdict\":\"refused\""), "{said}");
    }
}

#[test]
fn a_budget_that_entries_use_up_is_refused_and_one_that_is_used_up_is_reported() {
    if let Some(said) = says("runtime/capi/library/tests/c/budgets.c") {
        let expected =
            "refused below the floor, ended above it, and used-up budgets are in the report\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn whatever_a_program_in_c_does_wrong_is_a_code() {
    if let Some(said) = says("runtime/capi/library/tests/c/edges.c") {
        assert_eq!(said, "every case is a code\n");
    }
}

#[test]
fn readers_and_writers_and_spin_mutexes_in_c_do_what_they_say() {
    if let Some(said) = says("runtime/capi/library/tests/c/locks.c") {
        let expected = "readers beside each other, writers alone, and every mistake is a code\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn a_thread_in_c_that_cannot_go_on_says_so_and_one_that_never_looks_is_ended() {
    if let Some(said) = says("runtime/capi/library/tests/c/faults.c") {
        let expected = "failures are said, rules are followed, and loops come to their end\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn work_that_c_offers_is_done_once_on_one_cpu_or_another() {
    if let Some(said) = says("runtime/capi/library/tests/c/spread.c") {
        assert_eq!(said, "every piece is done once\n");
    }
}

#[test]
fn any_code_in_c_runs_in_place_of_a_thread() {
    if let Some(said) = says("runtime/capi/library/tests/c/backed.c") {
        assert_eq!(said, "kernel threads in place of light ones\n");
    }
}

#[test]
fn every_thread_in_c_and_cpp_finds_its_thread_locals_new() {
    let fixed = ["cc", "-std=c11", "-fno-pie", "-no-pie"];
    for compiler in [&C[..], &CPP[..], &fixed[..]] {
        if let Some(said) = says_by("runtime/capi/library/tests/c/locals.c", compiler) {
            assert_eq!(said, "new in each of 30 threads\n", "{compiler:?}");
        }
    }
}

#[test]
fn calls_that_check_the_room_they_are_given_stop_no_cpu() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/fortified.c", &FORTIFIED) {
        assert_eq!(said, "checked calls wait like others\n");
    }
}

#[test]
fn a_child_of_a_fork_has_everything_but_the_run() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/children.c", &FORTIFIED) {
        assert_eq!(said, "a child has everything but the run\n");
    }
}

#[test]
fn kernel_threads_and_programs_that_a_thread_starts_are_what_the_program_s_are() {
    for compiler in [&FORTIFIED[..], &CPP[..]] {
        if let Some(said) = says_by("runtime/capi/library/tests/c/helpers.c", compiler) {
            let expected = "what a thread starts is what the program's are\n";
            assert_eq!(said, expected, "{compiler:?}");
        }
    }
}

#[test]
fn a_kernel_thread_that_takes_time_from_a_run_is_named_in_its_report() {
    if let Some(said) = says("runtime/capi/library/tests/c/takers.c") {
        assert_eq!(said, "the hog is named\n");
    }
}

#[test]
fn a_thread_that_never_waits_does_not_keep_the_first_thread_from_its_end() {
    if let Some(said) = says("runtime/capi/library/tests/c/first.c") {
        assert_eq!(said, "the first thread comes to its end\n");
    }
}

#[test]
fn an_exception_that_leaves_a_body_ends_its_thread_with_its_words_and_nobody_else() {
    let plus = ["c++", "-std=c++17"];
    if let Some(said) = says_by("runtime/capi/library/tests/c/exceptions.cpp", &plus) {
        assert_eq!(said, "an exception ends its thread and nobody else\n");
    }
}

#[test]
fn what_is_too_much_is_refused_before_it_is_made_and_stacks_are_reserved() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/limits.c", &FORTIFIED) {
        let expected = "what is too much is a code, and what is reserved is not in memory\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn signals_come_to_the_thread_that_sends_them_and_faults_to_the_program_s_handler() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/signals.c", &FORTIFIED) {
        let expected = "signals come to the thread that sends them, and faults to their handler\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn each_thread_finds_its_own_stack_where_it_asks_the_c_library() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/stacks.c", &FORTIFIED) {
        assert_eq!(said, "three stacks\n");
    }
}

/// Whether the compiler has such a library; says so where it has not.
fn has_library(name: &str) -> bool {
    let found = Command::new("cc")
        .arg(format!("-print-file-name={name}"))
        .output();
    let found = found.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let has = found.is_ok_and(|path| Path::new(&path).exists());
    if !has {
        eprintln!("NOT TESTED: the compiler has no `{name}`");
    }
    has
}

/// The output of a program that is started with these variables.
fn says_with((folder, program): &(TempDir, PathBuf), variables: &[(&str, &str)]) -> String {
    let ran = Command::new(program)
        .env("LD_LIBRARY_PATH", folder.path())
        .envs(variables.iter().copied())
        .output()
        .expect("a program that starts");
    let [said, complained] = [&ran.stdout, &ran.stderr].map(|out| String::from_utf8_lossy(out));
    assert!(ran.status.success(), "{}: {said}{complained}", ran.status);
    said.into_owned()
}

#[test]
fn run_after_run_nothing_is_left_in_the_process() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/again.c", &FORTIFIED) {
        assert_eq!(said, "run after run, nothing is left\n");
    }
}

#[test]
fn calls_that_wait_in_the_kernel_do_not_end_because_of_the_timer() {
    if let Some(said) = says_by("runtime/capi/library/tests/c/waits.c", &FORTIFIED) {
        assert_eq!(said, "no call ends because of the timer\n");
    }
}

/// The words of a text that are code, between a heading and the next one.
fn code_below<'a>(text: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let (_, section) = text.split_once(heading).expect("the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    section.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_name_that_the_library_defines_is_in_the_guide_or_in_a_header() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).expect(file);
    let library = built().join("libpunctual_library.so");
    let listed = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library)
        .output();
    let Ok(listed) = listed else {
        eprintln!("NOT TESTED: there is no `nm` here");
        return;
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    let (ours, others): (BTreeSet<&str>, BTreeSet<&str>) =
        names.partition(|name| name.starts_with("punctual_"));
    let headers = ["punctual.h", "punctual_policy.h"]
        .map(|file| read(&format!("runtime/capi/include/{file}")));
    let is_declared = |name: &&&str| {
        headers
            .iter()
            .any(|header| header.contains(&format!("{name}(")))
    };
    let undeclared: Vec<_> = ours.iter().filter(|name| !is_declared(name)).collect();
    assert!(
        !ours.is_empty() && undeclared.is_empty(),
        "in no header: {undeclared:?}"
    );
    let guide = read("doc/guide/12-c.md");
    let mut told = code_below(&guide, "\n## Names that the library defines\n");
    told.retain(|name| !name.ends_with(".h"));
    assert_eq!(told, others, "the guide, and the library");
}

#[test]
fn a_component_in_c_lives_on_the_supply_of_its_scheduler() {
    if let Some(said) = says("examples/c/tree.c") {
        assert!(
            said.contains(" jobs on 2 ms in 10 ms; more: not admitted"),
            "{said}"
        );
    }
}

#[test]
fn schedulers_in_c_are_held_by_handles_and_refuse_by_codes() {
    if let Some(said) = says("runtime/capi/library/tests/c/trees.c") {
        assert_eq!(
            said,
            "schedulers do what they say, and every mistake is a code\n"
        );
    }
}

#[test]
fn schedulers_in_c_execute_in_their_own_slots_and_no_other_time() {
    if let Some(said) = says("runtime/capi/library/tests/c/slots.c") {
        assert_eq!(said, "each in its own slots, and every mistake is a code\n");
    }
}

#[test]
fn a_run_in_c_starts_with_the_tree_of_a_file_or_says_what_is_wrong_with_it() {
    if let Some(said) = says("runtime/capi/library/tests/c/tree_file.c") {
        assert_eq!(said, "a tree from a file\n");
    }
}

#[test]
fn a_policy_in_c_orders_a_scheduler_of_its_program_and_a_crash_costs_itself_alone() {
    if let Some(said) = says("runtime/capi/library/tests/c/policies.c") {
        assert_eq!(said, "its own order, then that of the fallback\n");
    }
}

#[test]
fn three_actors_in_c_fire_by_the_order_of_their_program() {
    if let Some(said) = says("examples/c/graph.c") {
        assert_eq!(said, "downstream: 1000 numbers in order\n");
    }
}

/// The order of 60 firings of the graph of `graphs.c`, a letter each.
fn order_in_rust(scheduler: Option<Downstream>) -> String {
    let (tile, wcet) = (Tile::cpu(CpuId(0)), Work::from_ms(1));
    let mut graph = Graph::new("numbers");
    let [from, to] = ["count", "check"].map(|name| graph.actor(name, tile, wcet));
    graph.fifo("state", from, from).initial = 1;
    let numbers = graph.fifo("numbers", from, to);
    (numbers.produce, numbers.consume) = (vec![3], vec![1, 2]);
    numbers.capacity = Some(12);
    let mut application = Application::new(&graph).expect("consistent");
    if let Some(scheduler) = scheduler {
        application
            .task_scheduler(tile, scheduler)
            .expect("its tile");
    }
    for name in ["count", "check"] {
        application.actor(name, |_| ()).expect("its actor");
    }
    let mut tile = application.tiles().expect("small").remove(0);
    while tile
        .book()
        .actors
        .iter()
        .map(ActorBook::firings)
        .sum::<u64>()
        < 60
    {
        tile.step();
    }
    let (moved, _) = tile.book().transitions(GraphId(0));
    let fired = moved.iter().filter(|moved| moved.state == State::Compute);
    let letter = |actor: ActorId| if actor == from { 'c' } else { 'k' };
    fired.map(|moved| letter(moved.actor)).take(60).collect()
}

struct Downstream;

impl TaskScheduler for Downstream {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let mut from_the_end = (0..tasks.count()).rev();
        from_the_end.find(|&task| tasks.check_firing_rules(task))
    }
}

#[test]
fn applications_in_c_fire_as_in_rust_and_a_wrong_one_costs_itself_alone() {
    if let Some(said) = says("runtime/capi/library/tests/c/graphs.c") {
        let (turns, downstream) = (order_in_rust(None), order_in_rust(Some(Downstream)));
        assert_ne!(turns, downstream);
        let last = "the wrong ones are named, and the others go on";
        let expected = format!("{turns}\n{turns}\n{downstream}\n{last}\n");
        assert_eq!(said, expected);
    }
}

#[test]
fn an_application_in_c_that_decides_between_slots_begins_one_firing_in_each() {
    if let Some(said) = says("runtime/capi/library/tests/c/between.c") {
        assert_eq!(said, "one firing in a slot, by turns and by an own order\n");
    }
}

#[test]
fn applications_in_c_pass_over_a_firing_that_a_slot_interrupted() {
    if let Some(said) = says("runtime/capi/library/tests/c/passed_over.c") {
        let expected = "firings are passed over, by turns, by an own order and by owners\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn static_orders_and_threads_of_the_core_are_orders_in_c_too() {
    if let Some(said) = says("runtime/capi/library/tests/c/orders.c") {
        let expected = "static orders are kept, and threads of the core take turns\n";
        assert_eq!(said, expected);
    }
}

#[test]
fn tasks_in_c_come_to_their_ends_or_are_told_to_and_one_that_crashes_ends_its_tile() {
    if let Some(said) = says("runtime/capi/library/tests/c/completion.c") {
        assert_eq!(said, "tasks come to their ends, or are told to\n");
    }
}

#[test]
fn two_cpus_in_c_hear_each_other() {
    if let Some(said) = says("runtime/capi/library/tests/c/two_cpus.c") {
        let one = said == "skipped: one CPU only\n";
        assert!(one || said == "heard on both sides\n", "{said}");
    }
}

#[test]
fn a_gang_in_c_computes_what_a_sequential_program_does_and_says_whether_it_was_in_step() {
    if let Some(said) = says("examples/c/gang.c") {
        let barriers = "by barriers: kept in step, values as computed one by one\n";
        let one = said == "skipped: one CPU only\n";
        // A machine of others may take a phase's time: then the program says so.
        assert!(one || said.starts_with(barriers), "{said}");
        assert!(one || said.contains("by time: "), "{said}");
    }
}

#[test]
fn operations_of_a_gang_in_c_end_with_a_value_or_a_name() {
    if let Some(said) = says("runtime/capi/library/tests/c/gangs.c") {
        assert_eq!(said, "all agree, and who is missing is named\n");
    }
}

#[test]
fn ctrl_c_ends_a_program_in_c_in_the_middle_of_its_run() {
    if let Some((status, said)) = interrupt(&[]) {
        assert_eq!((status.signal(), said.as_str()), (Some(2), ""));
    }
}

#[test]
fn a_program_in_c_that_handles_ctrl_c_goes_on_and_ends_its_run_itself() {
    if let Some((status, said)) = interrupt(&["handle"]) {
        assert_eq!(status.code(), Some(0), "{said}");
        assert_eq!(said, "ended by itself, as it was before\n");
    }
}
