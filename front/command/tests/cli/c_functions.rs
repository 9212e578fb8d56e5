//! `punctual run` with functions in C that call back.

use crate::common::{Folder, code, json, output, shared_object, stdout};

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
    let flags = ["run", &file, "--force", "--json", "--record", &log];
    let run = output(&flags);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(code(&run), 1, "{}{said}", stdout(&run));
    let report = json(&run);
    let misses = report["misses"].as_array().expect("a list");
    // The machine may add misses with causes of its own.
    assert!(
        misses.iter().any(|miss| miss["cause"] == "overrun"),
        "{misses:?}"
    );
    let told = output(&["replay", &log, "--json"]);
    assert_eq!(json(&told)["replay"]["identical"], true);
    assert_eq!(code(&told), code(&run), "{}", stdout(&told));
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
