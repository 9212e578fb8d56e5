//! User-level hard-real-time scheduling.
