//! The simulation whose jobs are counted in instructions here and measured in time elsewhere.

pub mod jobs;
