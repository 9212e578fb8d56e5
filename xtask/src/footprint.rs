//! The code size of graphs on a microcontroller: two whole images, weighed.

use std::fs;
use std::path::PathBuf;

use crate::step::{Outcome, Tests, run_logged};
use crate::workspace::Workspace;

/// The images, what each holds, and the most bytes of code and constants (CompOSe §5: 13 KB, 4 KB
/// of them FIFOs).
const IMAGES: [(&str, &str, u64); 2] = [
    ("footprint-fifo", "FIFOs", 4_000),
    ("footprint-engine", "engine and FIFOs", 13_000),
];

/// Builds the images for a target that is installed, and holds each against its limit.
pub(crate) fn step(workspace: &Workspace, target: &str, tests: &mut Tests) -> Outcome {
    let mut command = workspace.cargo();
    command.args(["build", "--package=punctual-footprint"]);
    command.args(["--profile=footprint", "--target", target]);
    match run_logged(workspace.log_folder(), "footprint", command, tests) {
        Outcome::Passed(_) => {}
        other => return other,
    }
    let built = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let built = built.unwrap_or_else(|| workspace.root.join("target"));
    let folder = built.join(target).join("footprint");
    let mut said = Vec::new();
    let mut is_within = true;
    for (image, what, most) in IMAGES {
        let path = folder.join(image);
        let bytes = fs::read(&path).map_err(|error| error.to_string());
        let size = bytes.and_then(|bytes| loaded(&bytes).ok_or("no ELF image".to_owned()));
        match size {
            Ok(size) => {
                is_within &= size <= most;
                said.push(format!("{what} {size} B of {most}"));
            }
            Err(error) => return Outcome::Failed(format!("{}: {error}", path.display())),
        }
    }
    match is_within {
        true => Outcome::Passed(said.join(", ")),
        false => Outcome::Failed(said.join("\n")),
    }
}

/// The bytes of an ELF image of 32 bits that its memory must hold from the start: code, constants,
/// and variables that are not zero. `None`: this is no such image, or an empty one.
fn loaded(image: &[u8]) -> Option<u64> {
    const NO_BITS: u32 = 8;
    const ALLOCATED: u32 = 2;
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let half = |at: usize| {
        let bytes = image.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
    };
    if !image.starts_with(b"\x7fELF\x01\x01") {
        return None;
    }
    let (table, size, count) = (usize::try_from(word(32)?).ok()?, half(46)?, half(48)?);
    let mut sum = 0;
    for section in (0..count).map(|section| table + section * size) {
        let (kind, flags) = (word(section + 4)?, word(section + 8)?);
        if kind != NO_BITS && flags & ALLOCATED != 0 {
            sum += u64::from(word(section + 20)?);
        }
    }
    (sum > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with sections of these kinds, flags and sizes.
    fn image(sections: &[(u32, u32, u32)]) -> Vec<u8> {
        let count = u16::try_from(sections.len()).unwrap_or(0).to_le_bytes();
        let mut bytes = b"\x7fELF\x01\x01".to_vec();
        bytes.resize(52, 0);
        bytes[32..36].copy_from_slice(&52_u32.to_le_bytes());
        bytes[46..48].copy_from_slice(&40_u16.to_le_bytes());
        bytes[48..50].copy_from_slice(&count);
        for &(kind, flags, size) in sections {
            for word in [0, kind, flags, 0, 0, size, 0, 0, 0, 0] {
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes
    }

    #[test]
    fn code_constants_and_variables_weigh_and_zeros_and_debug_do_not() {
        let all = [
            (1, 6, 100),
            (1, 2, 20),
            (1, 3, 3),
            (8, 3, 5_000),
            (1, 0, 700),
        ];
        assert_eq!(loaded(&image(&all)), Some(123));
        assert_eq!(loaded(&image(&[])), None);
        assert_eq!(loaded(b"\x7fELF\x02\x01"), None);
    }
}
