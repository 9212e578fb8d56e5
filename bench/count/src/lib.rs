//! Jobs, plans and gangs that are counted in instructions here and measured in time elsewhere.

pub mod crews;
pub mod groups;
pub mod jobs;
