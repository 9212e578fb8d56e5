//! Actors as functions: their input and output, and the rule of the next firing

use core::cell::{Cell, RefCell};

use punctual_fifo::CopyEngine;
use punctual_firing::{Engine, Port, TaskScheduler};
use punctual_model::Instant;

use crate::ends::Ends;
use crate::memory::Memory;
use crate::meter::{Meter, Reading};

/// One execution of an actor: its input is there and its output has space.
#[derive(Debug)]
pub struct Firing<'a> {
    /// The tokens that it consumes.
    pub inputs: Inputs<'a>,
    /// The tokens that it produces.
    pub outputs: Outputs<'a>,
    /// Firings of the actor before this one.
    pub number: u64,
    /// The phase of its rates.
    pub phase: usize,
    /// Memory that it shares with other tiles of its application.
    pub shared: Shared<'a>,
    pub(crate) course: &'a Course,
}

/// The course of the firing under way, in ticks that its thread has executed.
#[derive(Debug)]
pub(crate) struct Course {
    /// The clock of its thread.
    pub(crate) meter: Meter,
    /// Where it was claimed.
    pub(crate) begun: Cell<u64>,
    /// Counted as executed since then, but not by the firing: the scheduler's part of preemptions,
    /// and holes of the machine, as far as the firing has seen them.
    pub(crate) aside: Cell<u64>,
    /// From when to when it has seen itself not execute.
    pub(crate) away: RefCell<Vec<(Instant, Instant)>>,
    /// Its preemptions are told by another, who knows who went on meanwhile.
    pub(crate) is_told: bool,
}

/// Times away that one firing keeps.
const AWAY: usize = 64;

impl Course {
    pub(crate) fn new(meter: Meter) -> Course {
        Course {
            meter,
            begun: Cell::new(0),
            aside: Cell::new(0),
            away: RefCell::new(Vec::with_capacity(AWAY)),
            is_told: false,
        }
    }

    /// It did not execute between these readings.
    pub(crate) fn was_away(&self, last: Reading, now: Reading) {
        let passed = now.executed.ticks().saturating_sub(last.executed.ticks());
        self.aside.set(self.aside.get() + passed);
        let mut away = self.away.borrow_mut();
        if away.len() < AWAY && !self.is_told {
            away.push((last.now, now.now));
        }
    }
}

/// Claimed tokens, by the order of FIFOs in the graph among those that the actor reads.
#[derive(Debug)]
pub struct Inputs<'a> {
    pub(crate) ports: &'a [Port],
    pub(crate) readers: &'a [Option<punctual_fifo::Reader>],
}

impl Inputs<'_> {
    /// How many FIFOs the actor reads.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// The bytes of one token of an input; 0 where the actor has no such input.
    pub fn token_size(&self, input: usize) -> usize {
        let port = self.ports.get(input);
        let reader = port.and_then(|port| self.readers.get(port.fifo)?.as_ref());
        reader.map_or(0, punctual_fifo::Reader::token_size)
    }

    /// The bytes of all tokens of this firing from one FIFO, in one piece; empty where the actor
    /// has no such input. O(1).
    #[inline]
    pub fn tokens(&self, input: usize) -> &[u8] {
        let port = self.ports.get(input);
        let reader = port.and_then(|port| self.readers.get(port.fifo)?.as_ref());
        reader.map_or(&[], |reader| reader.claimed())
    }
}

/// Claimed places, by the order of FIFOs in the graph among those that the actor writes.
#[derive(Debug)]
pub struct Outputs<'a> {
    pub(crate) ports: &'a [Port],
    pub(crate) writers: &'a mut [Option<punctual_fifo::Writer>],
}

impl Outputs<'_> {
    /// How many FIFOs the actor writes.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// The bytes of all tokens of this firing for one FIFO, in one piece, with old content; empty
    /// where the actor has no such output. O(1).
    #[inline]
    pub fn tokens(&mut self, output: usize) -> &mut [u8] {
        let port = self.ports.get(output);
        let writer = port.and_then(|port| self.writers.get_mut(port.fifo)?.as_mut());
        writer.map_or(&mut [], |writer| writer.claimed())
    }
}

impl Outputs<'_> {
    /// The places for each FIFO that the actor writes, in the order of the graph, with the size of
    /// a token. O(outputs).
    pub fn all(&mut self) -> impl Iterator<Item = (&mut [u8], usize)> {
        let mut rest = self.writers.iter_mut();
        // Ports have the order of FIFOs.
        let mut passed = 0;
        self.ports.iter().map(move |port| {
            let writer = rest.nth(port.fifo - passed).and_then(Option::as_mut);
            passed = port.fifo + 1;
            writer.map_or((&mut [][..], 0), |writer| {
                let token_size = writer.token_size();
                (writer.claimed(), token_size)
            })
        })
    }
}

/// Bytes that all tiles of an application copy from and to, by the order in which the application
/// made them ([`crate::Application::shared_memory`]). The copies are those of the application's own
/// engine; a preemption interrupts one at any instruction.
#[derive(Debug)]
pub struct Shared<'a> {
    pub(crate) memories: &'a [Memory],
    pub(crate) copies: &'a mut CopyEngine,
}

impl Shared<'_> {
    /// The same, for as long as it is borrowed.
    pub fn again(&mut self) -> Shared<'_> {
        Shared {
            memories: self.memories,
            copies: self.copies,
        }
    }

    /// Copies bytes from the place `at` of a memory on (CompOSe's `readSHM`). `false`: it has not
    /// so many there, and nothing is copied. Bytes that another tile writes meanwhile may be half
    /// there: a token that it hands on afterwards says that it is whole. O(bytes).
    pub fn read(&mut self, memory: usize, at: usize, into: &mut [u8]) -> bool {
        let memory = self.memories.get(memory);
        let copied = memory.is_some_and(|memory| memory.read(at, into));
        self.count(copied, into.len())
    }

    /// Copies bytes to the place `at` of a memory and behind it (CompOSe's `writeSHM`). `false`: it
    /// has not so much room there, and nothing is copied. O(bytes).
    pub fn write(&mut self, memory: usize, at: usize, from: &[u8]) -> bool {
        let memory = self.memories.get(memory);
        let copied = memory.is_some_and(|memory| memory.write(at, from));
        self.count(copied, from.len())
    }

    /// Copies bytes to others of the same number, by the copy engine of this application: they are
    /// in [`crate::Tile::copies`]. `false`: the lengths differ, and nothing is copied. O(bytes).
    pub fn copy(&mut self, from: &[u8], to: &mut [u8]) -> bool {
        let fits = from.len() == to.len();
        if fits {
            self.copies.copy(from, to);
        }
        fits
    }

    fn count(&mut self, copied: bool, bytes: usize) -> bool {
        if copied {
            self.copies.copies += 1;
            self.copies.bytes += bytes as u64;
        }
        copied
    }
}

/// The firing rule of an actor's next firing, which its update may change: rates that depend on
/// data. No analysis knows such rates.
pub struct NextRule<'a> {
    engine: &'a mut dyn SetRate,
    place: usize,
}

impl core::fmt::Debug for NextRule<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NextRule").finish_non_exhaustive()
    }
}

impl NextRule<'_> {
    /// So many tokens from an input. `false`: there is no such input, or its FIFO never holds so
    /// many: the rate stays as it was. O(FIFOs of the actor).
    pub fn consume(&mut self, input: usize, tokens: u32) -> bool {
        let inputs = self.engine.ports(self.place).0;
        input < inputs && self.engine.set(self.place, input, tokens)
    }

    /// So many tokens for an output. `false`: there is no such output, or its FIFO never holds so
    /// many: the rate stays as it was. O(FIFOs of the actor).
    pub fn produce(&mut self, output: usize, tokens: u32) -> bool {
        let (inputs, outputs) = self.engine.ports(self.place);
        output < outputs && self.engine.set(self.place, inputs + output, tokens)
    }
}

/// The engine, whatever its scheduler.
trait SetRate {
    fn ports(&self, place: usize) -> (usize, usize);
    fn set(&mut self, place: usize, port: usize, rate: u32) -> bool;
}

impl<S: TaskScheduler> SetRate for Engine<S> {
    fn ports(&self, place: usize) -> (usize, usize) {
        let rule = self.rule(place);
        rule.map_or((0, 0), |rule| (rule.inputs().len(), rule.outputs().len()))
    }

    fn set(&mut self, place: usize, port: usize, rate: u32) -> bool {
        self.set_rate(place, port, rate)
    }
}

/// Rates that an update has chosen, before the engine has them. By port, inputs first.
pub(crate) struct Chosen {
    inputs: usize,
    /// With the most of its FIFO.
    rates: Vec<(Option<u32>, u32)>,
}

impl Chosen {
    pub(crate) fn new([inputs, outputs]: &[Vec<Port>; 2]) -> Chosen {
        let all = inputs.iter().chain(outputs);
        Chosen {
            inputs: inputs.len(),
            rates: all.map(|port| (None, port.most)).collect(),
        }
    }

    /// Asks an actor for its next rates. O(ports), plus what its function takes.
    pub(crate) fn ask(&mut self, duty: &mut dyn Duty) {
        self.rates.iter_mut().for_each(|(rate, _)| *rate = None);
        let engine = self;
        duty.update(&mut NextRule { engine, place: 0 });
    }

    /// Gives them to the actor with this place. O(ports²).
    pub(crate) fn give<S: TaskScheduler>(&self, engine: &mut Engine<S>, place: usize) {
        for (port, &(rate, _)) in self.rates.iter().enumerate() {
            if let Some(rate) = rate {
                let _is_there = engine.set_rate(place, port, rate);
            }
        }
    }
}

impl SetRate for Chosen {
    fn ports(&self, _: usize) -> (usize, usize) {
        (self.inputs, self.rates.len() - self.inputs)
    }

    fn set(&mut self, _: usize, port: usize, rate: u32) -> bool {
        let chosen = self.rates.get_mut(port).filter(|(_, most)| rate <= *most);
        chosen.map(|(chosen, _)| *chosen = Some(rate)).is_some()
    }
}

/// The work of an actor, and the update of its rule.
pub(crate) trait Duty: Send {
    fn fire(&mut self, firing: &mut Firing<'_>);

    /// Whether its rates may depend on data.
    fn is_variable(&self) -> bool {
        false
    }

    fn update(&mut self, rule: &mut NextRule<'_>) {
        let _ = rule;
    }
}

pub(crate) struct Function(pub(crate) fn(&mut Firing<'_>));

impl Duty for Function {
    fn fire(&mut self, firing: &mut Firing<'_>) {
        (self.0)(firing);
    }
}

/// Functions with the parameter of the firing rule.
pub(crate) struct With<P> {
    pub(crate) fire: fn(&mut Firing<'_>, &mut P),
    pub(crate) update: fn(&mut P, &mut NextRule<'_>),
    pub(crate) parameter: P,
}

impl<P: Send> Duty for With<P> {
    fn fire(&mut self, firing: &mut Firing<'_>) {
        (self.fire)(firing, &mut self.parameter);
    }

    fn is_variable(&self) -> bool {
        true
    }

    fn update(&mut self, rule: &mut NextRule<'_>) {
        (self.update)(&mut self.parameter, rule);
    }
}

/// The firing of the actor with this place, whose claims stand.
pub(crate) fn firing<'a, S: TaskScheduler>(
    engine: &'a Engine<S>,
    place: usize,
    ends: &'a mut Ends,
    course: &'a Course,
) -> Option<Firing<'a>> {
    let rule = engine.rule(place)?;
    let (readers, writers, (memories, copies)) = ends.split();
    Some(Firing {
        inputs: Inputs {
            ports: rule.inputs(),
            readers,
        },
        outputs: Outputs {
            ports: rule.outputs(),
            writers,
        },
        number: engine.firings(place)?,
        phase: rule.phase(),
        shared: Shared { memories, copies },
        course,
    })
}

/// Lets an actor change its next rule.
pub(crate) fn update<S: TaskScheduler>(engine: &mut Engine<S>, place: usize, duty: &mut dyn Duty) {
    duty.update(&mut NextRule { engine, place });
}
