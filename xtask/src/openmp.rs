//! `cargo xtask bench omp`: constructs of OpenMP on this library and on others, by one program.
//!
//! The program is compiled once; only the library that the loader finds as libgomp.so.1 changes.
//! Libraries take turns, round by round, so that a change of the machine hits all of them. Of each
//! figure the table shows the median of the rounds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

/// Where distributions put LLVM's library.
const LIBOMP: &str = "/usr/lib/x86_64-linux-gnu/libomp.so.5";
/// The name that the loader looks for.
const SONAME: &str = "libgomp.so.1";
/// Nobody waits longer for one library.
const SECONDS: &str = "120";

/// Starts of a program that does nothing, for each library and round.
const STARTS: usize = 200;

const PASSIVE: &[(&str, &str)] = &[("OMP_WAIT_POLICY", "passive")];
const ACTIVE: &[(&str, &str)] = &[
    ("OMP_WAIT_POLICY", "active"),
    ("GOMP_SPINCOUNT", "INFINITY"),
];

/// A library in one of its modes.
struct Rival {
    name: String,
    /// The folder with it; none: the system's own libgomp.
    folder: Option<PathBuf>,
    environment: &'static [(&'static str, &'static str)],
}

/// A figure: unit, median, 99 of 100, largest, number.
type Figure = (String, [f64; 3], u64);

/// Measures; whether everything ran.
pub(crate) fn bench(
    workspace: &Workspace,
    rounds: u32,
    bolt: Option<&Path>,
    as_json: bool,
) -> bool {
    let folder = workspace.target.join("openmp");
    let result = prepare(workspace, &folder)
        .and_then(|program| measure(&program, &rivals(&folder, bolt)?, rounds));
    match result {
        Ok(figures) if as_json => println!("{}", as_value(&figures)),
        Ok(figures) => print(&figures),
        Err(message) => {
            eprintln!("xtask: {message}");
            return false;
        }
    }
    true
}

/// Builds the library as for users, and the program.
fn prepare(workspace: &Workspace, folder: &Path) -> Result<PathBuf, String> {
    let mut build = workspace.cargo();
    build.args(["build", "--quiet", "--locked", "--profile=dist"]);
    build.arg("--package=punctual-openmp");
    if !passes_in_the_open(build) {
        return Err("the library was not built".to_owned());
    }
    let mut link = Command::new("sh");
    link.arg(workspace.root.join("runtime/openmp/link.sh"));
    link.arg(workspace.target.join("dist/libpunctual_openmp.a"));
    link.arg(folder.join("punctual"));
    let program = folder.join("constructs");
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-fopenmp", "-o"]).arg(&program);
    compile.arg(workspace.root.join("bench/openmp/constructs.c"));
    if !passes_in_the_open(link) || !passes_in_the_open(compile) {
        return Err("it takes `cc`, `objcopy` and `gcc` with OpenMP".to_owned());
    }
    Ok(program)
}

fn rivals(folder: &Path, bolt: Option<&Path>) -> Result<Vec<Rival>, String> {
    let mut rivals = Vec::new();
    let mut add = |name: &str, folder: Option<PathBuf>, modes: &[&str]| {
        for mode in modes {
            let environment = match *mode {
                "active" => ACTIVE,
                "passive" => PASSIVE,
                _ => &[],
            };
            let name = format!("{name} {mode}").trim_end().to_owned();
            rivals.push(Rival {
                name,
                folder: folder.clone(),
                environment,
            });
        }
    };
    add("punctual", Some(folder.join("punctual")), &["", "passive"]);
    add("libgomp", None, &["", "active", "passive"]);
    for (name, file) in [("libomp", Some(Path::new(LIBOMP))), ("bolt", bolt)] {
        match file.filter(|file| file.is_file()) {
            Some(file) => {
                let place =
                    named(folder, name, file).map_err(|error| format!("{name}: {error}"))?;
                let modes: &[&str] = if name == "bolt" {
                    &[""]
                } else {
                    &["", "active", "passive"]
                };
                add(name, Some(place), modes);
            }
            None => eprintln!("{name}: not here, so not measured"),
        }
    }
    Ok(rivals)
}

/// A folder in which a library has the name that the loader looks for.
fn named(folder: &Path, name: &str, file: &Path) -> std::io::Result<PathBuf> {
    let place = folder.join(name);
    fs::create_dir_all(&place)?;
    let link = place.join(SONAME);
    let _ = fs::remove_file(&link);
    symlink(file, link)?;
    Ok(place)
}

/// All figures of all rounds, by construct and library, in the order of the program.
type Figures = Vec<(String, BTreeMap<usize, Vec<Figure>>)>;

fn measure(
    program: &Path,
    rivals: &[Rival],
    rounds: u32,
) -> Result<(Vec<String>, Figures), String> {
    let mut figures = Figures::new();
    for round in 1..=rounds {
        for (number, rival) in rivals.iter().enumerate() {
            eprintln!("round {round} of {rounds}: {}", rival.name);
            let mut told = run(program, rival, &[])?;
            told += &run(program, rival, &["one-cpu"])?;
            told += &start(program, rival)?;
            for line in told.lines() {
                let (name, figure) = read(line).ok_or_else(|| format!("what is this: {line}"))?;
                let at = figures.iter().position(|(known, _)| *known == name);
                let at = at.unwrap_or_else(|| {
                    figures.push((name, BTreeMap::new()));
                    figures.len() - 1
                });
                figures[at].1.entry(number).or_default().push(figure);
            }
        }
    }
    let names = rivals.iter().map(|rival| rival.name.clone()).collect();
    Ok((names, figures))
}

/// Runs the program on a library, and gives back its lines.
fn run(program: &Path, rival: &Rival, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.arg(SECONDS).arg(program).args(words);
    command.envs(rival.environment.iter().copied());
    if let Some(folder) = &rival.folder {
        command.env("LD_LIBRARY_PATH", folder);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let (name, status) = (&rival.name, output.status);
        eprintln!("{name}: {status}, the rest is missing: {said}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts the program so often that it does nothing, and says how long one takes, as the program
/// says its own lines; no line where it does not start.
fn start(program: &Path, rival: &Rival) -> Result<String, String> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let mut command = Command::new(program);
        command.arg("start").envs(rival.environment.iter().copied());
        if let Some(folder) = &rival.folder {
            command.env("LD_LIBRARY_PATH", folder);
        }
        let begin = Instant::now();
        let status = command.status().map_err(|error| error.to_string())?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        if !status.success() {
            eprintln!("{}: {status} at a start, which has no row", rival.name);
            return Ok(String::new());
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[STARTS * part / 100];
    let (median, high, largest) = (at(50), at(99), times[STARTS - 1]);
    Ok(format!("start us {median} {high} {largest} {STARTS}"))
}

/// A line of the program: name, unit, median, 99 of 100, largest, number.
fn read(line: &str) -> Option<(String, Figure)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, unit, median, high, largest, count] = words[..] else {
        return None;
    };
    let values = [
        median.parse().ok()?,
        high.parse().ok()?,
        largest.parse().ok()?,
    ];
    Some((
        name.to_owned(),
        (unit.to_owned(), values, count.parse().ok()?),
    ))
}

/// The median over the rounds of the median and of the 99 of 100; the largest of all.
fn combined(rounds: &[Figure]) -> [f64; 3] {
    let median = |index: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|(_, values, _)| values[index]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let largest = rounds.iter().map(|(_, values, _)| values[2]);
    [median(0), median(1), largest.fold(0.0, f64::max)]
}

fn print((names, figures): &(Vec<String>, Figures)) {
    for (construct, by_library) in figures {
        // Ratios are to libgomp as it comes.
        let libgomp = names.iter().position(|name| name == "libgomp");
        let base = libgomp
            .and_then(|at| by_library.get(&at))
            .map(|rounds| combined(rounds)[0]);
        for (number, rounds) in by_library {
            let [median, high, largest] = combined(rounds);
            let (unit, _, count) = &rounds[0];
            let ratio = base.map_or(String::new(), |base| {
                format!("{:.3} x libgomp", median / base)
            });
            let name = &names[*number];
            println!(
                "{construct:<16} {name:<17} {median:>10.4} {high:>12.4} {largest:>13.4} {unit:<7} \
                 n={count}x{} {ratio}",
                rounds.len()
            );
        }
    }
}

fn as_value((names, figures): &(Vec<String>, Figures)) -> Value {
    let rows = figures.iter().flat_map(|(construct, by_library)| {
        by_library.iter().map(move |(number, rounds)| {
            let [median, high, largest] = combined(rounds);
            json!({
                "construct": construct, "library": names[*number], "unit": rounds[0].0,
                "p50": median, "p99": high, "max": largest,
                "samples": rounds[0].2, "rounds": rounds.len(),
            })
        })
    });
    Value::Array(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_read_and_another_is_not() {
        let (name, (unit, values, count)) =
            read("fib-26-2 seconds 0.02 0.03 0.04 5").expect("a line");
        assert_eq!(
            (name.as_str(), unit.as_str(), count),
            ("fib-26-2", "seconds", 5)
        );
        assert_eq!(values, [0.02, 0.03, 0.04]);
        assert!(read("punctual-openmp: something").is_none());
    }

    #[test]
    fn rounds_are_combined_by_their_medians_and_the_largest() {
        let round = |median: f64, largest: f64| ("cycles".to_owned(), [median, median, largest], 5);
        let rounds = [round(3.0, 9.0), round(1.0, 70.0), round(2.0, 8.0)];
        assert_eq!(combined(&rounds), [2.0, 2.0, 70.0]);
    }
}
