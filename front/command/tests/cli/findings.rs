//! Findings of `punctual doctor` in worlds that the tests make: mounts, cgroups, masks, users.
//!
//! Each world is a mount namespace with a root of its own, so nothing of it is left behind.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, json, output, stderr};

const PROGRAM: &str = env!("CARGO_BIN_EXE_punctual");

/// Makes a root like that of the machine, but for marks of containers, with an `/etc` and a `/tmp`
/// of its own, and goes there. `$1` is executed there.
const WORLD: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs world "$root"
for place in /*; do
    if [ -L "$place" ]; then cp -d "$place" "$root$place"
    elif [ "$place" = /etc ] || [ "$place" = /tmp ]; then mkdir "$root$place"
    elif [ -d "$place" ]; then mkdir "$root$place"; mount --rbind "$place" "$root$place"
    fi
done
mkdir "$root/etc/security"
cp -L /etc/passwd "$root/etc/passwd"
cp "$PROGRAM" "$root/tmp/punctual"
exec chroot "$root" sh -ec "$1"
"#;

/// Executes `script` in a world of its own; `None`, and loudly: this user may make none.
fn world(script: &str) -> Option<Output> {
    let mut trial = Command::new("unshare");
    let allowed = trial.args(["-m", "mount", "--make-rprivate", "/"]).output();
    if !allowed.as_ref().is_ok_and(|done| done.status.success()) {
        let why = allowed.map(|done| String::from_utf8_lossy(&done.stderr).into_owned());
        println!("skipped: no mount namespace can be made here: {why:?}");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", WORLD, "world", script]);
    // A folder that is there, hidden by the world's root in its name space alone.
    command.env("root", env!("CARGO_TARGET_TMPDIR"));
    let command = command.env("PROGRAM", PROGRAM).env_remove("container");
    let command = command.env_remove("SUDO_USER").env_remove("SUDO_UID");
    Some(command.output().expect("unshare starts"))
}

/// What `doctor` finds in a world after `setup`.
fn found_after(setup: &str) -> Option<Value> {
    let done = world(&format!("{setup}\n/tmp/punctual doctor --json"))?;
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let findings = json(&done);
    assert_obeys(&findings, "doctor");
    Some(findings)
}

fn probe<'a>(findings: &'a Value, name: &str) -> &'a Value {
    let probes = findings["probes"].as_array().expect("a list");
    let found = probes.iter().find(|probe| probe["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {findings}"))
}

fn text<'a>(probe: &'a Value, key: &str) -> &'a str {
    probe[key].as_str().unwrap_or_default()
}

#[test]
fn a_cpu_that_is_not_there_or_not_allowed_is_bad_input_that_names_the_others() {
    let done = output(&["doctor", "--cpu", "4095"]);
    assert_eq!(code(&done), 2);
    let said = stderr(&done);
    assert!(
        said.contains("this machine has no CPU 4095") && said.contains("name one of"),
        "{said}"
    );

    let allowed = punctual_linux::allowed_cpus().expect("known");
    let (Some(first), Some(last)) = (allowed.first(), allowed.last()) else {
        panic!("no CPU");
    };
    if first == last {
        println!("skipped: one CPU cannot be taken away");
        return;
    }
    let (first, last) = (first.to_string(), last.to_string());
    let masked = |more: &[&str]| {
        let mut command = Command::new("taskset");
        command
            .args(["-c", &last, PROGRAM, "doctor", "--json"])
            .args(more);
        command.output().expect("taskset starts")
    };
    let done = masked(&["--cpu", &first]);
    assert_eq!(code(&done), 2);
    let said = stderr(&done);
    let expected = format!("CPU {first} is not in the affinity mask of this process");
    assert!(
        said.contains(&expected) && said.contains(&format!("name one of {last}")),
        "{said}"
    );
    let findings = json(&masked(&[]));
    let cpus = probe(&findings, "cpus");
    assert_eq!(cpus["status"], "warn");
    assert!(text(cpus, "value").contains("1 allowed"), "{cpus}");
    assert!(!text(cpus, "fix").is_empty(), "{cpus}");
}

#[test]
fn throttling_is_known_unknown_or_off_and_what_is_read_only_is_mended_on_the_host() {
    const FILE: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let fake = |content: &str| {
        format!("printf '%b' '{content}' > /tmp/fake; mount --bind /tmp/fake {FILE}")
    };
    let Some(findings) = found_after(&fake("950000\\n")) else {
        return;
    };
    let on = probe(&findings, "rt-throttling");
    assert_eq!((text(on, "status"), text(on, "by")), ("warn", "command"));
    assert_eq!(text(on, "fix"), format!("echo -1 > {FILE}"));

    let findings = found_after(&fake("-1\\n")).expect("a world");
    let off = probe(&findings, "rt-throttling");
    assert_eq!((text(off, "status"), text(off, "value")), ("ok", "off"));

    let findings = found_after(&fake("")).expect("a world");
    let unknown = probe(&findings, "rt-throttling");
    assert_eq!(text(unknown, "status"), "warn");
    assert!(text(unknown, "value").starts_with("unknown"), "{unknown}");
    assert_eq!(unknown["fix"], Value::Null);

    let read_only = format!("{}; mount -o remount,bind,ro {FILE}", fake("950000\\n"));
    let findings = found_after(&read_only).expect("a world");
    let elsewhere = probe(&findings, "rt-throttling");
    assert_eq!(text(elsewhere, "by"), "by-hand", "{elsewhere}");
    assert!(
        text(elsewhere, "fix").starts_with("on the host"),
        "{elsewhere}"
    );
}

#[test]
fn a_debugfs_that_is_absent_closed_or_without_fair_server_is_told_apart() {
    const TOP: &str = "/sys/kernel/debug";
    let away = format!("while mountpoint -q {TOP}; do umount -R {TOP}; done");
    let Some(findings) = found_after(&away) else {
        return;
    };
    let absent = probe(&findings, "fair-server");
    assert_eq!(text(absent, "value"), "unknown: debugfs is not mounted");
    assert_eq!(text(absent, "by"), "command");
    let mend = text(absent, "fix");
    assert!(mend.contains("mount -t debugfs"), "{mend}");

    // A fake in its place: closed to others, then open without the file, then with it.
    let fake = format!("mount -t tmpfs fake {TOP}; mkdir -p {TOP}/sched");
    let findings = found_after(&fake).expect("a world");
    let old = probe(&findings, "fair-server");
    assert!(text(old, "value").contains("does not offer it"), "{old}");
    assert_eq!(old["fix"], Value::Null);

    let cpu = findings["cpu"].as_u64().expect("a number");
    let server = format!(
        "{fake}; mkdir -p {TOP}/sched/fair_server/cpu{cpu}; echo 50000000 > \
         {TOP}/sched/fair_server/cpu{cpu}/runtime"
    );
    let findings = found_after(&server).expect("a world");
    let on = probe(&findings, "fair-server");
    assert_eq!((text(on, "status"), text(on, "by")), ("warn", "command"));

    let closed = format!("{server}; chmod 700 {TOP}; chmod 755 /tmp");
    let done = world(&format!(
        "{closed}; exec setpriv --reuid=65534 --regid=65534 --clear-groups /tmp/punctual doctor --json"
    ));
    let findings = json(&done.expect("a world"));
    let private = probe(&findings, "fair-server");
    assert!(
        text(private, "value").contains("for root alone"),
        "{private}"
    );
    assert_eq!(text(private, "by"), "by-hand");
}

/// The commands of an ordinary user's script, executed by root.
#[test]
fn the_script_is_for_the_user_who_asks_and_a_second_time_changes_nothing() {
    const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let done = world(&format!(
        "echo 950000 > /tmp/fake; mount --bind /tmp/fake {THROTTLING}
        chmod 755 /tmp
        ordinary='setpriv --reuid=65534 --regid=65534 --clear-groups'
        $ordinary sh -c 'ulimit -r 0; ulimit -l 64; /tmp/punctual doctor --fix-script' > /tmp/script
        # What is not in this world stays as it is.
        grep -v debugfs /tmp/script | grep -v cpufreq > /tmp/safe
        state() {{ find /etc -type f | sort | xargs tail -n +1; cat {THROTTLING}; }}
        sh /tmp/safe; state > /tmp/once
        sh /tmp/safe; state > /tmp/twice
        cmp /tmp/once /tmp/twice
        cat /tmp/twice"
    ));
    let Some(done) = done else {
        return;
    };
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let state = String::from_utf8_lossy(&done.stdout);
    let user = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user
        .lines()
        .find(|line| line.split(':').nth(2) == Some("65534"));
    let user = user
        .and_then(|line| line.split(':').next())
        .unwrap_or("65534:65534");
    for line in [
        format!("{user} - rtprio 60"),
        format!("{user} - memlock unlimited"),
    ] {
        assert_eq!(state.matches(&line).count(), 1, "{line} in {state}");
    }
    assert!(state.trim_end().ends_with("-1"), "{state}");
    assert!(!state.contains("root - "), "{state}");
}

#[test]
fn the_user_of_sudo_is_the_user_and_a_container_is_mended_by_its_options() {
    // Root without the right to be urgent: the limits of a user would not help root.
    let bounded = |environment: &str| {
        format!(
            "exec env {environment} setpriv --bounding-set=-sys_nice,-ipc_lock --inh-caps=-all sh \
             -c 'ulimit -r 0; ulimit -l 64; exec /tmp/punctual doctor --json'"
        )
    };
    let Some(done) = world(&bounded("SUDO_USER=alice")) else {
        return;
    };
    let findings = json(&done);
    let class = probe(&findings, "scheduling-class");
    assert_eq!(text(class, "status"), "fail", "{class}");
    assert!(
        text(class, "fix").contains("'alice - rtprio 60'"),
        "{class}"
    );

    let findings = json(&world(&bounded("SUDO_USER='x;reboot' SUDO_UID=4711")).expect("a world"));
    let class = probe(&findings, "scheduling-class");
    assert!(
        text(class, "fix").contains("'4711:4711 - rtprio 60'"),
        "{class}"
    );

    let findings = json(&world(&bounded("container=docker")).expect("a world"));
    let class = probe(&findings, "scheduling-class");
    assert_eq!(text(class, "by"), "container");
    assert_eq!(text(class, "fix"), "--cap-add=SYS_NICE --ulimit rtprio=99");
    let memory = probe(&findings, "memory-lock");
    assert_eq!(
        text(memory, "fix"),
        "--cap-add=IPC_LOCK --ulimit memlock=-1"
    );
}

/// A cgroup that the test made, below `top`; it disappears.
struct Cgroup(std::path::PathBuf);

impl Cgroup {
    /// `None`, and loudly: the hierarchy is not here, or not this user's.
    fn make(top: &str, file: &str) -> Option<Cgroup> {
        let name = format!("punctual-test-{}-{file}", std::process::id());
        let cgroup = Cgroup(Path::new(top).join(name));
        let made = std::fs::create_dir(&cgroup.0);
        if made.is_err() || !cgroup.0.join(file).exists() {
            println!("skipped: no cgroup with {file} can be made in {top}: {made:?}");
            return None;
        }
        Some(cgroup)
    }

    fn found(&self) -> Value {
        let script = format!(
            "echo $$ > {}/cgroup.procs; exec {PROGRAM} doctor --json",
            self.0.display()
        );
        let done = Command::new("sh").args(["-ec", &script]).output();
        json(&done.expect("a shell"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn the_quota_of_a_cgroup_is_named_with_its_file_and_its_mend_mends_it() {
    let kinds = [
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"),
        ("/sys/fs/cgroup", "cpu.max", "50000 100000"),
    ];
    for (top, file, half) in kinds {
        let Some(cgroup) = Cgroup::make(top, file) else {
            continue;
        };
        let file = cgroup.0.join(file);
        std::fs::write(&file, half).expect("a quota");
        let findings = cgroup.found();
        let quota = probe(&findings, "cgroup-quota");
        assert_eq!(
            (text(quota, "status"), text(quota, "by")),
            ("warn", "command")
        );
        let value = text(quota, "value");
        assert!(value.contains("50 % of a CPU") && value.contains(&file.display().to_string()));
        let mend = Command::new("sh").args(["-c", text(quota, "fix")]).status();
        assert!(mend.is_ok_and(|status| status.success()), "{quota}");
        let findings = cgroup.found();
        assert_eq!(text(probe(&findings, "cgroup-quota"), "value"), "none");
    }
}

#[test]
fn a_cgroup_without_a_budget_for_real_time_is_told_from_a_missing_right() {
    let Some(cgroup) = Cgroup::make("/sys/fs/cgroup/cpu", "cpu.rt_runtime_us") else {
        return;
    };
    let findings = cgroup.found();
    assert_eq!(findings["verdict"], "best-effort");
    let budget = probe(&findings, "rt-budget");
    assert_eq!(text(budget, "status"), "fail");
    assert!(text(budget, "value").starts_with("0 of "), "{budget}");
    assert!(
        text(budget, "fix").contains("cpu.rt_runtime_us"),
        "{budget}"
    );
    let class = probe(&findings, "scheduling-class");
    assert_eq!(text(class, "status"), "fail");
    assert_eq!(class["fix"], Value::Null, "root has the right already");
}

#[test]
fn what_doctor_proposes_its_readers_accept() {
    let folder = Folder::new("doctor-proposes");
    let file = folder.path("here.toml");
    let measured = output(&["doctor", "--measure", "--for", "50ms", "--platform", &file]);
    assert_eq!(code(&measured), 0, "{}", stderr(&measured));
    let two = crate::common::example("two-tasks.toml");
    let checked = output(&["check", &two, "--json", "--platform", &file]);
    assert_ne!(code(&checked), 2, "{}", stderr(&checked));
    let told = stderr(&checked);
    // An ordinary user's terms are those of a run without real-time priority, and say so.
    let others = told.replace("as it is: without real-time priority", "");
    assert!(!others.contains("as it is: "), "{told}");
}
