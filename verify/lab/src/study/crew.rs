//! Members of gangs in virtual time: each takes its steps on its CPU, and every step has a price.
//!
//! The steps are those of `core/gang`, whose files are compiled here with words that tell which
//! cache lines a step touches. So what a step costs follows from what it does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::atomic::traced;
use crate::gang::{Gang, Wait};
use crate::lines::Lines;

/// Prices in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rates {
    /// A step, whose lines are all there.
    pub(crate) step: u64,
    /// A line fetched from another CPU.
    pub(crate) line: u64,
    /// A switch to another member of the same CPU.
    pub(crate) switch: u64,
}

/// The next thing that a member does.
#[derive(Debug)]
pub(crate) enum Next<'g> {
    More,
    /// Nothing, before this word changes.
    Wait(&'g Gang, Wait),
    Over,
}

/// One act of a member at an instant: the next thing, and the price of the act beside its words.
pub(crate) type Act<'g> = Box<dyn FnMut(u64) -> (Next<'g>, u64) + 'g>;

/// When a CPU executes members: windows of time, in order. Without any it always does.
pub(crate) type Windows = Vec<(u64, u64)>;

pub(crate) struct Party<'g> {
    pub(crate) cpu: usize,
    pub(crate) begin: u64,
    pub(crate) windows: Windows,
    pub(crate) act: Act<'g>,
}

/// The instant at which a CPU that begins now has worked for so long; `None`: not in its windows.
fn worked(windows: &Windows, now: u64, mut work: u64) -> Option<u64> {
    if windows.is_empty() {
        return Some(now + work);
    }
    let first = windows.partition_point(|(_, end)| *end <= now);
    for (start, end) in &windows[first..] {
        let from = now.max(*start);
        if from + work <= *end {
            return Some(from + work);
        }
        work -= end - from;
    }
    None
}

/// The state of a flight.
struct Flight<'g> {
    rates: Rates,
    parties: Vec<Party<'g>>,
    lines: Lines,
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// By line: who waits for a word of it, and since when.
    parked: HashMap<usize, Vec<(usize, &'g Gang, Wait, u64)>>,
    /// By CPU: until when somebody executes there, and who.
    cpus: HashMap<usize, (u64, usize)>,
    ends: Vec<Option<u64>>,
}

/// Has all parties act until they are over: the instants at which they were. `None`: its windows
/// were over before.
pub(crate) fn fly(parties: Vec<Party<'_>>, rates: Rates) -> Vec<Option<u64>> {
    let mut flight = Flight {
        rates,
        lines: Lines::new(rates.line),
        ready: BinaryHeap::new(),
        parked: HashMap::new(),
        cpus: HashMap::new(),
        ends: vec![None; parties.len()],
        parties,
    };
    for (who, party) in flight.parties.iter().enumerate() {
        flight.ready.push(Reverse((party.begin, who)));
    }
    while let Some(Reverse((at, who))) = flight.ready.pop() {
        flight.act(at, who);
    }
    flight.ends
}

impl Flight<'_> {
    fn act(&mut self, at: u64, who: usize) {
        let party = &mut self.parties[who];
        let cpu = party.cpu;
        let (free, last) = self.cpus.get(&cpu).copied().unwrap_or((0, who));
        let Some(begin) = worked(&party.windows, at.max(free), 0) else {
            return;
        };
        if begin > at {
            // Another member of its CPU goes first, or its window has not begun: others act before.
            self.ready.push(Reverse((begin, who)));
            return;
        }
        let switch = if last == who { 0 } else { self.rates.switch };
        let ((next, own), accesses) = traced(|| (party.act)(at));
        let mut now = at + switch + self.rates.step;
        for access in &accesses {
            now = self.lines.access(cpu, *access, now);
        }
        let Some(now) = worked(&party.windows, at, now - at + own) else {
            return;
        };
        self.cpus.insert(cpu, (now, who));
        match next {
            Next::More => self.ready.push(Reverse((now, who))),
            Next::Over => self.ends[who] = Some(now),
            Next::Wait(gang, wait) => {
                let (_, looked) = traced(|| gang.look(wait.word));
                let line = looked.first().map_or(0, |access| access.line);
                let parked = self.parked.entry(line).or_default();
                parked.push((who, gang, wait, now));
            }
        }
        for access in accesses.iter().filter(|access| access.is_write) {
            self.wake(access.line, now);
        }
    }

    /// Those go on whose word has changed.
    fn wake(&mut self, line: usize, now: u64) {
        let Some(parked) = self.parked.get_mut(&line) else {
            return;
        };
        let ready = &mut self.ready;
        parked.retain(|(who, gang, wait, since)| {
            let goes_on = gang.look(wait.word) != wait.seen;
            if goes_on {
                ready.push(Reverse((now.max(*since), *who)));
            }
            !goes_on
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gang::Form;
    use crate::member::{Member, Operation, Step};

    const RATES: Rates = Rates {
        step: 10,
        line: 100,
        switch: 50,
    };

    /// Barriers of so many members: when the last one is through.
    fn barriers(members: usize, form: Form, rounds: usize) -> u64 {
        let gang = Gang::new(members, form, 1).expect("a gang");
        let party = |cpu| {
            let mut member = Member::join(&gang).expect("a place");
            let (mut left, gang) = (rounds, &gang);
            let act = move |_| match member.step(Operation::Barrier) {
                Step::Wait(wait) => (Next::Wait(gang, wait), 0),
                Step::More => (Next::More, 0),
                Step::End(_) => {
                    left -= 1;
                    let over = if left == 0 { Next::Over } else { Next::More };
                    (over, 0)
                }
            };
            Party {
                cpu,
                begin: 0,
                windows: Vec::new(),
                act: Box::new(act),
            }
        };
        let ends = fly((0..members).map(party).collect(), RATES);
        let last = ends.into_iter().collect::<Option<Vec<u64>>>();
        last.expect("all are through")
            .into_iter()
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn the_linear_form_grows_with_the_members_and_the_tree_with_their_logarithm() {
        let cost = |members, form| barriers(members, form, 10) - barriers(members, form, 5);
        let linear = [16, 64, 255].map(|members| cost(members, Form::Linear));
        let tree = [16, 64, 255].map(|members| cost(members, Form::Tree));
        for at in [0, 1] {
            // Four times the members: four times as long, but one more level of the tree.
            let range = 3 * linear[at]..5 * linear[at];
            assert!(range.contains(&linear[at + 1]), "{linear:?}");
            assert!(tree[at + 1] < 2 * tree[at], "{tree:?}");
        }
        assert!(tree[2] - tree[1] < 2 * (tree[1] - tree[0]), "{tree:?}");
    }

    #[test]
    fn work_goes_on_in_the_next_window() {
        let windows = vec![(10, 20), (30, 40)];
        assert_eq!(worked(&windows, 0, 5), Some(15));
        assert_eq!(worked(&windows, 0, 10), Some(20));
        assert_eq!(worked(&windows, 15, 10), Some(35));
        assert_eq!(worked(&windows, 20, 0), Some(30));
        assert_eq!(worked(&windows, 31, 10), None);
        assert_eq!(worked(&Vec::new(), 31, 10), Some(41));
    }
}
