//! Segments, the resources that they use, and their precedence, in fixed room

use alloc::vec::Vec;
use core::fmt;

use punctual_model::{Importance, Instant, Mode, Ticks, Unit, Work};

/// The most that a planner has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacities {
    /// Segments, those of the plan in force and those of a request together.
    pub segments: usize,
    /// Orders between two segments.
    pub orders: usize,
    /// Resources used, summed over the segments.
    pub uses: usize,
    /// CPUs, at least 1.
    pub cpus: usize,
    /// Resources, with one for each thread's place.
    pub resources: usize,
}

impl Capacities {
    /// Room for so many segments with up to four uses and four orders each.
    pub const fn new(segments: usize, cpus: usize, resources: usize) -> Capacities {
        Capacities {
            segments,
            orders: segments.saturating_mul(4),
            uses: segments.saturating_mul(4),
            cpus,
            resources,
        }
    }
}

/// Work that executes without preemption, on any CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<U: Unit = Ticks> {
    /// The caller's number of its group.
    pub group: u32,
    /// It does not start before.
    pub release: Instant<U>,
    /// The most that it executes, with all that a switch to it costs.
    pub wcet: Work<U>,
    /// It ends by then.
    pub absolute_deadline: Instant<U>,
}

/// A resource that a segment has from its start to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// Below the capacity for resources.
    pub resource: usize,
    /// Alone, or together with others.
    pub mode: Mode,
}

/// Where a segment executes best. Without one, all CPUs are alike for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location<U: Unit = Ticks> {
    /// The caller's number of its address space.
    pub process: u32,
    /// The CPU near which the memory of that is.
    pub home: Option<usize>,
    /// The most that it executes away from its home.
    pub away: Work<U>,
    /// Its additional cost where the segment before on its CPU is of another process, or none is.
    pub switch: Work<U>,
}

/// Why a segment or an order is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// There is no room left.
    Full,
    /// No such resource.
    Resource(usize),
    /// Of two segments in an order, the first was not pushed before the second.
    Order {
        /// The first one's number.
        before: usize,
        /// The second one's.
        after: usize,
    },
    /// A segment without work.
    Empty,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::Full => write!(f, "no room is left for this segment or order"),
            Mistake::Resource(resource) => write!(f, "there is no resource {resource}"),
            Mistake::Order { before, after } => write!(
                f,
                "segment {before} cannot come before {after}: push segments in an order that \
                 their precedence allows"
            ),
            Mistake::Empty => write!(f, "a segment has a wcet above 0"),
        }
    }
}

impl core::error::Error for Mistake {}

/// A segment with where its uses stand, and the first of the orders that it comes first in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row<U: Unit> {
    segment: Segment<U>,
    uses: (usize, usize),
    first: Option<usize>,
    predecessors: u32,
    importance: Importance,
    /// The groups that are removed together; `None`: its group alone.
    family: Option<u32>,
    tag: u64,
    location: Option<Location<U>>,
    /// Executes in its place when its group is dead and has begun; zero: nothing.
    cleanup: Work<U>,
}

/// One order of a segment, and the next one of the same segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Order {
    after: usize,
    next: Option<usize>,
}

/// Segments by number, in an order that their precedence allows.
///
/// Nothing is allocated after [`Segments::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segments<U: Unit = Ticks> {
    capacities: Capacities,
    rows: Vec<Row<U>>,
    uses: Vec<Use>,
    orders: Vec<Order>,
}

impl<U: Unit> Segments<U> {
    /// Room for segments, and none yet.
    pub fn new(capacities: Capacities) -> Segments<U> {
        Segments {
            capacities,
            rows: Vec::with_capacity(capacities.segments),
            uses: Vec::with_capacity(capacities.uses),
            orders: Vec::with_capacity(capacities.orders),
        }
    }

    /// Takes a segment in and gives its number. O(uses).
    ///
    /// # Errors
    /// A full table, a resource that is none, or no work.
    pub fn push(&mut self, segment: Segment<U>, uses: &[Use]) -> Result<usize, Mistake> {
        let unknown = |used: &&Use| used.resource >= self.capacities.resources;
        if let Some(used) = uses.iter().find(unknown) {
            return Err(Mistake::Resource(used.resource));
        }
        if segment.wcet.is_zero() {
            return Err(Mistake::Empty);
        }
        let (from, number) = (self.uses.len(), self.rows.len());
        if number == self.capacities.segments || self.capacities.uses - from < uses.len() {
            return Err(Mistake::Full);
        }
        self.uses.extend_from_slice(uses);
        self.rows.push(Row {
            segment,
            uses: (from, self.uses.len()),
            first: None,
            predecessors: 0,
            importance: Importance::default(),
            family: None,
            tag: 0,
            location: None,
            cleanup: Work::ZERO,
        });
        Ok(number)
    }

    /// `after` starts when `before` has ended. O(1).
    ///
    /// # Errors
    /// A full table, or segments that were not pushed in this order. So there are no circles.
    pub fn precede(&mut self, before: usize, after: usize) -> Result<(), Mistake> {
        if before >= after || after >= self.rows.len() {
            return Err(Mistake::Order { before, after });
        }
        if self.orders.len() == self.capacities.orders {
            return Err(Mistake::Full);
        }
        let next = self.rows[before].first.replace(self.orders.len());
        self.orders.push(Order { after, next });
        self.rows[after].predecessors += 1;
        Ok(())
    }

    /// The value of the group of a segment, in overload.
    ///
    /// # Panics
    /// A number that is none.
    pub fn set_importance(&mut self, number: usize, importance: Importance) {
        self.rows[number].importance = importance;
    }

    /// The family of the group of a segment: groups that were planned together, the children with
    /// their parent. None of them is removed without the others. The caller numbers families as it
    /// does groups; without one a group is its own.
    ///
    /// # Panics
    /// A number that is none.
    pub fn set_family(&mut self, number: usize, family: u32) {
        self.rows[number].family = Some(family);
    }

    /// A mark of the caller's, by which it finds a segment again in a later plan.
    ///
    /// # Panics
    /// A number that is none.
    pub fn set_tag(&mut self, number: usize, tag: u64) {
        self.rows[number].tag = tag;
    }

    /// Where a segment executes best.
    ///
    /// # Panics
    /// A number that is none.
    pub fn set_location(&mut self, number: usize, location: Location<U>) {
        self.rows[number].location = Some(location);
    }

    /// If its group is killed at the boundary before a segment, a handler executes in its place.
    ///
    /// # Errors
    /// The wcet of the segment, when the handler needs more than was planned for that, or its
    /// resources are not all among those of the segment.
    ///
    /// # Panics
    /// A number that is none.
    pub fn set_cleanup(
        &mut self,
        number: usize,
        handler: Work<U>,
        uses: &[Use],
    ) -> Result<(), Work<U>> {
        let planned = self.rows[number].segment.wcet;
        let has = |used: &Use| {
            let mut own = self.uses(number).iter();
            own.any(|own| {
                own.resource == used.resource
                    && (own.mode == Mode::Exclusive || own.mode == used.mode)
            })
        };
        if handler > planned || !uses.iter().all(has) {
            return Err(planned);
        }
        self.rows[number].cleanup = handler;
        Ok(())
    }

    /// Attaches a group with a dependent guarantee: it is planned with the segments that are here,
    /// and starts when `after` has ended. Nothing is left to do at run time but to pass that
    /// boundary. The number of the child's first segment. O(segments · orders) of the child.
    ///
    /// # Errors
    /// A full table, which then has part of the child; or no such segment.
    pub fn attach(&mut self, child: &Segments<U>, after: usize) -> Result<usize, Mistake> {
        let first = self.rows.len();
        if after >= first {
            return Err(Mistake::Order {
                before: after,
                after: first,
            });
        }
        self.add(child, |number| Some(first + number))?;
        for number in (0..child.len()).filter(|&number| child.predecessors(number) == 0) {
            self.precede(after, first + number)?;
        }
        Ok(first)
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All segments, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Segment<U>> {
        self.rows.iter().map(|row| &row.segment)
    }

    /// A segment; `None` of a number that is none.
    pub fn get(&self, number: usize) -> Option<&Segment<U>> {
        self.rows.get(number).map(|row| &row.segment)
    }

    /// The uses of a segment.
    ///
    /// # Panics
    /// A number that is none.
    pub fn uses(&self, number: usize) -> &[Use] {
        let (from, to) = self.rows[number].uses;
        &self.uses[from..to]
    }

    /// The segments that one comes before, the last order first.
    ///
    /// # Panics
    /// A number that is none.
    pub fn successors(&self, number: usize) -> impl Iterator<Item = usize> {
        let mut next = self.rows[number].first;
        core::iter::from_fn(move || {
            let order = self.orders[next?];
            next = order.next;
            Some(order.after)
        })
    }

    /// The value of the group of a segment.
    ///
    /// # Panics
    /// A number that is none.
    pub fn importance(&self, number: usize) -> Importance {
        self.rows[number].importance
    }

    /// The number of the family of its group.
    ///
    /// # Panics
    /// A number that is none.
    pub fn family(&self, number: usize) -> u32 {
        let row = &self.rows[number];
        row.family.unwrap_or(row.segment.group)
    }

    /// The caller's mark of a segment; 0 without one.
    ///
    /// # Panics
    /// A number that is none.
    pub fn tag(&self, number: usize) -> u64 {
        self.rows[number].tag
    }

    /// Where a segment executes best.
    ///
    /// # Panics
    /// A number that is none.
    pub fn location(&self, number: usize) -> Option<Location<U>> {
        self.rows[number].location
    }

    /// The most that a handler in place of a segment executes; zero: there is none.
    ///
    /// # Panics
    /// A number that is none.
    pub fn cleanup(&self, number: usize) -> Work<U> {
        self.rows[number].cleanup
    }

    /// The least that a segment executes on any CPU, at worst.
    pub(crate) fn least_wcet(&self, number: usize) -> Work<U> {
        let row = &self.rows[number];
        match row.location {
            Some(location) if location.home.is_some() => row.segment.wcet.min(location.away),
            _ => row.segment.wcet,
        }
    }

    /// The most that there is room for.
    pub fn capacities(&self) -> Capacities {
        self.capacities
    }

    /// Whether a planner of these capacities has room for all of it.
    pub(crate) fn fits(&self, capacities: &Capacities) -> bool {
        self.rows.len() <= capacities.segments
            && self.uses.len() <= capacities.uses
            && self.orders.len() <= capacities.orders
            && self.capacities.resources <= capacities.resources
    }

    /// How many orders a segment comes second in.
    pub(crate) fn predecessors(&self, number: usize) -> u32 {
        self.rows[number].predecessors
    }

    pub(crate) fn segment(&self, number: usize) -> &Segment<U> {
        &self.rows[number].segment
    }

    /// A segment with its uses, and where it executes best.
    #[inline]
    pub(crate) fn row(&self, number: usize) -> (&Segment<U>, &[Use], Option<&Location<U>>) {
        let row = &self.rows[number];
        let (from, to) = row.uses;
        (&row.segment, &self.uses[from..to], row.location.as_ref())
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.uses.clear();
        self.orders.clear();
    }

    /// Adds the segments of others whose new number `place` gives, with the orders among them:
    /// ascending numbers, from the count of those that are here on. O(segments · orders).
    ///
    /// # Errors
    /// A full table, which then has part of them.
    pub fn add(
        &mut self,
        others: &Segments<U>,
        place: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), Mistake> {
        for number in (0..others.len()).filter(|&number| place(number).is_some()) {
            let new = self.push(*others.segment(number), others.uses(number))?;
            let row = &others.rows[number];
            let taken = &mut self.rows[new];
            (taken.importance, taken.location) = (row.importance, row.location);
            (taken.cleanup, taken.tag) = (row.cleanup, row.tag);
            taken.family = row.family;
        }
        for before in 0..others.len() {
            for after in others.successors(before) {
                if let (Some(before), Some(after)) = (place(before), place(after)) {
                    self.precede(before, after)?;
                }
            }
        }
        Ok(())
    }
}
