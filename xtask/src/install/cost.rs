//! The cost of an installation: processor time of its build, and room on the disk.

use std::fs;
use std::path::PathBuf;

/// An installation without `--all` takes at most so many bytes.
const MOST_BYTES: u64 = 12_000_000;
/// The kernel counts processor time for programs in these parts of a second.
const TICKS: u64 = 100;

/// The processor time of all children that have ended, in seconds.
pub(super) fn seconds_of_children() -> Result<u64, String> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    let said = || format!("/proc/self/stat: {stat}");
    ticks_of_children(&stat)
        .map(|ticks| ticks / TICKS)
        .ok_or_else(said)
}

/// `cutime` and `cstime`, counted from the field behind the name.
fn ticks_of_children(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The sizes of the files; links count nothing.
pub(super) fn bytes_of(files: &[PathBuf]) -> u64 {
    let found = files
        .iter()
        .filter_map(|file| fs::symlink_metadata(file).ok());
    found
        .filter(|data| data.is_file())
        .map(|data| data.len())
        .sum()
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

/// # Errors
/// It is too large.
pub(super) fn within_limit(bytes: u64) -> Result<(), String> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let (most, has) = (megabytes(MOST_BYTES), megabytes(bytes));
    Err(format!(
        "an installation is to take {most} at most, this one took {has}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_refused_with_both_figures() {
        assert_eq!(within_limit(MOST_BYTES), Ok(()));
        let message = within_limit(MOST_BYTES + 100_000).expect_err("too large");
        for bytes in [MOST_BYTES, MOST_BYTES + 100_000] {
            assert!(message.contains(&megabytes(bytes)), "{message}");
        }
        assert_eq!(megabytes(11_640_000), "11.6 MB");
    }

    #[test]
    fn the_processor_time_of_children_is_two_fields_of_many() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 500 70 20 0 1";
        assert_eq!(ticks_of_children(stat), Some(570));
        assert_eq!(ticks_of_children("7 (a) S 1"), None);
        assert!(seconds_of_children().is_ok());
    }

    #[test]
    fn links_take_no_room() {
        let folder = std::env::temp_dir().join(format!("xtask-cost-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.join(name));
        fs::write(&file, [0; 100]).expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert_eq!(bytes_of(&[file, link, folder.join("none")]), 100);
        fs::remove_dir_all(&folder).expect("its own folder");
    }
}
