//! Runs a built command and looks at what it prints.
//!
//! The tests of `punctual bench`, `conform` and `sweep` use it too: `program` says what runs.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The command, from a folder of its own choice.
pub(crate) fn punctual(arguments: &[&str]) -> Command {
    let (program, arguments) = crate::program(arguments);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .env_remove("NO_COLOR");
    command
}

/// The command of a program that a closed terminal and Ctrl-C end, also where the tests ignore
/// these signals and would hand that on (`nohup`, and `&` in a script).
pub(crate) fn hearing(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT").arg(program);
    command
}

/// Sends a process a signal, named as `kill` has it.
pub(crate) fn send(signal: &str, id: u32) {
    let sent = Command::new("kill")
        .args([signal, &id.to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// One live run at a time: two on one CPU take time from each other.
static LIVE: Mutex<()> = Mutex::new(());

/// The command's output; it must have run at all.
pub(crate) fn output(arguments: &[&str]) -> Output {
    let live = arguments.first() == Some(&"run");
    let _alone = live.then(|| LIVE.lock().unwrap_or_else(PoisonError::into_inner));
    punctual(arguments).output().expect("the command starts")
}

/// Runs a file for longer and longer, until `seen` finds in the output what its test is about: a
/// CPU that is away for a second is away for all of a short run.
pub(crate) fn run_until<T>(arguments: &[&str], seen: impl Fn(&Output) -> Option<T>) -> T {
    let mut last = String::new();
    for time in ["400ms", "1200ms", "4s", "12s", "40s"] {
        let done = output(&[&["run"], arguments, &["--for", time]].concat());
        if let Some(found) = seen(&done) {
            return found;
        }
        last = format!("{}{}", stdout(&done), stderr(&done));
    }
    panic!("40 s do not show it either: {last}");
}

/// Releases of such a period in a run, whether the machine had time for their jobs or not.
pub(crate) fn releases(report: &Value, period_ms: u64) -> u64 {
    let duration = report["duration_ns"].as_u64().expect("a number");
    duration / (period_ms * 1_000_000)
}

/// The exit code; a signal is a failure of the test.
pub(crate) fn code(output: &Output) -> i32 {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("ended by a signal: {said}"))
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Standard output as JSON.
pub(crate) fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{said}", stdout(output)))
}

/// Fails unless `value` obeys what `punctual schema SUBJECT` exports.
pub(crate) fn assert_obeys(value: &Value, subject: &str) {
    let schema = crate::schema(subject);
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
}

/// A file of `examples/`.
pub(crate) fn example(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../examples").join(name).display().to_string()
}

/// A folder that disappears with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A fresh folder; `name` keeps tests apart.
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file in it and gives its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        std::fs::write(self.0.join(name), content).expect("written");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `libNAME.so` in a folder, of this source in C.
pub(crate) fn shared_object(folder: &Folder, name: &str, source: &str) {
    let source = folder.write(&format!("{name}.c"), source);
    let library = folder.path(&format!("lib{name}.so"));
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/capi/include");
    let mut cc = std::process::Command::new("cc");
    let _ = cc.args([
        "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
    ]);
    let _ = cc.args(["-I", include, "-o", &library, &source]);
    assert!(cc.status().expect("cc starts").success());
}
