//! Words that CPUs or signals share, in the orders that loom or a search explores.
//!
//! The files that are about such words are compiled a second time here, as they are, with words of
//! a model checker in place of those of the processor:
//!
//! | file | words | every |
//! |---|---|---|
//! | `platform/linux/src/shared`, `record/trace/src/ring.rs` | `atomic` | order, by loom |
//! | `runtime/dataflow/fifo/src/ring.rs` | `atomic` | order, by loom |
//! | `core/gang`: `gang`, `member` | `atomic` | order, by loom |
//! | `runtime/openmp`: `asleep`, `barrier`, `deque` | `atomic` | order, by loom |
//! | `runtime/openmp`: `pending`, `standing`, `wish` | `atomic` | order, by loom |
//! | `switch`: `gate`, `ring` | `words` | place for a signal, by [`signals`] |
//!
//! A model says what must hold, and every way in which one access of these files could be wrong is
//! put in ([`weaken`]): a weaker order, a store or a fence left out. A model that does not notice
//! says little. Loom knows no total order of sequentially consistent accesses, only of such fences;
//! so these files are right by fences and exchanges alone.

// A model that does not hold panics; that is its answer.
#![allow(clippy::unwrap_used)]

extern crate alloc;

mod atomic;
pub mod check;
pub mod cross_cpu;
pub mod handing_on;
pub mod kicking;
pub mod listing;
pub mod locking;
pub mod meeting;
pub mod recording;
pub mod signals;
pub mod sleeping;
pub mod starting;
pub mod weaken;
mod words;

#[path = "../../../runtime/openmp/src/asleep.rs"]
#[expect(dead_code, reason = "the kernel looks at the word of a bell")]
mod asleep;
#[path = "../../../runtime/openmp/src/barrier.rs"]
mod barrier;
#[path = "../../../runtime/openmp/src/deque.rs"]
mod deque;
#[path = "../../../runtime/dataflow/fifo/src/ring.rs"]
pub mod fifo;
#[path = "../../../core/gang/src/gang.rs"]
#[expect(
    dead_code,
    reason = "admission, which has no words of its own, uses the rest"
)]
pub mod gang;
#[path = "../../../platform/switch/src/gate.rs"]
pub mod gate;
#[path = "../../../platform/linux/src/shared/kicks.rs"]
mod kicks;
#[path = "../../../platform/linux/src/shared/mailbox.rs"]
mod mailbox;
#[path = "../../../core/gang/src/member.rs"]
pub mod member;
#[path = "../../../platform/linux/src/shared/pending.rs"]
mod pending;
#[path = "../../../runtime/openmp/src/pending.rs"]
mod pending_items;
#[path = "../../../runtime/dataflow/fifo/src/pieces.rs"]
mod pieces;
#[path = "../../../platform/switch/src/ring.rs"]
pub mod preemptions;
#[path = "../../../record/trace/src/ring.rs"]
mod record_ring;
#[path = "../../../platform/linux/src/shared/ring.rs"]
mod ring;
#[path = "../../../runtime/openmp/src/standing.rs"]
mod standing;
#[path = "../../../platform/linux/src/shared/ticket_lock.rs"]
mod ticket_lock;
#[path = "../../../runtime/openmp/src/wish.rs"]
mod wish;

use check::Model;

/// All models.
pub fn models() -> impl Iterator<Item = &'static Model> {
    let words = cross_cpu::MODELS.iter().chain(&listing::MODELS);
    let words = words.chain(&cross_cpu::WAITS).chain(&kicking::MODELS);
    let words = words.chain(&recording::MODELS).chain(&handing_on::MODELS);
    let words = words.chain(&starting::MODELS).chain(&sleeping::MODELS);
    let words = words.chain(&locking::MODELS);
    words.chain(&meeting::MODELS).chain(&signals::MODELS)
}
