//! Threads wait for a lock of a runtime, and lend its holder their urgency.
//!
//! The core knows such a lock by a key only while somebody waits for it, so taking it and giving it
//! back costs no entry when nobody does. Lending follows chains across these locks and the
//! resources of the plan alike; a wait that would close a circle is refused. In a tree of
//! schedulers the urgencies of threads do not compare, and nothing is lent.

use punctual_model::{Instant, ThreadId};

use super::Shard;
use crate::effective::{Boost, Standing, Urgency};
use crate::event::Refusal;
use crate::hierarchy::{Band, Hierarchy};
use crate::loan::{Ceiling, Loans, NOBODY};
use crate::policy::Attributes;
use crate::thread::State;
use crate::trace::Sink;

fn small(thread: usize) -> u32 {
    u32::try_from(thread).unwrap_or(NOBODY)
}

impl<H: Hierarchy> Shard<H> {
    /// By what the threads of this CPU are ordered when one lends its urgency to another. Until
    /// told otherwise, by priority.
    pub fn set_urgency(&mut self, urgency: Urgency) {
        self.urgency = urgency;
    }

    /// Whether `a` goes before `b` when both are ready, what is lent to them included. Equals go
    /// before nobody; a thread that has ended goes after all others.
    pub fn goes_before(&self, a: ThreadId, b: ThreadId) -> bool {
        match (self.thread(a), self.thread(b)) {
            (Ok(a), Ok(b)) => {
                let rank = |t: &crate::thread::Thread| {
                    let (background, urgency, ..) = t.standing().rank(self.urgency);
                    (background, urgency)
                };
                rank(a) < rank(b)
            }
            (Ok(_), Err(_)) => true,
            _ => false,
        }
    }

    /// The running thread waits, as in `block`, for what `holder` holds.
    pub(super) fn block_on<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        (holder, key, until): (ThreadId, u32, Option<Instant>),
        sink: &mut S,
    ) -> Result<(), Refusal> {
        self.thread(holder)?;
        if self.leads_back(holder.index(), thread) {
            return Err(Refusal::Deadlock(key));
        }
        self.block(now, thread, until, sink);
        if self.threads[thread].state == State::Blocked && self.hierarchy.nodes() == 1 {
            self.start_lending(thread, holder.index(), key);
            self.lend_again(holder.index());
        }
        Ok(())
    }

    /// What `from` held under `key` is `to`'s from now on: who waits for it lends to `to`, which
    /// goes on. O(who lends to `from`).
    pub(super) fn hand_on<S: Sink>(
        &mut self,
        now: Instant,
        (from, to, key): (ThreadId, ThreadId, u32),
        sink: &mut S,
    ) -> Result<(), Refusal> {
        self.thread(from)?;
        self.thread(to)?;
        let (from, to) = (from.index(), to.index());
        let mut next = self.threads[from].loans.first;
        while next != NOBODY {
            let lender = next as usize;
            let loans = self.threads[lender].loans;
            next = loans.after;
            if loans.key == key && lender != to {
                self.unlink(lender);
                self.start_lending(lender, to, key);
            }
        }
        self.wake(now, to, sink);
        self.lend_again(from);
        self.lend_again(to);
        Ok(())
    }

    /// The running thread is at least this urgent until told otherwise.
    pub(super) fn raise_to(&mut self, ceiling: Option<Ceiling>) {
        if let Some(id) = self.running {
            self.threads[id.index()].ceiling = ceiling;
            self.lend_again(id.index());
        }
    }

    /// A thread waits no more, or has ended: it lends nothing.
    pub(super) fn stop_lending(&mut self, thread: usize) {
        if let Some(holder) = self.threads[thread].loans.holder() {
            self.unlink(thread);
            self.lend_again(holder);
        }
    }

    /// A thread has ended: nobody lends to it. (Those that waited for it wait on: what it held is
    /// its runtime's business.)
    pub(super) fn release_lenders(&mut self, thread: usize) {
        self.threads[thread].ceiling = None;
        while self.threads[thread].loans.first != NOBODY {
            self.unlink(self.threads[thread].loans.first as usize);
        }
        self.lend_again(thread);
    }

    fn start_lending(&mut self, thread: usize, holder: usize, key: u32) {
        let first = self.threads[holder].loans.first;
        if first != NOBODY {
            self.threads[first as usize].loans.before = small(thread);
        }
        self.threads[holder].loans.first = small(thread);
        let own = self.threads[thread].loans.first;
        self.threads[thread].loans = Loans {
            to: small(holder),
            key,
            before: NOBODY,
            after: first,
            first: own,
        };
    }

    fn unlink(&mut self, thread: usize) {
        let Loans {
            to, before, after, ..
        } = self.threads[thread].loans;
        if before != NOBODY {
            self.threads[before as usize].loans.after = after;
        } else if to != NOBODY {
            self.threads[to as usize].loans.first = after;
        }
        if after != NOBODY {
            self.threads[after as usize].loans.before = before;
        }
        let first = self.threads[thread].loans.first;
        self.threads[thread].loans = Loans {
            first,
            ..Loans::NONE
        };
    }

    /// Whether `thread` is reached from `holder` by going from who waits to whom it waits for.
    /// O(threads + uses of resources).
    pub(super) fn leads_back(&mut self, holder: usize, thread: usize) -> bool {
        let Shard {
            resources, threads, ..
        } = self;
        let asked = |at: usize| {
            let t = &threads[at];
            t.waits.or(t.request.map(|request| request.of))
        };
        let lends = |at: usize| threads[at].loans.holder();
        resources.look_at(small(holder));
        resources.leads_on(None, thread, asked, lends)
    }

    /// What a runtime's locks lend to a thread, beside `most`.
    pub(super) fn lent_by_loans(&self, thread: usize, mut most: Option<Boost>) -> Option<Boost> {
        let t = &self.threads[thread];
        let by = self.urgency;
        if by == Urgency::Turn {
            return most;
        }
        if let Some(ceiling) = t.ceiling {
            let band = match ceiling.absolute_deadline {
                Instant::MAX => Band::Background,
                _ => Band::RealTime,
            };
            let attributes = Attributes {
                priority: ceiling.priority,
                absolute_deadline: ceiling.absolute_deadline,
                // Ties go to the holder.
                release: Instant::ZERO,
                order: t.constraint.order,
            };
            let standing = Standing { band, attributes };
            most = Boost::most(most, Boost { by, standing });
        }
        let mut next = t.loans.first;
        while next != NOBODY {
            let lender = &self.threads[next as usize];
            next = lender.loans.after;
            let standing = lender.standing();
            most = Boost::most(most, Boost { by, standing });
        }
        most
    }

    /// Checks that the lists of lenders are whole. O(threads · lenders).
    pub(super) fn check_loans(&self) -> Result<(), &'static str> {
        for (index, t) in self.threads.iter().enumerate() {
            let mut next = t.loans.first;
            let mut before = NOBODY;
            while next != NOBODY {
                let lender = &self.threads[next as usize];
                if lender.loans.holder() != Some(index) || lender.loans.before != before {
                    return Err("I8: who lends to a thread is in its list");
                }
                if lender.queued {
                    return Err("I8: only who waits lends");
                }
                (before, next) = (next, lender.loans.after);
            }
        }
        Ok(())
    }
}
