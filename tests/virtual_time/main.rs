//! Whole systems in virtual time: the schedules keep the promises of the analysis.

mod busiest;
mod causes;
mod chains;
#[path = "../common/mod.rs"]
mod common;
mod composability;
mod examples;
mod excuses;
mod fuzz;
mod graphs;
mod graphs_plain;
mod groups;
mod live_tree;
mod overrun_costs;
mod overrun_locks;
mod overrun_servers;
mod own_time;
mod responses;
mod slots;
mod soundness;
mod started;
mod transitions;
mod what_if;
