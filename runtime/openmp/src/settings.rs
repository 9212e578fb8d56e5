//! The environment, and the control variables that a program may change.

use core::ffi::CStr;
use std::path::Path;
use std::sync::OnceLock;

use crate::sys;

/// Threads of a team at most: the bits of a team's word of unclaimed members.
pub(crate) const MEMBERS: usize = 1_024;

/// Nested regions with several members that programs may ask for.
pub(crate) const LEVELS: usize = 255;

/// Bytes of a stack at most: more than any machine has, and sums with it do not overflow.
const MOST_STACK: usize = 1 << 46;

/// Kinds of schedules, as `omp_sched_t` numbers them.
pub(crate) const STATIC: u32 = 1;
pub(crate) const DYNAMIC: u32 = 2;
pub(crate) const GUIDED: u32 = 3;
pub(crate) const AUTO: u32 = 4;
/// The bit beside a kind.
pub(crate) const MONOTONIC: u32 = 0x8000_0000;

/// Control variables of one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Controls {
    /// Threads of the next region.
    pub(crate) threads: usize,
    /// Whether the number may be adjusted.
    pub(crate) dynamic: bool,
    /// Nested regions with more than one thread, at most.
    pub(crate) levels: usize,
    /// The schedule of `schedule(runtime)`.
    pub(crate) schedule: (u32, i32),
}

/// Values for the whole process.
#[derive(Debug)]
pub(crate) struct Settings {
    /// CPUs of the affinity mask.
    pub(crate) cpus: usize,
    /// Carriers at a time: CPUs, and what the control group's quota leaves of them.
    pub(crate) workers: usize,
    pub(crate) first: Controls,
    /// Threads of regions by nesting level (`OMP_NUM_THREADS`).
    pub(crate) threads_by_level: Vec<usize>,
    pub(crate) thread_limit: usize,
    pub(crate) most_priority: i32,
    /// Bytes of a stack.
    pub(crate) stack: usize,
    /// Whether members spin at all before they sleep (`OMP_WAIT_POLICY`).
    pub(crate) spins: bool,
    /// The task scheduling constraint is kept (`PUNCTUAL_OMP_TSC=strict`).
    pub(crate) strict: bool,
    /// At its end the program says what was counted (`PUNCTUAL_OMP_COUNTS=1`).
    pub(crate) counts: bool,
    /// The file for the record of the carriers (`PUNCTUAL_OMP_TRACE`).
    pub(crate) trace: Option<&'static str>,
    /// The dispatch sets the thread pointer by itself.
    pub(crate) fast_pointer: bool,
}

/// The settings, read when they are first asked for.
#[inline]
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(read)
}

fn read() -> Settings {
    let cpus = sys::allowed_cpus();
    let quota = quota().unwrap_or(cpus);
    let threads_by_level = thread_list(text(c"OMP_NUM_THREADS"));
    let first_threads = threads_by_level.first().copied().unwrap_or(cpus);
    let nested = text(c"OMP_NESTED").is_some_and(is_true) || threads_by_level.len() > 1;
    let levels = number(c"OMP_MAX_ACTIVE_LEVELS").unwrap_or(if nested { LEVELS } else { 1 });
    let stack = text(c"OMP_STACKSIZE").and_then(bytes);
    let stack = stack.or_else(|| text(c"GOMP_STACKSIZE").and_then(bytes));
    Settings {
        cpus,
        workers: quota.clamp(1, cpus),
        first: Controls {
            threads: first_threads,
            dynamic: text(c"OMP_DYNAMIC").is_some_and(is_true),
            levels: levels.min(LEVELS),
            schedule: text(c"OMP_SCHEDULE")
                .and_then(schedule)
                .unwrap_or((DYNAMIC, 1)),
        },
        threads_by_level,
        thread_limit: number(c"OMP_THREAD_LIMIT")
            .filter(|&limit| limit > 0)
            .unwrap_or(usize::MAX),
        most_priority: number(c"OMP_MAX_TASK_PRIORITY")
            .and_then(|most| i32::try_from(most).ok())
            .unwrap_or(0),
        stack: stack
            .unwrap_or_else(sys::default_stack)
            .clamp(64 << 10, MOST_STACK),
        spins: !text(c"OMP_WAIT_POLICY").is_some_and(|policy| is(policy, "passive")),
        strict: text(c"PUNCTUAL_OMP_TSC").is_some_and(|mode| is(mode, "strict")),
        counts: text(c"PUNCTUAL_OMP_COUNTS").is_some_and(|word| is_true(word) || word == "1"),
        trace: text(c"PUNCTUAL_OMP_TRACE").filter(|path| !path.is_empty()),
        fast_pointer: sys::may_set_thread_pointer(),
    }
}

fn text(name: &CStr) -> Option<&'static str> {
    sys::variable(name).map(str::trim)
}

fn is(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word)
}

fn is_true(text: &str) -> bool {
    is(text, "true")
}

fn number(name: &CStr) -> Option<usize> {
    text(name)?.parse().ok()
}

fn thread_list(text: Option<&str>) -> Vec<usize> {
    let numbers: Option<Vec<usize>> = text
        .unwrap_or_default()
        .split(',')
        .map(|part| part.trim().parse().ok().filter(|&count| count > 0))
        .collect();
    numbers.unwrap_or_default()
}

/// A size with a unit: kilobytes without one.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "b" => 0,
        "" | "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    let number: usize = digits.trim().parse().ok()?;
    number.checked_mul(1 << shift)
}

/// `[modifier:]kind[,chunk]`.
fn schedule(text: &str) -> Option<(u32, i32)> {
    let (modifier, rest) = text.split_once(':').unwrap_or(("", text));
    let (kind, chunk) = rest.split_once(',').unwrap_or((rest, "0"));
    let kind = match kind.trim().to_ascii_lowercase().as_str() {
        "static" => STATIC,
        "dynamic" => DYNAMIC,
        "guided" => GUIDED,
        "auto" => AUTO,
        _ => return None,
    };
    let mark = match modifier.trim().to_ascii_lowercase().as_str() {
        "monotonic" => MONOTONIC,
        // Chunks of a static schedule come in order anyway.
        "" if kind == STATIC && !text.contains(':') => MONOTONIC,
        "" if !text.contains(':') => 0,
        "nonmonotonic" => 0,
        _ => return None,
    };
    let chunk: i32 = chunk.trim().parse().ok()?;
    let default = i32::from(kind != STATIC);
    Some((kind | mark, chunk.max(default)))
}

/// CPUs that the quota of the control group, or of one around it, amounts to, rounded up.
fn quota() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    quota_below(Path::new("/sys/fs/cgroup"), own)
}

fn quota_below(root: &Path, own: &str) -> Option<usize> {
    let own = root.join(own.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|group| group.starts_with(root));
    let written = groups.filter_map(|group| std::fs::read_to_string(group.join("cpu.max")).ok());
    written.filter_map(|written| quota_of(&written)).min()
}

fn quota_of(written: &str) -> Option<usize> {
    let (quota, period) = written.trim().split_once(' ')?;
    let (quota, period): (usize, usize) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota.div_ceil(period).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_a_cpu_and_a_half_is_two_cpus_and_no_quota_is_none() {
        assert_eq!(quota_of("150000 100000\n"), Some(2));
        assert_eq!(quota_of("10000 100000\n"), Some(1));
        assert_eq!(quota_of("max 100000\n"), None);
    }

    #[test]
    fn the_quota_of_a_group_around_the_own_one_counts_too() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join("outer/inner");
        std::fs::create_dir_all(&own).expect("folders");
        let write = |group: &Path, text| std::fs::write(group.join("cpu.max"), text);
        assert_eq!(quota_below(root.path(), "/outer/inner"), None);
        write(&own, "400000 100000\n").expect("a file");
        assert_eq!(quota_below(root.path(), "/outer/inner"), Some(4));
        write(&root.path().join("outer"), "150000 100000\n").expect("a file");
        assert_eq!(quota_below(root.path(), "/outer/inner"), Some(2));
        assert_eq!(quota_below(root.path(), "/"), None);
    }

    #[test]
    fn sizes_have_units_and_kilobytes_without() {
        assert_eq!(bytes("64"), Some(64 << 10));
        assert_eq!(bytes("3M"), Some(3 << 20));
        assert_eq!(bytes("5000b"), Some(5_000));
        assert_eq!(bytes("5x"), None);
    }

    #[test]
    fn a_schedule_has_a_modifier_a_kind_and_a_chunk() {
        assert_eq!(schedule("dynamic,4"), Some((DYNAMIC, 4)));
        assert_eq!(schedule("guided"), Some((GUIDED, 1)));
        assert_eq!(schedule("monotonic:static"), Some((STATIC | MONOTONIC, 0)));
        assert_eq!(schedule("static"), Some((STATIC | MONOTONIC, 0)));
        assert_eq!(schedule("nonmonotonic:auto"), Some((AUTO, 1)));
        assert_eq!(schedule("sideways"), None);
        assert_eq!(schedule("sideways:static"), None);
    }

    #[test]
    fn a_list_of_thread_counts_is_whole_or_nothing() {
        assert_eq!(thread_list(Some("4, 2")), [4, 2]);
        assert_eq!(thread_list(Some("4,x")), [0_usize; 0]);
        assert_eq!(thread_list(None), [0_usize; 0]);
    }
}
