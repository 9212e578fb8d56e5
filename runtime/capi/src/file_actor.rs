//! Actors of a file that are functions in C: `work = { call = "mine", library = "libx.so" }`.

use core::ptr::null_mut;
use std::path::Path;

use ::punctual_graph::{Application, GraphError};
use punctual_linux::foreign_symbol;
use punctual_model::{ActorId, Graph, WorkSource};

use crate::firing::{CActor, Fire};

/// The application of a graph with the functions of its actors in shared objects, which stay loaded
/// for the rest of the process; `None`: it has no such actors. Their paths are relative to `base`.
/// An author who names an object vouches that its functions keep the contract of `punctual_fire`;
/// they have no parameter. All others burn.
///
/// # Errors
/// [`GraphError::Library`], and those of [`Application::new`].
pub fn application_of_file(graph: &Graph, base: &Path) -> Result<Option<Application>, GraphError> {
    let mut application = None;
    for (id, actor) in (0..).map(ActorId).zip(&graph.actors) {
        let Some(WorkSource::Call { symbol, library }) = &actor.work else {
            continue;
        };
        // The loader looks elsewhere for a path without a slash.
        let path = Path::new(".").join(base).join(library);
        // SAFETY: the author of the file vouches that the function has this form.
        let fire = unsafe { foreign_symbol::<Fire>(&path, symbol) };
        let fire =
            fire.map_err(|error| GraphError::Library(actor.name.clone(), error.to_string()))?;
        let inputs = graph.fifos.iter().filter(|fifo| fifo.to == id).count();
        let outputs = graph.fifos.iter().filter(|fifo| fifo.from == id).count();
        // SAFETY: as above.
        let own = unsafe { CActor::of(fire, None, null_mut(), (inputs, outputs)) };
        let application = match &mut application {
            Some(application) => application,
            none => none.insert(Application::new(graph)?),
        };
        application.actor_with(&actor.name, CActor::fire, CActor::update, own)?;
    }
    Ok(application)
}
