//! The first layer: the records of a run, as data. Nothing here enters a scheduler.

pub(crate) mod bell;
pub(crate) mod body;
pub(crate) mod coherence;
pub(crate) mod crew;
pub(crate) mod direct;
pub(crate) mod forgo;
pub(crate) mod host;
pub(crate) mod light;
pub(crate) mod limits;
pub(crate) mod local;
pub(crate) mod name;
pub(crate) mod outcome;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod post;
pub(crate) mod seat;
pub(crate) mod text;
