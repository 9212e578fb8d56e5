//! Groups that are to end early, by id and by name, in a table that dispatchers read

use alloc::vec::Vec;

/// A group among those of a [`Kills`] table. Its place is used again after it has ended; then an
/// old id names nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupKey {
    place: u32,
    generation: u32,
}

impl GroupKey {
    /// The number for [`crate::Segment::group`]: no two groups at one time have the same.
    pub const fn place(self) -> u32 {
        self.place
    }
}

/// An id of a group that has ended, or never was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown;

impl core::fmt::Display for Unknown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "there is no such group any more")
    }
}

impl core::error::Error for Unknown {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    name: u32,
    generation: u32,
    is_live: bool,
    is_dead: bool,
}

/// All groups that are requested or guaranteed, and which of them are dead.
///
/// A kill writes one flag. Nothing is planned for it: dispatchers read the flag before each
/// segment, and the next planning takes the dead out ([`crate::Book::ask`]). A segment that
/// executes goes on to its end, since only there its thread has no resource. So a kill takes effect
/// within the longest wcet of a segment of the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kills {
    rows: Vec<Row>,
    free: Vec<u32>,
}

impl Kills {
    /// Room for so many groups at one time.
    pub fn new(groups: u32) -> Kills {
        let row = Row {
            name: 0,
            generation: 0,
            is_live: false,
            is_dead: false,
        };
        Kills {
            rows: (0..groups).map(|_| row).collect(),
            free: (0..groups).rev().collect(),
        }
    }

    /// A group is requested; `None`: there is no room. It may be killed before it is guaranteed.
    /// O(1).
    pub fn enter(&mut self, name: u32) -> Option<GroupKey> {
        let place = self.free.pop()?;
        let row = &mut self.rows[place as usize];
        (row.name, row.is_live, row.is_dead) = (name, true, false);
        Some(GroupKey {
            place,
            generation: row.generation,
        })
    }

    /// A group has ended or is refused: its id is stale from now on. O(1).
    ///
    /// # Errors
    /// A stale id.
    pub fn leave(&mut self, key: GroupKey) -> Result<(), Unknown> {
        let row = self.row(key)?;
        row.is_live = false;
        row.generation = row.generation.wrapping_add(1);
        self.free.push(key.place);
        Ok(())
    }

    /// This group executes no further segment. O(1).
    ///
    /// # Errors
    /// A stale id: then nobody is killed.
    pub fn kill(&mut self, key: GroupKey) -> Result<(), Unknown> {
        self.row(key)?.is_dead = true;
        Ok(())
    }

    /// All groups of this name; how many there were that were not dead. O(groups).
    pub fn kill_by_name(&mut self, name: u32) -> usize {
        let of_name = |row: &&mut Row| row.is_live && !row.is_dead && row.name == name;
        let named = self.rows.iter_mut().filter(of_name);
        named.map(|row| row.is_dead = true).count()
    }

    /// Whether a group is to execute no further segment. O(1).
    pub fn is_dead(&self, place: u32) -> bool {
        let row = self.rows.get(place as usize);
        row.is_some_and(|row| row.is_live && row.is_dead)
    }

    fn row(&mut self, key: GroupKey) -> Result<&mut Row, Unknown> {
        let row = self.rows.get_mut(key.place as usize);
        let row = row.filter(|row| row.is_live && row.generation == key.generation);
        row.ok_or(Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_reaches_the_groups_of_an_id_or_a_name_and_no_others() {
        let mut kills = Kills::new(3);
        let keys = [7, 8, 7].map(|name| kills.enter(name));
        let [Some(a), Some(b), Some(c)] = keys else {
            panic!("there is room for three: {keys:?}");
        };
        assert_eq!(kills.enter(9), None);
        let dead = |kills: &Kills| [a, b, c].map(|key| kills.is_dead(key.place()));
        assert_eq!(kills.kill(b), Ok(()));
        assert_eq!(dead(&kills), [false, true, false]);
        assert_eq!(kills.kill_by_name(6), 0);
        assert_eq!(kills.kill_by_name(7), 2);
        assert_eq!(kills.kill_by_name(7), 0);
        assert_eq!(dead(&kills), [true; 3]);
    }

    #[test]
    fn a_stale_id_kills_nobody_though_its_place_is_used_again() {
        let mut kills = Kills::new(1);
        let old = kills.enter(7).expect("there is room");
        assert_eq!(kills.kill(old), Ok(()));
        assert_eq!(kills.leave(old), Ok(()));
        let new = kills.enter(7).expect("there is room again");
        assert_eq!(new.place(), old.place());
        assert_eq!(kills.kill(old), Err(Unknown));
        assert_eq!(kills.leave(old), Err(Unknown));
        assert!(!kills.is_dead(new.place()));
        let foreign = GroupKey {
            place: 5,
            generation: 0,
        };
        assert_eq!(kills.kill(foreign), Err(Unknown));
        assert!(!kills.is_dead(5));
    }
}
