//! The program that is made for a policy: written, built, run, and gone.
//!
//! It is built below the target folder of the crate's own workspace, so that the second check is
//! quick and nothing is left anywhere else. One at a time: a lock keeps two commands apart.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_conform::{Answer, Options};
use serde_json::Value;
use tempfile::TempDir;

use super::child::Limit;
use super::subject::{Subject, cargo, quoted};
use punctual_terminal::ending::Failure;

/// The package and its binary.
const NAME: &str = "punctual-conform-harness";
/// How often a taken lock is tried again.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// A policy as the user names it.
#[derive(Debug)]
pub(super) struct Policy {
    /// Its path in its crate.
    pub(super) path: String,
    /// How it is made; `None`: by `new(capacity)`.
    pub(super) make: Option<String>,
    /// An expression for its claims.
    pub(super) claims: String,
    /// Longest time of one history, its shrinking included.
    pub(super) patience: Duration,
}

/// Builds and runs the check of one policy.
pub(super) fn check(
    subject: &Subject,
    policy: &Policy,
    options: &Options,
    offline: bool,
    limit: &Limit,
) -> Result<Answer, Failure> {
    let temporary = tempfile::tempdir().map_err(no_folder)?;
    let built = build(subject, policy, offline, limit, &temporary)?;
    let command = std::process::Command::new(&built);
    let told = (options, policy.patience);
    judge(command, policy.path.as_str(), told, temporary.path(), limit)
}

/// Runs a harness in a folder of its own, and reads what it found.
pub(super) fn judge(
    mut command: std::process::Command,
    path: &str,
    (options, patience): (&Options, Duration),
    folder: &Path,
    limit: &Limit,
) -> Result<Answer, Failure> {
    let answer = folder.join("answer.json");
    command
        .arg(
            serde_json::to_string(options)
                .map_err(io::Error::other)
                .map_err(no_folder)?,
        )
        .arg(patience.as_millis().max(1).to_string())
        .arg(&answer)
        .current_dir(folder)
        // Whatever the policy prints is a remark of it.
        .stdout(io::stderr());
    let status = limit.run(&mut command, "checking the policy")?;
    let text = fs::read_to_string(&answer).map_err(|_| {
        Failure::run(format!(
            "the check of `{path}` ended without a finding: {status}"
        ))
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("the kit of this crate speaks another version: {error}");
        Failure::run(message).with_help("use the `punctual` command of the version it depends on")
    })
}

/// Writes the package, builds it, and keeps the program in the temporary folder.
fn build(
    subject: &Subject,
    policy: &Policy,
    offline: bool,
    limit: &Limit,
    temporary: &TempDir,
) -> Result<PathBuf, Failure> {
    let ground = ground(subject, temporary);
    let _lock = lock(&ground, limit)?;
    let package = ground.join("package");
    let outcome = write(&package, subject, policy)
        .map_err(no_folder)
        .and_then(|()| compile(&package, &ground, subject, policy, offline, limit))
        .and_then(|program| {
            let kept = temporary.path().join(NAME);
            fs::copy(&program, &kept).map_err(no_folder)?;
            Ok(kept)
        });
    // What cannot be removed is overwritten next time.
    let _ = fs::remove_dir_all(&package);
    outcome
}

/// The folder to build in: below the crate's own target folder, unless that is read-only.
fn ground(subject: &Subject, temporary: &TempDir) -> PathBuf {
    let ground = subject.target.join("punctual-conform");
    let can_write = fs::create_dir_all(&ground).and_then(|()| File::create(ground.join("lock")));
    match can_write {
        Ok(_) => ground,
        Err(_) => temporary.path().to_owned(),
    }
}

fn lock(ground: &Path, limit: &Limit) -> Result<File, Failure> {
    let file = File::create(ground.join("lock")).map_err(no_folder)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => limit.hold("waiting for another check to be built")?,
            // Without locks on this file system two checks at a time may disturb each other.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        std::thread::sleep(TRY_EVERY);
    }
}

fn write(package: &Path, subject: &Subject, policy: &Policy) -> io::Result<()> {
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("Cargo.toml"), manifest(subject))?;
    fs::write(package.join("src/main.rs"), program(policy))?;
    if let Some(lock) = &subject.lock {
        fs::copy(lock, package.join("Cargo.lock"))?;
    }
    Ok(())
}

fn manifest(subject: &Subject) -> String {
    let name = &subject.package;
    let path = quoted(&subject.folder.display().to_string());
    let kit = &subject.kit;
    let itself = if name == "punctual-conform" {
        String::new()
    } else {
        format!("{name} = {{ path = {path} }}\n")
    };
    // Thousands of histories run in what is optimised; the policy keeps its debug assertions.
    let optimised = ["conform", "kern", "model"]
        .map(|part| format!("[profile.dev.package.punctual-{part}]\nopt-level = 1\n"))
        .concat();
    format!(
        "[package]\nname = \"{NAME}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{itself}punctual-conform = {kit}\n\n[workspace]\n\n{optimised}"
    )
}

fn program(policy: &Policy) -> String {
    let Policy {
        path, make, claims, ..
    } = policy;
    let made = match make {
        Some(expression) => expression.clone(),
        None => format!("<{path}>::new(capacity)"),
    };
    format!(
        "//! Checks one policy.\n\n\
         fn made(capacity: usize) -> {path} {{\n    {made}\n}}\n\n\
         fn main() -> std::process::ExitCode {{\n    \
         let claims: punctual_conform::Claims = {claims};\n    \
         punctual_conform::harness(&claims, made)\n}}\n"
    )
}

/// The path of the built program.
fn compile(
    package: &Path,
    ground: &Path,
    subject: &Subject,
    policy: &Policy,
    offline: bool,
    limit: &Limit,
) -> Result<PathBuf, Failure> {
    let (out, err) = (ground.join("messages"), ground.join("remarks"));
    let attempt = |offline: bool| -> Result<Messages, Failure> {
        let mut command = cargo(&subject.folder);
        command
            .args(["build", "--message-format", "json", "--manifest-path"])
            .arg(package.join("Cargo.toml"))
            .args(offline.then_some("--offline"))
            .env("CARGO_TARGET_DIR", ground.join("build"))
            .stdout(File::create(&out).map_err(no_folder)?)
            .stderr(File::create(&err).map_err(no_folder)?);
        let status = limit.run(&mut command, "building the policy")?;
        let read = |path| fs::read_to_string(path).map_err(no_folder);
        Ok(Messages::read(&read(&out)?, &read(&err)?, status.success()))
    };
    let mut messages = attempt(true)?;
    if !messages.succeeded && messages.errors.is_empty() && !offline {
        messages = attempt(false)?;
    }
    match messages.program.filter(|_| messages.succeeded) {
        Some(program) => Ok(program),
        None => Err(explain(
            &messages.errors,
            &messages.remarks,
            subject,
            policy,
        )),
    }
}

/// What cargo said.
#[derive(Debug)]
struct Messages {
    succeeded: bool,
    program: Option<PathBuf>,
    errors: Vec<Error>,
    remarks: String,
}

/// An error of the compiler.
#[derive(Debug)]
struct Error {
    /// In the program that was made, not in the user's crate.
    ours: bool,
    code: String,
    rendered: String,
}

impl Messages {
    fn read(out: &str, err: &str, succeeded: bool) -> Messages {
        let mut messages = Messages {
            succeeded,
            program: None,
            errors: vec![],
            remarks: err.trim_end().to_owned(),
        };
        for line in out.lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let ours = message["target"]["name"] == NAME;
            if let Some(program) = message["executable"].as_str().filter(|_| ours) {
                messages.program = Some(PathBuf::from(program));
            }
            let inner = &message["message"];
            if inner["level"] == "error" {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                messages.errors.push(Error {
                    ours,
                    code: text(&inner["code"]["code"]),
                    rendered: text(&inner["rendered"]),
                });
            }
        }
        messages
    }
}

/// Why it could not be built, in words about the user's crate where that is possible.
fn explain(errors: &[Error], remarks: &str, subject: &Subject, policy: &Policy) -> Failure {
    let (package, path) = (&subject.package, &policy.path);
    let said: String = errors.iter().map(|error| error.rendered.as_str()).collect();
    let said = said.trim_end();
    if errors.is_empty() {
        return Failure::input(format!("the crate `{package}` cannot be built:\n{remarks}"));
    }
    if !errors.iter().all(|error| error.ours) {
        return Failure::input(format!("the crate `{package}` does not build:\n{said}"));
    }
    let has = |codes: &[&str]| {
        errors
            .iter()
            .any(|error| codes.contains(&error.code.as_str()))
    };
    let by_new = policy.make.is_none();
    if has(&["E0433", "E0412", "E0425", "E0603", "E0573", "E0432"]) {
        let message = format!("a path is not there or not public (`{path}`?):\n{said}");
        Failure::input(message).with_help("write it as another crate would: my_crate::MyPolicy")
    } else if by_new && has(&["E0599", "E0061", "E0308", "E0107"]) {
        let message = format!("`{path}` is not made by `new(capacity: usize)`:\n{said}");
        Failure::input(message).with_help(format!(
            "say how it is made: --make '{path}::with_turns(capacity, 10)'"
        ))
    } else if has(&["E0277"]) {
        Failure::input(format!("`{path}` is no policy:\n{said}"))
            .with_help("it must implement the `Policy` of the punctual-kern that the kit uses")
    } else {
        Failure::input(format!("`{path}` cannot be made:\n{said}"))
    }
}

pub(super) fn no_folder(error: io::Error) -> Failure {
    Failure::run(format!(
        "cannot write the program that checks the policy: {error}"
    ))
}
