//! From a gang to its section: by the names of its tasks, which have sections of their own.

use punctual_model::{Gang, System};

use super::names;
use super::value::{Out, Table};

pub(super) fn write_gang(system: &System, gang: &Gang, out: &mut Out) {
    out.header("gang", &gang.name);
    match &gang.supersteps[..] {
        [only] if only.name.is_empty() => out.key("members", names(system, &only.members)),
        supersteps => {
            let tables = supersteps.iter().map(|superstep| {
                let table = Table::new("members", names(system, &superstep.members));
                table.and("name", superstep.name.as_str())
            });
            out.key("supersteps", tables.collect::<Vec<_>>());
        }
    }
}
