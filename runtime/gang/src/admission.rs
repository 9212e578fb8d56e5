//! One admission for all members: Algorithm 1 of Nautilus, on the CPUs of a run
//!
//! Every member asks the analysis about its own CPU, in its own context: the exact test of that
//! CPU, with its schedulers and servers. All get the constraint of the elected member, or none gets
//! it. Then all begin at one instant: the latest that any member can, and a margin. The paper
//! corrects each phase by the order of release in place of that ([`Correction`]).
//!
//! The agreement about the first arrival is one more round. It is the last, so it decides: a member
//! that dies before its end takes the constraint from all (design note 0067).

use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_gang::{Admission, Admitted as Ended, Attached, LocalScheduler, Progress};
use punctual_linux::{this_cpu, undisturbed, watch_clocks};
use punctual_model::{Instant, Ns, Span};
use punctual_thread::thread::SpawnError;
use punctual_thread::{Constraint, Guarantee, NotAdmitted};

use crate::{Broken, Member, now, words};

/// The way to first arrivals that are close to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Correction {
    /// None: each member counts the phase from the end of its own admission.
    None,
    /// That of the paper: the i-th of n to be released counts φ + (n − i)Δ from there, i from 1
    /// (Nautilus §4.4). Δ is measured by [`Member::departure_delay`].
    ByOrder(Span<Ns>),
    /// One instant for all: the latest at which any member can begin, this margin, and the phase.
    Agreed(Span<Ns>),
}

/// All members are admitted; this one is in its first job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// The arrival of its first job.
    pub arrival: Instant<Ns>,
    /// The order of its release from the final barrier, from 0.
    pub order: usize,
    /// The instant that all members agreed on, where they did. A first arrival after it is one out
    /// of step: its member was held up for longer than the margin.
    pub agreed: Option<Instant<Ns>>,
}

impl Admitted {
    /// Whether the first arrival is that of all others, as far as is known.
    pub fn in_step(&self) -> bool {
        self.agreed
            .is_none_or(|at| self.arrival.as_ns() <= at.as_ns() + 1)
    }
}

/// No member is admitted: each has the constraint that it had before, else is background work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The member whose CPU says no.
    pub member: usize,
    /// The place of that CPU in the run.
    pub cpu: usize,
    /// Why: the verdict of that CPU with its witness and fix, or what else is in the way.
    pub why: SpawnError,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { member, cpu, why } = self;
        write!(
            f,
            "no member is admitted: CPU {cpu} refuses member {member}: {why}"
        )?;
        let SpawnError::NotAdmitted(NotAdmitted::Refused(verdict)) = why else {
            return Ok(());
        };
        let first = verdict.refusals.first();
        match first.filter(|refusal| !refusal.advice.is_empty()) {
            Some(refusal) => write!(f, "; {}", refusal.advice),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Refused {}

/// The reasons of members that were refused, by place.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Vec<Refused>>);

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, Vec<Refused>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member says why, in place of its reason before. The next lock may be another thread's of
    /// this CPU, so nobody is preempted in here.
    fn say(&self, refused: Refused) {
        undisturbed(|| {
            let mut all = self.lock();
            all.retain(|other| other.member != refused.member);
            all.push(refused);
        });
    }

    fn of(&self, member: usize) -> Option<Refused> {
        undisturbed(|| self.lock().iter().find(|r| r.member == member).cloned())
    }
}

/// The number of a refusal, for the reduction over errors: a verdict counts more than a moment's
/// obstacle.
fn number_of(why: &SpawnError) -> u32 {
    match why {
        SpawnError::NotAdmitted(NotAdmitted::Refused(_)) => 3,
        SpawnError::NotAdmitted(_) => 2,
        _ => 1,
    }
}

/// The CPU of a member, as its admission asks it.
struct Local<'a> {
    guarantee: &'a mut Option<Guarantee>,
    /// It had one when it asked.
    exchanges: bool,
    /// Room for what it has now is kept for so long.
    hold: Span<Ns>,
    why: Option<SpawnError>,
}

impl LocalScheduler for Local<'_> {
    fn admit(&mut self, constraint: &Attached) -> Result<(), u32> {
        let constraint = words::read(constraint);
        let asked = match &mut *self.guarantee {
            Some(guarantee) => guarantee.exchange(constraint, self.hold),
            none => Guarantee::ask(constraint).map(|granted| *none = Some(granted)),
        };
        asked.map_err(|why| {
            let number = number_of(&why);
            self.why = Some(why);
            number
        })
    }

    fn readmit(&mut self) {
        let stays = match &mut *self.guarantee {
            Some(guarantee) if self.exchanges => guarantee.go_back(),
            _ => false,
        };
        if !stays {
            *self.guarantee = None;
        }
    }

    /// Once all members have agreed on what to correct it to.
    fn correct_phase(&mut self, _: usize, _: usize) {}
}

impl Member {
    /// Admits the whole gang under the constraint of the elected member, which is the one at place
    /// 0; returns in the first job of the calling thread. A gang that is admitted already changes
    /// its constraint so: each member finishes its present job under the former one.
    ///
    /// The calling thread is one that [`punctual_thread::thread::spawn`] created. It is background
    /// work where it has no constraint of the gang. From then on the clocks of the run are watched:
    /// [`punctual_linux::Outcome::clocks`]. O(log members) rounds of the tree, O(members)
    /// of the linear form, and one question to the analysis of each CPU.
    ///
    /// # Errors
    /// [`NotAll::Refused`], the same for all members; [`NotAll::Broken`] with the member that is no
    /// more: no member has the constraint then.
    pub fn admit(
        &mut self,
        constraint: Constraint,
        correction: Correction,
    ) -> Result<Admitted, NotAll> {
        let order = self.ask_all(constraint)?;
        let began = self.begin(order, correction);
        match began {
            // What a gang does by time is in step while clocks keep the error that was measured.
            Ok(_) => watch_clocks(),
            // The last round decides: nobody keeps what not all have.
            Err(_) => self.guarantee = None,
        }
        began
    }

    /// Algorithm 1 up to its end: the order of release.
    fn ask_all(&mut self, constraint: Constraint) -> Result<usize, NotAll> {
        let mut admission = Admission::new(words::write(&constraint));
        let limit = self.options.limit.as_ns();
        let mut guarantee = self.guarantee.take();
        let mut local = Local {
            exchanges: guarantee.is_some(),
            guarantee: &mut guarantee,
            // Four rounds may come yet, each with two limits (tree), and that about the instant.
            hold: Span::from_ns(limit.saturating_mul(10)),
            why: None,
        };
        let mut told = false;
        let ended = loop {
            if let Some(why) = local.why.as_ref().filter(|_| !told) {
                told = true;
                self.refusals.say(Refused {
                    member: self.party.place(),
                    cpu: this_cpu().unwrap_or(0),
                    why: why.clone(),
                });
            }
            match admission.step(&mut self.party, &mut local) {
                Progress::More => {}
                Progress::Wait(wait) => self.wait(wait),
                Progress::End(ended) => break ended,
            }
        };
        self.guarantee = guarantee;
        match ended {
            Ended::All { order } => Ok(order),
            Ended::None(refusal) => {
                let known = self.refusals.of(refusal.member);
                Err(NotAll::Refused(Box::new(known.unwrap_or(Refused {
                    member: refusal.member,
                    cpu: 0,
                    why: SpawnError::NoRun,
                }))))
            }
            Ended::Broken(broken) => Err(NotAll::Broken(broken)),
        }
    }

    /// The first arrival, corrected.
    fn begin(&mut self, order: usize, correction: Correction) -> Result<Admitted, NotAll> {
        let place = self.party.place();
        let Some(guarantee) = &mut self.guarantee else {
            return Err(not_begun(place, SpawnError::NoRun));
        };
        let phase = guarantee.constraint().task("phase").phase.as_ns();
        let earliest = Guarantee::earliest().map_or_else(now, |at| at.as_ns());
        let (at, agreed) = match correction {
            Correction::None => (earliest.saturating_add(phase), None),
            Correction::ByOrder(delta) => {
                let behind = (self.party.gang().members() - 1 - order) as u64;
                let later = delta.as_ns().saturating_mul(behind);
                (earliest.saturating_add(phase).saturating_add(later), None)
            }
            Correction::Agreed(margin) => {
                let latest = self.reduce(earliest, u64::max).map_err(NotAll::Broken)?;
                let at = latest.saturating_add(margin.as_ns()).saturating_add(phase);
                (at, Some(Instant::from_ns(at)))
            }
        };
        let Some(guarantee) = &mut self.guarantee else {
            return Err(not_begun(place, SpawnError::NoRun));
        };
        let began = guarantee.begin(Instant::from_ns(at));
        let arrival = began.map_err(|why| not_begun(place, why))?;
        Ok(Admitted {
            arrival,
            order,
            agreed,
        })
    }

    /// The guarantee that the gang's admission gave to the calling thread.
    pub fn guarantee(&self) -> Option<&Guarantee> {
        self.guarantee.as_ref()
    }

    /// Ends the gang's constraint for this member: it is background work from the zero-lag instant
    /// of its present job on, and returns then. The others are not moved by it.
    pub fn give_back(&mut self) {
        self.guarantee = None;
    }

    /// Δ of the paper's correction: the mean delay from one departure from a barrier to the next,
    /// over so many rounds, the same for all members.
    ///
    /// # Errors
    /// As [`Member::barrier`].
    pub fn departure_delay(&mut self, rounds: u32) -> Result<Span<Ns>, Broken> {
        let members = self.party.gang().members() as u64;
        let mut spread: u64 = 0;
        for _ in 0..rounds {
            let _ = self.ordered_barrier()?;
            let left = now();
            let last = self.reduce(left, u64::max)?;
            let first = self.reduce(left, u64::min)?;
            spread = spread.saturating_add(last - first);
        }
        let gaps = members.saturating_sub(1).max(1) * u64::from(rounds.max(1));
        Ok(Span::from_ns(spread / gaps))
    }
}

/// The core refused what the analysis had admitted.
fn not_begun(member: usize, why: SpawnError) -> NotAll {
    let cpu = this_cpu().unwrap_or(0);
    NotAll::Refused(Box::new(Refused { member, cpu, why }))
}

/// No member has the constraint that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAll {
    /// A CPU refuses.
    Refused(Box<Refused>),
    /// A member is no more.
    Broken(Broken),
}

impl fmt::Display for NotAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAll::Refused(refused) => refused.fmt(f),
            NotAll::Broken(Broken { member, why }) => {
                write!(
                    f,
                    "no member is admitted: member {member} is no more ({why:?})"
                )
            }
        }
    }
}

impl core::error::Error for NotAll {}
