//! The planner beside independent checks: exhaustive search, the checker of certificates, counts

mod book;
mod common;
mod counted;
mod dispatch;
mod exhaustive;
mod located;
mod shed;
mod success;
