//! Where a run comes from: the command, the date, the host, the program and the machine.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::time::SystemTime;

use crate::machine;

/// Options that say where results go, and whether a value follows: they change no run.
const OUTPUTS: [(&str, bool); 7] = [
    ("--trace", true),
    ("--record", true),
    ("--report", true),
    ("--out", true),
    ("--json", false),
    ("--quiet", false),
    ("-q", false),
];

/// Lines for the log of a run in virtual time: equal runs of one program have equal ones.
pub fn of_simulation() -> Vec<(String, String)> {
    let mut facts = vec![("command".to_owned(), here("punctual"))];
    facts.extend(commit());
    facts
}

/// Lines for the log or the figures of a run on this machine. `program` is the command that users
/// type before the arguments of this process.
pub fn of_run(program: &str) -> Vec<(String, String)> {
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut facts = vec![
        ("command".to_owned(), here(program)),
        ("date".to_owned(), date),
    ];
    let host = fs::read_to_string("/proc/sys/kernel/hostname");
    facts.extend(host.map(|name| ("host".to_owned(), name.trim().to_owned())));
    facts.extend(
        machine::facts()
            .into_iter()
            .map(|f| (f.name.into(), f.value)),
    );
    facts.extend(commit());
    facts
}

/// The commit that the program was built from, if that is known.
fn commit() -> Option<(String, String)> {
    let commit = option_env!("PUNCTUAL_COMMIT")?;
    Some(("commit".into(), commit.into()))
}

/// The command line of this process.
fn here(program: &str) -> String {
    command(program, env::args_os().skip(1))
}

/// The command line without the options of [`OUTPUTS`], as a shell would take it.
fn command(program: &str, arguments: impl Iterator<Item = OsString>) -> String {
    let mut words = vec![program.to_owned()];
    let mut arguments = arguments.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = arguments.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        match OUTPUTS.iter().find(|(output, _)| *output == name) {
            Some((_, true)) if name == word => drop(arguments.next()),
            Some(_) => {}
            None => words.push(quoted(word)),
        }
    }
    words.join(" ")
}

/// A word that a shell would take apart stands between quotation marks.
fn quoted(word: String) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> String {
        command("punctual", words.iter().map(OsString::from))
    }

    #[test]
    fn a_command_says_what_ran_and_not_where_the_results_went() {
        let words = "sim a.toml --report x.html --for 3s --record=y.log -q --fault jitter --json";
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(of(&words), "punctual sim a.toml --for 3s --fault jitter");
    }

    #[test]
    fn a_name_with_blanks_is_quoted() {
        assert_eq!(
            of(&["run", "it's a file"]),
            r"punctual run 'it'\''s a file'"
        );
    }
}
