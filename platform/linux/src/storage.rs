//! What a light thread runs on: its stack and its thread-local storage.

pub(crate) mod stack;
pub(crate) mod tls;
