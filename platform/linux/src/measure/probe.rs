//! What this machine can promise, found by trying: findings for `punctual doctor`, as data.

mod cgroup;
mod mend;

use std::fs;
use std::path::Path;

pub use mend::Mend;

use crate::measure::gaps::scan_gaps;
use crate::run::mode::MemoryLock;
use crate::storage::tls::Library;
use crate::sys::{self, HostClass};
use crate::time::clock::{ClockSource, clock_rate, has_invariant_counter};

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, with a loss that the finding names.
    Warn,
    /// A guarantee is impossible until it is mended.
    Fail,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub value: String,
    /// What it means for a run.
    pub why: &'static str,
    /// How it is mended, if it can be.
    pub mend: Option<Mend>,
}

impl Probe {
    pub(super) fn new(
        name: &'static str,
        why: &'static str,
        status: Status,
        value: String,
    ) -> Probe {
        Probe {
            name,
            status,
            value,
            why,
            mend: None,
        }
    }

    fn with_mend(mut self, mend: impl FnOnce() -> Mend) -> Probe {
        if self.status != Status::Ok {
            self.mend = Some(mend());
        }
        self
    }
}

/// Looks at everything that a run depends on. About 0.4 s, of which `host` (the CPU to look at) is
/// busy for 0.2 s. Changes nothing.
pub fn probe(host: u32) -> Vec<Probe> {
    let allowed = sys::allowed_cpus().unwrap_or_default();
    let class = scheduling_class();
    let budget = cgroup::real_time_budget(class.status == Status::Ok);
    vec![
        kernel(),
        cpus(&allowed),
        class,
        budget,
        throttling(),
        cgroup::quota(allowed.len()),
        fair_server(host),
        memory_lock(),
        clock(),
        thread_pointer(),
        library(),
        cycle_counter(),
        protection_keys(),
        governor(host),
        missing_time(host),
    ]
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn kernel() -> Probe {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let tick = read("/sys/devices/system/cpu/nohz_full").filter(|l| !l.is_empty() && l != "(null)");
    let value = match tick {
        Some(list) => format!("Linux {release}, no tick on CPUs {list}"),
        None => format!("Linux {release}, periodic tick on every CPU"),
    };
    Probe::new(
        "kernel",
        "a tick interrupts every few milliseconds",
        Status::Ok,
        value,
    )
}

fn cpus(allowed: &[u32]) -> Probe {
    let why = "one CPU should stay free of SCHED_FIFO, for the watchdog and the rest of the system";
    let online = read("/sys/devices/system/cpu/online").unwrap_or_else(|| "unknown".to_owned());
    let (status, value) = match allowed.len() {
        2.. => (Status::Ok, format!("{} allowed", allowed.len())),
        n => (Status::Warn, format!("{n} allowed")),
    };
    let value = format!("{value}: {allowed:?} (online: {online})");
    let probe = Probe::new("cpus", why, status, value);
    // One CPU online is the whole machine.
    if online.parse::<u32>().is_ok() {
        return probe;
    }
    probe.with_mend(|| {
        mend::in_container_or(&format!("--cpuset-cpus={online}"), || {
            Mend::ByHand(format!(
                "start it with more CPUs: `taskset -c {online} COMMAND`, if its cpuset has them"
            ))
        })
    })
}

fn scheduling_class() -> Probe {
    let tried = std::thread::Builder::new()
        .name("punctual/probe".to_owned())
        .spawn(|| sys::set_host_class(None, HostClass::fifo(1)))
        .map(|thread| thread.join());
    let why = "without SCHED_FIFO other threads come in between, and a run is best-effort";
    let (status, value) = match tried {
        Ok(Ok(Ok(()))) => (Status::Ok, "SCHED_FIFO granted".to_owned()),
        Ok(Ok(Err(error))) => (Status::Fail, format!("SCHED_FIFO refused: {error}")),
        _ => (Status::Fail, "no helper thread could be started".to_owned()),
    };
    let probe = Probe::new("scheduling-class", why, status, value);
    if mend::has_capability(cgroup::SYS_NICE) {
        // No limit stands in the way: the budget of the cgroup does, which is a finding of its own.
        return probe;
    }
    probe.with_mend(|| {
        let options = "--cap-add=SYS_NICE --ulimit rtprio=99";
        mend::limit("rtprio", "60", options)
    })
}

fn throttling() -> Probe {
    let path = "/proc/sys/kernel/sched_rt_runtime_us";
    let why = "the kernel may stop SCHED_FIFO for the rest of each period";
    let probe = |status, value| Probe::new("rt-throttling", why, status, value);
    let number = |path: &str| read(path)?.parse::<i64>().ok();
    match (number(path), number("/proc/sys/kernel/sched_rt_period_us")) {
        (Some(-1), _) => probe(Status::Ok, "off".to_owned()),
        (Some(runtime), Some(period)) => {
            let value = format!("{runtime} of {period} us");
            probe(Status::Warn, value).with_mend(|| mend::setting(path, "-1"))
        }
        _ => probe(Status::Warn, format!("unknown: {path} says nothing")),
    }
}

fn fair_server(host: u32) -> Probe {
    const TOP: &str = "/sys/kernel/debug";
    let path = format!("{TOP}/sched/fair_server/cpu{host}/runtime");
    let why = "a waiting ordinary thread may take 50 ms of every second from SCHED_FIFO; a run \
               sleeps a sixteenth of the time instead (--try-kernel shows both)";
    let probe = |status, value| Probe::new("fair-server", why, status, value);
    let unknown = |why: &str| probe(Status::Warn, format!("unknown: {why}"));
    match fs::read_to_string(&path) {
        Ok(ns) if ns.trim() == "0" => probe(Status::Ok, "off".to_owned()),
        Ok(ns) => probe(Status::Warn, format!("{} ns per period", ns.trim()))
            .with_mend(|| mend::setting(&path, "0")),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            unknown("debugfs is for root alone")
                .with_mend(|| Mend::ByHand("let root look: `sudo punctual doctor`".to_owned()))
        }
        Err(_) if !is_mounted(TOP) => {
            unknown("debugfs is not mounted").with_mend(|| mend::mount("debugfs", TOP))
        }
        Err(_) if Path::new(TOP).join("sched").is_dir() => {
            unknown("this kernel does not offer it in debugfs")
        }
        Err(error) => unknown(&format!("{path}: {error}")),
    }
}

fn is_mounted(at: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(at))
}

fn memory_lock() -> Probe {
    let mut lost = Vec::new();
    drop(MemoryLock::take(&mut lost));
    let limit = match sys::lockable_bytes() {
        None => "no limit".to_owned(),
        Some(bytes) => format!("limit {} KiB", bytes / 1024),
    };
    let why = "without mlockall a page fault may delay a job by milliseconds";
    match lost.pop() {
        None => Probe::new(
            "memory-lock",
            why,
            Status::Ok,
            format!("mlockall granted, {limit}"),
        ),
        Some(loss) => Probe::new(
            "memory-lock",
            why,
            Status::Warn,
            format!("{}, {limit}", loss.detail),
        )
        .with_mend(|| {
            mend::limit(
                "memlock",
                "unlimited",
                "--cap-add=IPC_LOCK --ulimit memlock=-1",
            )
        }),
    }
}

fn clock() -> Probe {
    let rate = clock_rate();
    let why = "every deadline is compared with this clock";
    let hertz = rate.frequency.hertz();
    match rate.source {
        ClockSource::TimeStampCounter => {
            let status = if rate.error_ppm <= 10 {
                Status::Ok
            } else {
                Status::Warn
            };
            let value = format!("time-stamp counter, {hertz} Hz +- {} ppm", rate.error_ppm);
            Probe::new("clock", why, status, value)
        }
        ClockSource::KernelClock => {
            let invariant = has_invariant_counter();
            let value = format!("CLOCK_MONOTONIC_RAW (invariant time-stamp counter: {invariant})");
            Probe::new("clock", why, Status::Warn, value)
        }
    }
}

fn thread_pointer() -> Probe {
    let why = "without WRFSBASE every switch makes a system call";
    let (status, value) = if sys::can_write_thread_pointer() {
        (Status::Ok, "WRFSBASE available")
    } else {
        (Status::Warn, "WRFSBASE not available, arch_prctl is used")
    };
    Probe::new("fsgsbase", why, status, value.to_owned())
}

fn library() -> Probe {
    let why = "light threads have thread-local storage of their own from the C library";
    match Library::find() {
        Ok(_) => Probe::new(
            "c-library",
            why,
            Status::Ok,
            "glibc with what is needed".to_owned(),
        ),
        Err(symbol) => Probe::new("c-library", why, Status::Fail, format!("no {symbol}")),
    }
}

fn cycle_counter() -> Probe {
    let why =
        "without a counter of executed cycles, time taken by a hypervisor is seen by gaps only";
    match sys::try_cycle_counter() {
        Ok(()) => Probe::new(
            "cycle-counter",
            why,
            Status::Ok,
            "offered (this version measures by gaps and processor time)".to_owned(),
        ),
        // Only a refusal can be mended; a processor without the counter cannot.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Probe::new(
            "cycle-counter",
            why,
            Status::Warn,
            format!("refused: {error}"),
        )
        .with_mend(|| mend::setting("/proc/sys/kernel/perf_event_paranoid", "1")),
        Err(error) => Probe::new(
            "cycle-counter",
            why,
            Status::Warn,
            format!("not offered by this (virtual) processor: {error}"),
        ),
    }
}

fn protection_keys() -> Probe {
    let features = core::arch::x86_64::__cpuid_count(7, 0).ecx;
    let why = "protection domains of later versions use them; nothing needs them yet";
    let (status, value) = match (features & (1 << 3) != 0, features & (1 << 4) != 0) {
        (true, true) => (Status::Ok, "available"),
        (true, false) => (
            Status::Warn,
            "the processor has them, the kernel does not use them",
        ),
        _ => (Status::Warn, "not offered by the processor"),
    };
    Probe::new("protection-keys", why, status, value.to_owned())
}

fn governor(host: u32) -> Probe {
    let path = format!("/sys/devices/system/cpu/cpu{host}/cpufreq/scaling_governor");
    let why = "a changing frequency changes execution times";
    match read(&path) {
        None => Probe::new(
            "governor",
            why,
            Status::Ok,
            "no frequency control here".to_owned(),
        ),
        Some(name) => {
            let status = if name == "performance" {
                Status::Ok
            } else {
                Status::Warn
            };
            Probe::new("governor", why, status, name)
                .with_mend(|| mend::setting(&path, "performance"))
        }
    }
}

/// How long the scan for gaps lasts.
const SCAN_NS: u64 = 200_000_000;

fn missing_time(host: u32) -> Probe {
    let gaps = scan_gaps(host, SCAN_NS);
    let why = "time taken from below makes jobs late whatever the schedule; a run reports it";
    let status = if gaps.longest_ns < 100_000 {
        Status::Ok
    } else {
        Status::Warn
    };
    let value = format!(
        "{} gaps over 10 us, longest {} us, {} us in total, in {} ms on CPU {host}",
        gaps.count,
        gaps.longest_ns.div_ceil(1_000),
        gaps.total_ns.div_ceil(1_000),
        gaps.observed_ns / 1_000_000
    );
    Probe::new("missing-time", why, status, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_can_be_mended_says_how_and_others_do_not() {
        let mend = || Mend::Command("z".to_owned());
        let finding = |status| Probe::new("x", "y", status, String::new()).with_mend(mend);
        assert_eq!(finding(Status::Ok).mend, None);
        assert_eq!(finding(Status::Fail).mend, Some(mend()));
    }
}
