//! The test programs of the workspace: built at once, and run as each may use the machine.
//!
//! Programs in virtual time fill all CPUs together. Those that step through their own instructions
//! keep one CPU in the kernel, so one of them at a time runs beside the others. Those in real time
//! are alone, but for what takes only time that nobody else wants.
//!
//! A program that steps may schedule for real and still need not be alone. It asserts what happened
//! and how often, never when, and its rounds are bounded by steps. Its run is first on its CPU,
//! where the others go round it. A second one would want the same CPU, the last one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::step::{Outcome, Tally, Tests, run_within};
use crate::workspace::Workspace;

/// Folders of the packages with tests that schedule for real; the empty one is the facade's.
const LIVE_FOLDERS: [&str; 10] = [
    "examples/write-a-task-scheduler",
    "platform/linux-io",
    "platform/linux",
    "platform/direct",
    "runtime/thread",
    "runtime/gang",
    "runtime/capi/library",
    "runtime/openmp",
    "front/command",
    "",
];

/// The tests beside this crate are live; those inside of it compute, and for long.
const COMPUTING_INSIDE: &str = "front/command";

/// Measures what it runs, so it is alone, though it is no test of what other users may do. A rival
/// takes only idle time itself, and would get none beside others that do.
const MEASURING: [&str; 3] = ["bench/compare", "bench/harness", "bench/rivals"];

/// So is this one, whose members keep both CPUs.
const STUDYING: &str = "live_studies";

/// Programs that go from instruction to instruction, wherever they are.
const STEPPING: [&str; 3] = ["every_instruction", "punctual_switch", "counts"];

/// A program of a live package that is in virtual time as a whole.
const VIRTUAL: &str = "virtual_time";

/// No test program takes that long, on a slow machine either: one that does hangs.
const BOUND: Duration = Duration::from_secs(600);

/// How a program uses the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// It computes.
    Computing,
    /// It steps through its instructions.
    Stepping,
    /// It runs in real time and asks for the privileges that this takes.
    Live,
    /// It measures.
    Measuring,
}

/// A test program, the name of its source, and the folder that cargo would run it in.
#[derive(Debug)]
pub(crate) struct Program {
    pub path: PathBuf,
    pub name: String,
    /// The word of cargo for its source: `lib`, `bin`, `test`.
    pub kind: String,
    pub folder: PathBuf,
}

/// All that cargo has built for the tests.
#[derive(Debug)]
pub(crate) struct Built {
    pub programs: Vec<Program>,
    /// Where the commands are.
    pub commands: PathBuf,
}

impl Built {
    fn that(&self, workspace: &Workspace, used: Use) -> Vec<&Program> {
        let mut programs: Vec<_> = self.programs.iter().collect();
        programs.retain(|program| program.uses(workspace) == used);
        programs
    }
}

impl Program {
    /// The program, to be started as cargo would.
    pub(crate) fn command(&self) -> Command {
        self.started_by(Command::new(&self.path))
    }

    /// As [`Program::command`], with a command that leads to it.
    pub(crate) fn started_by(&self, mut command: Command) -> Command {
        command.current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Its package's folder, its kind and its name, for people and for file names: cargo allows no
    /// two programs that have all three in common.
    pub(crate) fn title(&self, workspace: &Workspace) -> String {
        let folder = self.folder.strip_prefix(&workspace.root);
        let folder = folder.unwrap_or(&self.folder).display().to_string();
        let parts = [&folder.replace('/', "."), &self.kind, &self.name];
        parts
            .map(String::as_str)
            .join(".")
            .trim_start_matches('.')
            .to_owned()
    }

    /// Runs `command`, which leads to it, until its end or the bound of all test programs.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        user: &str,
        command: Command,
        tests: &mut Tests,
    ) -> Outcome {
        let log = format!("{user}-{}", self.title(workspace));
        run_within(BOUND, workspace.log_folder(), &log, command, tests)
    }

    /// How it uses the machine.
    pub(crate) fn uses(&self, workspace: &Workspace) -> Use {
        let is_in = |folder: &&str| same_path(&self.folder, &workspace.root.join(folder));
        if STEPPING.contains(&self.name.as_str()) {
            Use::Stepping
        } else if self.name == STUDYING || MEASURING.iter().any(&is_in) {
            Use::Measuring
        } else if self.name == VIRTUAL || (self.kind != "test" && is_in(&COMPUTING_INSIDE)) {
            Use::Computing
        } else if LIVE_FOLDERS.iter().any(&is_in) {
            Use::Live
        } else {
            Use::Computing
        }
    }
}

/// Asks cargo to build all test programs, and where it put them.
pub(crate) fn build(workspace: &Workspace) -> Result<Built, String> {
    let mut command = workspace.cargo();
    // The whole workspace: with fewer packages cargo would choose other features and build anew.
    command.args(["test", "--workspace", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().flat_map(serde_json::from_str::<Value>);
    let messages: Vec<Value> = messages.collect();
    let programs: Vec<Program> = messages.iter().filter_map(program).collect();
    let commands = messages.iter().find_map(folder_of_command);
    match commands {
        Some(commands) if !programs.is_empty() => Ok(Built { programs, commands }),
        _ => Err("cargo announced no test program, or no command".into()),
    }
}

/// The folder of the command that a message of cargo announces, if it announces one.
fn folder_of_command(message: &Value) -> Option<PathBuf> {
    let is_command = message["target"]["kind"][0] == "bin" && message["profile"]["test"] == false;
    let path = Path::new(message["executable"].as_str()?);
    Some(path.parent().filter(|_| is_command)?.to_path_buf())
}

/// The test program that a message of cargo announces, if it announces one.
fn program(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?)
        .parent()?
        .to_path_buf();
    let target = &message["target"];
    let name = target["name"].as_str()?.to_owned();
    let kind = target["kind"][0].as_str()?.to_owned();
    Some(Program {
        path,
        name,
        kind,
        folder,
    })
}

/// Whether two paths have the same parts (`a/b` and `a/b/` do).
fn same_path(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
}

/// Builds all test programs, as a step.
pub(crate) fn build_all(tally: &mut Tally, workspace: &Workspace) -> Option<Built> {
    let mut built = None;
    tally.run("tests: built", |_| match build(workspace) {
        Ok(found) => {
            let count = found.programs.len();
            built = Some(found);
            Outcome::Passed(format!("{count} programs"))
        }
        Err(output) => Outcome::Failed(output),
    });
    built
}

/// Runs those that compute or step.
pub(crate) fn run_in_virtual_time(tally: &mut Tally, workspace: &Workspace, built: &Built) {
    let lanes = [Use::Computing, Use::Stepping].map(|used| built.that(workspace, used));
    tally.run("tests: in virtual time, and step by step", |tests| {
        together(workspace, lanes, tests)
    });
}

/// Runs those that measure.
pub(crate) fn run_measuring(tally: &mut Tally, workspace: &Workspace, built: &Built) {
    let alone = built.that(workspace, Use::Measuring);
    tally.run("tests: with measurements, one program at a time", |tests| {
        together(workspace, [Vec::new(), alone], tests)
    });
}

/// Runs those that schedule for real.
pub(crate) fn run_in_real_time(tally: &mut Tally, workspace: &Workspace, built: &Built) {
    let alone = built.that(workspace, Use::Live);
    tally.run("tests: in real time, one program at a time", |tests| {
        together(workspace, [Vec::new(), alone], tests)
    });
}

/// Runs the programs of the first list beside each other, and those of the second one after the
/// other beside them.
fn together(workspace: &Workspace, lanes: [Vec<&Program>; 2], tests: &mut Tests) -> Outcome {
    let count = lanes.iter().map(Vec::len).sum::<usize>();
    // Taken from the end: as cargo has named them.
    let [beside, single] = lanes.map(|lane| Mutex::new(lane.into_iter().rev().collect::<Vec<_>>()));
    let results = Mutex::new((Tests::default(), Vec::new()));
    let work = |lane: &Mutex<Vec<&Program>>| {
        loop {
            // A statement of its own: in the head of a loop the list would stay locked while the
            // program runs, and nobody could take the next one.
            let Some(program) = locked(lane).pop() else {
                return;
            };
            let mut counted = Tests::default();
            let outcome = program.run(workspace, "test", program.command(), &mut counted);
            let mut results = locked(&results);
            results.0.add(counted);
            if let Outcome::Failed(output) = outcome {
                results
                    .1
                    .push(format!("{}:\n{output}", program.title(workspace)));
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            work(&single);
            work(&beside);
        });
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for _ in 1..cpus {
            scope.spawn(|| work(&beside));
        }
    });
    let (counted, failed) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    tests.add(counted);
    if failed.is_empty() {
        return Outcome::Passed(format!("{count} programs, {} tests", counted.passed));
    }
    Outcome::Failed(failed.join("\n"))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn workspace() -> Workspace {
        Workspace {
            root: "/p".into(),
            target: "/t".into(),
            metadata: Value::Null,
        }
    }

    #[test]
    fn test_programs_are_told_from_other_artefacts() {
        let workspace = workspace();
        let artefact = |kind: &str, test: bool| {
            json!({
                "reason": "compiler-artifact",
                "profile": { "test": test },
                "target": { "name": "live", "kind": [kind] },
                "executable": "/t/debug/deps/live-1",
                "manifest_path": "/p/platform/linux/Cargo.toml",
            })
        };
        let found = program(&artefact("test", true)).expect("a test program");
        assert_eq!(found.folder, Path::new("/p/platform/linux"));
        assert_eq!(found.title(&workspace), "platform.linux.test.live");
        let same_name = program(&artefact("bin", true)).expect("a test program");
        assert_ne!(same_name.title(&workspace), found.title(&workspace));
        assert!(program(&artefact("bin", false)).is_none());
        assert!(folder_of_command(&artefact("bin", true)).is_none());
        let commands = folder_of_command(&artefact("bin", false));
        assert_eq!(commands.as_deref(), Some(Path::new("/t/debug/deps")));
        assert!(program(&json!({ "reason": "build-finished" })).is_none());
    }

    /// Programs that each wait for the other, in `folder`, and fail if it has not come after so
    /// many looks.
    fn that_meet(folder: &Path, looks: u32) -> [Program; 2] {
        [["one", "other"], ["other", "one"]].map(|[name, awaited]| {
            let path = folder.join(format!("{name}.sh"));
            let text = format!(
                "#!/bin/sh\n: >{name}\nfor look in $(seq {looks}); do\n    \
                 [ -e {awaited} ] && exit 0\n    sleep 0.02\ndone\nexit 1\n"
            );
            fs::write(&path, text).expect("a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
            Program {
                path,
                name: name.to_owned(),
                kind: "test".to_owned(),
                folder: folder.to_path_buf(),
            }
        })
    }

    #[test]
    fn programs_that_compute_run_beside_each_other_and_those_of_a_single_lane_do_not() {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            eprintln!("SKIPPED: two programs at a time take two CPUs");
            return;
        }
        for (is_single, looks) in [(false, 3_000), (true, 10)] {
            let name = format!("xtask-meet-{is_single}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("a folder");
            let workspace = Workspace {
                root: folder.clone(),
                target: folder.clone(),
                metadata: Value::Null,
            };
            let programs = that_meet(&folder, looks);
            let mut lanes = [Vec::new(), Vec::new()];
            lanes[usize::from(is_single)] = programs.iter().collect();
            let outcome = together(&workspace, lanes, &mut Tests::default());
            let _ = fs::remove_dir_all(&folder);
            let meet = matches!(outcome, Outcome::Passed(_));
            assert_eq!(meet, !is_single, "{is_single}");
        }
    }

    #[test]
    fn programs_in_real_time_are_alone_and_those_that_step_are_not() {
        let workspace = workspace();
        let used = |folder: &str, kind: &str, name: &str| {
            let program = Program {
                path: "/t".into(),
                name: name.to_owned(),
                kind: kind.to_owned(),
                folder: Path::new("/p").join(folder),
            };
            program.uses(&workspace)
        };
        let uses = |folder, name| used(folder, "test", name);
        assert_eq!(uses("", "live"), Use::Live);
        assert_eq!(uses("", "virtual_time"), Use::Computing);
        for folder in ["platform/linux", "platform/direct", "runtime/thread"] {
            assert_eq!(uses(folder, "every_instruction"), Use::Stepping);
        }
        assert_eq!(uses("core/kern", "kern"), Use::Computing);
        assert_eq!(uses("front/command", "cli"), Use::Live);
        assert_eq!(
            used("front/command", "lib", "punctual_tools"),
            Use::Computing
        );
        assert_eq!(used("platform/linux", "lib", "punctual_linux"), Use::Live);
        assert_eq!(uses("bench/harness", "bench"), Use::Measuring);
    }
}
