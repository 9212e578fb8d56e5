//! `cargo xtask install`: the command with pages, the C library with its headers, libgomp.so.1.
//!
//! With `--all` also the static library and the programs that measure and verify Punctual itself.

mod cmake;
mod cost;
mod link;
mod trial;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::step::{Outcome, Tally, passes_in_the_open, run_logged};
use crate::workspace::Workspace;
use trial::{EXAMPLES, trial};

/// The command.
const COMMAND: &str = "punctual";

/// The programs that it starts by name, which `--all` installs.
const BESIDE: [&str; 5] = [
    "punctual-bench",
    "punctual-compare",
    "punctual-conform",
    "punctual-study",
    "punctual-sweep",
];

/// The packages of what is installed always.
const PACKAGES: [&str; 2] = ["punctual-installed", "punctual-openmp"];

/// The packages of [`BESIDE`], and of the static library.
const PACKAGES_BESIDE: [&str; 4] = [
    "punctual-bench",
    "punctual-compare",
    "punctual-lab",
    "punctual-library",
];

const HEADERS: [&str; 5] = [
    "punctual.h",
    "punctual_policy.h",
    "punctual_pthread.h",
    "punctual_pthread_locks.h",
    "punctual_pthread_threads.h",
];

/// The name that programs ask the loader for; the first number of the version of the interface.
const SONAME: &str = "libpunctual.so.0";

/// The library with the versions that programs ask for, and the one for LD_PRELOAD.
const OPENMP: [&str; 2] = ["libgomp.so.1", "libpunctual-openmp.so"];

/// The libraries that a program with the static one needs beside it.
const BESIDE_STATIC: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Where to.
#[derive(Args)]
pub(crate) struct InstallOptions {
    /// The folder above `bin`, `include` and `lib`
    #[arg(long, default_value = "/usr/local")]
    prefix: PathBuf,
    /// Put before every path that is written, but into none: for packages
    #[arg(long)]
    destdir: Option<PathBuf>,
    /// The static library, too, and the programs that measure and verify Punctual itself
    #[arg(long)]
    all: bool,
    /// A quick build, for tries
    #[arg(long)]
    debug: bool,
    /// Afterwards build the C examples with the libraries that were installed, and run them
    #[arg(long = "try", conflicts_with = "destdir")]
    tries: bool,
    /// Take away the files that an installation put there, and build nothing
    #[arg(long, conflicts_with_all = ["all", "debug", "tries"])]
    remove: bool,
}

/// Builds and installs, or takes away; whether that went well.
pub(crate) fn run(workspace: &Workspace, options: &InstallOptions) -> bool {
    let mut say = |path: &Path| println!("{}", path.display());
    let done = match options.remove {
        true => Places::of(options).and_then(|places| places.remove(&mut say)),
        false => build_and_install(workspace, options).map(|paths| {
            paths.iter().for_each(|path| say(path));
        }),
    };
    match done {
        Ok(()) => true,
        Err(message) => {
            eprintln!("xtask: {message}");
            false
        }
    }
}

fn build_and_install(
    workspace: &Workspace,
    options: &InstallOptions,
) -> Result<Vec<PathBuf>, String> {
    let mut build = workspace.cargo();
    build.args(["build", "--locked"]);
    let beside = options.all.then_some(PACKAGES_BESIDE);
    let packages = PACKAGES.into_iter().chain(beside.into_iter().flatten());
    build.args(packages.map(|package| format!("--package={package}")));
    build.args((!options.debug).then_some("--profile=shipped"));
    if !passes_in_the_open(build) {
        return Err("the commands and the library were not built".to_owned());
    }
    eprintln!(
        "built in {} s of processor time",
        cost::seconds_of_children()?
    );
    let profile = if options.debug { "debug" } else { "shipped" };
    let built = Built::in_one(workspace.target.join(profile));
    let written = install(workspace, &built, options)?;
    let bytes = cost::bytes_of(&written);
    eprintln!("installed {}", cost::megabytes(bytes));
    if !options.all && !options.debug {
        cost::within_limit(bytes)?;
    }
    if options.tries && !passes_in_the_open(trial(workspace, options, &EXAMPLES)?) {
        return Err("the examples did not work".to_owned());
    }
    Ok(written)
}

/// Where cargo has put what is installed.
struct Built {
    programs: PathBuf,
    libraries: PathBuf,
    /// The shared library has the command, too; else that is a program.
    is_one: bool,
}

impl Built {
    fn in_one(folder: PathBuf) -> Built {
        Built {
            programs: folder.clone(),
            libraries: folder,
            is_one: true,
        }
    }

    fn shared(&self) -> PathBuf {
        let of = if self.is_one { "installed" } else { "library" };
        self.libraries.join(format!("libpunctual_{of}.so"))
    }
}

/// As a step of the tests: what they have built is installed, found by pkg-config, linked and run,
/// and taken away. (An optimised build takes too long for it: `cargo xtask install --try`.)
pub(crate) fn step(tally: &mut Tally, workspace: &Workspace, commands: &Path) {
    tally.run(
        "install: the commands, and a program in C by pkg-config",
        |tests| {
            let folder = workspace.log_folder().join("installed");
            // What an earlier run left, if it did.
            let _ = fs::remove_dir_all(&folder);
            let options = InstallOptions {
                prefix: folder.clone(),
                destdir: None,
                all: true,
                debug: true,
                tries: false,
                remove: false,
            };
            let built = Built {
                programs: commands.to_path_buf(),
                libraries: commands.join("deps"),
                is_one: false,
            };
            if let Err(message) = install(workspace, &built, &options) {
                return Outcome::Failed(message);
            }
            let present = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
            if let Some(tool) = ["pkg-config", "cc"].into_iter().find(|tool| !present(tool)) {
                return Outcome::Skipped(format!("there is no `{tool}` here"));
            }
            let outcome = match trial(workspace, &options, &EXAMPLES[..1]) {
                Ok(command) => run_logged(workspace.log_folder(), "install", command, tests),
                Err(message) => Outcome::Failed(message),
            };
            let removed = Places::of(&options).and_then(|places| places.remove(&mut |_| {}));
            let folders = "lib/pkgconfig lib/cmake/punctual lib include bin share/man/man1";
            let left: Vec<Vec<PathBuf>> = folders
                .split(' ')
                .map(|within| files_in(&folder.join(within)))
                .collect();
            // A hundred megabytes and more, in a debug build, if it is still there.
            let _ = fs::remove_dir_all(&folder);
            match (outcome, removed) {
                (Outcome::Passed(_), Err(message)) => Outcome::Failed(message),
                (Outcome::Passed(_), Ok(())) if left.iter().any(|files| !files.is_empty()) => {
                    Outcome::Failed(format!("an installation that is removed leaves {left:?}"))
                }
                (outcome, _) => outcome,
            }
        },
    );
}

/// Files and links in a folder; none, if it cannot be read.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    files.map(|entry| entry.path()).collect()
}

/// Where everything goes.
struct Places {
    /// As programs will find it, without `--destdir`.
    prefix: PathBuf,
    bin: PathBuf,
    include: PathBuf,
    library: PathBuf,
}

impl Places {
    fn of(options: &InstallOptions) -> Result<Places, String> {
        let prefix = std::path::absolute(&options.prefix).map_err(|error| error.to_string())?;
        let top = match &options.destdir {
            Some(destdir) => destdir.join(prefix.strip_prefix("/").unwrap_or(&prefix)),
            None => prefix.clone(),
        };
        Ok(Places {
            prefix,
            bin: top.join("bin"),
            include: top.join("include"),
            library: top.join("lib"),
        })
    }

    fn beside(&self) -> [PathBuf; BESIDE.len()] {
        BESIDE.map(|name| self.bin.join(name))
    }

    fn headers(&self) -> [PathBuf; HEADERS.len()] {
        HEADERS.map(|name| self.include.join(name))
    }

    /// The file, and the two links to it.
    fn shared(&self) -> [PathBuf; 3] {
        let file = format!("libpunctual.so.{}", env!("CARGO_PKG_VERSION"));
        [file.as_str(), SONAME, "libpunctual.so"].map(|name| self.library.join(name))
    }

    /// The libraries for programs of OpenMP, in a folder where no loader looks by itself.
    fn openmp(&self) -> [PathBuf; 2] {
        OPENMP.map(|name| self.library.join("punctual/openmp").join(name))
    }

    fn archive(&self) -> PathBuf {
        self.library.join("libpunctual.a")
    }

    /// What `pkg-config` reads: of the shared library, and of the static one.
    fn descriptions(&self) -> [PathBuf; 2] {
        ["punctual.pc", "punctual-static.pc"].map(|name| self.library.join("pkgconfig").join(name))
    }

    /// The files that `find_package` of CMake reads.
    fn cmake(&self) -> [PathBuf; 2] {
        cmake::FILES.map(|name| self.library.join("cmake/punctual").join(name))
    }

    /// Where man pages and completions are.
    fn share(&self) -> PathBuf {
        self.bin.with_file_name("share")
    }

    /// The man pages and completions of `punctual pages` that are there.
    fn pages(&self) -> Vec<PathBuf> {
        let folders = [
            "man/man1",
            "bash-completion/completions",
            "zsh/site-functions",
            "fish/vendor_completions.d",
        ];
        let files = folders.map(|folder| files_in(&self.share().join(folder)));
        let ours = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let name = name.trim_start_matches('_');
            name.starts_with("punctual.") || name.starts_with("punctual-") || name == "punctual"
        };
        files.into_iter().flatten().filter(ours).collect()
    }

    /// The file that a version other than this one has put behind the links, if they lead to one.
    fn of_another_version(&self) -> Option<PathBuf> {
        let [this, soname, plain] = self.shared();
        let behind = |link: &PathBuf| {
            let target = fs::read_link(link).ok()?;
            let name = target.to_str()?.strip_prefix("libpunctual.so.")?;
            // In the same folder: others' links may lead anywhere.
            (!name.contains('/')).then(|| self.library.join(&target))
        };
        let first = behind(&plain).unwrap_or(soname);
        let file = behind(&first).unwrap_or(first);
        (file != this).then_some(file)
    }

    /// Takes away every file that is there, of this version and of the one that the links lead to,
    /// and calls `gone` with each. Folders stay: whether others had made them is not known.
    ///
    /// # Errors
    ///
    /// What could not be removed; or names of further versions, which stay.
    fn remove(&self, gone: &mut dyn FnMut(&Path)) -> Result<(), String> {
        let mut files = self.headers().to_vec();
        files.push(self.archive());
        files.push(self.bin.join(COMMAND));
        files.extend(self.beside());
        files.extend(self.openmp());
        files.extend(self.descriptions());
        files.extend(self.cmake());
        files.extend(self.pages());
        // Before the links, which are needed to find it when this is tried again.
        files.extend(self.of_another_version());
        files.extend(self.shared());
        for file in files {
            match fs::remove_file(&file) {
                Ok(()) => gone(&file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", file.display())),
            }
        }
        let ours = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| name.starts_with("libpunctual.so"))
        };
        match files_in(&self.library).iter().find(|path| ours(path)) {
            Some(path) => Err(format!(
                "no link led to {}: it is still there",
                path.display()
            )),
            None => Ok(()),
        }
    }
}

/// What was written.
fn install(
    workspace: &Workspace,
    built: &Built,
    options: &InstallOptions,
) -> Result<Vec<PathBuf>, String> {
    let places = Places::of(options)?;
    let headers = workspace.root.join("runtime/capi/include");
    let [shared, soname, plain] = places.shared();
    let mut written = Written(Vec::new());
    written.copy(&built.shared(), &shared)?;
    written.link(shared.file_name().unwrap_or_default(), &soname)?;
    written.link(SONAME.as_ref(), &plain)?;
    let command = places.bin.join(COMMAND);
    match built.is_one {
        true => written.at(&command, |command| {
            link::command(workspace, &places, command)
        })?,
        false => written.stripped("--strip-all", &built.programs.join(COMMAND), &command)?,
    }
    let [pc, pc_static] = places.descriptions();
    if options.all {
        for (name, place) in BESIDE.iter().zip(&places.beside()) {
            written.stripped("--strip-all", &built.programs.join(name), place)?;
        }
        let archive = built.libraries.join("libpunctual_library.a");
        written.stripped("--strip-debug", &archive, &places.archive())?;
        // Named by its file, because linkers prefer the shared one.
        let libs = format!("${{libdir}}/libpunctual.a {BESIDE_STATIC}");
        let text = pkg_config(&places.prefix, env!("CARGO_PKG_VERSION"), &libs);
        written.text(&text, &pc_static)?;
    } else {
        // Of another version, if an earlier installation had them.
        let stale = places.beside().into_iter();
        for file in stale.chain([places.archive(), pc_static]) {
            let _ = fs::remove_file(file);
        }
    }
    for (name, place) in HEADERS.iter().zip(&places.headers()) {
        written.copy(&headers.join(name), place)?;
    }
    written.0.extend(link::openmp(workspace, built, &places)?);
    let libs = format!("-L${{libdir}} -lpunctual\nLibs.private: {BESIDE_STATIC}");
    let text = pkg_config(&places.prefix, env!("CARGO_PKG_VERSION"), &libs);
    written.text(&text, &pc)?;
    let texts = cmake::texts(env!("CARGO_PKG_VERSION"), SONAME, BESIDE_STATIC);
    for (place, text) in places.cmake().iter().zip(texts) {
        written.text(&text, place)?;
    }
    let mut pages = Command::new(command);
    let output = pages.arg("pages").arg(places.share()).output();
    match output {
        Ok(output) if output.status.success() => written.0.extend(places.pages()),
        Ok(output) => return Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => return Err(format!("punctual pages: {error}")),
    }
    Ok(written.0)
}

/// What `pkg-config` reads.
fn pkg_config(prefix: &Path, version: &str, libs: &str) -> String {
    let lines = [
        format!("prefix={}", prefix.display()),
        "includedir=${prefix}/include".to_owned(),
        "libdir=${prefix}/lib".to_owned(),
        String::new(),
        "Name: punctual".to_owned(),
        "Description: Hard real time for ordinary Linux programs".to_owned(),
        format!("Version: {version}"),
        "Cflags: -I${includedir}".to_owned(),
        format!("Libs: {libs}"),
    ];
    lines.join("\n") + "\n"
}

struct Written(Vec<PathBuf>);

impl Written {
    /// A new file or link at `path`: what was there goes, so that programs that use it keep theirs.
    fn at(
        &mut self,
        path: &Path,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), String> {
        let fail = |error: io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => write(path).map_err(fail)?,
        }
        self.0.push(path.to_path_buf());
        Ok(())
    }

    fn copy(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let told =
            |error: io::Error| io::Error::new(error.kind(), format!("from {from:?}: {error}"));
        self.at(to, |to| fs::copy(from, to).map(drop).map_err(told))
    }

    /// A file without what only debuggers read, if there is a `strip`: what `how` says is left out.
    fn stripped(&mut self, how: &str, from: &Path, to: &Path) -> Result<(), String> {
        self.copy(from, to)?;
        let _ = Command::new("strip").arg(how).arg(to).status();
        Ok(())
    }

    fn link(&mut self, target: &OsStr, at: &Path) -> Result<(), String> {
        self.at(at, |at| symlink(target, at))
    }

    fn text(&mut self, text: &str, at: &Path) -> Result<(), String> {
        self.at(at, |at| fs::write(at, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places under a new folder of that name, with the folders of an installation in it.
    fn places(name: &str) -> Places {
        let prefix = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&prefix);
        fs::create_dir_all(prefix.join("lib/pkgconfig")).expect("a folder");
        fs::create_dir_all(prefix.join("include")).expect("a folder");
        Places {
            bin: prefix.join("bin"),
            include: prefix.join("include"),
            library: prefix.join("lib"),
            prefix,
        }
    }

    /// Puts a library of another version and the links to it there.
    fn install_version(places: &Places, version: &str) -> PathBuf {
        let name = format!("libpunctual.so.{version}");
        let [_, soname, plain] = places.shared();
        for path in [&soname, &plain] {
            let _ = fs::remove_file(path);
        }
        fs::write(places.library.join(&name), "").expect("a file");
        symlink(&name, &soname).expect("a link");
        symlink(SONAME, &plain).expect("a link");
        places.library.join(name)
    }

    #[test]
    fn the_description_names_the_prefix_once_and_the_version() {
        let text = pkg_config(Path::new("/opt/p"), "1.2.3", "-lp");
        assert_eq!(text.matches("/opt/p").count(), 1);
        assert!(text.contains("\nVersion: 1.2.3\n") && text.ends_with('\n'));
    }

    #[test]
    fn removing_takes_the_files_of_the_version_that_is_there_and_no_folder() {
        let places = places("remove");
        let file = install_version(&places, "0.0.9");
        let mut gone = Vec::new();
        places
            .remove(&mut |path| gone.push(path.to_path_buf()))
            .expect("removed");
        assert!(gone.contains(&file), "{gone:?}");
        assert_eq!(files_in(&places.library), [] as [PathBuf; 0]);
        assert!(places.include.exists() && places.library.join("pkgconfig").exists());
        fs::remove_dir_all(&places.prefix).expect("its own folder");
    }

    #[test]
    fn removing_says_which_version_no_link_led_to_and_leaves_what_lies_elsewhere() {
        let places = places("versions");
        let lost = install_version(&places, "0.0.8");
        install_version(&places, "0.0.9");
        let message = places.remove(&mut |_| {}).expect_err("one is still there");
        assert!(message.contains("libpunctual.so.0.0.8"), "{message}");
        assert_eq!(files_in(&places.library), std::slice::from_ref(&lost));
        // A link of the name of ours, made by somebody else.
        fs::remove_file(&lost).expect("a file");
        let elsewhere = places.prefix.join("libpunctual.so.0.0.7");
        fs::write(&elsewhere, "").expect("a file");
        symlink("../libpunctual.so.0.0.7", &places.shared()[1]).expect("a link");
        places.remove(&mut |_| {}).expect("removed");
        assert!(elsewhere.exists() && files_in(&places.library).is_empty());
        fs::remove_dir_all(&places.prefix).expect("its own folder");
    }

    #[test]
    fn removing_tells_of_every_file_that_is_gone_before_the_one_that_cannot_be_removed() {
        let places = places("midway");
        fs::write(&places.headers()[0], "").expect("a file");
        fs::create_dir(places.archive()).expect("a folder, which is no file to remove");
        let mut gone = Vec::new();
        let removed = places.remove(&mut |path| gone.push(path.to_path_buf()));
        assert!(removed.is_err_and(|message| message.contains("libpunctual.a")));
        assert_eq!(gone, places.headers()[..1]);
        fs::remove_dir_all(&places.prefix).expect("its own folder");
    }
}
