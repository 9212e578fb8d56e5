//! Ceilings: the most instructions that each operation may take, in a file of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The file, seen from the top folder.
pub const FILE: &str = "bench/ceilings.toml";

/// Of a ceiling: so much below it, a count says that the ceiling should come down.
const NEAR: f64 = 0.95;

/// The first word of the rows about the cache.
pub(crate) const OF_CACHE: &str = "misses.";

const HEAD: &str = "\
# The most instructions that an operation may take, for `cargo xtask count` (doc/counting.md).
# A change that makes an operation dearer raises its ceiling here, and says in its message why.

";

/// By row.
#[derive(Default, PartialEq, Debug)]
pub struct Ceilings(BTreeMap<String, u64>);

/// A count beside its ceiling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// As it should be.
    Held,
    /// So far below that the ceiling should come down.
    Low,
    /// Too many.
    Above,
    /// It has no ceiling.
    Unknown,
}

impl Ceilings {
    /// Reads the file; one that does not exist holds none.
    ///
    /// # Errors
    /// A file that cannot be read, and a line that is no ceiling.
    pub fn read(path: &Path) -> Result<Ceilings, String> {
        match fs::read_to_string(path) {
            Ok(text) => Ceilings::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Ceilings::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Ceilings, String> {
        let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let ceiling = |line: &str| {
            let (row, count) = line.split_once('=')?;
            let count = count.trim().parse().ok()?;
            Some((row.trim().trim_matches('"').to_owned(), count))
        };
        let lines = text.lines().map(str::trim).filter(is_said);
        let ceilings: Result<_, String> = lines
            .map(|line| ceiling(line).ok_or_else(|| format!("{FILE}: `{line}` is no ceiling")))
            .collect();
        ceilings.map(Ceilings)
    }

    /// These counts are ceilings from now on, with one percent for what unrelated changes of
    /// inlining move.
    pub fn set(&mut self, counts: &[(String, u64)]) {
        let ceilings = counts.iter().cloned();
        self.0
            .extend(ceilings.map(|(row, count)| (row, count + count.div_ceil(100))));
    }

    /// Keeps the rows about the cache, or all others.
    pub fn forget(&mut self, of_cache: bool) {
        self.0
            .retain(|row, _| row.starts_with(OF_CACHE) != of_cache);
    }

    /// As the file has it.
    pub fn text(&self) -> String {
        let lines = self
            .0
            .iter()
            .map(|(row, count)| format!("\"{row}\" = {count}\n"));
        HEAD.to_owned() + &lines.collect::<String>()
    }

    /// The ceiling of a row.
    pub fn of(&self, row: &str) -> Option<u64> {
        self.0.get(row).copied()
    }

    /// Judges a count.
    pub fn judge(&self, row: &str, count: u64) -> Judgement {
        match self.of(row) {
            None => Judgement::Unknown,
            Some(ceiling) if count > ceiling => Judgement::Above,
            Some(ceiling) if (count as f64) < NEAR * ceiling as f64 => Judgement::Low,
            Some(_) => Judgement::Held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_above_its_ceiling_fails_and_one_far_below_says_so() {
        let ceilings = Ceilings::parse("# words\n\n\"a.b\" = 1000\n").expect("a file");
        let judge = |count| ceilings.judge("a.b", count);
        assert_eq!(judge(1_001), Judgement::Above);
        assert_eq!(judge(1_000), Judgement::Held);
        assert_eq!(judge(950), Judgement::Held);
        assert_eq!(judge(949), Judgement::Low);
        assert_eq!(ceilings.judge("a.c", 0), Judgement::Unknown);
    }

    #[test]
    fn a_file_that_was_written_is_read_again() {
        let mut ceilings = Ceilings::default();
        ceilings.set(&[("b".to_owned(), 2), ("a".to_owned(), 1)]);
        ceilings.set(&[("b".to_owned(), 3)]);
        assert_eq!(Ceilings::parse(&ceilings.text()), Ok(ceilings));
    }

    #[test]
    fn rows_about_the_cache_are_set_apart() {
        let mut ceilings = Ceilings::default();
        ceilings.set(&[("misses.a".to_owned(), 2), ("core.a".to_owned(), 1)]);
        ceilings.forget(false);
        assert_eq!(
            (ceilings.of("misses.a"), ceilings.of("core.a")),
            (Some(3), None)
        );
        ceilings.forget(true);
        assert_eq!(ceilings, Ceilings::default());
    }

    #[test]
    fn a_line_that_is_no_ceiling_is_an_error() {
        assert!(Ceilings::parse("\"a\" = many").is_err());
        assert!(Ceilings::parse("a").is_err());
    }
}
