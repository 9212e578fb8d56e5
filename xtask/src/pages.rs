//! `cargo xtask pages`: makes report pages and looks in Chromium for text that collides or is cut.
//!
//! The pages stay in `target/xtask/pages`, to be looked at by people. Without Chromium nothing is
//! looked at, and the chore says so and fails: it has found nothing out.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::step::{Outcome, Tests, passes_in_the_open, run_within};
use crate::workspace::Workspace;

/// The check that the browser runs.
const CHECK: &str = include_str!("pages.js");
/// Names under which Chromium is known.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// The browser is ended after this long.
const LIMIT: Duration = Duration::from_secs(120);
/// Widths of a screen and of a telephone, in pixels.
const WIDTHS: [u32; 2] = [1280, 420];
/// Each page: its name, and the command that makes it.
const PAGES: [(&str, &str); 8] = [
    ("flawless", "sim two-tasks.toml --for 3s"),
    (
        "holes",
        "sim two-tasks.toml --for 30s --fault missing-time=200ms/3s",
    ),
    (
        "misses",
        "sim two-tasks.toml --for 20s --fault overrun=fast:6",
    ),
    ("waters", "sim waters2019-fixed.toml --for 2s"),
    ("decoders", "sim compose-decoders.toml --for 2s"),
    ("levels", "sim three-levels.toml --for 3s"),
    (
        "two-cpus",
        "sim avionics-two-cpus.toml --for 1s --fault missing-time=3ms/200ms",
    ),
    ("refused", "report waters2019.toml"),
];

/// Makes the pages and checks each in every width; whether nothing was found.
pub(crate) fn run(workspace: &Workspace) -> bool {
    let mut build = workspace.cargo();
    build.args(["build", "--quiet", "--package", "punctual-tools"]);
    let folder = workspace.log_folder().join("pages");
    if !passes_in_the_open(build) {
        return false;
    }
    match make(workspace, &folder).and_then(|()| check(&folder)) {
        Ok(told) => {
            print!("{told}");
            !told.is_empty() && told.lines().all(|line| line.ends_with(" 0 findings"))
        }
        Err(message) => {
            eprintln!("xtask: {message}");
            false
        }
    }
}

/// Writes the pages, and one page with all of them in frames.
fn make(workspace: &Workspace, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut frames = String::new();
    for (name, words) in PAGES {
        let page = folder.join(format!("{name}.html"));
        let _ = fs::remove_file(&page);
        let mut punctual = Command::new(workspace.target.join("debug").join("punctual"));
        punctual.current_dir(workspace.root.join("examples"));
        punctual.args(words.split(' ')).arg("--report").arg(&page);
        let done = punctual.arg("-q").output();
        let done = done.map_err(|error| format!("punctual {words}: {error}"))?;
        if !page.exists() || done.status.code().is_none_or(|code| code > 1) {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(format!("punctual {words}: {said}"));
        }
        for width in WIDTHS {
            let _ = writeln!(
                frames,
                "<iframe title=\"{name} {width}\" src=\"{name}.html\" width=\"{width}\" \
                 height=\"900\" style=\"border:0\"></iframe>"
            );
        }
    }
    let all = format!("<!doctype html><pre></pre>\n{frames}<script>\n{CHECK}</script>\n");
    let path = folder.join("all.html");
    fs::write(&path, all).map_err(|error| format!("{}: {error}", path.display()))
}

/// What the browser finds: a line per page and width, and one per finding.
fn check(folder: &Path) -> Result<String, String> {
    let known = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = BROWSERS.iter().find(known) else {
        return Err("SKIPPED: no Chromium here; the pages were made, but not looked at".into());
    };
    let mut command = Command::new(browser);
    command.args([
        "--headless=new",
        "--disable-gpu",
        "--allow-file-access-from-files",
    ]);
    command.args(["--virtual-time-budget=20000", "--dump-dom"]);
    // Chromium refuses to be root without this; it sees nothing but our own pages.
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        command.arg("--no-sandbox");
    }
    command.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    command.arg(format!("file://{}", folder.join("all.html").display()));
    let log = folder.join("browser.log");
    let looked = run_within(
        LIMIT,
        folder.into(),
        "browser",
        command,
        &mut Tests::default(),
    );
    if let Outcome::Failed(why) = looked {
        return Err(why);
    }
    let dom = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let told = dom
        .split_once("<pre>")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    match told {
        Some((told, _)) if !told.is_empty() => Ok(told.to_owned()),
        _ => Err(format!("{browser} told nothing about the pages")),
    }
}
