//! The first layer: the records of a run, as data. Nothing here enters a scheduler.

pub(crate) mod body;
pub(crate) mod boundary;
pub(crate) mod coherence;
pub(crate) mod direct;
pub(crate) mod early;
pub(crate) mod forgo;
pub(crate) mod input;
pub(crate) mod library_wait;
pub(crate) mod light;
pub(crate) mod limits;
pub(crate) mod local;
pub(crate) mod name;
pub(crate) mod notify;
pub(crate) mod outcome;
pub(crate) mod per_cpu;
pub(crate) mod pool;
pub(crate) mod post;
pub(crate) mod recovery;
pub(crate) mod takers;
pub(crate) mod text;
pub(crate) mod thread_group;
pub(crate) mod wait_queue;
