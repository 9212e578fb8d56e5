//! One step: a command or a check, timed, its output kept until it fails.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::idle;

/// Lines shown of a failing step; the whole output stays in its log.
const SHOWN_LINES: usize = 200;

/// How often a command is asked whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// How often what ran in idle time is looked for, to get the class of all else.
const LOOK: Duration = Duration::from_millis(500);

/// How a step ended.
pub(crate) enum Outcome {
    /// With a short remark for its line, possibly empty.
    Passed(String),
    /// With everything that helps to find out why.
    Failed(String),
    /// The machine lacks what it needs; the reason is printed loudly.
    Skipped(String),
}

/// Counts over all steps, for the summary.
#[derive(Default)]
pub(crate) struct Tally {
    /// Steps that passed.
    pub passed: usize,
    /// Titles of the steps that failed.
    pub failed: Vec<String>,
    /// Titles of the steps that were skipped.
    pub skipped: Vec<String>,
    /// Results of single tests inside all steps.
    pub tests: Tests,
    /// Others print, too: a step prints its line when it has ended, and at once.
    has_company: bool,
}

/// Results of single tests, as the test binaries report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were not run.
    pub ignored: u64,
}

impl Tests {
    /// Adds those of others.
    pub(crate) fn add(&mut self, others: Tests) {
        self.passed += others.passed;
        self.failed += others.failed;
        self.ignored += others.ignored;
    }

    /// Sums the `test result:` lines of any number of test binaries.
    pub(crate) fn count(output: &str) -> Tests {
        let mut sum = Tests::default();
        for line in output
            .lines()
            .filter(|line| line.starts_with("test result:"))
        {
            let number = |word: &str| {
                line.split(['.', ';'])
                    .find_map(|part| part.trim().strip_suffix(word))
                    .and_then(|count| count.trim().parse::<u64>().ok())
                    .unwrap_or(0)
            };
            sum.passed += number("passed");
            sum.failed += number("failed");
            sum.ignored += number("ignored");
        }
        sum
    }
}

impl Tally {
    /// Runs one step and prints its line.
    pub(crate) fn run(&mut self, title: &str, step: impl FnOnce(&mut Tests) -> Outcome) {
        let mut shown = format!("{title:<58}");
        if !self.has_company {
            print!("{}", mem::take(&mut shown));
            // A line that appears late is no reason to stop; only its order would suffer.
            let _ = io::stdout().flush();
        }
        let start = Instant::now();
        let outcome = step(&mut self.tests);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Outcome::Passed(remark) => {
                println!("{shown} ok      {seconds:6.1} s  {remark}");
                self.passed += 1;
            }
            Outcome::Failed(output) => {
                println!("{shown} FAILED  {seconds:6.1} s\n{output}");
                self.failed.push(title.to_string());
            }
            Outcome::Skipped(reason) => {
                println!("{shown} SKIPPED {seconds:6.1} s");
                println!("    *** NOT CHECKED: {title}: {reason}");
                self.skipped.push(title.to_string());
            }
        }
    }

    /// Runs two series of steps beside each other; lines of one stand between those of the other.
    pub(crate) fn beside(
        &mut self,
        first: impl FnOnce(&mut Tally) + Send,
        second: impl FnOnce(&mut Tally),
    ) {
        let mut lanes = [(); 2].map(|()| Tally {
            has_company: true,
            ..Tally::default()
        });
        let [one, other] = &mut lanes;
        thread::scope(|scope| {
            scope.spawn(|| first(one));
            second(other);
        });
        for lane in lanes {
            self.passed += lane.passed;
            self.failed.extend(lane.failed);
            self.skipped.extend(lane.skipped);
            self.tests.add(lane.tests);
        }
    }

    /// Runs `rest` beside `first` in the time that nothing else wants of any CPU, and as all else
    /// once `first` has ended. Where that class cannot be had, `rest` begins then.
    pub(crate) fn in_idle_time(
        &mut self,
        first: impl FnOnce(&mut Tally) + Send,
        rest: impl FnOnce(&mut Tally) + Send,
    ) {
        // Nothing is sent: a sender that is gone says that its side has ended, or has panicked.
        let (first_ends, first_ended) = mpsc::channel::<()>();
        let (rest_ends, rest_ended) = mpsc::channel::<()>();
        self.beside(
            // A thread of its own, whose class ends with it.
            move |tally| {
                let _ends = rest_ends;
                if !idle::begin() {
                    let _ = first_ended.recv();
                }
                rest(tally);
            },
            move |tally| {
                first(tally);
                drop(first_ends);
                while rest_ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    idle::end();
                }
            },
        );
    }

    /// Prints the summary; the last line counts single tests in the form that CI systems read.
    pub(crate) fn finish(&self, start: Instant) -> bool {
        println!();
        for title in &self.skipped {
            println!("skipped: {title}");
        }
        for title in &self.failed {
            println!("failed: {title}");
        }
        println!(
            "{} steps passed, {} failed, {} skipped in {:.0} s",
            self.passed,
            self.failed.len(),
            self.skipped.len(),
            start.elapsed().as_secs_f64()
        );
        // A step that failed before it could count (a build, say) must not end as "0 failed".
        let failed = self.tests.failed.max(self.failed.len() as u64);
        println!("{} passed, {failed} failed", self.tests.passed);
        self.failed.is_empty()
    }
}

/// Runs `command` with its output in a log under `folder`; counts the tests that it reports.
pub(crate) fn run_logged(
    folder: PathBuf,
    name: &str,
    command: Command,
    tests: &mut Tests,
) -> Outcome {
    run_within(Duration::MAX, folder, name, command, tests)
}

/// As [`run_logged`], but a command that runs for longer than `bound` is killed, and has failed.
pub(crate) fn run_within(
    bound: Duration,
    folder: PathBuf,
    name: &str,
    mut command: Command,
    tests: &mut Tests,
) -> Outcome {
    let log = folder.join(format!("{name}.log"));
    let status = fs::create_dir_all(&folder)
        .and_then(|()| File::create(&log))
        .and_then(|file| {
            let both = file.try_clone()?;
            command.stdin(Stdio::null()).stdout(file).stderr(both);
            wait(&mut command.spawn()?, bound)
        });
    let status = match status {
        Ok(status) => status,
        Err(error) => return Outcome::Failed(format!("{command:?}: {error}")),
    };
    let output = fs::read(&log).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let counted = Tests::count(&output);
    tests.add(counted);
    let ended = match status {
        Some(status) if status.success() => return Outcome::Passed(remark(counted)),
        Some(status) => status.to_string(),
        None => format!("killed, it ran for longer than its bound of {bound:?}"),
    };
    Outcome::Failed(format!(
        "{}({name}: {command:?}: {ended}; log: {})",
        excerpt(&output),
        log.display()
    ))
}

/// How a command ended; `None`: it was killed, because it had not ended within `bound`.
fn wait(child: &mut Child, bound: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < bound {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(PAUSE);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// What helps most to find out why: what failing tests said, wherever in the output it stands; else
/// its last lines.
fn excerpt(output: &str) -> String {
    let mut told = Vec::new();
    let mut telling = false;
    for line in output.lines() {
        telling |= line == "failures:";
        if telling {
            told.push(line);
        }
        telling &= !line.starts_with("test result:");
    }
    let lines = match told.is_empty() {
        true => output.lines().collect(),
        false => told,
    };
    let first = lines.len().saturating_sub(SHOWN_LINES);
    let hidden = match first {
        0 => String::new(),
        _ => format!("... {first} lines before\n"),
    };
    format!("{hidden}{}\n", lines[first..].join("\n"))
}

/// Runs `command` with the terminal as its own; whether it succeeded.
pub(crate) fn passes_in_the_open(mut command: Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("xtask: {command:?}: {error}");
            false
        }
    }
}

fn remark(tests: Tests) -> String {
    match tests {
        Tests {
            passed: 0,
            failed: 0,
            ignored: 0,
        } => String::new(),
        Tests {
            passed, ignored: 0, ..
        } => format!("{passed} tests"),
        Tests {
            passed, ignored, ..
        } => format!("{passed} tests, {ignored} ignored"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn results_of_all_binaries_are_added_up() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 40 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(
            Tests::count(output),
            Tests {
                passed: 42,
                failed: 3,
                ignored: 1
            }
        );
    }

    #[test]
    fn series_beside_each_other_count_as_one_and_a_failure_in_either_fails_all() {
        let passed = |tests: &mut Tests| {
            tests.passed += 1;
            Outcome::Passed(String::new())
        };
        let failed = |_: &mut Tests| Outcome::Failed("the reason".to_owned());
        for fails_first in [false, true] {
            let mut tally = Tally::default();
            let series = |fails: bool| {
                move |tally: &mut Tally| {
                    tally.run("sample: passes", passed);
                    if fails {
                        tally.run("sample: fails", failed);
                    }
                }
            };
            tally.beside(series(fails_first), series(!fails_first));
            assert_eq!((tally.passed, tally.tests.passed), (2, 2));
            assert_eq!(tally.failed, ["sample: fails"]);
            assert!(!tally.finish(Instant::now()));
        }
    }

    fn class() -> u32 {
        idle::class_of(Path::new("/proc/thread-self")).expect("Linux")
    }

    #[test]
    fn what_runs_in_idle_time_counts_and_has_its_class_no_longer_than_the_rest_runs() {
        let before = class();
        let (begun, has_begun) = mpsc::channel();
        let mut has_begun = Some(has_begun);
        let mut tally = Tally::default();
        let mut seen = (before, before);
        tally.in_idle_time(
            |tally| {
                tally.run("sample: first", |tests| {
                    tests.passed += 1;
                    let _ = has_begun.take().map(|begun| begun.recv_timeout(LOOK));
                    Outcome::Passed(String::new())
                });
                assert_eq!(class(), before);
            },
            |tally| {
                seen.0 = class();
                let _ = begun.send(());
                tally.run("sample: rest", |tests| {
                    tests.passed += 1;
                    let ends = |_: &i32| {
                        thread::sleep(PAUSE);
                        class() != idle::SCHED_IDLE
                    };
                    let _ = (0..3_000).find(ends);
                    Outcome::Passed(String::new())
                });
                seen.1 = class();
            },
        );
        assert_eq!((tally.passed, tally.tests.passed), (2, 2));
        assert_eq!(class(), before);
        assert!([before, idle::SCHED_IDLE].contains(&seen.0), "{seen:?}");
        assert_ne!(seen.1, idle::SCHED_IDLE);
    }

    #[test]
    fn what_a_failing_test_said_is_shown_however_much_follows() {
        let after = "test another ... ok\n".repeat(2 * SHOWN_LINES);
        let output = format!(
            "running 1 test\n\nfailures:\n\n---- one stdout ----\nthe reason\n\nfailures:\n    \
             one\n\ntest result: FAILED. 0 passed; 1 failed\n{after}"
        );
        let shown = excerpt(&output);
        assert!(shown.contains("the reason") && shown.contains("FAILED"));
        assert!(!shown.contains("another"), "{shown}");
        assert!(excerpt(&after).contains("another"));
    }

    #[test]
    fn a_failing_command_fails_its_step_and_shows_its_output() {
        let folder = std::env::temp_dir().join(format!("xtask-step-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo the reason; exit 3"]);
        let outcome = run_logged(folder.clone(), "sample", command, &mut Tests::default());
        let _ = fs::remove_dir_all(folder);
        match outcome {
            Outcome::Failed(output) => assert!(output.contains("the reason"), "{output}"),
            _ => panic!("exit status 3 is a failure"),
        }
    }

    #[test]
    fn a_command_that_hangs_is_killed_and_its_name_bound_log_and_last_words_are_told() {
        let folder = std::env::temp_dir().join(format!("xtask-hang-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo the last words; exec sleep 60"]);
        let bound = Duration::from_millis(3_000);
        let outcome = run_within(
            bound,
            folder.clone(),
            "sample",
            command,
            &mut Tests::default(),
        );
        let log = folder.join("sample.log").display().to_string();
        let _ = fs::remove_dir_all(folder);
        let Outcome::Failed(output) = outcome else {
            panic!("a command that hangs is a failure")
        };
        for told in ["the last words", "sample:", "bound of 3s", &log] {
            assert!(output.contains(told), "{told}: {output}");
        }
    }
}
