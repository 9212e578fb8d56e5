//! Whole systems in virtual time: what the analysis promises, the schedules keep.

mod chains;
mod composability;
mod overrun_locks;
mod soundness;
mod transitions;
