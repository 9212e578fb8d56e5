//! How a finding is mended, and whether that can work here.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

/// How a finding is mended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mend {
    /// By a command, for a shell with the rights to do so. A second time it changes nothing more.
    Command(String),
    /// By options with which the container is started; nothing inside it can.
    Container(String),
    /// By people, elsewhere.
    ByHand(String),
}

impl Mend {
    /// The kind as a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Mend::Command(_) => "command",
            Mend::Container(_) => "container",
            Mend::ByHand(_) => "by-hand",
        }
    }

    /// The command, the options, or what to do.
    pub fn text(&self) -> &str {
        let (Mend::Command(text) | Mend::Container(text) | Mend::ByHand(text)) = self;
        text
    }
}

/// Where the modules of a login take limits from.
const LIMITS: &str = "/etc/security/limits.d";

/// Whether this is a container of docker, podman or their relatives.
fn is_contained() -> bool {
    let files = ["/.dockerenv", "/run/.containerenv"];
    files.iter().any(|file| Path::new(file).exists()) || std::env::var_os("container").is_some()
}

/// `options` of a container, where this is one; else `mend`.
pub(super) fn in_container_or(options: &str, mend: impl FnOnce() -> Mend) -> Mend {
    match is_contained() {
        true => Mend::Container(options.to_owned()),
        false => mend(),
    }
}

/// Raises a limit of the user at the next login, or by `options` of the container.
pub(super) fn limit(item: &str, value: &str, options: &str) -> Mend {
    in_container_or(options, || {
        let line = format!("{} - {item} {value}", user());
        match Path::new("/etc/security").is_dir() {
            true => Mend::Command(format!(
                "mkdir -p {LIMITS} && echo '{line}' > {LIMITS}/90-punctual-{item}.conf  # then \
                 log in again"
            )),
            false => Mend::ByHand(format!(
                "raise the limit {item} to {value} where the session begins (pam_limits is not \
                 here)"
            )),
        }
    })
}

/// Writes a value to a file of the kernel; by hand where nobody here can.
pub(super) fn setting(path: &str, value: &str) -> Mend {
    let command = format!("echo {value} > {path}");
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => Mend::ByHand(format!(
            "on the host, since it is read-only here: {command}"
        )),
        _ => Mend::Command(command),
    }
}

/// The same for a file of a cgroup: containers that may not write it are started with `options`.
pub(super) fn of_cgroup(path: &str, value: &str, options: &str) -> Mend {
    match OpenOptions::new().write(true).open(path) {
        Err(_) if is_contained() => Mend::Container(options.to_owned()),
        _ => setting(path, value),
    }
}

/// Mounts a file system of the kernel, where that is permitted or root can.
pub(super) fn mount(kind: &str, at: &str) -> Mend {
    match is_contained() && !has_capability(SYS_ADMIN) {
        true => Mend::Container(format!("-v {at}:{at}")),
        false => Mend::Command(format!("mountpoint -q {at} || mount -t {kind} {kind} {at}")),
    }
}

/// `CAP_SYS_ADMIN`, which mounting takes.
const SYS_ADMIN: u32 = 21;

/// The user who asks, also when `sudo` executes: by name, else by number as `limits.conf` has it.
fn user() -> String {
    let by_sudo = ["SUDO_USER", "SUDO_UID"].map(|name| std::env::var(name).ok());
    let [name, number] = by_sudo.map(|value| value.filter(|_| own_id() == Some(0)));
    // It ends up in a command of a shell.
    let plain = |name: &String| {
        let ok = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        !name.is_empty() && !name.starts_with('-') && name.chars().all(ok)
    };
    if let Some(name) = name.filter(plain) {
        return name;
    }
    let id = number.and_then(|id| id.parse().ok()).or_else(own_id);
    let id = id.unwrap_or(0);
    let name = name_of(id).filter(plain);
    name.unwrap_or_else(|| format!("{id}:{id}"))
}

/// The effective user of this process.
pub(super) fn own_id() -> Option<u32> {
    status("Uid:")?.split_whitespace().nth(1)?.parse().ok()
}

/// Whether this process has a capability, by its number.
pub(super) fn has_capability(number: u32) -> bool {
    let set = status("CapEff:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> number & 1 == 1)
}

fn status(key: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.map(str::to_owned)
}

fn name_of(id: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let user = users.find(|user| user.get(2).and_then(|n| n.parse().ok()) == Some(id))?;
    user.first().map(|name| (*name).to_owned())
}
