//! The machine that figures were measured on, as far as everybody may read it.

use std::fs;

use serde::Serialize;

/// One line of the fingerprint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// What.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// Processor, kernel, build. A fact that cannot be read is left out.
pub fn facts() -> Vec<Fact> {
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "optimised"
    };
    let facts = [
        ("processor", processor()),
        (
            "cpus",
            std::thread::available_parallelism()
                .ok()
                .map(|n| n.to_string()),
        ),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        (
            "tool",
            Some(concat!("punctual ", env!("CARGO_PKG_VERSION")).into()),
        ),
        ("build", Some(build.into())),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| Fact { name, value }));
    known.collect()
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}
