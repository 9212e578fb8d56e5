//! The sections of a job in which it holds resources, as steps in a row.

use punctual_model::{ResourceId, Use, Work};

use crate::RATE;
use crate::body::{Act, Step};

/// The steps of all sections, how many outer ones there are, and their work in total, which is at
/// most `room`. Inner sections begin at once inside their outer one. `scale` gives the length that
/// is executed, `number` the number of a resource on its shard.
pub(crate) fn lock_steps(
    uses: &[Use],
    scale: impl Fn(Work) -> Work,
    number: impl Fn(ResourceId) -> Option<u32>,
    room: Work,
) -> (Vec<Step>, (u64, Work)) {
    let mut builder = Builder {
        uses,
        scale,
        number,
        steps: Vec::new(),
    };
    let (mut count, mut total) = (0, Work::ZERO);
    let mut next = 0;
    while next < uses.len() {
        let (after, length) = builder.section(next, room.saturating_sub(total));
        total = total.saturating_add(length);
        count += 1;
        next = after;
    }
    (builder.steps, (count, total))
}

struct Builder<'a, S, N> {
    uses: &'a [Use],
    scale: S,
    number: N,
    steps: Vec<Step>,
}

impl<S: Fn(Work) -> Work, N: Fn(ResourceId) -> Option<u32>> Builder<'_, S, N> {
    /// The section of the use at `at`, with those inside it; where the next one begins, and how
    /// long it is. Inner ones follow the one that they are inside.
    fn section(&mut self, at: usize, room: Work) -> (usize, Work) {
        let this = self.uses[at];
        let length = (self.scale)(this.length.ticks_up(RATE)).min(room);
        let number = (self.number)(this.resource).unwrap_or(u32::MAX);
        self.push(Work::ZERO, Act::Lock(number, this.mode, None));
        let mut rest = length;
        let mut next = at + 1;
        while next < self.uses.len() && self.uses[next].inside == Some(this.resource) {
            let (after, inner) = self.section(next, rest);
            rest = rest.saturating_sub(inner);
            next = after;
        }
        self.push(rest, Act::Unlock(number));
        (next, length)
    }

    fn push(&mut self, work: Work, act: Act) {
        let work = Some(work);
        self.steps.push(Step { work, act });
    }
}
