//! The jobs of threads: counted by thread while the run goes on, told by name.

use punctual_kern::{Entry, Event, Outcome, Sink, TraceEvent};
use punctual_linux::Outcome as RunOutcome;
use punctual_model::{Class, Instant, ThreadId};
use punctual_tables::CpuTables;

use crate::place::FIRST;

/// Threads of one CPU that are counted each by itself. Later ones are counted together, as
/// [`OTHERS`].
pub(crate) const COUNTED: usize = 1_024;
/// The name of all threads of a CPU that came when 1,024 had been there.
pub const OTHERS: &str = "(others)";

/// The jobs of the threads of one name on one CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Jobs {
    /// The CPU, by its place in the run.
    pub cpu: usize,
    /// The name of the threads.
    pub name: String,
    /// Jobs that completed, by themselves or stopped by their rule. Of a reservation: its periods.
    pub done: u64,
    /// Jobs that completed after their deadline, or whose thread was ended after it. Of a
    /// reservation: periods in which it wanted its whole slice and did not get it.
    pub late: u64,
    /// Jobs that used up their budget and were not done.
    pub overruns: u64,
    /// How often a thread had to wait for its next budget.
    pub throttles: u64,
    /// Releases that were skipped, or that found the backlog full.
    pub lost: u64,
}

/// Counts on one CPU. Nothing is allocated while the run goes on, and an event costs a few
/// instructions.
#[derive(Debug)]
pub(crate) struct Tally {
    of_slot: Vec<Slot>,
    /// Whether the thread that this entry creates is a reservation.
    creates_reservation: bool,
    /// The first is for all that have none of their own.
    rows: Vec<Row>,
}

/// The thread in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    row: usize,
    /// The end of its period is no lateness, though the core hears of it somewhat later.
    is_reservation: bool,
    /// The same of its next constraint.
    becomes_reservation: bool,
}

const fn is_reservation(class: Class) -> bool {
    matches!(class, Class::Reservation { .. })
}

#[derive(Clone, Copy, Debug)]
struct Row {
    thread: ThreadId,
    done: u64,
    late: u64,
    overruns: u64,
    throttles: u64,
    lost: u64,
}

impl Row {
    fn of(thread: ThreadId) -> Row {
        Row {
            thread,
            done: 0,
            late: 0,
            overruns: 0,
            throttles: 0,
            lost: 0,
        }
    }
}

impl Tally {
    pub(crate) fn of(tables: &CpuTables) -> Tally {
        let first = tables.threads.first();
        let class = first.map_or(Class::Aperiodic, |(_, constraint)| constraint.class);
        Tally::new(tables.capacity.threads, class)
    }

    /// For a CPU with so many slots for threads, the first of which has one of this class.
    fn new(slots: usize, class: Class) -> Tally {
        let nobody = Row::of(ThreadId::new(u32::MAX, 0));
        // Written once, so that the pages are there before the run.
        let mut rows = vec![nobody; COUNTED + 2];
        rows.truncate(1);
        // The first thread is there before the run.
        rows.push(Row::of(ThreadId::new(0, 0)));
        let mut of_slot = vec![Slot::default(); slots];
        if let Some(first) = of_slot.first_mut() {
            first.row = 1;
            first.is_reservation = is_reservation(class);
        }
        Tally {
            of_slot,
            creates_reservation: false,
            rows,
        }
    }

    fn begins(&mut self, thread: ThreadId) {
        let has_room = self.rows.len() < self.rows.capacity();
        if let Some(slot) = self.of_slot.get_mut(thread.index()) {
            *slot = Slot {
                row: if has_room { self.rows.len() } else { 0 },
                is_reservation: self.creates_reservation,
                becomes_reservation: false,
            };
        }
        if has_room {
            self.rows.push(Row::of(thread));
        }
    }

    fn count(&mut self, thread: ThreadId, add: impl FnOnce(&mut Row)) {
        let row = self.of_slot.get(thread.index()).map_or(0, |slot| slot.row);
        if let Some(row) = self.rows.get_mut(row) {
            add(row);
        }
    }

    /// A job is over; `is_late`: behind its deadline.
    fn completed(&mut self, thread: ThreadId, outcome: Outcome, is_late: bool) {
        let slot = self.of_slot.get(thread.index());
        let is_reservation = slot.is_some_and(|slot| slot.is_reservation);
        let is_late = match outcome {
            Outcome::Short => true,
            Outcome::Done if is_reservation => false,
            Outcome::Done | Outcome::Stopped | Outcome::Aborted => is_late,
        };
        self.count(thread, |row| {
            row.done += u64::from(outcome != Outcome::Aborted);
            row.late += u64::from(is_late);
        });
    }
}

impl Sink for Tally {
    fn begin(&mut self, entry: &Entry<'_>) {
        match entry.event {
            Event::Create(constraint) => {
                self.creates_reservation = is_reservation(constraint.class);
            }
            Event::Change { thread, constraint } => {
                if let Some(slot) = self.of_slot.get_mut(thread.index()) {
                    slot.becomes_reservation = is_reservation(constraint.class);
                }
            }
            _ => {}
        }
    }

    fn trace(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Created { thread } => self.begins(thread),
            TraceEvent::Completed {
                thread,
                outcome,
                deadline,
                ..
            } if deadline != Instant::MAX => self.completed(thread, outcome, now > deadline),
            TraceEvent::Changed { thread } => {
                if let Some(slot) = self.of_slot.get_mut(thread.index()) {
                    slot.is_reservation = slot.becomes_reservation;
                }
            }
            TraceEvent::Overran { thread, .. } => self.count(thread, |row| row.overruns += 1),
            TraceEvent::Throttled { thread, .. } => self.count(thread, |row| row.throttles += 1),
            TraceEvent::Skipped { thread, .. } | TraceEvent::Lost { thread, .. } => {
                self.count(thread, |row| row.lost += 1);
            }
            _ => {}
        }
    }

    fn entry(
        &mut self,
        _now: Instant,
        _event: &Event,
        _left: Option<ThreadId>,
        _run: (ThreadId, Option<Instant>),
    ) {
        // A whole entry in which nothing of the above happens.
    }

    fn entry_of_change(
        &mut self,
        _now: Instant,
        _event: &Event,
        _change: TraceEvent,
        _run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        // Likewise: a thread is woken or waits.
    }

    fn entry_of_changes(
        &mut self,
        now: Instant,
        event: &Event,
        (change, _other): (TraceEvent, TraceEvent),
        _run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        // Likewise, unless a thread ends, and its job with it.
        if matches!(event, Event::Exit) {
            self.trace(now, change);
        }
    }
}

/// The counts of a run by CPU and name, in the order of the first thread of each name. Background
/// threads without jobs are not in it.
pub(crate) fn by_name(outcome: &RunOutcome<Tally>) -> Vec<Jobs> {
    let mut all: Vec<Jobs> = Vec::new();
    for (cpu, outcome) in outcome.cpus.iter().enumerate() {
        let of_cpu = all.len();
        for (place, row) in outcome.sink.rows.iter().enumerate() {
            let name = match place {
                0 => OTHERS,
                1 => FIRST,
                _ => {
                    let mut named = outcome.spawned.iter();
                    let named = named.find(|(thread, _)| *thread == row.thread);
                    named.map_or(OTHERS, |(_, name)| name.as_str())
                }
            };
            if row.done + row.late + row.overruns + row.throttles + row.lost == 0 {
                continue;
            }
            let there = all[of_cpu..].iter().position(|jobs| jobs.name == name);
            let at = there.map_or(all.len(), |place| of_cpu + place);
            if there.is_none() {
                let name = name.to_owned();
                all.push(Jobs {
                    cpu,
                    name,
                    ..Jobs::default()
                });
            }
            let jobs = &mut all[at];
            jobs.done += row.done;
            jobs.late += row.late;
            jobs.overruns += row.overruns;
            jobs.throttles += row.throttles;
            jobs.lost += row.lost;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_kern::Constraint;
    use punctual_model::{CpuId, Frequency, Ns, Span, Task, Work};

    const FIRST_ONE: ThreadId = ThreadId::new(0, 0);

    /// How one job counts that was to be over at 100.
    fn counted(tally: &mut Tally, now: u64, outcome: Outcome) -> (u64, u64) {
        let completed = TraceEvent::Completed {
            thread: FIRST_ONE,
            job: 0,
            outcome,
            arrival: Instant::ZERO,
            deadline: Instant::from_ticks(100),
            received: Work::ZERO,
        };
        let before = tally.rows[1];
        tally.trace(Instant::from_ticks(now), completed);
        let after = tally.rows[1];
        (after.done - before.done, after.late - before.late)
    }

    const fn reservation() -> Class<Ns> {
        Class::Reservation {
            period: Span::from_ms(2),
            slice: Work::from_ms(1),
        }
    }

    #[test]
    fn a_job_is_late_behind_its_deadline_and_a_reservation_without_its_slice() {
        let mut tally = Tally::new(2, Class::Aperiodic);
        for outcome in [Outcome::Done, Outcome::Stopped] {
            assert_eq!(counted(&mut tally, 100, outcome), (1, 0), "{outcome:?}");
            assert_eq!(counted(&mut tally, 101, outcome), (1, 1), "{outcome:?}");
        }
        assert_eq!(counted(&mut tally, 100, Outcome::Aborted), (0, 0));
        assert_eq!(counted(&mut tally, 101, Outcome::Aborted), (0, 1));
        // A period is over when the timer says so, somewhat behind it.
        let constraint = constraint_of(reservation());
        let change = Event::Change {
            thread: FIRST_ONE,
            constraint,
        };
        tally.begin(&Entry::at(Instant::ZERO, &change));
        assert_eq!(counted(&mut tally, 101, Outcome::Done), (1, 1), "not yet");
        tally.trace(Instant::ZERO, TraceEvent::Changed { thread: FIRST_ONE });
        assert_eq!(counted(&mut tally, 101, Outcome::Done), (1, 0));
        assert_eq!(counted(&mut tally, 100, Outcome::Short), (1, 1));
        // The next one in its place is what it was created as.
        tally.begin(&Entry::at(Instant::ZERO, &Event::Create(constraint)));
        let next = ThreadId::new(1, 1);
        tally.trace(Instant::ZERO, TraceEvent::Created { thread: next });
        assert!(tally.of_slot[1].is_reservation);
    }

    #[test]
    fn a_thread_that_ends_behind_its_deadline_is_late_in_a_whole_entry_and_in_parts() {
        let completed = TraceEvent::Completed {
            thread: FIRST_ONE,
            job: 0,
            outcome: Outcome::Aborted,
            arrival: Instant::ZERO,
            deadline: Instant::from_ticks(100),
            received: Work::ZERO,
        };
        let changes = (completed, TraceEvent::Ended { thread: FIRST_ONE });
        let run = (FIRST_ONE, ThreadId::new(1, 0), None);
        for (now, late) in [(100, 0), (101, 1)] {
            let now = Instant::from_ticks(now);
            let mut whole = Tally::new(2, Class::Aperiodic);
            whole.entry_of_changes(now, &Event::Exit, changes, run);
            let mut parts = Tally::new(2, Class::Aperiodic);
            parts.entry_of_changes_in_parts(now, &Event::Exit, changes, run);
            let counts = [whole, parts].map(|tally| (tally.rows[1].done, tally.rows[1].late));
            assert_eq!(counts, [(0, late); 2]);
        }
    }

    #[test]
    fn the_first_thread_is_of_the_class_that_it_has_from_the_start() {
        let class = constraint_of(reservation()).class;
        let mut tally = Tally::new(1, class);
        assert_eq!(counted(&mut tally, 101, Outcome::Done), (1, 0));
    }

    fn constraint_of(class: Class<Ns>) -> Constraint {
        let task = Task::new("r", CpuId(0), class);
        Constraint::of_task(&task, 0).in_ticks(Frequency::NANOSECONDS)
    }
}
