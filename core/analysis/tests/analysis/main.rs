//! The analysis against literature, brute force and other implementations.

mod common;

mod bounds;
mod chains;
mod fast_answer;
mod forest;
mod gangs;
mod golden;
mod graph_limits;
mod graph_runs;
mod graphs;
mod groups;
mod hyperperiod;
mod locks;
mod many;
mod oracle;
mod oracle_gangs;
mod oracle_supply;
mod precedence;
mod promises;
mod requests;
mod supplies;
mod synthesis;
mod trees;
mod witnesses;
