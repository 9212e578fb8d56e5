//! The planned groups of a log, and the ends of the requests for them

use punctual_model::{Instant, System};

/// A group of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// It is planned before the run; else its requests are answered when they come.
    pub off_line: bool,
}

impl GroupInfo {
    /// The groups of a system, in the order of the file.
    pub fn of_system(system: &System) -> Vec<GroupInfo> {
        let of = |group: &punctual_model::Group| GroupInfo {
            name: group.name.clone(),
            off_line: group.is_off_line(),
        };
        system.groups.iter().map(of).collect()
    }
}

/// One arrival of a group. Instants are ticks of the tables' frequency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestInfo {
    /// The group's place in the file.
    pub group: usize,
    /// All instants of the group count from then.
    pub arrival: Instant,
    /// When it was asked for.
    pub asked: Instant,
    /// When that was answered; of a plan made before the run, when that was continued.
    pub answered: Instant,
    /// Its end.
    pub fate: Fate,
    /// When that was; of an open one, the end of the run.
    pub at: Instant,
    /// A segment of it ended after its deadline, or has not ended and is late already.
    pub late: bool,
    /// Segments that were executed.
    pub executed: u64,
    /// Handlers that were executed in place of segments.
    pub cleaned: u64,
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// No plan was found for it.
    Refused,
    /// It could not be answered in time.
    OutOfTime,
    /// It was guaranteed, and made room for a more important one before it began.
    Shed,
    /// It was guaranteed and killed.
    Killed,
    /// It was guaranteed, and all its segments were executed.
    Done,
    /// It was guaranteed, and was not over when the run ended.
    Open,
}

impl Fate {
    /// All of them.
    pub const ALL: [Fate; 6] = [
        Fate::Refused,
        Fate::OutOfTime,
        Fate::Shed,
        Fate::Killed,
        Fate::Done,
        Fate::Open,
    ];

    /// The word in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Refused => "refused",
            Fate::OutOfTime => "out-of-time",
            Fate::Shed => "shed",
            Fate::Killed => "killed",
            Fate::Done => "done",
            Fate::Open => "open",
        }
    }

    /// Whether the request was granted.
    pub const fn is_granted(self) -> bool {
        !matches!(self, Fate::Refused | Fate::OutOfTime)
    }
}
