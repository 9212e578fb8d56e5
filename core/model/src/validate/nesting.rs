//! The order in which resources are nested: no circle in which jobs could wait for each other.
//!
//! Under a ceiling, srp or without preemption, the second job of a deadlock never starts (Baker
//! 1991, theorem 6; Sha, Rajkumar and Lehoczky 1990, theorem 2). As soon as one resource of a
//! circle lets others start while it is held, which inheritance and spinning do, all jobs of the
//! circle may come to hold one and wait for the next. Resources that reach each other through
//! nesting are a strongly connected component (Tarjan 1972).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Errors;
use super::section::Nesting;
use crate::id::ResourceId;
use crate::resource::Protocol;
use crate::system::{Fault, System};

/// Steps of a long circle that a message shows before it counts the rest.
const SHOWN_IN_CIRCLE: usize = 4;

/// Checks the nestings of all tasks together. O(n log n) in nestings and resources.
pub(super) fn check(system: &System, nestings: &[Nesting], errors: &mut Errors) {
    let mut inner = vec![BTreeMap::new(); system.resources.len()];
    for nesting in nestings {
        let edges: &mut BTreeMap<ResourceId, &Nesting> = &mut inner[nesting.outer.index()];
        edges.entry(nesting.inner).or_insert(nesting);
    }
    let order = Order { system, inner };
    for component in order.components() {
        if let Some(circle) = order.deadlock(&component) {
            order.report(&circle, errors);
        }
    }
}

/// Which resource is locked inside which.
struct Order<'a> {
    system: &'a System,
    /// Of each resource, those that are locked inside it, and where first.
    inner: Vec<BTreeMap<ResourceId, &'a Nesting>>,
}

/// State of a resource in the search (names as in Tarjan's paper).
#[derive(Clone, Copy)]
struct Visit {
    number: usize,
    low_link: usize,
    on_stack: bool,
}

impl Order<'_> {
    /// Groups of at least two resources that reach each other. Depth first without recursion, so a
    /// nesting of any length is walked in bounded stack.
    fn components(&self) -> Vec<Vec<ResourceId>> {
        let mut visits: Vec<Option<Visit>> = vec![None; self.inner.len()];
        let mut numbered = 0;
        let mut found = Vec::new();
        let mut stack = Vec::new();
        let mut path = Vec::new();
        for start in (0..=u16::MAX).map(ResourceId).take(self.inner.len()) {
            if visits[start.index()].is_some() {
                continue;
            }
            path.push((start, self.inner[start.index()].keys()));
            while let Some((at, edges)) = path.last_mut() {
                let at = *at;
                let visit = visits[at.index()].get_or_insert_with(|| {
                    stack.push(at);
                    numbered += 1;
                    Visit {
                        number: numbered,
                        low_link: numbered,
                        on_stack: true,
                    }
                });
                let (number, mut low_link) = (visit.number, visit.low_link);
                if let Some(&next) = edges.next() {
                    match visits[next.index()] {
                        None => path.push((next, self.inner[next.index()].keys())),
                        Some(seen) if seen.on_stack => low_link = low_link.min(seen.number),
                        Some(_) => {}
                    }
                    lower(&mut visits, at, low_link);
                    continue;
                }
                path.pop();
                if let Some((before, _)) = path.last() {
                    lower(&mut visits, *before, low_link);
                }
                if low_link == number {
                    let begin = stack.iter().rposition(|id| *id == at).unwrap_or(0);
                    let component: Vec<ResourceId> = stack.drain(begin..).collect();
                    for member in &component {
                        if let Some(visit) = &mut visits[member.index()] {
                            visit.on_stack = false;
                        }
                    }
                    found.extend((component.len() > 1).then_some(component));
                }
            }
        }
        found
    }

    /// A shortest circle through a resource of the component that lets others start while it is
    /// held; `None` when there is no such resource.
    fn deadlock(&self, component: &[ResourceId]) -> Option<Vec<ResourceId>> {
        let open = |id: &&ResourceId| {
            let resource = self.system.resources.get(id.index());
            resource.is_some_and(|resource| {
                matches!(resource.protocol, Protocol::Inheritance | Protocol::Spin)
            })
        };
        let start = *component.iter().filter(open).min()?;
        // Breadth first; each resource remembers from where it was reached.
        let mut from: BTreeMap<ResourceId, ResourceId> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for &next in self.inner[at.index()].keys() {
                if from.contains_key(&next) {
                    continue;
                }
                from.insert(next, at);
                queue.push_back(next);
            }
            if from.contains_key(&start) {
                break;
            }
        }
        let mut circle = vec![start];
        let mut at = *from.get(&start)?;
        while at != start {
            circle.push(at);
            at = *from.get(&at)?;
        }
        circle.reverse();
        circle.rotate_right(1);
        Some(circle)
    }

    fn report(&self, circle: &[ResourceId], errors: &mut Errors) {
        let resource = |id: ResourceId| {
            let resource = self.system.resources.get(id.index());
            resource.map_or("?", |resource| resource.name.as_str())
        };
        let mut shown = String::new();
        let mut fault = Fault::System;
        for (step, &outer) in circle.iter().enumerate() {
            let next = circle[(step + 1) % circle.len()];
            let Some(nesting) = self.inner[outer.index()].get(&next) else {
                continue;
            };
            if step == 0 {
                fault = Fault::Use(nesting.task, nesting.index);
            }
            if step < SHOWN_IN_CIRCLE {
                let name = &self.system.tasks[nesting.task.index()].name;
                let separator = if step == 0 { "" } else { ", " };
                shown += &format!(
                    "{separator}task `{name}` locks `{}` inside `{}`",
                    resource(next),
                    resource(outer)
                );
            }
        }
        if circle.len() > SHOWN_IN_CIRCLE {
            shown += &format!(", and {} more", circle.len() - SHOWN_IN_CIRCLE);
        }
        errors.add(
            fault,
            format!("possible deadlock: {shown}"),
            "nest them in one order everywhere, or let all of them use `protocol = \"srp\"` or \
             \"immediate-ceiling\"",
        );
    }
}

fn lower(visits: &mut [Option<Visit>], id: ResourceId, low_link: usize) {
    if let Some(visit) = &mut visits[id.index()] {
        visit.low_link = visit.low_link.min(low_link);
    }
}
