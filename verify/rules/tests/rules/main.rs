//! Predicates over logs: true logs pass, changed ones are rejected.

#[path = "../../../../record/trace/tests/common/mod.rs"]
mod common;
mod random;

mod check;
mod firing;
mod gang;
mod histories;
mod late;
mod locks;
mod plain;
mod slices;
mod tampering;
mod trees;
mod yields;
