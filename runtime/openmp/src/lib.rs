//! libgomp.so.1 anew: OpenMP programs that leave no CPU idle while an item could start.
//!
//! A program that gcc compiled with `-fopenmp` runs unchanged on this library (`punctual omp`). Its
//! members are switched in user space when there are more of them than CPUs. Its items begin where
//! nothing pending lies below, and no carrier waits while it could begin one (Slite paper §VII;
//! `doc/design/0077-an-engine-for-openmp.md`).
//!
//! It knows the C library and [`punctual_switch`], and nothing of the core's shards: the process
//! belongs to the program, and so do its threads.
//!
//! From below: `sys`, `mistake`, `settings`, `lock`, `log`, `stack`, `wake_cost`; then the words
//! that are modelled (`asleep`, `barrier`, `deque`, `pending`, `standing`, `wish`). Then `parts`;
//! `pool`; `record`; `seek`, `carry`; `meet`, `depend`, `items`; `wait`; `shares`, `locks`;
//! `region`; `monitor` and `fork` beside them. The functions of the ABI are on top (`abi`).
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
// The names of the ABI are not ours to choose.
#![allow(non_snake_case, unreachable_pub, clippy::too_many_arguments)]

mod abi;
mod asleep;
mod atomic;
mod barrier;
mod carry;
mod depend;
mod deque;
mod fork;
mod items;
mod lock;
mod locks;
mod log;
mod me;
mod meet;
mod mistake;
mod monitor;
mod parts;
mod pending;
mod pool;
mod record;
mod region;
mod seek;
mod settings;
mod shares;
mod stack;
mod standing;
mod sys;
mod wait;
mod wake_cost;
mod wish;
#[cfg(test)]
mod word_tests;
