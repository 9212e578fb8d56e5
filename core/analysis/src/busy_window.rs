//! The longest busy window, and the worst response of a job within one
//!
//! A job of the task under analysis is released at offset A of a busy window that begins at 0 with
//! everything that may delay it. Its completion is the least fixed point
//!
//! ```text
//! w(A) = time for (B(A) + own jobs up to A
//!                  + Σ interfering tasks: min(released before w, urgent enough for A) + reserved)
//! ```
//!
//! on the supply of the node (a dedicated processor takes as long as the work is), and the response
//! is w(A) − A + J. Fixed priority, first come first served and earliest deadline first differ only
//! in which jobs of an interfering task are *urgent enough*, and in what may block.
//!
//! # Assumptions
//! 1. One processor; a ready job is never kept waiting while the node's supply idles. Where a
//!    window may begin in several phases of the supply, each is examined.
//! 2. Jobs of one task run in the order of their release.
//! 3. All interfering release at 0 with their largest jitter and then as densely as they may.
//!
//! Sources: Lehoczky 1990; Tindell, Burns and Wellings 1994; Spuri 1996; George, Rivierre and
//! Spuri 1996 (non-preemptive: the fixed point is that of the start); Bril, Lukkien and Verhaegh
//! 2009 (every job of the window counts).

use alloc::vec::Vec;

use crate::blocking::Blocking;
use crate::demand::RequestBound;
use crate::entity::{Entity, Reserved, Who};
use crate::error::{Checked, in_range};
use crate::fixed_point::{SearchSteps, least_fixed_point};
use crate::node::Node;
use crate::supply::Supply;
use crate::units::{Span, TICK, UNIT, Work, signed};
use crate::utilization::{Ratio, hyperperiod};

pub(crate) const WHAT: &str = "busy window";
/// Into how many parts a period is cut where work grows with every tick of the offset.
const GRID: u64 = 16;

/// Which jobs of an interfering task go before a job that is released at offset A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgent {
    /// All of them: its priority is higher.
    Always,
    /// Those released before A, or also those at A: equal priority, first come first served.
    Earlier { ties: bool },
    /// Those whose deadline is not later: the k-th when k·T ≤ A + shift.
    Deadline { shift: i128 },
}

/// A task that may delay the one under analysis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interfering<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) urgent: Urgent,
}

/// How often `separation` fits into `reach`, which is not negative. A division of 64 bits takes a
/// tenth of the time of one of 128, and nearly always does.
#[inline]
fn quotient(reach: i128, separation: Span) -> i128 {
    match u64::try_from(reach) {
        Ok(reach) => (reach / separation.as_ns()).into(),
        Err(_) => reach / signed(separation),
    }
}

/// A section that may have begun just before the window; it blocks jobs released before `until`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocker {
    /// `None` for background work.
    pub(crate) who: Option<Who>,
    /// One tick less than the section, for it has to have begun.
    pub(crate) length: Work,
    /// Offset from which on it no longer blocks.
    pub(crate) until: i128,
}

/// How urgent the job under analysis is, for those who hold what it may wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// By its priority.
    Priority(u32),
    /// By its deadline, so long after its offset.
    Deadline(i128),
}

/// Where the search over offsets ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// At the first offset that finds the window over, or when all repeats itself.
    Idle,
    /// At this offset.
    Offset(Span),
}

/// The query: how late can a job of `own` complete?
#[derive(Clone, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) own: &'a Entity,
    pub(crate) interfering: Vec<Interfering<'a>>,
    pub(crate) reserved: &'a [Reserved],
    pub(crate) supply: &'a Supply,
    pub(crate) blockers: Vec<Blocker>,
    /// The node, for its locks may block besides.
    pub(crate) node: &'a Node,
    pub(crate) urgency: Urgency,
    /// Once started, a job of `own` is not preempted.
    pub(crate) runs_through: bool,
    pub(crate) until: Until,
    /// A response beyond this ends the search: the answer is known.
    pub(crate) enough: Option<Span>,
}

/// The worst job found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Worst {
    /// From arrival to completion.
    pub(crate) response: Span,
    /// Which job of the busy window, counted from 0.
    pub(crate) job: u64,
    /// Its release, from the start of the window.
    pub(crate) offset: Span,
    /// Up to here interfering delay it: its completion, or its start when it runs through.
    pub(crate) reach: Span,
    /// Its completion, from the start of the window.
    pub(crate) completion: Span,
    /// The phase of the supply in which the window begins.
    pub(crate) phase: usize,
}

impl Blocker {
    /// A section that began one tick before, of a task or of background work.
    pub(crate) fn of(who: Who, section: Work, until: i128) -> Blocker {
        Blocker {
            who: Some(who),
            length: section.saturating_sub(UNIT),
            until,
        }
    }
}

impl Interfering<'_> {
    /// Work that goes before a job released at `offset`, among what is released in `window`.
    pub(crate) fn work(&self, window: Span, offset: Span) -> Checked<Work> {
        let requests = &self.entity.requests;
        if !requests.is_fluid {
            return requests.work_of(self.jobs(window, offset)?);
        }
        let released = requests.request_bound(window)?;
        let Urgent::Deadline { shift } = self.urgent else {
            return Ok(released);
        };
        // A server's relative deadline is its period. Offsets up to the next one examined are
        // answered by this one.
        let ahead = signed(self.grid()) - 1;
        let due = signed(offset) + ahead + shift + signed(self.entity.deadline);
        let due = u64::try_from(due.max(0)).map(Span::from_ns);
        let due = due.map_or(Ok(Work::MAX), |due| requests.share_of(due))?;
        Ok(released.min(due))
    }

    /// Jobs that go before a job released at `offset`, among those released in `window`.
    pub(crate) fn jobs(&self, window: Span, offset: Span) -> Checked<u64> {
        let requests = &self.entity.requests;
        match self.urgent {
            Urgent::Always => requests.releases(window),
            Urgent::Earlier { ties } => {
                let until = in_range(offset.checked_add(Span::from_ns(u64::from(ties))), WHAT)?;
                requests.releases(window.min(until))
            }
            Urgent::Deadline { shift } => {
                let reach = signed(offset) + shift;
                if reach < 0 || window.is_zero() {
                    return Ok(0);
                }
                let Some(separation) = requests.separation else {
                    return Ok(1);
                };
                // ⌊reach/T⌋ + 1 = ⌈(reach + 1)/T⌉ jobs are due by then, ⌈(window + J)/T⌉ released.
                let released = in_range(window.checked_add(requests.jitter), WHAT)?;
                let due = u64::try_from(reach + 1).map_or(Span::MAX, Span::from_ns);
                Ok(released.min(due).div_ceil(separation))
            }
        }
    }

    /// Distance of the offsets that are examined, where the demand grows at each.
    fn grid(&self) -> Span {
        let separation = self.entity.requests.separation.unwrap_or(TICK);
        Span::from_ns(separation.as_ns() / GRID).max(TICK)
    }

    /// The next offset after `offset` at which one more job becomes urgent enough.
    fn next_step(&self, offset: Span) -> Option<Span> {
        let requests = &self.entity.requests;
        if requests.is_fluid && self.urgent != Urgent::Always {
            return offset.checked_add(self.grid());
        }
        // The k-th job counts from offset k·T + origin on.
        let origin = match self.urgent {
            Urgent::Always => return None,
            Urgent::Earlier { ties } => i128::from(!ties) - signed(requests.jitter),
            Urgent::Deadline { shift } => -shift,
        };
        let since = signed(offset) - origin;
        let next = if since < 0 {
            origin
        } else {
            let t = requests.separation?;
            (quotient(since, t) + 1) * signed(t) + origin
        };
        u64::try_from(next).ok().map(Span::from_ns)
    }
}

impl Query<'_> {
    /// The shares of the task, of interfering tasks and of reserved demand, and the missing supply.
    pub(crate) fn ratios(&self) -> impl Iterator<Item = Ratio> + Clone {
        let interfering = self.interfering.iter().map(|r| &r.entity.requests);
        let reserved = self.reserved.iter().map(|t| &t.requests);
        let requests = interfering.chain(reserved).chain([&self.own.requests]);
        let requests = requests.filter_map(RequestBound::ratio);
        requests.chain(self.supply.missing())
    }

    fn own_jobs(&self, offset: Span) -> u64 {
        self.own.requests.separation.map_or(1, |t| offset / t + 1)
    }

    /// The section that blocks longest at this offset.
    pub(crate) fn blocker(&self, offset: Span) -> Option<&Blocker> {
        let reaching = self.blockers.iter().filter(|b| signed(offset) < b.until);
        reaching.max_by_key(|b| b.length)
    }

    /// The critical sections that block a job at this offset.
    pub(crate) fn locks(&self, offset: Span) -> Checked<Blocking<'_>> {
        let urgency = match self.urgency {
            Urgency::Priority(priority) => i128::from(priority),
            Urgency::Deadline(lead) => -(signed(offset) + lead),
        };
        self.node.blocking(urgency, Some(self.own.who))
    }

    /// All that blocks a job at this offset.
    fn blocking(&self, offset: Span) -> Checked<Work> {
        let section = self.blocker(offset).map_or(Work::ZERO, |b| b.length);
        let held = in_range(section.checked_add(self.node.held_above), WHAT)?;
        if !self.node.has_locks() {
            return Ok(held);
        }
        in_range(held.checked_add(self.locks(offset)?.total), WHAT)
    }

    fn next_offset(&self, offset: Span) -> Option<Span> {
        let own = self.own.requests.separation;
        let own = own.and_then(|t| t.checked_mul((offset / t).checked_add(1)?));
        let interfering = self.interfering.iter().filter_map(|r| r.next_step(offset));
        interfering
            .chain(own)
            .chain(self.next_ceiling(offset))
            .min()
    }

    /// The next offset at which one more resource may block, because it is used by then.
    fn next_ceiling(&self, offset: Span) -> Option<Span> {
        let Urgency::Deadline(lead) = self.urgency else {
            return None;
        };
        if !self.node.has_locks() {
            return None;
        }
        let offsets = self.node.locks.deadlines().map(|at| signed(at) - lead);
        let later = offsets.filter(|&at| at > signed(offset)).min()?;
        u64::try_from(later).ok().map(Span::from_ns)
    }

    /// Work before the window is over for a job at `offset`: `fixed`, and what comes in `window`.
    fn delayed(&self, fixed: Work, window: Span, offset: Span) -> Checked<Work> {
        let mut sum = fixed;
        for interferer in &self.interfering {
            let work = interferer.work(window, offset)?;
            sum = in_range(sum.checked_add(work), WHAT)?;
        }
        add_reserved(self.reserved, sum, window)
    }

    /// The work that goes before the end of the first job, among what is released in `window`.
    pub(crate) fn first_demand(&self, window: Span) -> Checked<Work> {
        let blocking = self.blocking(Span::ZERO)?;
        let fixed = in_range(self.own.requests.cost.checked_add(blocking), WHAT)?;
        self.delayed(fixed, window, Span::ZERO)
    }

    #[inline]
    fn time(&self, phase: usize, work: Work) -> Checked<Span> {
        if *self.supply == Supply::Dedicated {
            return Ok(work.as_span());
        }
        Ok(self.supply.time_in(phase, work)?.unwrap_or(Span::MAX))
    }

    fn cost_of_step(&self) -> usize {
        1 + self.interfering.len() + self.reserved.len()
    }

    /// The worst response over all phases of the supply and all offsets; `None`: beyond 64 bits of
    /// time, there is none. O(phases · offsets · iterations · interfering tasks), at most the steps
    /// left.
    pub(crate) fn worst(&self, search_steps: &mut SearchSteps<'_>) -> Checked<Option<Worst>> {
        if *self.supply == Supply::Nothing {
            return Ok(None);
        }
        let mut worst: Option<Worst> = None;
        for phase in 0..self.supply.phases() {
            let Some(found) = self.worst_in(phase, search_steps)? else {
                return Ok(None);
            };
            if worst.is_none_or(|w| found.response > w.response) {
                worst = Some(found);
            }
            if self.enough.is_some_and(|enough| found.response > enough) {
                break;
            }
        }
        Ok(worst)
    }

    /// The response of a first job that needs `own.requests.cost`, at worst over all phases;
    /// `None`: no bound. O(phases · iterations · interfering tasks).
    pub(crate) fn first_response(
        &self,
        own: &Entity,
        search_steps: &mut SearchSteps<'_>,
    ) -> Checked<Option<Span>> {
        if *self.supply == Supply::Nothing {
            return Ok(None);
        }
        let query = Query {
            own,
            ..self.clone()
        };
        let fixed = in_range(
            own.requests.cost.checked_add(self.blocking(Span::ZERO)?),
            WHAT,
        )?;
        let step = self.cost_of_step();
        self.supply.longest(|phase| {
            least_fixed_point(self.time(phase, fixed)?, own.deadline, |t| {
                search_steps.spend(step, WHAT)?;
                query.time(phase, query.delayed(fixed, t, Span::ZERO)?)
            })
        })
    }

    fn worst_in(&self, phase: usize, search_steps: &mut SearchSteps<'_>) -> Checked<Option<Worst>> {
        let mut worst: Option<Worst> = None;
        let mut offset = Span::ZERO;
        // Later offsets only add work, unless a section ceases to block: then begin afresh.
        let by_deadline = matches!(self.urgency, Urgency::Deadline(_));
        let steady = self.blockers.iter().all(|b| b.until == i128::MAX)
            && !(by_deadline && self.node.has_locks());
        let mut known = Span::ZERO;
        let mut repeats = None;
        loop {
            let Some((found, busy)) = self.at(phase, offset, known, search_steps)? else {
                return Ok(None);
            };
            known = if steady { busy } else { Span::ZERO };
            if worst.is_none_or(|w| found.response > w.response) {
                worst = Some(found);
            }
            if self.enough.is_some_and(|enough| found.response > enough) {
                return Ok(worst);
            }
            let Some(next) = self.next_offset(offset) else {
                return Ok(worst);
            };
            let over = match self.until {
                Until::Idle => {
                    busy <= next && !self.has_equals()
                        || next >= *repeats.get_or_insert_with(|| self.repeats())
                        || self.idle_by(phase, next, offset, busy, search_steps)?
                }
                Until::Offset(end) => next >= end,
            };
            if over {
                return Ok(worst);
            }
            offset = next;
        }
    }

    /// Whether some jobs of interfering tasks go before it and others do not.
    fn has_equals(&self) -> bool {
        self.interfering.iter().any(|r| r.urgent != Urgent::Always)
    }

    /// The offset from which on nothing new is found: a single job adds no more than one step, at 0
    /// or just after it, and the supply is late once; from there on all repeats. O(n · log).
    fn repeats(&self) -> Span {
        let separations = self
            .interfering
            .iter()
            .map(|r| r.entity.requests.separation);
        let separations = separations.chain([self.own.requests.separation]).flatten();
        let reserved = self.reserved.iter().filter_map(|t| t.requests.separation);
        let separations = separations.chain(reserved).chain(self.supply.period());
        let late = self.supply.delay();
        let repeats = hyperperiod(separations)
            .and_then(|h| h.checked_add(TICK)?.checked_add(TICK)?.checked_add(late));
        repeats.unwrap_or(Span::MAX)
    }

    /// Whether everything released before `next` is done by then, hence the window over; a job
    /// released at `offset`, the last one of this task, is preceded by work until `busy`. Jobs of
    /// interfering tasks that are released since then, or with it, go after that job and are still
    /// in the window.
    fn idle_by(
        &self,
        phase: usize,
        next: Span,
        offset: Span,
        busy: Span,
        search_steps: &mut SearchSteps<'_>,
    ) -> Checked<bool> {
        if busy > next || !self.has_equals() {
            return Ok(busy <= next);
        }
        let own = self.own.requests.cost_of(self.own_jobs(offset))?;
        let blocking = self.blocking(offset)?;
        let fixed = in_range(own.checked_add(blocking), WHAT)?;
        let step = self.cost_of_step();
        let idle = least_fixed_point(busy, next, |t| {
            search_steps.spend(step, WHAT)?;
            let mut sum = fixed;
            for interferer in &self.interfering {
                // Up to `t`, which is at most `next`.
                let work = interferer.entity.requests.request_bound(t)?;
                sum = in_range(sum.checked_add(work), WHAT)?;
            }
            self.time(phase, add_reserved(self.reserved, sum, t)?)
        })?;
        Ok(idle.is_some())
    }

    /// The job released at `offset`, and until when it and what goes before it keep the processor
    /// busy; that is `known` at the earliest.
    fn at(
        &self,
        phase: usize,
        offset: Span,
        known: Span,
        search_steps: &mut SearchSteps<'_>,
    ) -> Checked<Option<(Worst, Span)>> {
        let jobs = self.own_jobs(offset);
        let blocking = self.blocking(offset)?;
        let own = self.own.requests.cost_of(jobs)?;
        let fixed = in_range(own.checked_add(blocking), WHAT)?;
        let step = self.cost_of_step();
        let busy = least_fixed_point(self.time(phase, fixed)?.max(known), Span::MAX, |t| {
            search_steps.spend(step, WHAT)?;
            self.time(phase, self.delayed(fixed, t, offset)?)
        })?;
        let Some(busy) = busy else { return Ok(None) };
        let (reach, completion) = if self.runs_through {
            let Some(found) = self.start_and_completion(phase, fixed, offset, search_steps)? else {
                return Ok(None);
            };
            found
        } else {
            (busy, busy)
        };
        let since_release = completion.saturating_sub(offset);
        let response = in_range(since_release.checked_add(self.own.own_jitter()), WHAT)?;
        Ok(Some((
            Worst {
                response,
                job: jobs - 1,
                offset,
                reach,
                completion,
                phase,
            },
            busy,
        )))
    }

    /// When the job starts (everything urgent that is released up to and at the start has run), and
    /// when it completes (only what takes from the whole node takes from it now).
    fn start_and_completion(
        &self,
        phase: usize,
        fixed: Work,
        offset: Span,
        search_steps: &mut SearchSteps<'_>,
    ) -> Checked<Option<(Span, Span)>> {
        let before = fixed.saturating_sub(self.own.requests.cost);
        let step = self.cost_of_step();
        // The job gets the first unit after `work`: its tick begins one before that unit is done.
        let first = |work: Work| -> Checked<Span> {
            let unit = in_range(work.checked_add(UNIT), WHAT)?;
            Ok(self.time(phase, unit)?.saturating_sub(TICK))
        };
        let start = least_fixed_point(first(before)?, Span::MAX.saturating_sub(TICK), |t| {
            search_steps.spend(step, WHAT)?;
            first(self.delayed(before, t.saturating_add(TICK), offset)?)
        })?;
        let Some(start) = start else { return Ok(None) };
        let mut served = self.delayed(before, start.saturating_add(TICK), offset)?;
        if start < offset {
            served = served.max(self.supply.provided_in(phase, offset)?);
        }
        let start = start.max(offset);
        let until_start = add_reserved(self.reserved, Work::ZERO, start.saturating_add(TICK))?;
        let busy = in_range(served.checked_add(self.own.requests.cost), WHAT)?;
        let completion = least_fixed_point(self.time(phase, busy)?, Span::MAX, |t| {
            search_steps.spend(step, WHAT)?;
            let work = add_reserved(self.reserved, busy, t)?.saturating_sub(until_start);
            self.time(phase, work.max(busy))
        })?;
        Ok(completion.map(|completion| (start.saturating_add(TICK), completion)))
    }
}

/// `sum` plus what is taken from the node in a window of this length.
pub(crate) fn add_reserved(reserved: &[Reserved], mut sum: Work, window: Span) -> Checked<Work> {
    for reserved in reserved {
        sum = in_range(
            sum.checked_add(reserved.requests.request_bound(window)?),
            WHAT,
        )?;
    }
    Ok(sum)
}

/// The longest busy window of all real-time work of a node and one section that blocks it; `None`
/// when it is longer than `limit`. Without a limit the utilization must be below 1.
/// O(phases · iterations · tasks).
pub(crate) fn longest(
    node: &Node,
    limit: Span,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Span>> {
    let background = node.background.map(|(_, section)| section);
    let blocking = background.unwrap_or_default().saturating_sub(UNIT);
    let blocking = in_range(blocking.checked_add(node.held_above), WHAT)?;
    let step = 1 + node.entities.len() + node.unserved.len() + node.reserved.len();
    node.supply.longest(|phase| {
        least_fixed_point(TICK, limit, |t| {
            search_steps.spend(step, WHAT)?;
            let mut sum = blocking;
            for entity in node.all_entities() {
                sum = in_range(sum.checked_add(entity.requests.request_bound(t)?), WHAT)?;
            }
            let work = add_reserved(&node.reserved, sum, t)?;
            Ok(node.supply.time_in(phase, work)?.unwrap_or(Span::MAX))
        })
    })
}
