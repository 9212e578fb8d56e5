//! Whole systems in virtual time: the schedules keep the promises of the analysis.

mod chains;
mod composability;
mod overrun_locks;
mod soundness;
mod transitions;
