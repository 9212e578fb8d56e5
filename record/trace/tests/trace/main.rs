//! The record of runs: read, written, summarised, replayed, shown.

#[path = "../common/mod.rs"]
mod common;

mod any_record;
mod behavior;
mod export;
mod page;
mod prefix;
mod replay;
mod summary;
mod text;
