//! Policies in C: flown in virtual time and live, lawful ones and others.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use serde_json::Value;

use crate::common::{
    Folder, code, json, output, releases, run_until, shared_object, stderr, stdout,
};

const SYSTEM: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
host = 0
policy = "fixed-priority"
[scheduler.guest]
on = "cpu.c"
policy = "edf"
priority = 9
server = { kind = "deferrable", budget = "8ms", period = "20ms" }
trust = "own-time"
code = { library = "libmine.so", symbol = "SYMBOL" }
fallback = { policy = "edf", after = 3 }
[task.a]
class = "periodic"
on = "scheduler.guest"
period = "40ms"
wcet = "2ms"
[task.rest]
class = "periodic"
on = "cpu.c"
period = "40ms"
wcet = "6ms"
priority = 1
[run]
for = "400ms"
"#;

/// Policies that do not decide, each in its way; and one that cannot be made.
const OTHERS: &str = r#"
#include <punctual_policy.h>
#include <stdlib.h>

static void wake(void *p, uint32_t t, const punctual_attributes *a) { (void)p; (void)t; (void)a; }
static void block(void *p, uint32_t t) { (void)p; (void)t; }

static punctual_pick answer(int64_t thread)
{
    punctual_pick pick = {.thread = thread, .until_ns = UINT64_MAX};
    return pick;
}

static volatile int forever = 1;

static punctual_pick loops(void *p, uint64_t now)
{
    (void)p; (void)now;
    while (forever) {}
    return answer(-1);
}

static punctual_pick lies(void *p, uint64_t now) { (void)p; (void)now; return answer(1); }
static punctual_pick silent(void *p, uint64_t now) { (void)p; (void)now; return answer(-1); }

static int fill(punctual_policy *table, punctual_pick (*pick)(void *, uint64_t))
{
    table->size = sizeof *table;
    table->wake = wake;
    table->block = block;
    table->pick = pick;
    return 0;
}

int make_loops(uint32_t n, punctual_policy *table) { (void)n; return fill(table, loops); }
int make_lies(uint32_t n, punctual_policy *table) { (void)n; return fill(table, lies); }
int make_silent(uint32_t n, punctual_policy *table) { (void)n; return fill(table, silent); }
/* After three lawful answers for thread 0, each in its way. */
static int answers;
static volatile int zero;

static punctual_pick reads(void *p, uint64_t now)
{
    (void)p; (void)now;
    if (++answers > 3)
        return answer(*(volatile int64_t *)8);
    return answer(0);
}

static punctual_pick divides(void *p, uint64_t now)
{
    (void)p; (void)now;
    return answer(++answers > 3 ? answers / zero : 0);
}

static punctual_pick traps(void *p, uint64_t now)
{
    (void)p; (void)now;
    if (++answers > 3)
        __builtin_trap();
    return answer(0);
}

static int deep(volatile int *from)
{
    volatile int here[64] = {*from};
    return from[0] ? deep(here) + here[1] : 0;
}

static punctual_pick recurses(void *p, uint64_t now)
{
    (void)p; (void)now;
    if (++answers > 3)
        return answer(deep(&forever));
    return answer(0);
}

static punctual_pick aborts(void *p, uint64_t now)
{
    (void)p; (void)now;
    abort();
}

int make_aborts(uint32_t n, punctual_policy *table) { (void)n; return fill(table, aborts); }
int make_reads(uint32_t n, punctual_policy *table) { (void)n; return fill(table, reads); }
int make_divides(uint32_t n, punctual_policy *table) { (void)n; return fill(table, divides); }
int make_traps(uint32_t n, punctual_policy *table) { (void)n; return fill(table, traps); }
int make_recurses(uint32_t n, punctual_policy *table) { (void)n; return fill(table, recurses); }

int make_small(uint32_t n, punctual_policy *table)
{
    (void)n;
    table->size = 8;
    return 0;
}
"#;

/// The report of a run of this policy, which may have missed deadlines.
fn reported(done: &Output) -> Value {
    assert!(code(done) <= 1, "{}{}", stdout(done), stderr(done));
    json(done)
}

fn simulated(folder: &Folder, symbol: &str) -> Value {
    let file = folder.write("mine.toml", &SYSTEM.replace("SYMBOL", symbol));
    reported(&output(&["sim", &file, "--json"]))
}

/// The report of a live run that went on until `seen`.
fn flown(folder: &Folder, symbol: &str, seen: impl Fn(&Value) -> bool) -> Value {
    let file = folder.write("mine.toml", &SYSTEM.replace("SYMBOL", symbol));
    run_until(&[&file, "--json", "--force"], |done| {
        let report = reported(done);
        seen(&report).then_some(report)
    })
}

/// Whether the fallback decides now.
fn fell_back(report: &Value) -> bool {
    report["schedulers"][0].get("fell_back").is_some()
}

#[test]
fn the_example_decides_as_the_policy_that_it_claims_to_be() {
    let folder = Folder::new("c-policy");
    shared_object(
        &folder,
        "mine",
        include_str!("../../../../examples/c/policy.c"),
    );
    let virtually = simulated(&folder, "earliest_deadline");
    assert_eq!(virtually["verdict"], "met");
    let decided = |report: &Value| report["schedulers"][0]["decisions"].as_u64() >= Some(9);
    let live = flown(&folder, "earliest_deadline", decided);
    for report in [virtually, live] {
        let guest = &report["schedulers"][0];
        assert!(decided(&report), "{guest}");
        assert_eq!(guest["refused"], 0);
        assert!(guest.get("fell_back").is_none(), "{guest}");
        assert_eq!(report["tasks"][0]["jobs"], releases(&report, 40));
    }
}

#[test]
fn one_that_lies_or_is_silent_costs_itself_alone_and_live_also_one_that_loops() {
    let folder = Folder::new("c-policy-others");
    shared_object(&folder, "mine", OTHERS);
    for symbol in ["make_lies", "make_silent"] {
        let report = simulated(&folder, symbol);
        let fell = &report["schedulers"][0]["fell_back"];
        assert_eq!(fell["at_ns"], 60_000_000, "{symbol}: {fell}");
        assert_eq!(report["tasks"][1]["misses"], 0, "{symbol}");
    }
    for symbol in ["make_loops", "make_lies", "make_silent"] {
        let report = flown(&folder, symbol, fell_back);
        let fell = &report["schedulers"][0]["fell_back"];
        assert_eq!(fell["cause"], "unanswered", "{symbol}: {fell}");
        assert_eq!(fell["policy"], "edf");
        // The tasks of the others and of its own had all their jobs.
        for task in [0, 1] {
            let jobs = &report["tasks"][task]["jobs"];
            assert_eq!(*jobs, releases(&report, 40), "{symbol}: {report}");
        }
    }
}

const SWAPS: &str = r#"
[change.out]
at = "95ms"
policy = [{ of = "scheduler.guest", policy = "edf", code = { library = "libother.so", symbol = "make_silent" } }]
[change.back]
at = "195ms"
policy = [{ of = "scheduler.guest", policy = "edf", code = { library = "libmine.so", symbol = "earliest_deadline" } }]
[change.built-in]
at = "255ms"
policy = [{ of = "scheduler.guest", policy = "fifo" }]
"#;

/// A folder with the policy of the examples, and with others beside it.
fn with_both(name: &str) -> Folder {
    let folder = Folder::new(name);
    let example = include_str!("../../../../examples/c/policy.c");
    shared_object(&folder, "mine", example);
    shared_object(&folder, "other", OTHERS);
    folder
}

#[test]
fn a_policy_in_c_is_followed_by_another_that_decides_from_then_on() {
    let folder = with_both("c-policy-swaps");
    let system = SYSTEM.replace("SYMBOL", "earliest_deadline");
    let fallback = "fallback = { policy = \"edf\", after = 3 }\n";
    let patient = [&system.replace(fallback, ""), SWAPS].concat();
    let file = folder.write("swaps.toml", &patient);
    let log = folder.path("swaps.punctual");
    let report = reported(&output(&["sim", &file, "--json", "--record", &log]));
    let guest = &report["schedulers"][0];
    assert_eq!(guest["policies_replaced"], 3, "{guest}");
    // The silent one lets the job of 120 ms wait until the next one comes at 195 ms.
    let misses = [0, 1].map(|task: usize| report["tasks"][task]["misses"].as_u64());
    assert_eq!(misses, [Some(1), Some(0)], "{report}");
    assert_eq!(report["tasks"][0]["jobs"], 10, "{report}");
    let replayed = stdout(&output(&["replay", &log]));
    assert!(replayed.starts_with("identical: "), "{replayed}");
    // Live the same, and its neighbour has all its jobs.
    let live = run_until(&[&file, "--json", "--force"], |done| {
        let report = reported(done);
        let guest = &report["schedulers"][0];
        (guest["policies_replaced"] == 3).then_some(report)
    });
    for task in [0, 1] {
        assert_eq!(live["tasks"][task]["jobs"], releases(&live, 40), "{live}");
    }
    // With a fallback it has fallen back before the next one comes, which is refused then.
    let file = folder.write("impatient.toml", &[&system, SWAPS].concat());
    let report = reported(&output(&["sim", &file, "--json"]));
    assert!(fell_back(&report), "{report}");
    assert_eq!(report["tasks"][1]["misses"], 0, "{report}");
}

#[test]
fn new_code_that_cannot_decide_is_refused_with_its_place() {
    let folder = Folder::new("c-policy-swap-mistakes");
    shared_object(
        &folder,
        "mine",
        include_str!("../../../../examples/c/policy.c"),
    );
    let system = SYSTEM.replace("SYMBOL", "earliest_deadline");
    let swap = SWAPS.replace("libother.so", "libmine.so");
    for (text, reason) in [
        (
            [&system, swap.as_str()].concat(),
            "has no function `make_silent`",
        ),
        (
            [&system.replace("own-time", "inline"), swap.as_str()].concat(),
            "decide inside the core",
        ),
        (
            [
                &system,
                swap.replace("of = \"scheduler.guest\"", "of = \"cpu.c\"")
                    .as_str(),
            ]
            .concat(),
            "decides inside the core",
        ),
    ] {
        let file = folder.write("wrong.toml", &text);
        let done = output(&["sim", &file]);
        let said = stderr(&done);
        assert_eq!(code(&done), 2, "{said}");
        assert!(
            said.contains(reason) && said.contains("wrong.toml"),
            "{said}"
        );
    }
}

/// The same two, each in slots of its own.
const IN_SLOTS: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
host = 0
policy = "tdm"
frame = "20ms"
scheduling-time = "500us"
[scheduler.guest]
on = "cpu.c"
policy = "edf"
slots = [{ at = "1ms", length = "6ms" }]
trust = "own-time"
code = { library = "libLIBRARY.so", symbol = "SYMBOL" }
fallback = { policy = "edf", after = 3 }
[scheduler.other]
on = "cpu.c"
policy = "edf"
slots = [{ at = "8ms", length = "10ms" }]
[task.a]
class = "periodic"
on = "scheduler.guest"
period = "40ms"
wcet = "2ms"
[task.rest]
class = "periodic"
on = "scheduler.other"
period = "40ms"
wcet = "6ms"
[run]
for = "400ms"
"#;

#[test]
fn a_policy_in_c_in_slots_is_not_seen_in_the_slots_of_others_whatever_it_does() {
    let folder = with_both("c-policy-slots");
    let file = |library: &str, symbol: &str| {
        let text = IN_SLOTS.replace("LIBRARY", library);
        folder.write("slots.toml", &text.replace("SYMBOL", symbol))
    };
    let mut seen = Vec::new();
    for (library, symbol, faults) in [
        ("mine", "earliest_deadline", &[][..]),
        (
            "mine",
            "earliest_deadline",
            &["--fault", "child-loops=guest"],
        ),
        (
            "mine",
            "earliest_deadline",
            &["--fault", "child-lies=guest"],
        ),
        (
            "mine",
            "earliest_deadline",
            &["--fault", "child-silent=guest"],
        ),
        ("other", "make_lies", &[]),
        ("other", "make_silent", &[]),
    ] {
        let file = file(library, symbol);
        let report = reported(&output(&[&["sim", &file, "--json"], faults].concat()));
        let lawful = symbol == "earliest_deadline" && faults.is_empty();
        assert_eq!(fell_back(&report), !lawful, "{symbol} {faults:?}: {report}");
        seen.push(report["tasks"][1].to_string());
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:#?}");
    for symbol in ["make_loops", "make_lies", "make_silent"] {
        let file = file("other", symbol);
        let report = run_until(&[&file, "--json", "--force"], |done| {
            let report = reported(done);
            fell_back(&report).then_some(report)
        });
        for task in [0, 1] {
            let jobs = &report["tasks"][task]["jobs"];
            assert_eq!(*jobs, releases(&report, 40), "{symbol}: {report}");
        }
    }
}

#[test]
fn code_that_cannot_be_had_or_would_be_inside_the_core_is_named_with_its_place() {
    let folder = Folder::new("c-policy-mistakes");
    shared_object(&folder, "mine", OTHERS);
    for (symbol, reason) in [
        ("nothing", "has no function `nothing`"),
        ("make_small", "its table has 8 bytes"),
    ] {
        let file = folder.write("mine.toml", &SYSTEM.replace("SYMBOL", symbol));
        let done = output(&["sim", &file]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(code(&done), 2, "{said}");
        assert!(said.contains(reason) && said.contains("code ="), "{said}");
    }
    let inline = SYSTEM.replace("own-time", "inline");
    let file = folder.write("inline.toml", &inline);
    let done = output(&["check", &file]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(code(&done), 2, "{said}");
    assert!(said.contains("stands everything still"), "{said}");
}

#[test]
fn one_that_crashes_live_costs_itself_alone_and_the_report_says_when_and_why() {
    let folder = Folder::new("c-policy-crashes");
    shared_object(&folder, "mine", OTHERS);
    for symbol in ["make_reads", "make_divides", "make_traps", "make_recurses"] {
        let report = flown(&folder, symbol, fell_back);
        let fell = &report["schedulers"][0]["fell_back"];
        assert_eq!(fell["cause"], "failed", "{symbol}: {report}");
        // Its threads and those beside it go on to the end, under the fallback.
        for task in [0, 1] {
            let jobs = &report["tasks"][task]["jobs"];
            assert_eq!(*jobs, releases(&report, 40), "{symbol}: {report}");
        }
    }
    // Inside the C library it may hold a lock: that ends the run, and not by an answer.
    let file = folder.write("aborts.toml", &SYSTEM.replace("SYMBOL", "make_aborts"));
    let signal = run_until(&[&file, "--force"], |done| done.status.signal());
    assert_eq!(signal, 6);
}
