//! Servers under random loads: no more than their terms in any window, and no less for who waits.
//!
//! A [`Server`] has no order to keep, so it is checked alone, by an account of what it let pass:
//! 1. In any window of length Δ it gives at most (⌈Δ/period⌉ + 1) budgets: so much may a task of
//!    these terms demand when it is delayed, but in time, which is how analyses count a server. A
//!    constant-bandwidth server divides its budget more finely: (Δ/period + 2) budgets.
//! 2. A kind whose budget comes at the start of each period gives at most one budget in each.
//! 3. Who is never idle receives all but two of the budgets of so many periods.
//! 4. It never has more than its capacity, its own account balances, and its next timer lies ahead.
//!
//! Others delay the server by what its terms leave, and no more: it is admitted. The platform is
//! exact: timers are served at their instant, and nothing is executed beyond
//! the budget. Kernels are not; what a server makes of late timers is not looked at.

use punctual_kern::Server;
use punctual_model::{Instant, ServerKind, Span, Work};

use crate::dice::Dice;
use crate::level::{Level, Options};
use crate::property::Property;
use crate::quiet;
use crate::report::Broken;
use crate::shrink::shrink;
use crate::shrink::smaller;
use crate::symptom::{Symptom, Violation};

/// Periods at the end of a history in which the work never ends.
const BACKLOG_PERIODS: u64 = 12;
/// Timers that may come at once before it counts as standing still.
const PATIENCE: u32 = 64;

/// A part of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// There is something to run.
    Wake,
    /// There is nothing left to run.
    Idle,
    /// Time passes and belongs to the server, as far as it has budget.
    Run(u64),
    /// Time passes and belongs to others.
    Wait(u64),
}

/// Holds a server to its terms by random histories, with options as for policies.
///
/// # Errors
/// The shortest history found in which it gives too much or too little, or breaks its contract.
pub fn check_server<V: Server>(kind: ServerKind, options: &Options) -> Result<(), Broken> {
    for number in 0..options.histories {
        let seed = options.seed.wrapping_add(number);
        let mut dice = Dice::new(seed);
        let unit = 10_u64.pow(dice.small(6));
        let period = unit * (4 + dice.below(60));
        let terms = punctual_model::Server {
            kind,
            budget: Work::from_ticks(1 + dice.below(period - 1)),
            period: Span::from_ticks(period),
        };
        let steps: Vec<Step> = (0..options.steps)
            .map(|_| draw(&mut dice, period))
            .collect();
        if let Some(seen) = run::<V>(&terms, &steps, false).0 {
            return Err(explain::<V>(&terms, &steps, &seen, seed));
        }
    }
    Ok(())
}

fn draw(dice: &mut Dice, period: u64) -> Step {
    match dice.below(10) {
        0 | 1 => Step::Wake,
        2 => Step::Idle,
        3..=7 => Step::Run(1 + dice.below(period)),
        _ => Step::Wait(1 + dice.below(period)),
    }
}

fn explain<V: Server>(
    terms: &punctual_model::Server,
    steps: &[Step],
    seen: &Violation,
    seed: u64,
) -> Broken {
    let simpler = |step: &Step| match *step {
        Step::Run(ticks) => smaller(ticks).map(Step::Run).collect(),
        Step::Wait(ticks) => smaller(ticks).map(Step::Wait).collect(),
        Step::Wake | Step::Idle => Vec::new(),
    };
    let breaks = |steps: &[Step]| {
        let violation = run::<V>(terms, steps, false).0;
        violation.is_some_and(|violation| violation.symptom == seen.symptom)
    };
    let shortest = shrink(steps, simpler, breaks);
    let (violation, history) = run::<V>(terms, &shortest, true);
    let violation = violation.unwrap_or_else(|| seen.clone());
    Broken {
        property: match violation.symptom {
            Symptom::Lost => Property::LostThread,
            Symptom::TurnEnd => Property::TurnEnd,
            Symptom::Panic => Property::Panic,
            _ => Property::BudgetConservation,
        },
        detail: violation.detail,
        level: Level::Server,
        seed,
        found_in: steps.len(),
        shortest: shortest.len(),
        history,
    }
}

/// Runs one history; what is wrong, and its words.
fn run<V: Server>(
    terms: &punctual_model::Server,
    steps: &[Step],
    record: bool,
) -> (Option<Violation>, Vec<String>) {
    let mut lines = Vec::new();
    let work = || {
        let mut driver = Driver::<V>::new(terms, record, &mut lines);
        driver.play(steps)
    };
    let violation = match quiet::catch(work) {
        Ok(result) => result.err(),
        Err(message) => Some(Violation::new(Symptom::Panic, format!("panics: {message}"))),
    };
    (violation, lines)
}

/// Plays the tree that the server stands in.
struct Driver<'a, V> {
    server: V,
    terms: punctual_model::Server,
    now: Instant,
    /// Whether there is something to run, and since when there has been nothing, untold.
    awake: bool,
    fell: Option<Instant>,
    /// How long others have kept it from the budget that it has.
    delay: u64,
    /// What it let pass, in order of time: [start, end).
    passed: Vec<(u64, u64)>,
    record: bool,
    lines: &'a mut Vec<String>,
}

impl<'a, V: Server> Driver<'a, V> {
    fn new(terms: &punctual_model::Server, record: bool, lines: &'a mut Vec<String>) -> Self {
        let mut driver = Driver {
            server: V::new(terms),
            terms: *terms,
            now: Instant::ZERO,
            awake: false,
            fell: None,
            delay: 0,
            passed: Vec::new(),
            record,
            lines,
        };
        driver.say(|d| {
            let (budget, period) = (d.terms.budget.ticks(), d.terms.period.ticks());
            format!("{}: {budget} in {period} ticks", d.terms.kind.name())
        });
        driver
    }

    fn say(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.record {
            let line = line(self);
            self.lines.push(line);
        }
    }

    fn play(&mut self, steps: &[Step]) -> Result<(), Violation> {
        self.settle()?;
        for step in steps {
            match *step {
                Step::Wake => self.wake()?,
                Step::Idle => self.fall(),
                Step::Run(ticks) => self.pass(ticks, true)?,
                Step::Wait(ticks) => self.pass(ticks, false)?,
            }
        }
        self.wake()?;
        let backlog = self.now;
        let span = self.terms.period.ticks() * BACKLOG_PERIODS;
        self.pass(span, true)?;
        self.judge_backlog(backlog)
    }

    fn wake(&mut self) -> Result<(), Violation> {
        if self.awake && self.fell.take().is_none() {
            return Ok(());
        }
        if !self.awake {
            self.awake = true;
            self.say(|d| format!("at {}: wake", d.now.ticks()));
            self.server.wake(self.now, self.now);
        }
        self.settle()
    }

    /// The server hears of it when this instant is over.
    fn fall(&mut self) {
        if self.awake && self.fell.is_none() {
            self.fell = Some(self.now);
        }
    }

    /// Lets time pass, from timer to timer; `ours`: it runs whenever it may.
    fn pass(&mut self, ticks: u64, ours: bool) -> Result<(), Violation> {
        if ticks == 0 {
            return Ok(());
        }
        if let Some(at) = self.fell.take() {
            self.awake = false;
            self.say(|_| format!("at {}: idle", at.ticks()));
            self.server.idle(at);
            self.delay = 0;
        }
        let end = self.now.saturating_add(Span::from_ticks(ticks));
        let mut at_once = 0;
        while self.now < end {
            let budget = self.server.budget();
            if self.awake && budget.is_zero() && self.server.next().is_none() {
                let detail = "it is exhausted, and waits for nothing".to_owned();
                return Err(Violation::new(Symptom::Lost, detail));
            }
            let mut until = self.server.next().map_or(end, |next| next.min(end));
            if budget.is_zero() {
                self.delay = 0;
            }
            // Others take what the terms leave to them; then it is its turn.
            let slack = (self.terms.period.ticks() - self.terms.budget.ticks()) - self.delay;
            let delayed = self.awake && !budget.is_zero() && !ours && slack > 0;
            let executes = self.awake && !budget.is_zero() && !delayed;
            let most = if executes { budget.ticks() } else { slack };
            if executes || delayed {
                until = until.min(self.now.saturating_add(Span::from_ticks(most)));
            }
            at_once = if until > self.now { 0 } else { at_once + 1 };
            if at_once > PATIENCE {
                let detail = format!("at {} its timer never gets ahead", self.now.ticks());
                return Err(Violation::new(Symptom::TurnEnd, detail));
            }
            let span = until.since(self.now);
            if delayed {
                self.delay += span.ticks();
            }
            let start = std::mem::replace(&mut self.now, until);
            if executes && !span.is_zero() {
                self.passed.push((start.ticks(), until.ticks()));
                self.say(|d| {
                    format!(
                        "at {}: it has executed {} ticks",
                        d.now.ticks(),
                        span.ticks()
                    )
                });
                self.server.charge(until, span.as_work());
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Serves what is due, and looks.
    fn settle(&mut self) -> Result<(), Violation> {
        if self.server.next().is_some_and(|next| next <= self.now) {
            self.server.timer(self.now);
            self.say(|d| {
                let budget = d.server.budget().ticks();
                format!("at {}: its timer; {budget} ticks of budget", d.now.ticks())
            });
            if let Some(next) = self.server.next().filter(|next| *next <= self.now) {
                let detail = format!("its next timer stays at {}", next.ticks());
                return Err(Violation::new(Symptom::TurnEnd, detail));
            }
        }
        let too_much = |detail: String| Err(Violation::new(Symptom::BeyondBudget, detail));
        if self.server.budget() > self.terms.budget {
            let (has, budget) = (self.server.budget().ticks(), self.terms.budget.ticks());
            return too_much(format!("it has {has} ticks, and its budget is {budget}"));
        }
        if let Err(broken) = self.server.check() {
            return too_much(format!("its own account does not balance: {broken}"));
        }
        match self.beyond() {
            Some(detail) => too_much(detail),
            None => Ok(()),
        }
    }

    /// What it let pass in [from, to).
    fn given(&self, from: u64, to: u64) -> u64 {
        let within = |(start, end): &(u64, u64)| to.min(*end).saturating_sub(from.max(*start));
        let late = self.passed.iter().rev();
        late.take_while(|(_, end)| *end > from).map(within).sum()
    }

    /// Whether the last stretch takes some window beyond the terms. Windows that end with it and
    /// begin with an earlier one are enough: between these nothing is added.
    fn beyond(&self) -> Option<String> {
        let (budget, period) = (self.terms.budget.ticks(), self.terms.period.ticks());
        let (_, to) = *self.passed.last()?;
        for (from, _) in self.passed.iter().rev().take(64) {
            let given = self.given(*from, to);
            let most = match self.terms.kind {
                ServerKind::ConstantBandwidth => {
                    let share = u128::from(to - from) * u128::from(budget) / u128::from(period);
                    u64::try_from(share).unwrap_or(u64::MAX) + 2 * budget
                }
                _ => ((to - from).div_ceil(period) + 1).saturating_mul(budget),
            };
            if given > most {
                return Some(format!(
                    "{given} ticks from {from} to {to}; {most} are the most"
                ));
            }
        }
        let from = (to - 1) / period * period;
        let given = self.given(from, to);
        let aligned = matches!(
            self.terms.kind,
            ServerKind::Polling | ServerKind::Deferrable | ServerKind::PeriodicResource
        );
        (aligned && given > budget)
            .then(|| format!("{given} ticks since {from}, with {budget} in each period"))
    }

    fn judge_backlog(&self, from: Instant) -> Result<(), Violation> {
        let given = self.given(from.ticks(), self.now.ticks());
        let least = (BACKLOG_PERIODS - 2) * self.terms.budget.ticks();
        if given >= least {
            return Ok(());
        }
        let detail = format!(
            "{given} ticks in {BACKLOG_PERIODS} periods of endless work; {least} are the least"
        );
        Err(Violation::new(Symptom::Idle, detail))
    }
}
