//! Actors without a function: they burn their work

use punctual_linux::job;
use punctual_model::{ActorId, Graph, Ns, Work, WorkSource};

use crate::actor::{Course, Duty, Firing, NextRule};
use crate::meter::{Meter, Reading};

/// Longer between two readings, and the thread did not execute in between.
const GAP: Work<Ns> = Work::from_us(4);

/// The least that a firing without declared work leaves of its wcet for its claim and its release,
/// with their readings of the clock.
const REST: Work<Ns> = Work::from_ns(600);

/// The work of a firing that declares none: fifteen sixteenths of its wcet, which contains claims
/// and releases, and at most half of a short one.
pub(crate) fn of_wcet(wcet: Work<Ns>) -> Work<Ns> {
    let half = Work::from_ns(wcet.as_ns() / 2);
    let rest = Work::from_ns(wcet.as_ns() / 16).max(REST.min(half));
    wcet.saturating_sub(rest)
}

/// Burns from the claim on as long as the phase says, and fills each token with the number of its
/// firing.
pub(crate) struct Burn {
    /// Of each phase, in ticks.
    work: Vec<u64>,
    gap: u64,
}

impl Burn {
    pub(crate) fn new(work: &[Work<Ns>]) -> Burn {
        let meter = Meter::new();
        let ticks = |work: &Work<Ns>| meter.ticks(*work);
        Burn {
            work: work.iter().map(ticks).collect(),
            gap: meter.ticks(GAP),
        }
    }
}

impl Duty for Burn {
    fn fire(&mut self, firing: &mut Firing<'_>) {
        let course = firing.course;
        let work = self.work[firing.phase % self.work.len()];
        let mut last = course.meter.read();
        for input in 0..firing.inputs.count() {
            core::hint::black_box(firing.inputs.tokens(input).first());
        }
        for output in 0..firing.outputs.count() {
            firing
                .outputs
                .tokens(output)
                .fill(firing.number.to_le_bytes()[0]);
        }
        burn_from(course, course.begun.get(), work, (&mut last, self.gap));
    }
}

/// The same, of an actor that reads from shared memory before and writes to it afterwards.
pub(crate) struct Sharing {
    duty: Box<dyn Duty>,
    /// Among those of the application.
    memory: usize,
    reads: Vec<u8>,
    writes: Vec<u8>,
}

impl Sharing {
    /// `bytes` of the actor's: those that it reads, and those that it writes.
    pub(crate) fn new(duty: Box<dyn Duty>, memory: usize, bytes: [u32; 2]) -> Sharing {
        let [reads, writes] = bytes.map(|bytes| vec![0; bytes as usize]);
        Sharing {
            duty,
            memory,
            reads,
            writes,
        }
    }
}

impl Duty for Sharing {
    fn fire(&mut self, firing: &mut Firing<'_>) {
        firing.shared.read(self.memory, 0, &mut self.reads);
        self.duty.fire(firing);
        self.writes.fill(firing.number.to_le_bytes()[0]);
        firing.shared.write(self.memory, 0, &self.writes);
    }

    fn is_variable(&self) -> bool {
        self.duty.is_variable()
    }

    fn update(&mut self, rule: &mut NextRule<'_>) {
        self.duty.update(rule);
    }
}

/// Burns until so much has been executed since the thread had executed `from`, less the time aside.
fn burn_from(course: &Course, from: u64, work: u64, (last, gap): (&mut Reading, u64)) {
    loop {
        let now = course.meter.read();
        if now.now.since(last.now).ticks() > gap {
            course.was_away(*last, now);
        }
        *last = now;
        let not_its_own = from + course.aside.get();
        if now.executed.ticks().saturating_sub(not_its_own) >= work {
            return;
        }
        job::checkpoint();
    }
}

/// The code of a task that a file declares: in each of its rounds it reads its inputs one after the
/// other, burns, and writes its outputs in the same way.
pub(crate) fn task_of(graph: &Graph, id: ActorId) -> crate::plain::Code {
    let actor = &graph.actors[id.index()];
    let reads = graph.fifos.iter().filter(|fifo| fifo.to == id);
    let reads: Vec<Vec<u32>> = reads.map(|fifo| fifo.consume.clone()).collect();
    let writes = graph.fifos.iter().filter(|fifo| fifo.from == id);
    let writes: Vec<Vec<u32>> = writes.map(|fifo| fifo.produce.clone()).collect();
    let burn = match &actor.work {
        Some(WorkSource::Burn(work)) => Burn::new(&[*work]),
        _ => Burn::new(
            &actor
                .wcet
                .iter()
                .map(|&wcet| of_wcet(wcet))
                .collect::<Vec<_>>(),
        ),
    };
    let (times, phases) = (actor.times.unwrap_or(1), graph.phases(id));
    Box::new(move |fifos| {
        for round in 0..times {
            let phase = round as usize % phases.max(1);
            let rate = |rates: &[u32]| rates.get(phase).or(rates.first()).copied().unwrap_or(0);
            for (input, rates) in reads.iter().enumerate() {
                if rate(rates) > 0 {
                    fifos.skip(input, rate(rates));
                }
            }
            let mut last = fifos.course().meter.read();
            let aside = fifos.course().aside.get();
            let from = last.executed.ticks().saturating_sub(aside);
            let work = burn.work[phase % burn.work.len()];
            burn_from(fifos.course(), from, work, (&mut last, burn.gap));
            for (output, rates) in writes.iter().enumerate() {
                if rate(rates) > 0 {
                    fifos.fill(output, rate(rates), round.to_le_bytes()[0]);
                }
            }
            if round + 1 < times {
                fifos.next_round();
            }
        }
    })
}

/// The same, of an actor whose output depends on its data: the data are drawn.
pub(crate) struct Varying {
    burn: Burn,
    /// The outputs to other actors, with the most tokens of each.
    outputs: Vec<(usize, u32)>,
    /// Of a linear congruential generator (Knuth's MMIX), whose upper half is used.
    drawn: u64,
}

impl Varying {
    pub(crate) fn new(burn: Burn, outputs: Vec<(usize, u32)>) -> Varying {
        Varying {
            burn,
            outputs,
            drawn: 1,
        }
    }

    /// A number up to and with `most`.
    fn draw(&mut self, most: u32) -> u32 {
        let next = self.drawn.wrapping_mul(6_364_136_223_846_793_005);
        self.drawn = next.wrapping_add(1_442_695_040_888_963_407);
        let scaled = (self.drawn >> 32) * (u64::from(most) + 1);
        u32::try_from(scaled >> 32).unwrap_or(most)
    }
}

impl Duty for Varying {
    fn fire(&mut self, firing: &mut Firing<'_>) {
        self.burn.fire(firing);
    }

    fn is_variable(&self) -> bool {
        true
    }

    fn update(&mut self, rule: &mut NextRule<'_>) {
        for at in 0..self.outputs.len() {
            let (output, most) = self.outputs[at];
            let tokens = self.draw(most);
            rule.produce(output, tokens);
        }
    }
}
