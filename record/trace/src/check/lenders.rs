//! Locks of a runtime: who waits lends its urgency to who holds, and ceilings count at once.
//!
//! The log shows these locks only as far as the core hears of them: that somebody waits for a
//! thread (`block-on`), that what a thread held is now another's (`hand-over`), and how urgent the
//! running thread is at least (`raise`). Between schedulers the urgencies of threads do not
//! compare: in a tree, who waits lends nothing.

use punctual_kern::{Ceiling, CpuPlan, Event, WaitOrder};
use punctual_model::Instant;

use super::cpu::CpuCheck;
use super::locks::Standing;
use super::order::Attributes;

/// Somebody waits.
#[derive(Clone, Copy, Debug)]
struct Lender {
    thread: usize,
    holder: usize,
    key: u32,
}

/// The locks of a runtime on one CPU.
#[derive(Debug)]
pub(super) struct Lenders {
    /// By what the threads of the CPU compare.
    by: WaitOrder,
    waiting: Vec<Lender>,
    ceilings: Vec<(usize, Ceiling)>,
    /// Something was lent at the last look.
    pub(super) lent: bool,
}

impl Lenders {
    pub(super) fn new(plan: &CpuPlan) -> Lenders {
        Lenders {
            by: WaitOrder::of(plan.policy),
            waiting: Vec::new(),
            ceilings: Vec::new(),
            lent: false,
        }
    }

    /// Whether something is lent.
    pub(super) fn lend(&self) -> bool {
        !(self.waiting.is_empty() && self.ceilings.is_empty())
    }

    /// A thread waits for nobody any more.
    pub(super) fn goes_on(&mut self, thread: usize) {
        self.waiting.retain(|lender| lender.thread != thread);
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, thread: usize) {
        self.goes_on(thread);
        self.waiting.retain(|lender| lender.holder != thread);
        self.ceilings.retain(|(holder, _)| *holder != thread);
    }

    /// Who lends to a thread, and by what it compares.
    pub(super) fn of(&self, thread: usize) -> (WaitOrder, impl Iterator<Item = usize>) {
        let lenders = self.waiting.iter();
        let lenders = lenders.filter(move |lender| lender.holder == thread);
        (self.by, lenders.map(|lender| lender.thread))
    }

    /// How urgent its ceilings make a thread that has this rank among equals.
    pub(super) fn ceiling(&self, thread: usize, rank: u32) -> Option<Standing> {
        let of_it = |(holder, _): &&(usize, Ceiling)| *holder == thread;
        let (_, ceiling) = self.ceilings.iter().find(of_it)?;
        let deadline = ceiling.absolute_deadline;
        let attributes = Attributes {
            priority: ceiling.priority,
            deadline: (deadline, deadline),
            release: (Instant::ZERO, Instant::ZERO),
            rank,
        };
        let low = deadline == Instant::MAX;
        Some((low, attributes))
    }
}

impl CpuCheck<'_> {
    /// The running thread is at least this urgent from now on.
    pub(super) fn raised_to(&mut self, ceiling: Option<Ceiling>) {
        let Some(thread) = self.running.and_then(|id| self.find(id)) else {
            return;
        };
        let ceilings = &mut self.lenders.ceilings;
        ceilings.retain(|(holder, _)| *holder != thread);
        ceilings.extend(ceiling.map(|ceiling| (thread, ceiling)));
        // It joins those that it now belongs to before anything that is due is served.
        self.refresh_urgency();
    }

    /// What a thread held is another's: who waits for it waits for the other.
    pub(super) fn handed_over(&mut self, event: Event) {
        let Event::HandOver { key, from, to } = event else {
            return;
        };
        let (Some(from), Some(to)) = (self.find(from), self.find(to)) else {
            return;
        };
        if self.threads[from].dead || self.threads[to].dead {
            return;
        }
        for lender in &mut self.lenders.waiting {
            if lender.holder == from && lender.key == key && lender.thread != to {
                lender.holder = to;
            }
        }
    }

    /// The thread that ran waits from now on, for a holder if its event says so.
    pub(super) fn waits_for_holder(&mut self, thread: usize) {
        let Some(Event::BlockOn { holder, key, .. }) = self.event else {
            return;
        };
        let one_level = self.nodes.iter().filter(|node| node.alive).count() == 1;
        let Some(holder) = self.find(holder) else {
            return;
        };
        if one_level && !self.threads[holder].dead {
            self.lenders.waiting.push(Lender {
                thread,
                holder,
                key,
            });
            // The holder joins those that it now belongs to before anything that is due is served.
            self.refresh_urgency();
        }
    }
}
