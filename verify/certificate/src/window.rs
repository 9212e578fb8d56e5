//! The jobs of a busy window, and the processor demand under EDF
//!
//! A job of a task that is released at offset A of a busy window is done by the least w with
//!
//! ```text
//! time_for(blocking + own jobs up to A + jobs of others released before w, urgent enough) <= w
//! ```
//!
//! when all others begin the window with it (Lehoczky 1990; Spuri 1996; George et al. 1996). Which
//! offsets count is listed by `next`; the last one finds the window over.

use crate::Why;
use crate::chain::gcd;
use crate::claims::{DemandClaim, JobClaim, Point};
use crate::locks::{self, Section};
use crate::node::{Entity, Node, Who};
use crate::supply::{LIMIT, Stream, Supply, climb, in_range, taken};
use crate::system::Policy;

/// Most jobs or points that a certificate lists for one entity.
const MAX_LISTED: usize = 20_000;

/// Which jobs of another entity go before a job at offset A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Urgent {
    Always,
    /// Released before A, or with it.
    Earlier {
        ties: bool,
    },
    /// The k-th when k·T <= A + shift.
    Deadline {
        shift: i128,
    },
}

struct Window<'a> {
    own: &'a Entity,
    supply: &'a Supply,
    interfering: Vec<(&'a Entity, Urgent)>,
    /// Length, and from which offset on it no longer blocks.
    blockers: Vec<(u128, i128)>,
    sections: &'a [Section],
    /// Of a job at offset 0, and by how much later ones are less urgent.
    urgency: (i128, i128),
    /// Offsets end here, or where the window does.
    until: Option<u128>,
}

pub(crate) fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn signed(value: u128) -> i128 {
    i128::try_from(value).unwrap_or(i128::MAX)
}

/// All jobs of the entity at `place` that may be the worst.
pub(crate) fn jobs(node: &Node, place: usize) -> Result<Vec<JobClaim>, Why> {
    let window = Window::of(node, place)?;
    let mut jobs = Vec::new();
    let mut offset = 0;
    loop {
        let (busy, completion) = window.done(offset)?;
        jobs.push(JobClaim {
            offset: narrow(offset),
            completion: narrow(completion),
        });
        let Some(next) = window.next(offset) else {
            break;
        };
        let over = match window.until {
            Some(until) => next >= until,
            None => window.repeats(next) || window.is_over(next, offset, busy)?,
        };
        if over {
            break;
        }
        if jobs.len() >= MAX_LISTED {
            return Err(Why::new(format!(
                "the many jobs of {} in a window",
                window.own.name
            )));
        }
        offset = next;
    }
    Ok(jobs)
}

/// The requests of a constant-bandwidth server are no whole jobs.
fn refuse_fluid(node: &Node, what: &str) -> Result<(), Why> {
    let mut fluid = node.entities.iter().filter(|c| c.fluid);
    fluid.next().map_or(Ok(()), |server| {
        let name = &server.name;
        Err(Why::new(format!(
            "{what} the constant-bandwidth server of {name}"
        )))
    })
}

impl<'a> Window<'a> {
    fn of(node: &'a Node, place: usize) -> Result<Window<'a>, Why> {
        refuse_fluid(node, "a response beside")?;
        let own = &node.entities[place];
        let edf = node.policy == Policy::Edf;
        let mut interfering = Vec::new();
        let mut blockers = Vec::new();
        for (index, other) in node
            .entities
            .iter()
            .enumerate()
            .filter(|&(i, _)| i != place)
        {
            let urgent = match node.policy {
                Policy::Edf => Some(Urgent::Deadline {
                    shift: shift(own, other),
                }),
                Policy::FixedPriority { .. } if other.priority < own.priority => None,
                Policy::FixedPriority { .. } if other.priority > own.priority => {
                    Some(Urgent::Always)
                }
                _ => Some(equals(own, other, index < place)),
            };
            interfering.extend(urgent.map(|urgent| (other, urgent)));
            if other.section > 1 && (edf || urgent.is_none()) {
                let until = if edf { -shift(own, other) } else { i128::MAX };
                blockers.push((other.section - 1, until));
            }
        }
        if node.background > 1 {
            blockers.push((node.background - 1, i128::MAX));
        }
        Ok(Window {
            own,
            supply: &node.supply,
            interfering,
            blockers,
            sections: &node.sections,
            urgency: (locks::rank(node.policy, own), i128::from(edf)),
            until: if edf { Some(longest(node)?) } else { None },
        })
    }

    fn own_jobs(&self, offset: u128) -> u128 {
        self.own.stream.separation.map_or(1, |t| offset / t + 1)
    }

    fn blocking(&self, offset: u128) -> u128 {
        let reaching = self.blockers.iter().filter(|b| signed(offset) < b.1);
        let own = match self.own.who {
            Who::Task(id) => Some(id),
            Who::Server(_) => None,
        };
        let urgency = self.urgency.0 - self.urgency.1 * signed(offset);
        let held = locks::blocking(self.sections, urgency, own);
        reaching.map(|b| b.0).max().unwrap_or(0) + held
    }

    /// Work of the others before a job at `offset`, among what is released in `window`.
    fn interfering(&self, window: u128, offset: u128) -> u128 {
        let work = |&(other, urgent): &(&Entity, Urgent)| {
            let stream = &other.hits;
            let released = stream.releases(window);
            let jobs = match urgent {
                Urgent::Always => released,
                Urgent::Earlier { ties } => {
                    released.min(stream.releases(offset + u128::from(ties)))
                }
                Urgent::Deadline { shift } => {
                    let reach = u128::try_from(signed(offset) + shift);
                    let urgent = reach.map_or(0, |r| stream.separation.map_or(1, |t| r / t + 1));
                    released.min(urgent)
                }
            };
            stream.work(jobs)
        };
        self.interfering
            .iter()
            .map(work)
            .fold(0, u128::saturating_add)
    }

    /// Until when the job at `offset` and what goes before it are done, and its completion.
    fn done(&self, offset: u128) -> Result<(u128, u128), Why> {
        let fixed = self.own_jobs(offset) * self.own.stream.cost + self.blocking(offset);
        let busy = climb(self.supply.time_for(fixed)?, |t| {
            self.supply
                .time_for(fixed.saturating_add(self.interfering(t, offset)))
        })?;
        let Supply::Whole(reserves) = self.supply else {
            return Ok((busy, busy));
        };
        if !self.own.whole {
            return Ok((busy, busy));
        }
        // What does not preempt it once it has started does not delay it.
        let before = fixed - self.own.stream.cost;
        let start = climb(before, |t| {
            let interfering = self.interfering(t + 1, offset);
            Ok(interfering
                .saturating_add(before)
                .saturating_add(taken(reserves, t + 1)))
        })?;
        let start = start.max(offset);
        let soonest = start + self.own.stream.cost;
        let earlier = taken(reserves, start + 1);
        let completion = climb(soonest, |t| {
            let since = soonest
                .saturating_add(taken(reserves, t))
                .saturating_sub(earlier);
            Ok(since.max(soonest))
        })?;
        Ok((busy, completion))
    }

    /// The next offset that one more job, of its own or urgent enough, distinguishes.
    fn next(&self, offset: u128) -> Option<u128> {
        let own = self.own.stream.separation.map(|t| (offset / t + 1) * t);
        let step = |&(other, urgent): &(&Entity, Urgent)| {
            let origin = match urgent {
                Urgent::Always => return None,
                Urgent::Earlier { ties } => i128::from(!ties) - signed(other.hits.jitter),
                Urgent::Deadline { shift } => -shift,
            };
            let since = signed(offset) - origin;
            let next = if since < 0 {
                origin
            } else {
                let t = signed(other.hits.separation?);
                (since / t + 1) * t + origin
            };
            u128::try_from(next).ok()
        };
        self.interfering.iter().filter_map(step).chain(own).min()
    }

    /// Whether an offset finds what one a hyperperiod before it has found: all that comes in a
    /// hyperperiod fits into it, so nothing has been added. (Single jobs are all past after 2.)
    fn repeats(&self, offset: u128) -> bool {
        let Supply::Whole(reserves) = self.supply else {
            return false;
        };
        let interfering = self.interfering.iter().map(|r| &r.0.hits);
        let streams: Vec<&Stream> = interfering
            .chain(reserves)
            .chain([&self.own.stream])
            .collect();
        let separations = || streams.iter().filter_map(|s| s.separation);
        let round = separations().try_fold(1, |lcm, t| {
            let lcm = (lcm / gcd(lcm, t)).checked_mul(t)?;
            (lcm < LIMIT).then_some(lcm)
        });
        let Some(round) = round else { return false };
        let shares = streams
            .iter()
            .filter_map(|s| s.separation.map(|t| (s.cost, t)));
        let demand = shares.map(|(cost, t)| cost.saturating_mul(round / t));
        demand.fold(0, u128::saturating_add) <= round && offset >= round + 2
    }

    /// Whether everything released before `next` is done by then.
    fn is_over(&self, next: u128, offset: u128, busy: u128) -> Result<bool, Why> {
        if busy > next || self.interfering.iter().all(|r| r.1 == Urgent::Always) {
            return Ok(busy <= next);
        }
        let fixed = self.own_jobs(offset) * self.own.stream.cost + self.blocking(offset);
        let all = |t| {
            let work = self.interfering.iter().map(|r| r.0.hits.requested(t));
            work.fold(fixed, u128::saturating_add)
        };
        let mut t = busy;
        while t <= next {
            let done = in_range(self.supply.time_for(all(t))?)?;
            if done <= t {
                return Ok(true);
            }
            t = done;
        }
        Ok(false)
    }
}

/// How much later than the own arrival an interfering task's may be, to have an earlier deadline.
fn shift(own: &Entity, other: &Entity) -> i128 {
    let lead = |c: &Entity| signed(c.deadline) - signed(c.hits.jitter);
    lead(own) - lead(other)
}

/// Equal priority: the earlier arrival first, then the order in the file; against servers always.
fn equals(own: &Entity, other: &Entity, before: bool) -> Urgent {
    match (own.who, other.who) {
        (Who::Task(_), Who::Task(_)) => Urgent::Earlier {
            ties: before || other.stream.jitter > 0 || own.stream.jitter > 0,
        },
        _ => Urgent::Always,
    }
}

/// The longest busy window of the node.
pub(crate) fn longest(node: &Node) -> Result<u128, Why> {
    let blocking = node.background.saturating_sub(1);
    climb(1, |t| {
        let requested = node.entities.iter().map(|c| match c.fluid {
            true => c.stream.cost + share(c, t),
            false => c.hits.requested(t),
        });
        node.supply
            .time_for(requested.fold(blocking, u128::saturating_add))
    })
}

/// The part of a window that a fluid entity asks for.
fn share(entity: &Entity, window: u128) -> u128 {
    let period = entity.stream.separation.unwrap_or(u128::MAX);
    entity.stream.cost.saturating_mul(window) / period
}

/// Work with deadlines up to `at` when everything is released at 0.
fn demand(node: &Node, at: u128) -> u128 {
    let due = |c: &Entity| {
        let reach = (at + c.hits.jitter).checked_sub(c.deadline);
        reach.map_or(0, |r| c.hits.separation.map_or(1, |t| r / t + 1))
    };
    let work = node.entities.iter().map(|c| match c.fluid {
        true => share(c, at),
        false => c.hits.work(due(c)),
    });
    work.fold(0, u128::saturating_add)
}

/// The first instant by which a whole job or budget is due. Rests of budgets may be due before, and
/// nothing is claimed of those where they may be late.
fn first_deadline(node: &Node) -> u128 {
    node.entities.iter().map(blocks_until).min().unwrap_or(0)
}

/// Up to which deadlines a section blocks.
fn blocks_until(entity: &Entity) -> u128 {
    entity.deadline.saturating_sub(entity.hits.jitter)
}

fn demand_blocking(node: &Node, at: u128) -> u128 {
    if node.policy != Policy::Edf {
        return 0;
    }
    let sections = node
        .entities
        .iter()
        .filter(|c| blocks_until(c) > at)
        .map(|c| c.section);
    sections
        .chain([node.background])
        .max()
        .unwrap_or(0)
        .saturating_sub(1)
        + locks::blocking(&node.sections, -signed(at), None)
}

/// The latest deadline before an instant. A fluid demand grows no faster than time, so on a whole
/// CPU it is worst at the deadlines of others; elsewhere every instant is one of its deadlines.
fn last_deadline(node: &Node, before: u128) -> Option<u128> {
    let limit = before.checked_sub(1)?;
    let first = first_deadline(node);
    let is_whole = matches!(&node.supply, Supply::Whole(reserves) if reserves.is_empty());
    let last = |c: &Entity| {
        if c.fluid {
            let at = if is_whole { c.deadline } else { limit };
            return Some(at).filter(|&at| (first..=limit).contains(&at));
        }
        let rest = (limit + c.hits.jitter).checked_sub(c.deadline)?;
        let since = c.hits.separation.map_or(0, |t| rest / t * t);
        Some((c.deadline + since).saturating_sub(c.hits.jitter))
    };
    node.entities.iter().filter_map(last).max()
}

/// Demand against supply at every deadline of the longest busy window, backwards. A demand at t
/// that is done by s <= t leaves nothing to show between s and t, while nothing else may begin to
/// block (Zhang and Burns 2009).
pub(crate) fn points(node: &Node) -> Result<Vec<Point>, Why> {
    let sections = node.entities.iter().filter(|c| c.section > 1);
    let steps = sections
        .map(blocks_until)
        .chain(locks::steps(&node.sections));
    let steps: Vec<u128> = steps.collect();
    let mut points = Vec::new();
    let mut next = last_deadline(node, longest(node)? + 1);
    let first = first_deadline(node);
    while let Some(at) = next.filter(|&at| at >= first) {
        let due = demand(node, at);
        if due == 0 {
            break;
        }
        let due = due.saturating_add(demand_blocking(node, at));
        let done = node.supply.time_for(due)?;
        if done > at {
            return Err(Why::new(format!(
                "{}, where more is due than can be done",
                node.name
            )));
        }
        points.push(Point {
            at: narrow(at),
            demand: narrow(due),
            done: narrow(done),
        });
        if points.len() >= MAX_LISTED {
            return Err(Why::new(format!("the many deadlines of {}", node.name)));
        }
        let floor = steps
            .iter()
            .copied()
            .filter(|&s| s <= at)
            .max()
            .unwrap_or(0);
        next = if done < floor {
            last_deadline(node, floor)
        } else if done < at {
            Some(done)
        } else {
            last_deadline(node, at)
        };
    }
    Ok(points)
}

/// The work due and the work that can be done by `at`.
pub(crate) fn overdue(node: &Node, cpu: &str, at: u64) -> Result<DemandClaim, Why> {
    refuse_fluid(node, "a refusal beside")?;
    let instant = u128::from(at);
    let due = demand(node, instant).saturating_add(demand_blocking(node, instant));
    // The most work that is done by then: between nothing and all of the time.
    let (mut done, mut not) = (0, instant + 1);
    while not - done > 1 {
        let middle = done + (not - done) / 2;
        match node.supply.time_for(middle) {
            Ok(t) if t <= instant => done = middle,
            _ => not = middle,
        }
    }
    Ok(DemandClaim {
        cpu: cpu.to_string(),
        at,
        demand: narrow(due),
        supply: narrow(done),
    })
}

/// The response of the job at `offset`.
pub(crate) fn response(node: &Node, place: usize, offset: u64) -> Result<u64, Why> {
    let window = Window::of(node, place)?;
    let (_, completion) = window.done(offset.into())?;
    let jitter = window.own.stream.jitter;
    Ok(narrow(completion.saturating_sub(offset.into()) + jitter))
}
