//! The state of a graph without a clock: firing rules, and the effects of starts and ends

use alloc::vec;
use alloc::vec::Vec;

use crate::timed::{Link, Timed};

/// Tokens and space of every FIFO, the phase of every actor, and whether it is firing.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    timed: &'a Timed,
    /// Edges that each actor's starts take from, and that its ends give to.
    taken: Vec<Vec<usize>>,
    given: Vec<Vec<usize>>,
    held: Vec<u64>,
    phase: Vec<usize>,
    firing: Vec<bool>,
    /// Of each actor: the static order that it is in.
    order_of: Vec<Option<usize>>,
    /// Of each order: the next entry.
    turn: Vec<usize>,
}

impl<'a> Tokens<'a> {
    /// As a graph is at first. O(size).
    pub fn at_first(timed: &'a Timed) -> Tokens<'a> {
        let (mut taken, mut given) = (
            vec![Vec::new(); timed.actors()],
            vec![Vec::new(); timed.actors()],
        );
        for (index, edge) in timed.edges.iter().enumerate() {
            given[edge.from].push(index);
            taken[edge.to].push(index);
        }
        let mut order_of = vec![None; timed.actors()];
        for (index, order) in timed.orders.iter().enumerate() {
            for &actor in order {
                order_of[actor] = Some(index);
            }
        }
        Tokens {
            timed,
            taken,
            given,
            held: timed.edges.iter().map(|edge| edge.initial).collect(),
            phase: vec![0; timed.actors()],
            firing: vec![false; timed.actors()],
            order_of,
            turn: vec![0; timed.orders.len()],
        }
    }

    /// Whether the firing rule of an actor holds: it is not firing, its turn has come, and all
    /// tokens and space are there. O(its FIFOs).
    pub fn may_start(&self, actor: usize) -> bool {
        !self.firing[actor] && self.ahead(actor).is_none() && self.lacking(actor).next().is_none()
    }

    /// The edges on which an actor's next firing lacks something, and how much.
    pub fn lacking(&self, actor: usize) -> impl Iterator<Item = (usize, u64)> {
        let phase = self.phase[actor];
        self.taken[actor].iter().filter_map(move |&index| {
            let missing = self.timed.edges[index].take[phase].saturating_sub(self.held[index]);
            (missing > 0).then_some((index, missing))
        })
    }

    /// The order by which an actor waits, and the actor whose turn it is.
    pub(crate) fn ahead(&self, actor: usize) -> Option<(Link, usize)> {
        let order = self.order_of[actor]?;
        let next = self.timed.orders[order][self.turn[order]];
        (next != actor || self.firing[next]).then_some((Link::Order(order), next))
    }

    /// A firing starts, and takes. O(its FIFOs).
    pub fn start(&mut self, actor: usize) {
        let phase = self.phase[actor];
        for &index in &self.taken[actor] {
            let held = &mut self.held[index];
            *held = held.saturating_sub(self.timed.edges[index].take[phase]);
        }
        self.firing[actor] = true;
    }

    /// The firing ends, and gives. O(its FIFOs).
    pub fn end(&mut self, actor: usize) {
        let phase = self.phase[actor];
        for &index in &self.given[actor] {
            let held = &mut self.held[index];
            *held = held.saturating_add(self.timed.edges[index].give[phase]);
        }
        self.firing[actor] = false;
        self.phase[actor] = (phase + 1) % self.timed.times[actor].len();
        if let Some(order) = self.order_of[actor] {
            self.turn[order] = (self.turn[order] + 1) % self.timed.orders[order].len();
        }
    }

    /// Those for whom the end of `actor` may have changed something.
    pub(crate) fn affected(&self, actor: usize) -> impl Iterator<Item = usize> {
        let readers = self.given[actor].iter();
        let readers = readers.map(|&index| self.timed.edges[index].to);
        let next = self.order_of[actor].map(|order| self.timed.orders[order][self.turn[order]]);
        readers.chain(next).chain([actor])
    }

    /// The time that the next firing of an actor takes.
    pub(crate) fn time(&self, actor: usize) -> u64 {
        self.timed.times[actor][self.phase[actor]]
    }

    /// All of it as numbers: two equal lists are one state.
    pub(crate) fn key(&self) -> Vec<u64> {
        let mut key = self.held.clone();
        key.extend(self.phase.iter().map(|&phase| phase as u64));
        key.extend(self.turn.iter().map(|&turn| turn as u64));
        key
    }
}
