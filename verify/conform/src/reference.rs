//! The reference: a slow and obvious ready set beside the policy.
//!
//! It hears every call that the policy hears. What it makes of a pick is in `judge`.

use std::sync::mpsc::Sender;

use punctual_kern::Attributes;
use punctual_model::{Instant, ThreadId, Work};

use crate::claims::Claims;
use crate::coverage::Coverage;
use crate::symptom::{Symptom, Violation, Why};
use crate::turns::Turns;

/// Everything that can be known from the calls.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) claims: Claims,
    pub(crate) places: Vec<Place>,
    pub(crate) turns: Turns,
    pub(crate) hold: Hold,
    /// The pick that stands: who, since when, until when, and what was executed of it.
    pub(crate) picked: Option<ThreadId>,
    /// Which of the policies that were given to the scheduler decides; the others are told, too.
    pub(crate) decides: u32,
    pub(crate) picked_at: Instant,
    pub(crate) until: Option<Instant>,
    pub(crate) executed: Work,
    pub(crate) violation: Option<Violation>,
    pub(crate) coverage: Coverage,
    /// What happened, in words; `None`: nobody reads it.
    pub(crate) lines: Option<Vec<String>>,
    /// Who reads it while it happens.
    pub(crate) live: Option<Sender<String>>,
    /// Before each line: calls stand below the event that they are made for.
    pub(crate) indent: &'static str,
}

/// One place of the table of threads.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Who lives there.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) ready: Option<Ready>,
    /// Why it is not ready.
    pub(crate) why: Why,
    /// The interval of the claimed budget that was executed in last, and how much of it.
    pub(crate) used: (u64, Work),
    /// What the core has granted it and it has not executed; `None`: the core grants nothing here.
    pub(crate) granted: Option<Work>,
}

/// What is known of a ready thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) attributes: Attributes,
    /// It has let equals go first: their order is open.
    pub(crate) yielded: bool,
}

/// Who has begun to execute under a policy that does not preempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    Nobody,
    /// This one goes on.
    Keeps(ThreadId),
    /// This one may go on: it has yielded, or runs on a new budget.
    May(ThreadId),
}

impl Reference {
    pub(crate) fn new(claims: &Claims, threads: usize, record: bool) -> Reference {
        let place = Place {
            thread: None,
            ready: None,
            why: Why::Foreign,
            used: (0, Work::ZERO),
            granted: None,
        };
        Reference {
            claims: *claims,
            places: vec![place; threads],
            turns: Turns::new(threads),
            hold: Hold::Nobody,
            picked: None,
            decides: 0,
            picked_at: Instant::ZERO,
            until: None,
            executed: Work::ZERO,
            violation: None,
            coverage: Coverage::default(),
            lines: record.then(Vec::new),
            live: None,
            indent: "",
        }
    }

    /// Whether nothing that follows means anything.
    pub(crate) fn is_over(&self) -> bool {
        self.violation.is_some()
    }

    /// Remembers the first violation.
    pub(crate) fn fail(&mut self, violation: Violation) {
        if self.violation.is_none() {
            self.violation = Some(violation);
        }
    }

    /// Adds a line to what people read.
    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        if self.lines.is_none() && self.live.is_none() {
            return;
        }
        let line = format!("{}{}", self.indent, line());
        if let Some(live) = &self.live {
            // A reader who has gone needs no more lines.
            let _ = live.send(line.clone());
        }
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }

    /// Adds to the last line.
    pub(crate) fn add(&mut self, words: &str) {
        if let Some(last) = self.lines.as_mut().and_then(|lines| lines.last_mut()) {
            last.push_str(words);
        }
    }

    /// What is known of a thread, if it is ready.
    pub(crate) fn ready(&self, thread: ThreadId) -> Option<&Ready> {
        let place = self.places.get(thread.index())?;
        place
            .ready
            .as_ref()
            .filter(|_| place.thread == Some(thread))
    }

    /// Every ready thread.
    pub(crate) fn ready_threads(&self) -> impl Iterator<Item = (ThreadId, &Ready)> {
        let places = self.places.iter();
        places.filter_map(|place| Some((place.thread?, place.ready.as_ref()?)))
    }

    /// A lawful choice: what a driver goes on with when the policy's is not.
    pub(crate) fn most_urgent(&self) -> Option<ThreadId> {
        let claims = self.claims;
        let key = |ready: &Ready| (ready.attributes.release, ready.attributes.order);
        self.ready_threads()
            .min_by(|(_, a), (_, b)| {
                let by_urgency = claims.compare(&a.attributes, &b.attributes);
                by_urgency.then_with(|| key(a).cmp(&key(b)))
            })
            .map(|(thread, _)| thread)
    }

    fn place(&mut self, thread: ThreadId) -> Option<&mut Place> {
        let place = self.places.get_mut(thread.index())?;
        (place.thread == Some(thread)).then_some(place)
    }

    pub(crate) fn attach(&mut self, thread: ThreadId) {
        if let Some(place) = self.places.get_mut(thread.index()) {
            place.thread = Some(thread);
            place.ready = None;
            place.why = Why::Foreign;
            place.granted = None;
        }
    }

    pub(crate) fn detach(&mut self, thread: ThreadId) {
        if let Some(place) = self.place(thread) {
            place.thread = None;
            place.ready = None;
        }
    }

    pub(crate) fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        let yielded = false;
        if let Some(place) = self.place(thread) {
            place.ready = Some(Ready {
                attributes: *attributes,
                yielded,
            });
            self.turns.wake(thread.index());
        }
    }

    pub(crate) fn block(&mut self, thread: ThreadId) {
        if let Some(place) = self.place(thread) {
            place.ready = None;
            place.why = Why::Left;
            self.turns.end(thread.index());
        }
        self.let_others_in(thread);
        if self.picked == Some(thread) {
            self.picked = None;
        }
    }

    /// The thread that has just left has no budget.
    pub(crate) fn exhausted(&mut self, thread: ThreadId) {
        if let Some(place) = self.place(thread).filter(|place| place.ready.is_none()) {
            place.why = Why::Exhausted;
            self.coverage.exhausted += 1;
        }
    }

    /// From now on the thread may execute this long.
    pub(crate) fn grant(&mut self, thread: ThreadId, budget: Option<Work>) {
        if let Some(place) = self.place(thread) {
            place.granted = budget;
        }
    }

    /// The next policy decides from now on: nobody has begun under it, and nobody has yielded.
    pub(crate) fn replaced(&mut self) {
        self.decides += 1;
        self.hold = Hold::Nobody;
        self.picked = None;
        for (index, place) in self.places.iter_mut().enumerate() {
            if let Some(ready) = &mut place.ready {
                ready.yielded = false;
                self.turns.wake(index);
            }
        }
    }

    pub(crate) fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        let claims = self.claims;
        let Some(ready) = self.place(thread).and_then(|place| place.ready.as_mut()) else {
            return;
        };
        let same = claims.compare(&ready.attributes, attributes).is_eq();
        ready.attributes = *attributes;
        if !same {
            self.turns.forget(thread.index());
        }
        self.loosen(thread);
    }

    /// It keeps its turn; others are let in also where nobody is preempted.
    pub(crate) fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.update(thread, attributes);
        if let Some(ready) = self.place(thread).and_then(|place| place.ready.as_mut()) {
            ready.yielded = false;
        }
        self.let_others_in(thread);
    }

    fn let_others_in(&mut self, thread: ThreadId) {
        if matches!(self.hold, Hold::Keeps(held) | Hold::May(held) if held == thread) {
            self.hold = Hold::Nobody;
        }
    }

    pub(crate) fn yield_now(&mut self, thread: ThreadId) {
        if let Some(ready) = self.place(thread).and_then(|place| place.ready.as_mut()) {
            ready.yielded = true;
            self.turns.end(thread.index());
        }
        self.loosen(thread);
    }

    fn loosen(&mut self, thread: ThreadId) {
        if self.hold == Hold::Keeps(thread) {
            self.hold = Hold::May(thread);
        }
    }

    pub(crate) fn charge(&mut self, thread: ThreadId, work: Work) {
        self.hold = Hold::Keeps(thread);
        let start = self.picked_at.saturating_add(self.executed.as_span());
        self.executed = self.executed.saturating_add(work);
        if let Some(until) = self.until
            && self.picked == Some(thread)
            && self.executed >= until.since(self.picked_at).as_work()
        {
            self.turns.end(thread.index());
            self.coverage.turns += 1;
        }
        self.take(thread, work);
        self.spend(thread, start, work);
    }

    /// Holds what was executed against what the core has granted.
    fn take(&mut self, thread: ThreadId, work: Work) {
        let Some(place) = self.place(thread) else {
            return;
        };
        let Some(granted) = place.granted else { return };
        place.granted = Some(granted.saturating_sub(work));
        if work > granted {
            let detail = format!(
                "`{}` executes {} ticks with {} granted",
                name(thread),
                work.ticks(),
                granted.ticks()
            );
            self.fail(Violation::new(Symptom::BeyondBudget, detail));
        }
    }

    /// Holds what was executed from `start` on against the claimed budget.
    fn spend(&mut self, thread: ThreadId, start: Instant, work: Work) {
        let Some(budget) = self.claims.budget else {
            return;
        };
        let period = budget.period.ticks().max(1);
        let (mut at, mut left) = (start.ticks(), work.ticks());
        while left > 0 {
            let interval = at / period;
            let part = left.min(period - at % period);
            let Some(place) = self.place(thread) else {
                return;
            };
            if place.used.0 != interval {
                place.used = (interval, Work::ZERO);
            }
            let total = place.used.1.saturating_add(Work::from_ticks(part));
            place.used.1 = total;
            if total > budget.work {
                let detail = format!(
                    "`{}` has executed {} ticks since {}, {} more than its budget",
                    name(thread),
                    total.ticks(),
                    interval * period,
                    total.saturating_sub(budget.work).ticks(),
                );
                self.fail(Violation::new(Symptom::BeyondBudget, detail));
                return;
            }
            at = at.saturating_add(part);
            left -= part;
        }
    }
}

/// A thread in words: its letter, and a number when its place had a thread before.
pub(crate) fn name(thread: ThreadId) -> String {
    let letter = u8::try_from(thread.index())
        .ok()
        .and_then(|index| b'a'.checked_add(index))
        .filter(u8::is_ascii_lowercase);
    let letter = match letter {
        Some(letter) => char::from(letter).to_string(),
        None => format!("thread {} ", thread.index()),
    };
    match thread.generation() {
        0 => letter,
        generation => format!("{letter}{}", generation + 1),
    }
}
