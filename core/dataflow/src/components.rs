//! Strongly connected parts of a directed graph (Tarjan 1972), without recursion

use alloc::vec;
use alloc::vec::Vec;

/// Nodes in no part yet.
const NONE: usize = usize::MAX;

/// The number of the part of each of `nodes` nodes, and how many parts there are. O(nodes + arcs).
pub(crate) fn components(nodes: usize, arcs: &[(usize, usize)]) -> (Vec<usize>, usize) {
    let mut first = vec![0; nodes + 1];
    for &(from, _) in arcs {
        first[from + 1] += 1;
    }
    for node in 0..nodes {
        first[node + 1] += first[node];
    }
    let mut next = first.clone();
    let mut targets = vec![0; arcs.len()];
    for &(from, to) in arcs {
        targets[next[from]] = to;
        next[from] += 1;
    }
    let mut search = Search {
        part: vec![NONE; nodes],
        parts: 0,
        number: vec![NONE; nodes],
        low: vec![0; nodes],
        stack: Vec::new(),
        count: 0,
    };
    let mut at = first[..nodes].to_vec();
    let mut path = Vec::new();
    for root in 0..nodes {
        if search.number[root] != NONE {
            continue;
        }
        search.enter(root);
        path.push(root);
        while let Some(&node) = path.last() {
            if at[node] < first[node + 1] {
                let to = targets[at[node]];
                at[node] += 1;
                if search.number[to] == NONE {
                    search.enter(to);
                    path.push(to);
                } else if search.part[to] == NONE {
                    search.low[node] = search.low[node].min(search.number[to]);
                }
            } else {
                path.pop();
                search.leave(node);
                if let Some(&above) = path.last() {
                    search.low[above] = search.low[above].min(search.low[node]);
                }
            }
        }
    }
    (search.part, search.parts)
}

struct Search {
    part: Vec<usize>,
    parts: usize,
    number: Vec<usize>,
    low: Vec<usize>,
    stack: Vec<usize>,
    count: usize,
}

impl Search {
    fn enter(&mut self, node: usize) {
        (self.number[node], self.low[node]) = (self.count, self.count);
        self.count += 1;
        self.stack.push(node);
    }

    fn leave(&mut self, node: usize) {
        if self.low[node] != self.number[node] {
            return;
        }
        while let Some(member) = self.stack.pop() {
            self.part[member] = self.parts;
            if member == node {
                break;
            }
        }
        self.parts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_circles_and_what_hangs_between_are_three_parts() {
        let arcs = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 3)];
        let (part, parts) = components(5, &arcs);
        assert_eq!(parts, 3);
        assert_eq!(part[0], part[1]);
        assert_eq!(part[3], part[4]);
        assert!(part[2] != part[0] && part[2] != part[3]);
    }
}
