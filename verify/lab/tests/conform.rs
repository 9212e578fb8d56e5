//! `punctual conform`: shipped policies, and policies of crates that are built on the spot.

#[allow(dead_code)] // Each of its users needs another part of it.
#[path = "../../../front/command/tests/cli/common.rs"]
mod common;

use std::path::PathBuf;
use std::process::Output;

use common::{Folder, assert_obeys, code, json, output, punctual, stdout};

/// A crate of somebody's, outside the workspace, with this in its `src/lib.rs`.
fn krate(folder: &Folder, source: &str) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the workspace");
    let manifest = format!(
        "[package]\nname = \"some-policies\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\npunctual-kern = {{ path = \"{0}/core/kern\" }}\n\
         punctual-model = {{ path = \"{0}/core/model\" }}\n\n[workspace]\n",
        root.display()
    );
    std::fs::create_dir_all(folder.path("src")).expect("a folder");
    folder.write("Cargo.toml", &manifest);
    folder.write("src/lib.rs", source);
}

/// Checks a policy of the crate. All tests build in one place, so that the kit is built once.
fn check(folder: &Folder, arguments: &[&str]) -> Output {
    let mut all = vec!["conform", "--offline", "--crate", "."];
    all.extend(arguments);
    let mut command = punctual(&all);
    command
        .current_dir(folder.path(""))
        .env("CARGO_TARGET_DIR", env!("CARGO_TARGET_TMPDIR"));
    command.output().expect("the command starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// First come, first served; `block` is to be filled in, and may be wrong.
const QUEUE: &str = r#"
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

macro_rules! queue {
    ($name:ident, |$queue:ident, $thread:ident| $block:expr) => {
        pub struct $name(Vec<ThreadId>);
        impl $name {
            pub fn new(capacity: usize) -> Self {
                println!("what a policy prints disturbs nobody");
                $name(Vec::with_capacity(capacity))
            }
        }
        impl Policy for $name {
            fn wake(&mut self, thread: ThreadId, _: &Attributes) {
                self.0.push(thread);
            }
            fn block(&mut self, $thread: ThreadId) {
                let $queue = &mut self.0;
                $block
            }
            fn update(&mut self, _: ThreadId, _: &Attributes) {}
            fn pick(&mut self, _: Instant) -> Pick {
                self.0.first().map_or(Pick::NOBODY, |&first| Pick::run(first))
            }
        }
    };
}

queue!(Right, |queue, thread| queue.retain(|queued| *queued != thread));
queue!(Wrong, |queue, thread| {
    let place = queue.iter().position(|queued| *queued == thread);
    queue.truncate(place.unwrap_or(0));
});
queue!(Endless, |queue, thread| while queue.contains(&thread) {});

pub struct Sized(Right);
impl Sized {
    pub fn with_room(capacity: usize, more: usize) -> Self {
        Sized(Right::new(capacity + more))
    }
}
impl Policy for Sized {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.0.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.block(thread);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.0.pick(now)
    }
}
pub struct NoPolicy;
impl NoPolicy {
    pub fn new(_: usize) -> Self {
        NoPolicy
    }
}
"#;

#[test]
fn shipped_policies_conform_to_what_they_claim() {
    for name in ["fifo", "round-robin", "fixed-priority", "edf", "tdm"] {
        let output = output(&["conform", "--builtin", name, "--json", "--histories", "200"]);
        assert_eq!(code(&output), 0, "{name}: {}", stdout(&output));
        let finding = json(&output);
        assert_obeys(&finding, "conform");
        assert_eq!(finding["verdict"], "conforms");
        assert_eq!(finding["options"]["histories"], 200);
    }
}

#[test]
fn a_claim_that_does_not_hold_is_refuted_by_a_history() {
    let arguments = ["conform", "--builtin", "edf", "--claims", "fixed-priority"];
    let refuted = output(&arguments);
    assert_eq!(code(&refuted), 1);
    assert!(stdout(&refuted).starts_with("edf broken: priority-order"));
    let as_json = output(&[&arguments[..], &["--json"]].concat());
    let finding = json(&as_json);
    assert_obeys(&finding, "conform");
    assert_eq!(finding["property"], "priority-order");
    assert_eq!(finding["level"], "seam");
    let seed = finding["seed"].to_string();
    let again = ["--json", "--seed", &seed, "--histories", "1"];
    assert_eq!(finding, json(&output(&[&arguments[..], &again].concat())));
}

#[test]
fn words_that_claim_nothing_and_names_of_nothing_are_bad_input() {
    let nonsense = output(&["conform", "--builtin", "edf", "--claims", "best"]);
    assert_eq!(code(&nonsense), 2);
    assert!(said(&nonsense).contains("`best` claims nothing"));
    assert_eq!(code(&output(&["conform", "--builtin", "best"])), 2);
    assert_eq!(code(&output(&["conform"])), 2);
    assert_eq!(code(&output(&["conform", "--crate", "."])), 2);
    let nowhere = ["conform", "--crate", "/nowhere", "--policy", "a::B"];
    let nowhere = output(&nowhere);
    assert_eq!(code(&nowhere), 2);
    assert!(said(&nowhere).contains("/nowhere"), "{}", said(&nowhere));
}

#[test]
fn without_cargo_there_is_no_check_and_the_machine_is_to_blame() {
    let folder = Folder::new("conform-no-cargo");
    krate(&folder, QUEUE);
    let mut command = punctual(&[
        "conform",
        "--crate",
        ".",
        "--policy",
        "some_policies::Right",
    ]);
    command
        .current_dir(folder.path(""))
        .env("CARGO", "/nowhere/cargo");
    let output = command.output().expect("the command starts");
    assert_eq!(code(&output), 3);
    assert!(
        said(&output).contains("does not start"),
        "{}",
        said(&output)
    );
}

/// What needs a cargo that starts and a build folder to write to: left out where whoever runs the
/// tests has neither (`cargo xtask test --unprivileged` says so).
mod built {
    use super::*;

    #[test]
    fn policies_of_a_crate_are_built_and_checked() {
        let folder = Folder::new("conform-crate");
        krate(&folder, QUEUE);
        let right = check(&folder, &["--policy", "some_policies::Right", "--json"]);
        assert_eq!(code(&right), 0, "{}", said(&right));
        let finding = json(&right);
        assert_obeys(&finding, "conform");
        assert_eq!(finding["policy"], "some_policies::Right");

        let wrong = check(&folder, &["--policy", "some_policies::Wrong"]);
        assert_eq!(code(&wrong), 1, "{}", said(&wrong));
        let text = stdout(&wrong);
        assert!(
            text.starts_with("some_policies::Wrong broken: lost-thread"),
            "{text}"
        );
        assert!(text.contains("block `"), "{text}");

        let make = "some_policies::Sized::with_room(capacity, 3)";
        let made = check(
            &folder,
            &["--policy", "some_policies::Sized", "--make", make],
        );
        assert_eq!(code(&made), 0, "{}", said(&made));

        // Whoever builds holds the lock.
        let ground = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("punctual-conform");
        let lock = std::fs::File::open(ground.join("lock")).expect("somebody has built");
        lock.lock().expect("a lock");
        assert!(!ground.join("package").exists(), "what was made is gone");
    }

    #[test]
    fn a_policy_that_does_not_return_is_ended_and_named() {
        let folder = Folder::new("conform-endless");
        krate(&folder, QUEUE);
        let arguments = [
            "--policy",
            "some_policies::Endless",
            "--json",
            "--patience",
            "1s",
        ];
        let endless = check(&folder, &arguments);
        assert_eq!(code(&endless), 1, "{}", said(&endless));
        let finding = json(&endless);
        assert_obeys(&finding, "conform");
        assert_eq!(finding["property"], "does-not-return");
        let history = finding["history"].as_array().expect("lines");
        let last = history.last().and_then(|line| line.as_str());
        assert!(
            last.is_some_and(|line| line.contains("block `")),
            "{finding:#}"
        );
    }

    #[test]
    fn what_cannot_be_built_is_told_in_words_about_the_crate() {
        let folder = Folder::new("conform-mistakes");
        krate(&folder, QUEUE);
        let mistakes = [
            ("some_policies::Absent", "a path is not there or not public"),
            (
                "some_policies::Sized",
                "`some_policies::Sized` is not made by `new(capacity: usize)`",
            ),
            (
                "some_policies::NoPolicy",
                "`some_policies::NoPolicy` is no policy",
            ),
        ];
        for (path, expected) in mistakes {
            let output = check(&folder, &["--policy", path]);
            assert_eq!(code(&output), 2, "{path}");
            assert!(
                said(&output).contains(expected),
                "{path}: {}",
                said(&output)
            );
        }
        folder.write("src/lib.rs", "pub fn broken() -> u8 { \"text\" }\n");
        let broken = check(&folder, &["--policy", "some_policies::Right"]);
        assert_eq!(code(&broken), 2);
        let text = said(&broken);
        assert!(
            text.contains("the crate `some-policies` does not build"),
            "{text}"
        );
        assert!(
            text.contains("mismatched types"),
            "and what cargo says: {text}"
        );
    }

    #[test]
    fn a_check_that_is_not_done_in_its_time_is_a_failure() {
        let folder = Folder::new("conform-within");
        krate(&folder, QUEUE);
        let arguments = ["--policy", "some_policies::Right", "--within", "1ms"];
        let output = check(&folder, &arguments);
        assert_eq!(code(&output), 3);
        assert!(
            said(&output).contains("not done within"),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn histories_without_steps_are_bad_input() {
    assert_eq!(
        code(&output(&["conform", "--builtin", "edf", "--steps", "0"])),
        2
    );
}

#[test]
fn its_help_has_examples_under_the_name_that_users_type() {
    let help = output(&["conform", "--help"]);
    assert_eq!(code(&help), 0);
    let text = stdout(&help);
    assert!(
        text.contains("Examples:") && text.contains("punctual conform "),
        "{text}"
    );
}

/// The program that is tried, and its arguments: those behind the name of the command.
fn program<'a>(arguments: &'a [&'a str]) -> (&'static str, &'a [&'a str]) {
    assert_eq!(arguments[0], "conform");
    (env!("CARGO_BIN_EXE_punctual-conform"), &arguments[1..])
}

/// The schema that `punctual schema SUBJECT` prints.
fn schema(subject: &str) -> serde_json::Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../front/command/schema");
    let text = std::fs::read_to_string(format!("{folder}/{subject}.json")).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_policy_in_c_is_judged_like_any_other() {
    let folder = Folder::new("conform-c");
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (object, broken) = (folder.path("libpolicy.so"), folder.path("libbroken.so"));
    let source = include_str!("../../../examples/c/policy.c");
    let wrong = source.replace(
        "return a->deadline_ns < b->deadline_ns",
        "return a->order < b->order",
    );
    assert_ne!(wrong, source);
    for (object, source) in [(&object, source), (&broken, wrong.as_str())] {
        let source = folder.write("policy.c", source);
        let mut cc = std::process::Command::new("cc");
        cc.args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I",
        ]);
        cc.arg(root.join("runtime/capi/include"));
        cc.args(["-o", object, &source]);
        assert!(cc.status().expect("cc starts").success());
    }
    let symbol = ["--symbol", "earliest_deadline", "--claims", "deadline"];
    let few = ["--histories", "100", "--json"];
    let right = ["conform", "--library", &object];
    let done = output(&[&right[..], &symbol, &few].concat());
    assert_eq!(code(&done), 0, "{}{}", stdout(&done), said(&done));
    assert_eq!(json(&done)["verdict"], "conforms");
    let done = output(&[&["conform", "--library", &broken][..], &symbol, &few].concat());
    assert_eq!(code(&done), 1, "{}{}", stdout(&done), said(&done));
    assert_eq!(json(&done)["verdict"], "broken");
}

/// Objects that cannot be checked: one ends, one stands still as it is loaded; one is not made.
const UNFIT: &str = r#"
#include <stdlib.h>
#include <punctual_policy.h>

#if defined(CRASHES)
__attribute__((constructor)) static void first(void) { abort(); }
#elif defined(LOOPS)
static volatile int forever = 1;
__attribute__((constructor)) static void first(void) { while (forever) {} }
#endif

static void wake(void *p, uint32_t t, const punctual_attributes *a) { (void)p; (void)t; (void)a; }
static void block(void *p, uint32_t t) { (void)p; (void)t; }
static punctual_pick pick(void *p, uint64_t now)
{
    punctual_pick nobody = {.thread = -1, .until_ns = UINT64_MAX};
    (void)p; (void)now;
    return nobody;
}

int refused(uint32_t n, punctual_policy *table)
{
    (void)n; (void)table; (void)wake; (void)block; (void)pick;
    return 5;
}
"#;

#[test]
fn a_policy_in_c_is_loaded_in_the_second_process_alone_and_what_it_lacks_is_bad_input() {
    let folder = Folder::new("conform-c-unfit");
    let include = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../runtime/capi/include");
    let source = folder.write("unfit.c", UNFIT);
    let done = |how: &str, symbol: &str| {
        let object = folder.path(&format!("lib{how}.so"));
        let mut cc = std::process::Command::new("cc");
        let _ = cc.args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
        ]);
        let _ = cc.arg(format!("-D{how}")).arg("-I").arg(&include);
        assert!(
            cc.args(["-o", &object, &source])
                .status()
                .expect("cc starts")
                .success()
        );
        output(&[
            "conform",
            "--library",
            &object,
            "--symbol",
            symbol,
            "--within",
            "3s",
        ])
    };
    for (how, symbol, ending, reason) in [
        ("PLAIN", "refused", 2, "`refused`: its function answered 5"),
        ("PLAIN", "absent", 2, "has no function `absent`"),
        (
            "CRASHES",
            "refused",
            3,
            "ended without a finding: signal: 6",
        ),
        ("LOOPS", "refused", 3, "not done within 3 s"),
    ] {
        let done = done(how, symbol);
        let said = said(&done);
        assert_eq!(code(&done), ending, "{how}: {said}");
        assert!(said.contains(reason), "{how}: {said}");
    }
}
