//! Firing rules: how many tokens and how much space the next firing of an actor needs

use alloc::vec::Vec;

use punctual_model::{ActorId, Fifo, Graph};

use crate::fifos::Fifos;

/// One end of a FIFO at an actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// The place of the FIFO in the graph.
    pub fifo: usize,
    /// Tokens of the next firing.
    pub rate: u32,
    /// Most tokens that the FIFO holds: a firing that needs more never begins. [`u32::MAX`]: it has
    /// no capacity.
    pub most: u32,
    /// The declared rates, one for each phase; one for all will do.
    cycle: Vec<u32>,
}

/// The firing rule of an actor, updated after each firing (CompOSe §4.2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    phase: usize,
    phases: usize,
}

impl Rule {
    /// That of the first firing of an actor. O(FIFOs).
    pub fn of(graph: &Graph, actor: ActorId) -> Rule {
        let port = |(place, fifo): (usize, &Fifo), cycle: &Vec<u32>| Port {
            fifo: place,
            rate: cycle.first().copied().unwrap_or(0),
            most: fifo.capacity.unwrap_or(u32::MAX),
            cycle: cycle.clone(),
        };
        let fifos = || graph.fifos.iter().enumerate();
        let inputs = fifos().filter(|(_, fifo)| fifo.to == actor);
        let outputs = fifos().filter(|(_, fifo)| fifo.from == actor);
        Rule {
            inputs: inputs.map(|(at, f)| port((at, f), &f.consume)).collect(),
            outputs: outputs.map(|(at, f)| port((at, f), &f.produce)).collect(),
            phase: 0,
            phases: graph.phases(actor),
        }
    }

    /// The ends of FIFOs that the next firing consumes from.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The ends that it produces into.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Its phase.
    pub fn phase(&self) -> usize {
        self.phase
    }

    /// Whether all tokens and all space are there. O(ports).
    #[inline]
    pub fn holds(&self, fifos: &(impl Fifos + ?Sized)) -> bool {
        let mut inputs = self.inputs.iter();
        let mut outputs = self.outputs.iter();
        inputs.all(|port| fifos.tokens(port.fifo) >= port.rate)
            && outputs.all(|port| fifos.space(port.fifo) >= port.rate)
    }

    /// Consumes and produces. O(ports).
    #[inline]
    pub(crate) fn release(&self, fifos: &mut (impl Fifos + ?Sized)) {
        for port in &self.inputs {
            fifos.consume(port.fifo, port.rate);
        }
        for port in &self.outputs {
            fifos.produce(port.fifo, port.rate);
        }
    }

    /// The rule of the next phase. O(ports).
    #[inline]
    pub(crate) fn advance(&mut self) {
        if self.phases <= 1 {
            return;
        }
        self.phase = (self.phase + 1) % self.phases;
        for port in self.inputs.iter_mut().chain(&mut self.outputs) {
            if let [_, _, ..] = port.cycle[..] {
                port.rate = port.cycle.get(self.phase).copied().unwrap_or(0);
            }
        }
    }

    /// Another number of tokens for the next firing, on the port with this place among inputs and
    /// then outputs: rates that depend on data. It stays until it is set again, unless the port has
    /// phases. `false`: there is no such port, or its FIFO never holds so many.
    pub(crate) fn set(&mut self, port: usize, rate: u32) -> bool {
        let mut ports = self.inputs.iter_mut().chain(&mut self.outputs);
        let found = ports.nth(port).filter(|port| rate <= port.most);
        found.map(|port| port.rate = rate).is_some()
    }
}
