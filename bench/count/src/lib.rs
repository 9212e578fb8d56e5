//! Jobs and plans that are counted in instructions here and measured in time elsewhere.

pub mod groups;
pub mod jobs;
