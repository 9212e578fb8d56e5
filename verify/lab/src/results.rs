//! The file of results: a header, then a line per unit; appended to, completed, merged.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::pieces::{Shard, Study};
use punctual_terminal::ending::Failure;
use punctual_terminal::output::JSON_FORMAT;

/// The first line of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: DeserializeOwned"))]
struct Header<S> {
    format: u32,
    study: S,
    shard: String,
}

impl<S: Study> Header<S> {
    fn new(study: &S, shard: Shard) -> Header<S> {
        Header {
            format: JSON_FORMAT,
            study: study.clone(),
            shard: shard.to_string(),
        }
    }

    fn read(line: &str) -> Option<Header<S>> {
        serde_json::from_str(line).ok()
    }
}

/// The study that a file of results is about, if it has begun.
pub fn study_of<S: Study>(path: &Path) -> Option<S> {
    let text = std::fs::read_to_string(path).ok()?;
    let (first, _) = text.split_once('\n')?;
    Some(Header::read(first)?.study)
}

/// A value as a line.
fn line_of(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::run(format!("cannot write a result as JSON: {error}")))?;
    Ok(text + "\n")
}

/// The file that a run appends to.
#[derive(Debug)]
pub(crate) struct Log<S: Study> {
    path: PathBuf,
    file: File,
    lines: Vec<S::Line>,
}

impl<S: Study> Log<S> {
    /// Opens or makes the file. Its lines of these units stay; a last line that was cut off is
    /// dropped.
    ///
    /// Fails on a file that is anything else: nothing of a user's is overwritten.
    pub(crate) fn open(
        path: &Path,
        study: &S,
        shard: Shard,
        units: &[(usize, S::Unit)],
    ) -> Result<Log<S>, Failure> {
        let header = line_of(&Header::new(study, shard))?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options
            .open(path)
            .map_err(|error| cannot_write(path, &error))?;
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            let what = format!("cannot append to {}: it is no file", path.display());
            return Err(Failure::run(what)
                .with_help("--out names a file: what it holds is read, and completed"));
        }
        let text = punctual_terminal::input::text(path)?;
        let mut lines = Vec::new();
        let mut kept = header.len();
        if !text.is_empty() && !header.starts_with(&text) {
            let rest = text
                .strip_prefix(&header)
                .ok_or_else(|| another::<S>(path, &text))?;
            for whole in rest
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
            {
                let line = serde_json::from_str::<S::Line>(whole).ok();
                let expected = units.get(lines.len());
                let line = line
                    .zip(expected)
                    .filter(|(line, (number, unit))| study.fits(line, *number, unit));
                let (line, _) = line.ok_or_else(|| {
                    let number = lines.len() + 2;
                    Failure::input(format!(
                        "{}: line {number} is no result of it",
                        path.display()
                    ))
                    .with_help("name another file, or delete this one")
                })?;
                kept += whole.len();
                lines.push(line);
            }
        } else {
            rewrite(&mut file, &header).map_err(|error| cannot_write(path, &error))?;
        }
        let end = u64::try_from(kept).unwrap_or(u64::MAX);
        file.set_len(end)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(|error| cannot_write(path, &error))?;
        Ok(Log {
            path: path.to_owned(),
            file,
            lines,
        })
    }

    pub(crate) fn lines(&self) -> &[S::Line] {
        &self.lines
    }

    pub(crate) fn into_lines(self) -> Vec<S::Line> {
        self.lines
    }

    /// Adds a line; it is in the file when this returns.
    pub(crate) fn append(&mut self, line: S::Line) -> Result<(), Failure> {
        let text = line_of(&line)?;
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| cannot_write(&self.path, &error))?;
        self.lines.push(line);
        Ok(())
    }
}

fn rewrite(file: &mut File, header: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(header.as_bytes())
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", path.display()))
}

/// Why this file cannot be completed by this command.
fn another<S: Study>(path: &Path, text: &str) -> Failure {
    let first = text.lines().next().unwrap_or_default();
    let what = match Header::<S>::read(first) {
        Some(_) => "holds another study, another seed or another shard".to_owned(),
        None => format!("holds something else than the results of {}", S::NAME),
    };
    Failure::input(format!("{} {what}", path.display()))
        .with_help("name another file with --out, or delete this one")
}

/// Joins shards of one study: the study, its lines, and the file that a single run would have
/// written.
///
/// # Errors
/// Files that are no results, or of another study, and units without a result or with two.
pub fn merge<S: Study>(parts: &[PathBuf]) -> Result<(S, Vec<S::Line>, String), Failure> {
    let mut study: Option<S> = None;
    let mut found: BTreeMap<usize, S::Line> = BTreeMap::new();
    let mut shards = Vec::new();
    for path in parts {
        let text = punctual_terminal::input::text(path)?;
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let header = Header::<S>::read(first).ok_or_else(|| another::<S>(path, &text))?;
        if *study.get_or_insert_with(|| header.study.clone()) != header.study {
            let other = format!(
                "{} is of another study than those before it",
                path.display()
            );
            return Err(Failure::input(other));
        }
        shards.push(header.shard);
        for (number, line) in lines.enumerate() {
            let broken = || {
                let number = number + 2;
                Failure::input(format!("{}: line {number} is no result", path.display()))
                    .with_help("run its shard again: it completes the file")
            };
            let line = serde_json::from_str::<S::Line>(line).map_err(|_| broken())?;
            let unit = S::unit_of(&line);
            if found
                .insert(unit, line.clone())
                .is_some_and(|before| before != line)
            {
                let two = format!("{}: unit {unit} has two results", path.display());
                return Err(Failure::input(two));
            }
        }
    }
    let study = study.ok_or_else(|| Failure::input("nothing to merge"))?;
    study.check()?;
    whole(study, found, &shards)
}

/// Every unit once, and nothing else.
fn whole<S: Study>(
    study: S,
    mut found: BTreeMap<usize, S::Line>,
    shards: &[String],
) -> Result<(S, Vec<S::Line>, String), Failure> {
    let units = study.units();
    let mut text = line_of(&Header::new(&study, Shard::WHOLE))?;
    let mut lines = Vec::with_capacity(units.len());
    for (number, unit) in units.iter().enumerate() {
        let missing = units.len() - found.len().min(units.len());
        let line = found.get(&number).ok_or_else(|| {
            Failure::input(format!(
                "{} of {} lines are missing, unit {number} first",
                missing.max(1),
                units.len()
            ))
            .with_help(lacking(number, shards))
        })?;
        if !study.fits(line, number, unit) {
            return Err(Failure::input(format!(
                "unit {number} is no result of this study"
            )));
        }
        text += &line_of(line)?;
        lines.push(line.clone());
    }
    if let Some((unit, _)) = found.split_off(&units.len()).first_key_value() {
        return Err(Failure::input(format!("unit {unit} is not in this study")));
    }
    Ok((study, lines, text))
}

/// Advice for a unit without a result: its shard was not named, or has not come to its end.
fn lacking(unit: usize, shards: &[String]) -> String {
    let first = shards.first().and_then(|shard| shard.parse::<Shard>().ok());
    match first.map(|shard| shard.sibling_of(unit).to_string()) {
        Some(shard) if shards.contains(&shard) => {
            format!("run shard {shard} again: it completes its file")
        }
        Some(shard) => format!("name the results of shard {shard} as well"),
        None => "name the results of all shards, each run to its end".into(),
    }
}
