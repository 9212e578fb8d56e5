//! Jobs, plans and gangs, counted in instructions here and measured in time elsewhere.

pub mod crews;
pub mod groups;
pub mod jobs;
pub mod many;
