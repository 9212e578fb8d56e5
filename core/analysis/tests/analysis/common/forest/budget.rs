//! The budget of one server, tick by tick

/// Most pieces of a sporadic server.
const MOST_PIECES: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    pub(super) left: i64,
    pub(super) deadline: u64,
    pub(super) pieces: Vec<(u64, i64)>,
    pub(super) awake: bool,
}

impl Budget {
    /// Activation: the usable budget is used from now on.
    pub(super) fn ripen(&mut self, now: u64, work: bool) {
        if work && !self.awake {
            let ripe: i64 = self.pieces.iter().filter(|p| p.0 <= now).map(|p| p.1).sum();
            self.pieces.retain(|p| p.0 > now);
            if ripe > 0 {
                self.pieces.insert(0, (now, ripe));
            }
        }
        self.left = self.pieces.iter().filter(|p| p.0 <= now).map(|p| p.1).sum();
    }

    pub(super) fn take(&mut self, period: u64) {
        let at = self.pieces[0].0 + period;
        self.pieces[0].1 -= 1;
        match self.pieces.iter_mut().skip(1).find(|p| p.0 == at) {
            Some(piece) => piece.1 += 1,
            None => self.pieces.push((at, 1)),
        }
        if self.pieces[0].1 == 0 {
            self.pieces.remove(0);
        }
        self.pieces.sort_unstable();
        if self.pieces.len() > MOST_PIECES {
            let last = self.pieces.len() - 1;
            let amount = self.pieces.remove(last - 1).1;
            self.pieces[last - 1].1 += amount;
        }
    }
}
