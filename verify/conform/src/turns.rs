//! Turns: whose has begun, and how many each waiting thread has seen begin.

/// Turns of all threads, by index.
///
/// A turn begins when its thread is picked and none of its is open. It ends when the thread blocks
/// or yields, or has executed to the instant until which it was picked; being preempted ends
/// nothing. Among equals nobody begins a second turn while another waits: that is all there is to
/// fairness, whatever the length of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    open: Vec<bool>,
    /// `begun[waiting][other]`: turns of `other` that began while `waiting` waited.
    begun: Vec<Vec<u32>>,
}

impl Turns {
    pub(crate) fn new(threads: usize) -> Turns {
        Turns {
            open: vec![false; threads],
            begun: vec![vec![0; threads]; threads],
        }
    }

    /// The thread begins to wait.
    pub(crate) fn wake(&mut self, thread: usize) {
        self.open[thread] = false;
        self.forget(thread);
    }

    /// Its turn, if one is open, is over.
    pub(crate) fn end(&mut self, thread: usize) {
        self.open[thread] = false;
    }

    /// Nothing that was counted about this thread holds: it has other equals now.
    pub(crate) fn forget(&mut self, thread: usize) {
        self.begun[thread].fill(0);
        for counts in &mut self.begun {
            counts[thread] = 0;
        }
    }

    /// The thread is picked while `equals` wait; one of them that sees it begin its second turn.
    pub(crate) fn pick(
        &mut self,
        thread: usize,
        equals: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        self.begun[thread].fill(0);
        if std::mem::replace(&mut self.open[thread], true) {
            return None;
        }
        let mut overtaken = None;
        for waiting in equals {
            let count = &mut self.begun[waiting][thread];
            *count += 1;
            if *count > 1 {
                overtaken = overtaken.or(Some(waiting));
            }
        }
        overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_turn_while_another_waits_is_seen() {
        let mut turns = Turns::new(2);
        turns.wake(0);
        turns.wake(1);
        assert_eq!(turns.pick(0, [1].into_iter()), None);
        assert_eq!(turns.pick(0, [1].into_iter()), None, "the same turn");
        turns.end(0);
        assert_eq!(turns.pick(0, [1].into_iter()), Some(1));
    }

    #[test]
    fn turns_that_alternate_are_fair() {
        let mut turns = Turns::new(2);
        turns.wake(0);
        turns.wake(1);
        for thread in [0, 1, 0, 1] {
            assert_eq!(turns.pick(thread, [1 - thread].into_iter()), None);
            turns.end(thread);
        }
    }
}
