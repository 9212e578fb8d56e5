//! Gangs by their names

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::gang::{Broken, Form, Gang, JoinError, Why};

/// No gang can be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CreateError {
    /// A gang of this name lives.
    Taken,
    /// As many names are known as may be.
    Full,
    /// The gang itself is impossible.
    Gang(JoinError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::Taken => write!(f, "a gang of this name lives"),
            CreateError::Full => write!(f, "there are as many gangs as there may be"),
            CreateError::Gang(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CreateError {}

/// The gangs of a program, a stated number at most.
#[derive(Debug)]
pub struct Names {
    most: usize,
    generation: u64,
    gangs: Vec<(String, Arc<Gang>)>,
}

impl Names {
    /// For `most` gangs at a time.
    pub const fn new(most: usize) -> Names {
        Names {
            most,
            generation: 0,
            gangs: Vec::new(),
        }
    }

    /// A gang under a name that no living gang has. The name of a broken one is given to the new
    /// one, with a generation of its own. O(gangs + members).
    ///
    /// # Errors
    /// All of [`CreateError`].
    pub fn create(
        &mut self,
        name: &str,
        members: usize,
        form: Form,
    ) -> Result<Arc<Gang>, CreateError> {
        if self.find(name).is_some() {
            return Err(CreateError::Taken);
        }
        self.gangs.retain(|(_, gang)| gang.broken().is_none());
        if self.gangs.len() >= self.most {
            return Err(CreateError::Full);
        }
        let generation = self.generation + 1;
        let gang = Gang::new(members, form, generation).map_err(CreateError::Gang)?;
        self.generation = generation;
        let gang = Arc::new(gang);
        self.gangs.push((name.into(), Arc::clone(&gang)));
        Ok(gang)
    }

    /// The living gang of a name. O(gangs).
    pub fn find(&self, name: &str) -> Option<Arc<Gang>> {
        let mut gangs = self.gangs.iter();
        let (_, gang) = gangs.find(|(known, gang)| known == name && gang.broken().is_none())?;
        Some(Arc::clone(gang))
    }

    /// Destroys the living gang of a name: its members are told. `false`: there is none.
    /// O(gangs + members).
    pub fn destroy(&mut self, name: &str) -> bool {
        let Some(gang) = self.find(name) else {
            return false;
        };
        let why = Why::Destroyed;
        gang.end(Broken { member: 0, why });
        self.gangs.retain(|(_, gang)| gang.broken().is_none());
        true
    }
}
