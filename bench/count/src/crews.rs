//! Rounds of whole gangs by one thread, to count or to time the protocol without what CPUs cost

use punctual_gang::{
    Admission, Attached, Form, Gang, LocalScheduler, Member, Operation, Outcome, Progress, Step,
    Wait,
};

/// Forms and their names in rows.
pub const FORMS: [(Form, &str); 2] = [(Form::Linear, "linear"), (Form::Tree, "tree")];

/// Members of the gangs that are counted.
pub const SIZES: [usize; 3] = [2, 64, 255];

/// All members of a gang in the hands of one thread: each takes steps until it waits.
#[derive(Debug)]
pub struct Crew<'g> {
    gang: &'g Gang,
    members: Vec<Member<&'g Gang>>,
    waits: Vec<Option<Wait>>,
}

/// A local scheduler that admits everything.
#[derive(Debug)]
struct Free;

impl LocalScheduler for Free {
    fn admit(&mut self, _constraint: &Attached) -> Result<(), u32> {
        Ok(())
    }

    fn readmit(&mut self) {}

    fn correct_phase(&mut self, _order: usize, _members: usize) {}
}

impl<'g> Crew<'g> {
    /// All members of a gang that nobody has joined.
    ///
    /// # Errors
    /// A gang that is not free.
    pub fn join(gang: &'g Gang) -> Result<Crew<'g>, String> {
        let members = (0..gang.members()).map(|_| Member::join(gang));
        let members: Result<Vec<_>, _> = members.collect();
        let members = members.map_err(|error| error.to_string())?;
        let waits = vec![None; members.len()];
        Ok(Crew {
            gang,
            members,
            waits,
        })
    }

    /// One round of an operation, to its end for all.
    ///
    /// # Errors
    /// A round that breaks.
    pub fn round(&mut self, operation: Operation) -> Result<u64, String> {
        let mut result = 0;
        self.all(|_, member| match member.step(operation) {
            Step::More => Ok(Some(None)),
            Step::Wait(wait) => Ok(Some(Some(wait))),
            Step::End(Outcome::Done(value)) => {
                result = value;
                Ok(None)
            }
            Step::End(Outcome::Broken(broken)) => Err(format!("{broken:?}")),
        })?;
        Ok(result)
    }

    /// One admission of all, whose local schedulers cost nothing.
    ///
    /// # Errors
    /// A gang that breaks.
    pub fn admit(&mut self) -> Result<(), String> {
        let mut admissions = vec![Admission::new([1; 8]); self.members.len()];
        self.all(
            |place, member| match admissions[place].step(member, &mut Free) {
                Progress::More => Ok(Some(None)),
                Progress::Wait(wait) => Ok(Some(Some(wait))),
                Progress::End(punctual_gang::Admitted::All { .. }) => Ok(None),
                Progress::End(end) => Err(format!("{end:?}")),
            },
        )
    }

    /// Has all members act, in turns, until each has given `None`: it goes on at once, or waits.
    fn all(
        &mut self,
        mut act: impl FnMut(usize, &mut Member<&'g Gang>) -> Result<Option<Option<Wait>>, String>,
    ) -> Result<(), String> {
        self.waits.fill(None);
        let mut over = vec![false; self.members.len()];
        let mut left = self.members.len();
        while left > 0 {
            for (place, member) in self.members.iter_mut().enumerate() {
                while !over[place] {
                    if let Some(wait) = self.waits[place]
                        && self.gang.look(wait.word) == wait.seen
                    {
                        break;
                    }
                    match act(place, member)? {
                        Some(wait) => self.waits[place] = wait,
                        None => {
                            over[place] = true;
                            left -= 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crew_meets_reduces_and_is_admitted() {
        for (form, _) in FORMS {
            for members in SIZES {
                let gang = Gang::new(members, form, 1).expect("a gang");
                let mut crew = Crew::join(&gang).expect("free places");
                for turn in 0..3 {
                    assert_eq!(crew.round(Operation::Barrier), Ok(0));
                    let value = turn + 1;
                    let fold = u64::wrapping_add;
                    let sum = Operation::Reduce { value, fold };
                    assert_eq!(crew.round(sum), Ok(value * members as u64));
                    assert_eq!(crew.admit(), Ok(()));
                }
                assert!(!gang.is_locked() && gang.broken().is_none());
            }
        }
    }
}
