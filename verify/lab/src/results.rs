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
    // Files of a few bytes may name a study of millions: its units are listed when all were found.
    let all = study.unit_count();
    let beyond = found.split_off(&all);
    if let Some(first) = (0..all).find(|number| !found.contains_key(number)) {
        let missing = all - found.len();
        let what = format!("{missing} of {all} lines are missing, unit {first} first");
        return Err(Failure::input(what).with_help(lacking(first, shards)));
    }
    if let Some((unit, _)) = beyond.first_key_value() {
        return Err(Failure::input(format!("unit {unit} is not in this study")));
    }
    let mut text = line_of(&Header::new(&study, Shard::WHOLE))?;
    for (unit, (number, line)) in study.units().iter().zip(&found) {
        if !study.fits(line, *number, unit) {
            let what = format!("unit {number} is no result of this study");
            return Err(Failure::input(what));
        }
        text += &line_of(line)?;
    }
    Ok((study, found.into_values().collect(), text))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A study that must never be listed.
    #[derive(Clone, PartialEq, Serialize, Deserialize)]
    struct Huge(usize);

    impl Study for Huge {
        const NAME: &'static str = "a huge study";
        type Unit = usize;
        type Line = usize;

        fn check(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn unit_count(&self) -> usize {
            self.0
        }

        fn units(&self) -> Vec<usize> {
            panic!("lists {} units", self.0)
        }

        fn evaluate(&self, number: usize, _: &usize) -> Result<usize, Failure> {
            Ok(number)
        }

        fn unit_of(line: &usize) -> usize {
            *line
        }

        fn fits(&self, line: &usize, number: usize, _: &usize) -> bool {
            *line == number
        }
    }

    #[test]
    fn a_study_of_millions_is_not_listed_for_a_file_of_a_few_bytes() {
        let study = Huge(usize::MAX);
        let all = usize::MAX;
        for (units, missing, first) in [(&[][..], all, 0), (&[0, 1, 5], all - 3, 2)] {
            let found = units.iter().map(|unit| (*unit, *unit)).collect();
            let merged = whole(study.clone(), found, &["1/3".into()]);
            let said = merged
                .err()
                .map_or(String::new(), |failure| failure.to_string());
            let expected = format!("{missing} of {all} lines are missing, unit {first} first");
            assert!(said.contains(&expected), "{said}");
        }
    }
}
