//! A policy under watch: a policy to the core, the policy and its reference inside.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, Span, ThreadId, Work};

use crate::reference::{Reference, name};
use crate::symptom::{Symptom, Violation, Why};

/// Times that an idle policy is asked again before somebody ready counts as lost. A frame of a
/// policy that divides time may have that many slots.
const PATIENCE: u32 = 256;
/// Times that a policy is told again that a thread has left.
const MOST_ENTRIES: u32 = 8;

/// Passes every call on to the policy, to a twin of it, and to the reference.
///
/// After the first violation the policy is left alone, and the reference answers in its place.
pub(crate) struct Watched {
    policy: Box<dyn Policy>,
    twin: Box<dyn Policy>,
    /// Ask every question twice.
    ask_again: bool,
    /// Its place in the order in which policies of this scheduler take over.
    number: u32,
    reference: Rc<RefCell<Reference>>,
}

impl Watched {
    pub(crate) fn new(
        make: impl Fn() -> Box<dyn Policy>,
        ask_again: bool,
        reference: &Rc<RefCell<Reference>>,
    ) -> Self {
        Watched {
            policy: make(),
            twin: make(),
            ask_again,
            number: 0,
            reference: Rc::clone(reference),
        }
    }

    /// The one that takes over from the one that decides now. Until then the reference has heard
    /// all that it is told.
    pub(crate) fn next(self) -> Self {
        let number = self.reference.borrow().decides + 1;
        Watched { number, ..self }
    }

    /// Tells both; says so first, so that the words are there when a call panics.
    fn tell(&mut self, line: impl FnOnce() -> String, call: impl Fn(&mut dyn Policy)) -> bool {
        if self.reference.borrow().is_over() {
            return false;
        }
        let decides = self.reference.borrow().decides == self.number;
        if decides {
            self.reference.borrow_mut().say(line);
        }
        call(&mut *self.policy);
        call(&mut *self.twin);
        decides
    }

    fn ask(&mut self, now: Instant) -> Result<Pick, Violation> {
        let pick = self.policy.pick(now);
        let twin = self.twin.pick(now);
        if self.ask_again {
            let again = self.policy.pick(now);
            let _ = self.twin.pick(now);
            if again != pick {
                let detail = format!("asked again at once, it answers: {}", answer(again));
                return Err(Violation::new(Symptom::Unstable, detail).after(pick));
            }
        }
        if twin != pick {
            let detail = format!("a twin that was told the same answers: {}", answer(twin));
            return Err(Violation::new(Symptom::Twin, detail).after(pick));
        }
        self.reference
            .borrow_mut()
            .judge(now, pick)
            .map(|()| pick)
            .map_err(|violation| violation.after(pick))
    }

    /// A change and a choice in one step, where the policy takes it. The core does not ask then: it
    /// goes on with the thread that was named.
    fn take_step(
        &mut self,
        line: impl FnOnce() -> String,
        step: impl Fn(&mut dyn Policy) -> Option<ThreadId>,
        change: impl FnOnce(&mut Reference),
    ) -> Option<ThreadId> {
        // Nobody takes a step while another policy still decides.
        let decides = self.reference.borrow().decides == self.number;
        if self.reference.borrow().is_over() || !decides {
            return None;
        }
        let next = step(&mut *self.policy);
        let twin = step(&mut *self.twin);
        if let Some(next) = next {
            self.reference.borrow_mut().say(line);
            change(&mut self.reference.borrow_mut());
            if let Err(violation) = self.judge_next(next) {
                self.reference.borrow_mut().fail(violation);
            }
        }
        if twin != next {
            let detail = "a twin that was told the same chooses another in one step".to_owned();
            let violation = Violation::new(Symptom::Twin, detail);
            self.reference.borrow_mut().fail(violation);
        }
        next.filter(|_| !self.reference.borrow().is_over())
    }

    /// Whether the thread that one step named is picked then, and lawfully.
    fn judge_next(&mut self, next: ThreadId) -> Result<(), Violation> {
        self.reference.borrow().judge_readiness(next)?;
        let reference = self.reference.borrow();
        let now = reference.picked_at;
        let now = now.saturating_add(reference.executed.as_span());
        drop(reference);
        let pick = self.ask(now)?;
        if pick.entity == Some(next) && pick.until.is_none() {
            return Ok(());
        }
        let detail = format!("it named `{}` as next, until something changes", name(next));
        Err(Violation::new(Symptom::Unstable, detail).after(pick))
    }

    /// Looks closer at what the policy would do next. It is not asked anything after that.
    fn look_closer(&mut self, now: Instant, violation: &mut Violation) {
        match violation.symptom {
            Symptom::Idle => {
                if let Some(thread) = self.lost(now) {
                    let detail =
                        format!("`{}` is ready, and nobody will ever run it", name(thread));
                    *violation = Violation::new(Symptom::Lost, detail);
                }
            }
            Symptom::NotReady(Why::Left) => {
                let picked = self.reference.borrow().picked;
                let Some(thread) = picked else { return };
                for _ in 0..MOST_ENTRIES {
                    self.policy.block(thread);
                    if self.policy.pick(now).entity != Some(thread) {
                        violation.left_twice = true;
                        return;
                    }
                }
            }
            _ => {}
        }
    }

    /// Lets all who are picked leave, and time pass, until nobody is picked any more: who is still
    /// ready then.
    fn lost(&mut self, now: Instant) -> Option<ThreadId> {
        let reference = self.reference.borrow();
        let mut ready: Vec<ThreadId> = reference.ready_threads().map(|(t, _)| t).collect();
        drop(reference);
        let (mut at, mut asked) = (now, 0);
        while !ready.is_empty() {
            let pick = self.policy.pick(at);
            let place = ready.iter().position(|thread| Some(*thread) == pick.entity);
            if let Some(place) = place {
                self.policy.block(ready.remove(place));
                asked = 0;
                continue;
            }
            asked += 1;
            if asked > PATIENCE {
                return ready.first().copied();
            }
            let later = at.saturating_add(Span::from_ticks(1 << asked.min(40)));
            at = pick.until.filter(|until| *until > at).unwrap_or(later);
        }
        None
    }
}

impl Violation {
    /// With the pick that it is about, which stands in what people read.
    fn after(mut self, pick: Pick) -> Violation {
        self.detail = format!("picks {}: {}", answer(pick), self.detail);
        self
    }
}

/// A pick in words.
pub(crate) fn answer(pick: Pick) -> String {
    let who = match pick.entity {
        Some(thread) => format!("`{}`", name(thread)),
        None => "nobody".to_owned(),
    };
    match pick.until {
        Some(until) => format!("{who} until {}", until.ticks()),
        None => who,
    }
}

/// The attributes that a policy sees, in words.
fn attributes_in_words(a: &Attributes) -> String {
    let due = match a.absolute_deadline {
        Instant::MAX => "never due".to_owned(),
        at => format!("due at {}", at.ticks()),
    };
    format!(
        "priority {}, released at {}, {due}, place {} in the file",
        a.priority.number(),
        a.release.ticks(),
        a.order
    )
}

impl Policy for Watched {
    fn attach(&mut self, thread: ThreadId) {
        if self.tell(
            || format!("attach `{}`", name(thread)),
            |p| p.attach(thread),
        ) {
            self.reference.borrow_mut().attach(thread);
        }
    }

    fn detach(&mut self, thread: ThreadId) {
        if self.tell(
            || format!("detach `{}`", name(thread)),
            |p| p.detach(thread),
        ) {
            self.reference.borrow_mut().detach(thread);
        }
    }

    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        let line = || {
            format!(
                "wake `{}`: {}",
                name(thread),
                attributes_in_words(attributes)
            )
        };
        if self.tell(line, |p| p.wake(thread, attributes)) {
            self.reference.borrow_mut().wake(thread, attributes);
        }
    }

    fn block(&mut self, thread: ThreadId) {
        if self.tell(|| format!("block `{}`", name(thread)), |p| p.block(thread)) {
            self.reference.borrow_mut().block(thread);
        }
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        let line = || {
            format!(
                "update `{}`: {}",
                name(thread),
                attributes_in_words(attributes)
            )
        };
        if self.tell(line, |p| p.update(thread, attributes)) {
            self.reference.borrow_mut().update(thread, attributes);
        }
    }

    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        let line = || {
            format!(
                "renew `{}`: {}",
                name(thread),
                attributes_in_words(attributes)
            )
        };
        if self.tell(line, |p| p.renew(thread, attributes)) {
            self.reference.borrow_mut().renew(thread, attributes);
        }
    }

    fn yield_now(&mut self, thread: ThreadId) {
        if self.tell(
            || format!("yield `{}`", name(thread)),
            |p| p.yield_now(thread),
        ) {
            self.reference.borrow_mut().yield_now(thread);
        }
    }

    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let line = || format!("yield `{}` in one step", name(thread));
        self.take_step(line, |p| p.yield_to_next(thread), |r| r.yield_now(thread))
    }

    fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        let line = || {
            let attributes = attributes_in_words(attributes);
            format!("wake `{}` in one step: {attributes}", name(thread))
        };
        let step = |p: &mut dyn Policy| p.wake_to_run(thread, attributes).then_some(thread);
        let next = self.take_step(line, step, |r| r.wake(thread, attributes));
        next.is_some()
    }

    fn block_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let line = || format!("block `{}` in one step", name(thread));
        self.take_step(line, |p| p.block_to_next(thread), |r| r.block(thread))
    }

    fn let_inherit(&mut self, thread: ThreadId, attributes: &Attributes, to: ThreadId) -> bool {
        let line = || {
            format!(
                "`{}` leaves its place to `{}`, which inherits",
                name(thread),
                name(to)
            )
        };
        let step = |p: &mut dyn Policy| p.let_inherit(thread, attributes, to).then_some(to);
        let next = self.take_step(line, step, |r| {
            r.block(thread);
            r.update(to, attributes);
        });
        next.is_some()
    }

    fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        let line = || format!("`{}` hands its place to `{}`", name(from.0), name(to.0));
        let step = |p: &mut dyn Policy| p.hand_to(from, to).then_some(to.0);
        let next = self.take_step(line, step, |r| {
            r.update(from.0, from.1);
            r.wake(to.0, to.1);
        });
        next.is_some()
    }

    fn charge(&mut self, thread: ThreadId, work: Work) {
        let line = || format!("charge `{}`: {} ticks", name(thread), work.ticks());
        if self.tell(line, |p| p.charge(thread, work)) {
            self.reference.borrow_mut().charge(thread, work);
        }
    }

    fn pick(&mut self, now: Instant) -> Pick {
        if self.reference.borrow().is_over() {
            let entity = self.reference.borrow().most_urgent();
            return Pick {
                entity,
                until: None,
            };
        }
        self.reference
            .borrow_mut()
            .say(|| format!("pick at {}", now.ticks()));
        match self.ask(now) {
            Ok(pick) => {
                self.reference
                    .borrow_mut()
                    .add(&format!(": {}", answer(pick)));
                pick
            }
            Err(mut violation) => {
                self.look_closer(now, &mut violation);
                let mut reference = self.reference.borrow_mut();
                reference.fail(violation);
                Pick {
                    entity: reference.most_urgent(),
                    until: None,
                }
            }
        }
    }

    fn orders_background(&self) -> bool {
        self.policy.orders_background()
    }

    fn urgency(&self, attributes: &Attributes) -> u64 {
        self.policy.urgency(attributes)
    }
}
