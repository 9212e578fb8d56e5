//! A log for other people's tools: per-job CSV and Perfetto.

pub mod csv;
pub mod perfetto;
mod protobuf;
