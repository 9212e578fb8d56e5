//! Answers of the planner against the time that requests allow (Spring, Fig. 11 and 12).
//!
//! The pace of this machine is measured first. Each request then has the widest window that its
//! time has room for, beside a plan in force that is made anew. The processor time of the calling
//! thread says whether the planner was late; the clock also has the time that was taken from it.

use std::sync::OnceLock;
use std::time::{Duration, Instant as Clock};

use punctual_generate::{Random, SegmentMix};
use punctual_model::{Instant, Span, Work};
use punctual_planner::{Ask, Book, Capacities, Pace, Search, Segment, Segments, Use, Why};
use rustix::time::{ClockId, clock_gettime};

use super::counting::Counted;
use super::figure::{Bench, Measured};

/// Microseconds that a request allows.
const ALLOWED_US: [u64; 7] = [10, 30, 100, 300, 1_000, 3_000, 10_000];
/// Segments, half of them in force before.
const SIZES: [usize; 7] = [10, 20, 42, 100, 200, 500, 1_000];
/// Answers of one row.
const ANSWERS: u64 = if cfg!(debug_assertions) { 2 } else { 100 };
/// A late answer is asked for again so often: an interrupt of one is not one of each.
const AGAIN: usize = 10;
/// Sets that the pace is measured with.
const SETS: u64 = if cfg!(debug_assertions) { 2 } else { 30 };
/// More than the caches of one core.
const COLD_BYTES: usize = 4 << 20;
/// From so many segments on, their number alone says what an answer takes.
const LARGE: usize = 100;
/// This part of the time allowed is the margin.
const MARGIN: u64 = 10;
/// Nothing of one request is left at the next.
const APART: u64 = 1 << 40;

const BY_PACE: &str =
    "an answer looks as far as its time allows, so the pace of the machine decides";

/// How far deadlines lie behind, and how long sets are for each segment.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Every one has a plan at first sight, as in the study `plan-times`.
    Roomy,
    /// The CPUs are full, so that the planner goes back as long as there is time.
    Tight,
}

pub(super) fn benches() -> Vec<Bench> {
    let mut all = Vec::new();
    for us in ALLOWED_US {
        for size in SIZES {
            let roomy = move || measure(us, &[size], Kind::Roomy);
            let name = format!("plan.within.{us}us.{size}");
            all.push(Bench::with_notes(name, roomy).counted(Counted::Not(BY_PACE)));
        }
        let tight = move || measure(us, &SIZES, Kind::Tight);
        let name = format!("plan.within.{us}us.tight");
        all.push(Bench::with_notes(name, tight).counted(Counted::Not(BY_PACE)));
    }
    all
}

/// A planner in use, and what it is asked.
struct Asked {
    book: Book,
    size: usize,
    kind: Kind,
    number: u64,
    cold: Vec<u8>,
}

/// How one answer went.
struct Answer {
    processor_ns: u64,
    clock_ns: u64,
    why: Option<Why>,
    evaluations: u64,
}

/// The processor time of this kernel thread.
pub(super) fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs()
}

impl Asked {
    fn new(size: usize, kind: Kind) -> Asked {
        Asked {
            book: Book::new(capacities(size)),
            size,
            kind,
            number: 0,
            cold: vec![0; COLD_BYTES],
        }
    }

    /// Asks for half of a set, where the other half is in force and none of it has begun.
    fn ask(
        &mut self,
        seed: u64,
        bound: Span,
        (pace, search): (Option<Pace>, Search),
    ) -> Result<Answer, String> {
        self.number += 1;
        let now = Instant::from_ticks(self.number * APART);
        let [old, new] = self.halves(seed, now.saturating_add(bound))?;
        let plain = Search::default();
        let old = self.book.request(now, Span::ZERO, &old, &plain);
        let _ = old.map_err(|refusal| format!("half of the set: {refusal}"))?;
        let ask = Ask {
            pace,
            ..Ask::new(now, bound, search)
        };
        // Requests are rare, so what the planner reads is not in the caches near to the processor.
        for line in self.cold.chunks_mut(64) {
            line[0] = line[0].wrapping_add(1);
        }
        // The kernel does at this call what has waited for one.
        let _ = processor_ns();
        let (processor, clock) = (processor_ns(), Clock::now());
        let answer = self.book.ask(&ask, &new, |_| false);
        let clock = clock.elapsed().as_nanos();
        let processor_ns = processor_ns() - processor;
        let (why, evaluations) = match answer {
            Ok(accepted) => (None, accepted.evaluations),
            Err(refusal) => (Some(refusal.why), refusal.evaluations),
        };
        Ok(Answer {
            processor_ns,
            clock_ns: u64::try_from(clock).unwrap_or(u64::MAX),
            why,
            evaluations,
        })
    }

    /// A set in two halves, released at an instant. A tick is a nanosecond.
    fn halves(&self, seed: u64, release: Instant) -> Result<[Segments; 2], String> {
        let size = self.size as u64;
        let (mix, most) = match self.kind {
            Kind::Roomy => {
                let length = 40 * size;
                let mix = SegmentMix::tight(300, 100);
                (SegmentMix { length, ..mix }, self.size)
            }
            Kind::Tight => {
                let length = 55 * size / 3;
                let mix = SegmentMix::tight(300, 50);
                (SegmentMix { length, ..mix }, usize::MAX)
            }
        };
        let drawn = mix.draw(&mut Random::at(seed, &[size]));
        let mut halves = [0, 1].map(|_| Segments::new(capacities(self.size)));
        for (number, one) in drawn.iter().take(most).enumerate() {
            let used = |&(resource, mode): &_| Use { resource, mode };
            let uses: Vec<Use> = one.uses.iter().map(used).collect();
            let segment = Segment {
                group: 0,
                release,
                wcet: Work::from_ticks(one.wcet),
                absolute_deadline: release.saturating_add(Span::from_ticks(one.deadline)),
            };
            let pushed = halves[number % 2].push(segment, &uses);
            let _ = pushed.map_err(|error| error.to_string())?;
        }
        Ok(halves)
    }
}

/// A tight set has a few segments more or less than it should.
fn capacities(size: usize) -> Capacities {
    let most = 2 * size + 10;
    Capacities {
        uses: 5 * most,
        ..Capacities::new(most, 3, 5)
    }
}

/// The value that nine of ten do not exceed.
fn most(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 9 / 10).copied().unwrap_or(0.0)
}

/// The pace of this machine, and as its margin what an answer takes beside that.
fn pace() -> Result<Pace, String> {
    static PACE: OnceLock<Result<Pace, String>> = OnceLock::new();
    PACE.get_or_init(find_pace).clone()
}

/// Narrow and wide windows say what an evaluation takes, and what a segment does; the dearest of
/// large sizes counts. The margin is the time that small ones take beside that.
fn find_pace() -> Result<Pace, String> {
    let (mut evaluation, mut segment, mut margin) = (1.0_f64, 1.0_f64, 0.0_f64);
    for size in SIZES.into_iter().rev() {
        let mut asked = Asked::new(size, Kind::Roomy);
        let (mut evaluations, mut segments) = (Vec::new(), Vec::new());
        for seed in 0..SETS {
            let mut taken = |window| {
                let search = Search {
                    window,
                    ..Search::default()
                };
                asked.ask(seed, Span::from_ticks(1 << 30), (None, search))
            };
            let _ = taken(1)?;
            let (narrow, wide) = (taken(1)?, taken(40)?);
            let more = wide.processor_ns as f64 - narrow.processor_ns as f64;
            evaluations.push(more / (wide.evaluations - narrow.evaluations).max(1) as f64);
            segments.push(narrow.processor_ns as f64 / size as f64);
        }
        let (of_evaluation, of_segment) = (most(evaluations), most(segments));
        if size >= LARGE {
            evaluation = evaluation.max(of_evaluation);
            segment = segment.max(of_segment);
        } else {
            margin = margin.max((of_segment - segment) * size as f64);
        }
    }
    let ns = |value: f64| {
        let whole = Duration::from_secs_f64(value / 1e9).as_nanos();
        Span::from_ticks(u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(1))
    };
    Ok(Pace {
        evaluation: ns(evaluation),
        segment: ns(segment),
        margin: ns(margin),
    })
}

/// How many answers were what.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    late: u64,
    /// Late each time that they were asked for again.
    always: u64,
    /// Late on the clock alone.
    missing: u64,
    plans: u64,
    out_of_time: u64,
    no_plan: u64,
}

impl Counts {
    fn add(&mut self, answer: &Answer, allowed_ns: u64) {
        match answer.why {
            None => self.plans += 1,
            Some(Why::OutOfTime) => self.out_of_time += 1,
            Some(_) => self.no_plan += 1,
        }
        let late = answer.processor_ns > allowed_ns;
        self.late += u64::from(late);
        self.missing += u64::from(!late && answer.clock_ns > allowed_ns);
    }

    fn note(&self, pace: &Pace) -> String {
        format!(
            "{} late by processor time ({} each time again), {} only on the clock, where time was \
             missing; {} plans, {} not found, {} out of time; {} ns an evaluation, {} ns a segment",
            self.late,
            self.always,
            self.missing,
            self.plans,
            self.no_plan,
            self.out_of_time,
            pace.evaluation.ticks(),
            pace.segment.ticks(),
        )
    }
}

fn measure(allowed_us: u64, sizes: &[usize], kind: Kind) -> Result<Measured, String> {
    let allowed_ns = 1_000 * allowed_us;
    let bound = Span::from_ticks(allowed_ns);
    let pace = pace()?;
    let margin = pace
        .margin
        .saturating_add(Span::from_ticks(allowed_ns / MARGIN));
    let pace = Pace { margin, ..pace };
    let search = Search {
        window: usize::MAX,
        backtracks: u64::MAX,
        ..Search::default()
    };
    let (mut samples, mut counts) = (Vec::new(), Counts::default());
    for &size in sizes {
        let mut asked = Asked::new(size, kind);
        let _ = asked.ask(0, bound, (Some(pace), search))?;
        for seed in 0..ANSWERS {
            let mut ask = || asked.ask(1_000 + seed, bound, (Some(pace), search));
            let answer = ask()?;
            counts.add(&answer, allowed_ns);
            samples.push(answer.processor_ns as f64);
            if answer.processor_ns > allowed_ns {
                let mut always = true;
                for _ in 0..AGAIN {
                    always &= ask()?.processor_ns > allowed_ns;
                }
                counts.always += u64::from(always);
            }
        }
    }
    Ok(Measured {
        notes: vec![counts.note(&pace)],
        ..Measured::from(samples)
    })
}
