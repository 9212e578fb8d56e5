//! The seam to servers: when budget comes, and when it goes.

use punctual_model::{Instant, Work};

/// The budget of one scheduler of a tree.
///
/// The tree tells when the scheduler's subtree has something to run and how long it ran; the server
/// answers how much more it may. Contract:
/// * `wake` and `idle` alternate, `wake` first. A subtree that falls idle and has work again at the
///   same instant was never idle: what happens at one instant does not depend on its order.
/// * `charge` comes while awake, and before anything else of an entry.
/// * After `charge` or `timer` up to an instant, `next` lies behind it.
/// * No method allocates; each costs O(1), or O(replenishments pending) where these are bounded.
/// * In any window the server gives no more than its rule promises to others, also when its timers
///   are served late: work beyond the budget is paid back from the next.
pub trait Server {
    /// A server with these terms, whose quantities are ticks. Periods start at instant 0.
    fn new(terms: &punctual_model::Server) -> Self;

    /// The subtree has something to run. It has had since `since`, at or before `now`.
    fn wake(&mut self, now: Instant, since: Instant);

    /// The subtree has had nothing to run since `at`.
    fn idle(&mut self, at: Instant);

    /// The subtree has executed `work` up to `now`.
    fn charge(&mut self, now: Instant, work: Work);

    /// As `charge`. Returns the rest of the budget, if it is certain that nothing else has changed:
    /// there is some, with the same deadline, and `next` is the same.
    #[inline]
    fn spend(&mut self, now: Instant, work: Work) -> Option<Work> {
        self.charge(now, work);
        None
    }

    /// Serves what is due at or before `now`.
    fn timer(&mut self, now: Instant);

    /// What the subtree may still execute; zero: it is throttled.
    fn budget(&self) -> Work;

    /// The most it ever has.
    fn capacity(&self) -> Work;

    /// What is pending does not fit into what is left. A server that would keep the rest, and so
    /// never come to its next budget, gives it up.
    fn give_up(&mut self) {}

    /// When `timer` has something to do next, as long as nothing else happens; `None` while idle.
    fn next(&self) -> Option<Instant>;

    /// When there is a budget again, for a subtree that has something to run and none left. Later
    /// than `next` where debts use up what comes first.
    fn returns(&self) -> Option<Instant> {
        self.next()
    }

    /// The urgency of the budget, for parents that order by deadline.
    fn deadline(&self) -> Instant;

    /// Conservation: what is there, what was used and what is to come are one capacity.
    ///
    /// # Errors
    /// The name of the broken invariant.
    fn check(&self) -> Result<(), &'static str>;
}
