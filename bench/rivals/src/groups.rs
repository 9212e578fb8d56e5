//! Control groups of the kernel: made and ended, and their quota as a switch.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Samples;
use crate::thread::{Place, on};

/// Groups that are made.
const ROUNDS: u32 = 200;

/// A control group of this process; it ends with the value.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
    /// Dropped after the folder is gone; `None`: it holds no thread of this process.
    keeper: Option<Keeper>,
    /// Dropped after the folder is gone.
    enabled: Option<Enabled>,
}

/// Another process, which removes a folder when this one is no more, however it ended: a group is
/// not left behind by a second Ctrl-C either.
#[derive(Debug)]
struct Keeper(Child);

impl Keeper {
    /// The signals of a terminal are for this process, not for the keeper.
    const SCRIPT: &str = "trap '' INT TERM HUP QUIT; read -r _; for _ in 1 2 3 4 5 6 7 8 9 10; do \
                          [ -d \"$1\" ] || exit; rmdir \"$1\" 2> /dev/null && { [ -z \"$2\" ] || \
                          echo -cpu > \"$2\"; exit; }; sleep 0.1; done";

    /// The keeper of a folder, and of the controller that was enabled for it.
    fn of(folder: &Path, enabled: Option<&Enabled>) -> Result<Keeper, String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", Keeper::SCRIPT, "sh"]).arg(folder);
        shell.args(enabled.map(|enabled| &enabled.0));
        let started = shell.stdin(Stdio::piped()).spawn();
        started
            .map(Keeper)
            .map_err(|error| format!("nobody to remove a control group: {error}"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.0.stdin.take());
        let _ended = self.0.wait();
    }
}

/// The `cpu` controller, enabled for groups below a folder, where it was not: disabled when this
/// is dropped.
#[derive(Debug)]
struct Enabled(PathBuf);

impl Enabled {
    /// `None`: it is enabled already.
    fn below(root: &Path) -> Result<Option<Enabled>, String> {
        let control = root.join("cgroup.subtree_control");
        if lists_cpu(&control) {
            return Ok(None);
        }
        write(&control, "+cpu")?;
        Ok(Some(Enabled(control)))
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        if let Err(why) = write(&self.0, "-cpu") {
            eprintln!("bench: the cpu controller stays enabled: {why}");
        }
    }
}

impl Group {
    /// An empty one in the unified hierarchy.
    pub(crate) fn make(name: &str) -> Result<Group, String> {
        let root = unified().ok_or("there is no unified hierarchy of control groups")?;
        Group::below(&root, name, None)
    }

    /// An empty one with a quota, which takes the `cpu` controller: in the unified hierarchy, or
    /// in one of its own (version 1), where its files have other names.
    pub(crate) fn with_quota(name: &str) -> Result<Group, String> {
        let unified = unified();
        let offers = |root: &PathBuf| lists_cpu(&root.join("cgroup.controllers"));
        if let Some(root) = unified.as_ref().filter(|root| offers(root)) {
            let enabled = Enabled::below(root)?;
            return Group::below(root, name, enabled);
        }
        let root = own_hierarchy().ok_or("no control groups have the cpu controller here")?;
        Group::below(&root, name, None)
    }

    fn below(root: &Path, name: &str, enabled: Option<Enabled>) -> Result<Group, String> {
        end_abandoned(root);
        let folder = root.join(format!("{NAME}{}-{name}", process::id()));
        let made = fs::create_dir(&folder);
        made.map_err(|error| format!("no control group in {}: {error}", root.display()))?;
        Ok(Group {
            folder,
            keeper: None,
            enabled,
        })
    }

    /// Takes a process in, which must have a quota then. It is of an ordinary class.
    pub(crate) fn take(&self, process: i32) -> Result<(), String> {
        self.limit(true)?;
        write(&self.folder.join("cgroup.procs"), &process.to_string())
    }

    /// Takes a thread of this process in, which may execute for a slice of each period, both in
    /// nanoseconds. It is of an ordinary class.
    pub(crate) fn hold(&mut self, thread: i32, (period, slice): (u64, u64)) -> Result<(), String> {
        self.keeper = Some(Keeper::of(&self.folder, self.enabled.as_ref())?);
        let (period, slice) = (period / 1_000, slice / 1_000);
        let set = |file: &str, text: String| {
            write(&self.folder.join(file), &text).map_err(|why| match slice < LEAST_US {
                true => "the kernel has no quota below 1 ms, and no period".into(),
                false => format!("{slice} us of each {period} us: {why}"),
            })
        };
        if self.folder.join("cpu.max").exists() {
            set("cpu.max", format!("{slice} {period}"))?;
            write(&self.folder.join("cgroup.type"), "threaded")?;
            return write(&self.folder.join("cgroup.threads"), &thread.to_string());
        }
        set("cpu.cfs_period_us", period.to_string())?;
        set(QUOTA_OF_ITS_OWN, slice.to_string())?;
        write(&self.folder.join("tasks"), &thread.to_string())
    }

    /// All the time, or the least that there is.
    pub(crate) fn limit(&self, runs: bool) -> Result<(), String> {
        let (unified, of_its_own) = match runs {
            true => ("max 1000000", "-1"),
            false => ("1000 1000000", "1000"),
        };
        let file = self.folder.join("cpu.max");
        if file.exists() {
            return write(&file, unified);
        }
        write(&self.folder.join(QUOTA_OF_ITS_OWN), of_its_own)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that were killed leave it a moment later.
        for _ in 0..100 {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(1));
                }
                _ => return,
            }
        }
        eprintln!("bench: {} is not empty and stays", self.folder.display());
    }
}

/// Groups of ours are called so, and by the process that made them.
const NAME: &str = "punctual-";
/// The kernel's least quota, and its least period.
const LEAST_US: u64 = 1_000;
/// The quota in a hierarchy of version 1.
const QUOTA_OF_ITS_OWN: &str = "cpu.cfs_quota_us";

/// The unified hierarchy.
fn unified() -> Option<PathBuf> {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let mut roots = roots.into_iter();
    roots.find(|root| root.join("cgroup.controllers").exists())
}

/// The hierarchy that has the `cpu` controller, where it is not in the unified one.
fn own_hierarchy() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let place = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        let has_cpu = kind == "cgroup" && options.split(',').any(|option| option == "cpu");
        has_cpu.then(|| PathBuf::from(place))
    };
    mounts.lines().find_map(place)
}

fn lists_cpu(file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().any(|word| word == "cpu")
}

/// Ends groups of former processes, which were killed before they could.
fn end_abandoned(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let maker = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new(&format!("/proc/{maker}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// A control group made, in nanoseconds; each is ended at once.
///
/// # Errors
/// Where this process may make none.
pub fn make(place: Place) -> Samples {
    on(place, || {
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            let begun = Instant::now();
            let group = Group::make(&round.to_string())?;
            all.push(begun.elapsed().as_nanos() as f64);
            drop(group);
        }
        Ok(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rivals-{name}-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_controller_that_was_enabled_is_disabled_again_and_no_other() {
        let root = folder("enabled");
        let control = root.join("cgroup.subtree_control");
        for (before, after) in [("memory", "-cpu"), ("memory cpu", "memory cpu")] {
            fs::write(&control, before).expect("a file");
            let enabled = Enabled::below(&root).expect("writable");
            let now = fs::read_to_string(&control).expect("a file");
            assert_eq!(
                (enabled.is_some(), now == "+cpu"),
                (before == "memory", before == "memory")
            );
            drop(enabled);
            assert_eq!(fs::read_to_string(&control).expect("a file"), after);
        }
        fs::remove_dir_all(root).expect("the test's own");
    }

    #[test]
    fn a_keeper_removes_its_folder_when_nobody_holds_it_any_more() {
        let root = folder("kept");
        let group = root.join("group");
        fs::create_dir(&group).expect("a folder");
        let keeper = Keeper::of(&group, None).expect("a shell");
        assert!(group.exists());
        // What the end of this process would do.
        drop(keeper);
        assert!(!group.exists());
        fs::remove_dir_all(root).expect("the test's own");
    }

    #[test]
    fn groups_of_processes_that_are_gone_end_and_those_of_others_stay() {
        let root = folder("abandoned");
        let mine = format!("{NAME}{}-a", process::id());
        for name in [
            &mine,
            "punctual-4294967294-740000",
            "punctual-x",
            "other-4294967294-1",
        ] {
            fs::create_dir(root.join(name)).expect("a folder");
        }
        end_abandoned(&root);
        let mut left: Vec<_> = fs::read_dir(&root)
            .expect("a folder")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        left.sort();
        let mut stay = vec![mine, "punctual-x".into(), "other-4294967294-1".into()];
        stay.sort();
        assert_eq!(left, stay);
        fs::remove_dir_all(root).expect("the test's own");
    }
}
