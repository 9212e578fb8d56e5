//! Files that nobody would write: seeded mutations, to show that no input breaks the reader.
//!
//! A round is a pure function of its seed, so a failure is a seed and a commit. Most rounds start
//! from a file that is valid, since random bytes seldom get past the notation.

use punctual_spec::{MAX_DIAGNOSTICS, parse, write};

/// Most bytes of a mutated file.
const MAX_BYTES: usize = 16 * 1024;

/// Pieces that matter to the notation, to numbers and to the table of keys.
const PIECES: &[&str] = &[
    "\n",
    "\n[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'''",
    "\"\"\"",
    "\\",
    "\\u0000",
    "#",
    " ",
    "\r",
    "\u{feff}",
    "\u{0}",
    "é",
    "µ",
    "𝄞",
    "-",
    "_",
    "0",
    "18446744073709551615",
    "99999999999999999999999999",
    "1e400",
    "nan",
    "true",
    "1979-05-27",
    "0x",
    "0b2",
    "%",
    "100%",
    "0.0000000001",
    "ns",
    "us",
    "ms",
    "s",
    "\"18446744073.709551615s\"",
    "\"0s\"",
    "\"1ns\"",
    "[system]\n",
    "[cpu.0]\n",
    "[scheduler.s]\n",
    "[resource.r]\n",
    "[task.a]\n",
    "[machine]\n",
    "[require]\n",
    "[run]\n",
    "cpus = [0]\n",
    "policy = \"edf\"\n",
    "policy = \"tdm\"\nframe = \"10ms\"\n",
    "policy = \"fixed-priority\"\n",
    "on = \"scheduler.s\"\n",
    "server = { kind = \"sporadic\", budget = \"1ms\", period = \"9ms\" }\n",
    "slots = [{ at = \"0ms\", length = \"1ms\" }]\n",
    "trust = \"own-time\"\n",
    "quota = 1\n",
    "protocol = \"srp\"\n",
    "uses = [{ resource = \"r\", for = \"1ms\", inside = \"r\" }]\n",
    "chain = [{ tasks = [\"a\", \"a\"], within = \"1ms\" }]\n",
    "class = \"sporadic\"\n",
    "period",
    "after = [\"a\"]\n",
    "follows",
    "work",
    "inside = \"r\"",
    "arrivals = { at = [] }\n",
    "defaults = \"nautilus\"\n",
    "reserve = []\n",
];

/// The findings of a number of rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    /// Files read.
    pub(crate) rounds: u64,
    /// Files that still meant something.
    pub(crate) valid: u64,
    /// Mistakes reported in the others.
    pub(crate) mistakes: u64,
}

impl Tally {
    /// Adds another tally.
    pub(crate) fn add(&mut self, other: Tally) {
        self.rounds += other.rounds;
        self.valid += other.valid;
        self.mistakes += other.mistakes;
    }
}

/// Reads one file made from `seed` and one of `corpus`, and checks what must hold for any file.
///
/// # Panics
///
/// It does when the reader does, when it reports nothing or too much, or when a mistake points
/// outside of the file. It also does when a system that is written and read again is another one.
/// That is its purpose.
pub(crate) fn round(seed: u64, corpus: &[&str]) -> Tally {
    let mut random = Random(seed);
    let text = generate(&mut random, corpus);
    let mut tally = Tally {
        rounds: 1,
        ..Tally::default()
    };
    match parse(&text, "fuzz.toml") {
        Ok(description) => {
            assert!(
                description.system.validate().is_ok(),
                "accepted, but not valid"
            );
            let written = write(&description.system);
            let again = parse(&written, "written.toml");
            assert!(
                again.is_ok_and(|again| again.system == description.system),
                "written and read again, it is another system:\n{written}"
            );
            tally.valid = 1;
        }
        Err(mistakes) => {
            assert!(
                (1..=MAX_DIAGNOSTICS).contains(&mistakes.len()),
                "{} mistakes",
                mistakes.len()
            );
            let lines = text.split('\n').count();
            for mistake in &mistakes {
                assert!((1..=lines).contains(&mistake.line), "{mistake:?}");
                assert!(mistake.column >= 1, "{mistake:?}");
                assert!(
                    !mistake.message.is_empty() && !mistake.help.is_empty(),
                    "{mistake:?}"
                );
            }
            // Rendering costs most of a round; the first of them stands for the others.
            assert!(
                mistakes
                    .first()
                    .is_some_and(|first| !first.render(true).is_empty())
            );
            tally.mistakes = u64::try_from(mistakes.len()).unwrap_or(u64::MAX);
        }
    }
    tally
}

/// The file of a seed, as [`round`] reads it, to look at a failure.
pub(crate) fn file_of(seed: u64, corpus: &[&str]) -> String {
    generate(&mut Random(seed), corpus)
}

fn generate(random: &mut Random, corpus: &[&str]) -> String {
    let mut bytes = match random.below(16) {
        0 => (0..random.below(400)).map(|_| random.byte()).collect(),
        1 => (0..random.below(100))
            .flat_map(|_| random.pick(PIECES).bytes())
            .collect(),
        2 => nested(random),
        _ => random.pick(corpus).as_bytes().to_vec(),
    };
    for _ in 0..random.below(8) {
        mutate(&mut bytes, random, corpus);
        bytes.truncate(MAX_BYTES);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Deep nesting, of one of its kinds.
fn nested(random: &mut Random) -> Vec<u8> {
    let depth = random.below(4_000);
    let piece = random.pick(&["[", "{a=", "a.", "[[", "\"", "[a.", "{a.b="]);
    let start = random.pick(&["", "work = ", "[task.a]\nwork = ", "a.", "["]);
    format!("{start}{}", piece.repeat(depth)).into_bytes()
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random, corpus: &[&str]) {
    let at = random.below(bytes.len() + 1);
    let end = (at + random.below(40)).min(bytes.len());
    match random.below(8) {
        0 => drop(bytes.drain(at..end)),
        1 => drop(bytes.splice(at..at, random.pick(PIECES).bytes())),
        2 => drop(bytes.splice(at..end, random.pick(PIECES).bytes())),
        3 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.byte();
            }
        }
        4 => {
            let copied = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            drop(bytes.splice(to..to, copied));
        }
        5 => drop_line(bytes, at),
        6 => {
            let lines: Vec<&str> = random.pick(corpus).lines().collect();
            let line = if lines.is_empty() {
                ""
            } else {
                random.pick(&lines)
            };
            drop(bytes.splice(at..at, format!("\n{line}\n").into_bytes()));
        }
        _ => bytes.truncate(at),
    }
}

/// Removes the line in which `at` stands.
fn drop_line(bytes: &mut Vec<u8>, at: usize) {
    let is_newline = |byte: &u8| *byte == b'\n';
    let begin = bytes[..at]
        .iter()
        .rposition(is_newline)
        .map_or(0, |newline| newline + 1);
    let end = bytes[at..]
        .iter()
        .position(is_newline)
        .map_or(bytes.len(), |newline| at + newline);
    bytes.drain(begin..end);
}

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014): every seed is as good as another.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 when that is 0.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// One of `all`; the empty text when there is none.
    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all.get(self.below(all.len())).copied().unwrap_or("")
    }
}
