//! Every command that reads a file from outside, and where the files come from that are mutated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::Workspace;

/// A command, and its files.
pub(super) struct Reader {
    pub(super) name: &'static str,
    /// Its program in the target folder.
    pub(super) program: &'static str,
    /// Its words: `{}` is the input, `{whole}` the file that it was made of, `{out}` a file that
    /// the command may make.
    pub(super) words: &'static [&'static str],
    pub(super) corpus: Corpus,
}

/// Files that the command reads as they are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Corpus {
    /// Those of folders, each so many times.
    Files(&'static [(&'static str, usize)]),
    /// Words that make the file `{out}` of an example, `{}`, for each of them.
    Examples(&'static [&'static str]),
    /// Words of the program that make one each.
    Made(&'static [&'static [&'static str]]),
    /// The file itself.
    Text(&'static str),
}

/// Terms of a machine, which `doctor` measures for seconds.
const PLATFORM: &str = "[machine]\nswitch = \"1us\"\ntimer = \"2us\"\npreemption = \"3us\"\n\
    missing-time = { budget = \"10us\", period = \"10ms\" }\nreserve = []\n\
    [measured]\ncpu = \"0\"\nkernel = \"6.1\"\nmode = \"real-time\"\n";

/// Prices of a machine, which `study costs` measures for seconds.
const COSTS: &str = "machine = \"of tests\"\nline-ps = 90000\nstep-ps = 5000\n\
    admission-ns = [40000, 40001, 40002, 40003, 40004, 40005, 40006, 40007, 40008, 40009, 40010]\n\
    element-ps = 2000\nentry-ns = 500\nswitch-ns = 50\ntimer-ns = 1000\npreemption-ns = 5000\n\
    late-ns = 2000\nclock-error-ns = 100\n";

/// A record of a program of OpenMP, which needs one that gcc compiled.
const RECORD: &str = "punctual-openmp record 1\nclock 2000 cycles 1000 ns\n\
    carrier 0 program lost 0\nRuns 0 1 0 5 70 0\nfunction 70 a.out+0x46\n\
    Offered 0 3 100 9 8 2\nAnnounced 0 4 110 9 0 0\nFrees 0 5 120 0 0 0\nFree 0 6 130 3 8 1\n\
    Looked 0 8 300 5 8 0\nLooked 0 10 400 9 8 0\nHub 0 11 500 0 0 0\nRuns 0 12 600 5 70 0\n\
    Hub 0 14 900 0 0 0\ncarrier 1 pool lost 0\nAsleep 1 2 50 0 0 0\nCarried 1 7 60 3 6 0\n\
    Woken 1 20 700 19 0 0\nTaken 1 22 710 9 21 0\nRuns 1 23 711 9 71 1\nHub 1 24 800 0 0 0\n";

/// Most mutations break a file, and many files are broken already: those that are not count several
/// times.
const SYSTEMS: Corpus = Corpus::Files(&[
    ("examples", 4),
    ("front/spec/tests/valid", 8),
    ("front/spec/tests/mistakes", 1),
]);
const LOGS: Corpus = Corpus::Examples(&["sim", "{}", "--for", "5ms", "--record", "{out}"]);
const SWEEP: &[&str] = &[
    "--out",
    "{out}",
    "--sets",
    "4",
    "--tasks",
    "3",
    "--utilization",
    "70%..90%:10%",
];

pub(super) const READERS: [Reader; 15] = [
    of("system", &["check", "{}"], SYSTEMS),
    of(
        "platform",
        &["check", "examples/two-tasks.toml", "--platform", "{}"],
        Corpus::Text(PLATFORM),
    ),
    of(
        "certificate",
        &["verify", "{}"],
        Corpus::Examples(&["check", "{}", "--certificate", "{out}"]),
    ),
    of("log", &["report", "{}"], LOGS),
    of("trace", &["report", "{}", "--trace", "{out}"], LOGS),
    of("replay", &["replay", "{}"], LOGS),
    of("policy", &["replay", "{}", "--policy", "edf"], LOGS),
    of("diff", &["diff", "{whole}", "{}"], LOGS),
    of(
        "sdf3",
        &["import", "{}"],
        Corpus::Examples(&["export", "{}"]),
    ),
    of("omp", &["omp", "--draw", "{}"], Corpus::Text(RECORD)),
    beside(
        "sweep",
        "punctual-sweep",
        &["merge", "{}"],
        Corpus::Made(&[SWEEP]),
    ),
    beside(
        "sweep-on",
        "punctual-sweep",
        &[
            "--out",
            "{}",
            "--sets",
            "4",
            "--tasks",
            "3",
            "--utilization",
            "70%..90%:10%",
            "--threads",
            "1",
        ],
        Corpus::Made(&[SWEEP]),
    ),
    beside("study", "punctual-study", &["merge", "{}"], STUDIES),
    beside(
        "costs",
        "punctual-study",
        &[
            "gang-admission",
            "--members",
            "2",
            "--rounds",
            "1",
            "--costs",
            "{}",
            "--out",
            "{out}",
            "--threads",
            "1",
        ],
        Corpus::Text(COSTS),
    ),
    beside(
        "study-on",
        "punctual-study",
        &[
            "plan-success",
            "--sets",
            "2",
            "--out",
            "{}",
            "--threads",
            "1",
        ],
        Corpus::Made(&[&["plan-success", "--sets", "2", "--out", "{out}"]]),
    ),
];

const STUDIES: Corpus = Corpus::Made(&[
    &["plan-success", "--sets", "2", "--out", "{out}"],
    &["slots", "--lengths", "10000,20000", "--out", "{out}"],
    &[
        "plan-times",
        "--sizes",
        "5",
        "--allowed-us",
        "10",
        "--sets",
        "1",
        "--out",
        "{out}",
    ],
]);

const fn of(name: &'static str, words: &'static [&'static str], corpus: Corpus) -> Reader {
    beside(name, "punctual", words, corpus)
}

const fn beside(
    name: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    corpus: Corpus,
) -> Reader {
    Reader {
        name,
        program,
        words,
        corpus,
    }
}

impl Reader {
    /// Its command, at the top of the workspace. `place` finds the file for a word in braces.
    pub(super) fn command(
        &self,
        workspace: &Workspace,
        words: &[&str],
        place: impl Fn(&str) -> Option<PathBuf>,
    ) -> Command {
        let mut command = Command::new(workspace.target.join("debug").join(self.program));
        command.current_dir(&workspace.root);
        for word in words {
            match place(word) {
                Some(path) => command.arg(path),
                None => command.arg(word),
            };
        }
        command
    }

    /// The files to mutate, in an order that depends on nothing else.
    pub(super) fn files(&self, workspace: &Workspace, folder: &Path) -> Vec<Vec<u8>> {
        let make = |words: &[&str], example: Option<&Path>| {
            let out = folder.join("made");
            let _ = fs::remove_file(&out);
            let place = |word: &str| match word {
                "{}" => example.map(Path::to_path_buf),
                "{out}" => Some(out.clone()),
                _ => None,
            };
            let mut command = self.command(workspace, words, place);
            let output = command.stdin(Stdio::null()).output().ok()?;
            // A command that takes no other file prints what it makes.
            fs::read(&out).ok().or(Some(output.stdout))
        };
        let examples = || files(&workspace.root.join("examples"));
        let mut made: Vec<Vec<u8>> = match self.corpus {
            Corpus::Text(text) => vec![text.into()],
            Corpus::Made(all) => all.iter().filter_map(|words| make(words, None)).collect(),
            Corpus::Examples(words) => {
                let each = examples().into_iter();
                each.filter_map(|path| make(words, Some(&path))).collect()
            }
            Corpus::Files(folders) => {
                let paths = folders.iter().flat_map(|(folder, times)| {
                    let files = files(&workspace.root.join(folder));
                    std::iter::repeat_n(files, *times).flatten()
                });
                paths.filter_map(|path| fs::read(path).ok()).collect()
            }
        };
        made.retain(|file| (1..64 << 10).contains(&file.len()));
        made.dedup();
        made
    }
}

/// The system files of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    paths
}
