//! Limits that the cgroup of this process sets to its use of the processor.

use std::fs;
use std::path::{Path, PathBuf};

use super::mend::{self, Mend};
use super::{Probe, Status};

/// `CAP_SYS_NICE`, with which every class may be asked for.
pub(super) const SYS_NICE: u32 = 23;

/// Quotas of ordinary threads, in this cgroup and those above.
pub(super) fn quota(cpus: usize) -> Probe {
    let why = "a cgroup stops its ordinary threads when the quota is used: a best-effort run then \
               stands still (SCHED_FIFO has no such quota)";
    let probe = |status, value| Probe::new("cgroup-quota", why, status, value);
    let folders = [cpu_v1(), unified()].into_iter().flatten().flatten();
    let limits = folders.filter_map(|folder| limit_of(&folder));
    let tightest = limits.min_by_key(|limit| limit.percent());
    match tightest {
        None => probe(Status::Ok, "none".to_owned()),
        Some(limit) => {
            let value = format!(
                "{} us of every {} us, {} % of a CPU, by {}",
                limit.runtime,
                limit.period,
                limit.percent(),
                limit.file.display()
            );
            let binds = limit.percent() < 100 * cpus as u64;
            let status = if binds { Status::Warn } else { Status::Ok };
            let (path, options) = (
                limit.file.display().to_string(),
                "no --cpus and no --cpu-quota",
            );
            probe(status, value).with_mend(|| mend::of_cgroup(&path, limit.none, options))
        }
    }
}

/// The budget of real-time threads, where the kernel divides it among cgroups (RT_GROUP_SCHED).
pub(super) fn real_time_budget(granted: bool) -> Probe {
    let why = "without a budget for real-time threads their cgroup is refused SCHED_FIFO, and with a \
               small one it is stopped for the rest of each period";
    let probe = |status, value| Probe::new("rt-budget", why, status, value);
    let options = "--cpu-rt-runtime=950000 --ulimit rtprio=99 --cap-add=SYS_NICE";
    let own = cpu_v1().and_then(|folders| folders.into_iter().next());
    let file = own.map(|folder| folder.join("cpu.rt_runtime_us"));
    let budget = file.and_then(|file| Some((read(&file)?, file)));
    if let Some((runtime, file)) = budget {
        let period = read(&file.with_file_name("cpu.rt_period_us")).unwrap_or_default();
        let value = format!("{runtime} of {period} us, by {}", file.display());
        let status = match runtime.as_str() {
            "0" => Status::Fail,
            _ => Status::Ok,
        };
        let path = file.display().to_string();
        return probe(status, value).with_mend(|| mend::of_cgroup(&path, "500000", options));
    }
    let permitted = mend::has_capability(SYS_NICE);
    if granted || !permitted {
        return probe(Status::Ok, "no cgroup divides it here".to_owned());
    }
    let value = "SCHED_FIFO is refused although this process may ask for it: the kernel gives this \
                 cgroup no budget (RT_GROUP_SCHED)";
    probe(Status::Fail, value.to_owned()).with_mend(|| {
        mend::in_container_or(options, || {
            Mend::ByHand("start it in the root cgroup, which has the budget".to_owned())
        })
    })
}

/// A quota in force.
struct Limit {
    runtime: u64,
    period: u64,
    file: PathBuf,
    /// The word for no quota.
    none: &'static str,
}

impl Limit {
    fn percent(&self) -> u64 {
        self.runtime.saturating_mul(100) / self.period.max(1)
    }
}

/// The quota that a cgroup has of its own, in either version.
fn limit_of(folder: &Path) -> Option<Limit> {
    let file = folder.join("cpu.max");
    if let Some(text) = read(&file) {
        let (runtime, period) = text.split_once(' ')?;
        return Some(Limit {
            runtime: runtime.parse().ok()?,
            period: period.parse().ok()?,
            file,
            none: "max",
        });
    }
    let file = folder.join("cpu.cfs_quota_us");
    Some(Limit {
        runtime: read(&file)?.parse().ok()?,
        period: read(&folder.join("cpu.cfs_period_us"))?.parse().ok()?,
        file,
        none: "-1",
    })
}

/// The cgroup of this process under the controller `cpu` of version 1, and those above it.
fn cpu_v1() -> Option<Vec<PathBuf>> {
    folders(
        "cgroup",
        |options| options.split(',').any(|o| o == "cpu"),
        |controllers| controllers.split(',').any(|c| c == "cpu"),
    )
}

/// The same in version 2.
fn unified() -> Option<Vec<PathBuf>> {
    folders("cgroup2", |_| true, str::is_empty)
}

/// This process' cgroup in a hierarchy, and those above it as far as they are mounted here.
fn folders(
    kind: &str,
    mounted: impl Fn(&str) -> bool,
    controllers: impl Fn(&str) -> bool,
) -> Option<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (root, top) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let fits = right.first() == Some(&kind) && mounted(right.get(2).unwrap_or(&""));
        fits.then(|| Some((PathBuf::from(left.get(3)?), PathBuf::from(left.get(4)?))))?
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let fits = controllers(parts.next()?);
        parts.next().filter(|_| fits)
    })?;
    // In a container the mount shows a part of the hierarchy.
    let below = Path::new(own).strip_prefix(&root).unwrap_or(Path::new(""));
    let folder = top.join(below);
    let above = folder
        .ancestors()
        .take_while(|above| above.starts_with(&top));
    Some(above.map(Path::to_owned).collect())
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}
