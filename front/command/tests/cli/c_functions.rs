//! `punctual run` with functions in C that call back.

use std::process::Output;

use serde_json::Value;

use crate::common::{
    Folder, code, json, output, releases, run_until, shared_object, stderr, stdout,
};

/// Ends the process by a signal when it is refused, or when somebody else is inside.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <punctual.h>

static int inside;

int step(uint64_t job, uint64_t arrival_ns)
{
    (void)job;
    if (punctual_lock("bus") != 0 || inside != 0)
        abort();
    inside = 1;
    int stop = punctual_checkpoint();
    inside = 0;
    punctual_unlock("bus");
    /* Declared with these uses alone: another one is refused. */
    uint64_t now = 0;
    if (!stop && punctual_lock("nowhere") != PUNCTUAL_UNKNOWN)
        abort();
    if (punctual_now(&now) != PUNCTUAL_OK || now < arrival_ns)
        abort();
    if (punctual_burn(1000) != PUNCTUAL_OK || punctual_has_overrun() > 1)
        abort();
    return 0;
}
"#;

const SYSTEM: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
host = 0
policy = "fixed-priority"
[resource.bus]
protocol = "inheritance"
[task.fast]
class = "periodic"
on = "cpu.c"
period = "20ms"
wcet = "2ms"
priority = 2
uses = [{ resource = "bus", for = "1ms" }]
work = { call = "step", library = "libstep.so" }
[task.slow]
class = "periodic"
on = "cpu.c"
period = "50ms"
wcet = "2ms"
priority = 1
uses = [{ resource = "bus", for = "1ms" }]
work = { call = "step", library = "libstep.so" }
[run]
for = "500ms"
"#;

/// Three times what it declares.
const TOO_LONG: &str = r#"
#include <punctual.h>

int step(uint64_t job, uint64_t arrival_ns)
{
    (void)job;
    (void)arrival_ns;
    return punctual_burn(6000000) != PUNCTUAL_OK;
}
"#;

const LATE: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
host = 0
policy = "edf"
[task.late]
class = "periodic"
on = "cpu.c"
period = "20ms"
wcet = "2ms"
work = { call = "step", library = "libstep.so" }
[run]
for = "500ms"
"#;

#[test]
fn a_miss_of_a_live_run_shows_its_cause_again_from_the_record() {
    let folder = Folder::new("live-miss");
    shared_object(&folder, "step", TOO_LONG);
    let (file, log) = (folder.write("late.toml", LATE), folder.path("late.log"));
    // The machine may add misses with causes of its own.
    let overran = |misses: &Value| {
        let misses = misses.as_array().expect("a list");
        misses.iter().any(|miss| miss["cause"] == "overrun")
    };
    let report = run_until(&[&file, "--force", "--json", "--record", &log], |run| {
        let report = json(run);
        assert_eq!(code(run) == 1, report["verdict"] == "missed", "{report}");
        overran(&report["misses"]).then_some(report)
    });
    assert_eq!(report["verdict"], "missed");
    let told = output(&["replay", &log, "--json"]);
    assert_eq!(json(&told)["replay"]["identical"], true);
    assert_eq!(code(&told), 1, "{}", stdout(&told));
    assert_eq!(json(&told)["misses"], report["misses"]);
}

#[test]
fn a_c_function_locks_a_resource_by_calls_into_the_command() {
    let folder = Folder::new("c-functions");
    shared_object(&folder, "step", SOURCE);
    let file = folder.write("c.toml", SYSTEM);
    let done = output(&["run", &file, "--force", "--json"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(code(&done) <= 1, "{}{said}", stdout(&done));
    let report = json(&done);
    assert_eq!(report["tasks"][0]["jobs"], 25);
    assert_eq!(report["tasks"][1]["jobs"], 10);
}

/// Counts, and checks; the tenth number is not what `fail` wants.
const ACTORS: &str = r#"
#include <string.h>
#include <punctual.h>

int count(const punctual_firing *firing)
{
    uint64_t next;
    if (punctual_read_fifo(0, &next, 1) != PUNCTUAL_OK || firing->parameter != NULL)
        return 1;
    memcpy(firing->output[1].data, &next, sizeof next);
    next++;
    return punctual_write_fifo(0, &next, 1) != PUNCTUAL_OK;
}

int check(const punctual_firing *firing)
{
    return memcmp(firing->input[0].data, &firing->number, sizeof firing->number) != 0;
}

int fail(const punctual_firing *firing)
{
    return firing->number < 10 ? check(firing) : *(volatile int *)firing->parameter;
}
"#;

const STREAM: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
host = 0
policy = "tdm"
frame = "2ms"
scheduling-time = "50us"
[scheduler.own]
on = "cpu.c"
policy = "fifo"
slots = [{ at = "0ms", length = "500us" }]
[scheduler.other]
on = "cpu.c"
policy = "fifo"
slots = [{ at = "600us", length = "500us" }]
[task.beside]
class = "periodic"
on = "scheduler.other"
period = "20ms"
wcet = "50us"
[graph.stream]
actors = [
  { name = "count", on = "scheduler.own", wcet = "20ms", work = { call = "count", library = "libactors.so" } },
  { name = "check", on = "scheduler.own", wcet = "20ms", work = { call = "check", library = "libactors.so" } },
]
fifos = [
  { name = "next", from = "count", to = "count", initial = 1, token-size = 8 },
  { name = "numbers", from = "count", to = "check", capacity = 4, token-size = 8 },
]
[run]
for = "300ms"
"#;

#[test]
fn actors_of_a_file_are_functions_in_c_and_one_that_crashes_ends_its_application_alone() {
    let folder = Folder::new("c-actors");
    let file = folder.write("stream.toml", STREAM);
    // Neither needs the object.
    for command in ["check", "sim"] {
        assert_eq!(code(&output(&[command, &file])), 0, "{command}");
    }
    let missing = output(&["run", &file, "--force"]);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(
        code(&missing) == 2 && said.contains("the actor `count`: cannot load"),
        "{said}"
    );
    shared_object(&folder, "actors", ACTORS);
    let fired = |report: &Value| firings(report, 1);
    let said = run_until(&[&file, "--force", "--json"], |run| {
        (fired(&json(run)) > 50).then(|| stderr(run))
    });
    assert!(!said.contains("panicked"), "{said}");
    let wrong = folder.write(
        "wrong.toml",
        &STREAM.replace("\"check\", library", "\"fail\", library"),
    );
    let report = run_until(&[&wrong, "--force", "--json"], |run| {
        crashed(run, |report| fired(report) >= 10)
    });
    assert_eq!(fired(&report), 10, "{report}");
    assert_eq!(report["tasks"][0]["jobs"], releases(&report, 20));
    let words = "the actor `check` panicked: it made an invalid access at 0x0";
    run_until(&[&wrong, "--force"], |run| {
        stdout(run).contains(words).then_some(())
    });
}

/// How often an actor of the first application fired.
fn firings(report: &Value, actor: usize) -> u64 {
    let firings = &report["graphs"][0]["actors"][actor]["firings"];
    firings.as_u64().expect("a number")
}

/// The report of a run that went on behind the crash: that is a fault, unless `beside` is late by
/// a machine of others, which is worse.
fn crashed(run: &Output, behind: impl Fn(&Value) -> bool) -> Option<Value> {
    let report = json(run);
    let faults = report["faults"].as_array().map_or(0, Vec::len);
    if faults == 0 || !behind(&report) {
        return None;
    }
    let late = report["verdict"] == "missed";
    let beside = &report["tasks"][0];
    assert_eq!(late, beside["misses"] != beside["excused"], "{report}");
    let code = if late { 1 } else { 3 };
    assert_eq!(run.status.code(), Some(code), "{report}{}", stderr(run));
    Some(report)
}

/// Both go on until a slot has ended in them, three times, however fast the machine is; the sixth
/// firing of `hurt` crashes behind that.
const LONG: &str = r#"
#include <punctual.h>
#include <time.h>

static long now(void)
{
    struct timespec at;
    timespec_get(&at, TIME_UTC);
    return at.tv_sec * 1000000000L + at.tv_nsec;
}

static int through_slots(int slots)
{
    for (long before = now(); slots > 0;) {
        long at = now();
        slots -= at - before > 1000000;
        before = at;
    }
    return 0;
}

int last(const punctual_firing *firing)
{
    return through_slots(3) + (firing->number == UINT64_MAX);
}

int hurt(const punctual_firing *firing)
{
    return through_slots(3) + (firing->number < 5 ? 0 : *(volatile int *)firing->parameter);
}
"#;

/// Each is preempted in its function while the other is in its own, in an order that no stack has.
#[test]
fn a_function_that_crashes_while_another_is_passed_over_ends_its_application_alone() {
    let folder = Folder::new("c-passed-over");
    shared_object(&folder, "actors", LONG);
    let orders = "orders = [{ on = \"scheduler.own\", when = \"between-slots\", \
                  preempted = \"passed-over\" }]\n[run]";
    let text = STREAM
        .replace("\"count\", library", "\"last\", library")
        .replace("\"check\", library", "\"hurt\", library")
        .replace("capacity = 4,", "initial = 9, capacity = 99,")
        .replace("[run]", orders);
    let file = folder.write("long.toml", &text);
    let preemptions = |report: &Value, actor: usize| {
        let count = &report["graphs"][0]["actors"][actor]["preemptions"];
        count.as_u64().expect("a number")
    };
    let report = run_until(&[&file, "--force", "--json"], |run| {
        crashed(run, |report| {
            firings(report, 1) >= 5 && (0..2).all(|of| preemptions(report, of) > 3)
        })
    });
    assert_eq!(firings(&report, 1), 5);
    assert_eq!(report["tasks"][0]["jobs"], releases(&report, 20));
}
