//! The applications of a system: those that a program brings, and those that burn their work

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_model::{GraphId, System};

use crate::application::{Application, GraphError};
use crate::book::TileBook;
use crate::tile::Tile;

/// The applications that a program brings for the graphs of its system, and the books of all tiles
/// of its last run.
#[derive(Clone, Debug, Default)]
pub struct Applications(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    brought: Vec<Application>,
    books: Vec<(GraphId, Arc<TileBook>)>,
}

impl Applications {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The application of the graph that it was made for, for one run. Graphs without one burn.
    pub fn bring(&self, application: Application) {
        self.kept().brought.push(application);
    }

    /// The books of the last run, in the order of [`System::graph_threads`]; also while it goes on.
    pub fn books(&self) -> Vec<(GraphId, Arc<TileBook>)> {
        self.kept().books.clone()
    }

    /// The tiles of all graphs of a system, in the order of [`System::graph_threads`].
    ///
    /// # Errors
    /// Those of [`Application::new`] and [`Application::tiles`]; [`GraphError::NoSuch`] for an
    /// application of another graph.
    pub fn tiles(&self, system: &System) -> Result<Vec<Tile>, GraphError> {
        let mut kept = self.kept();
        let mut brought = core::mem::take(&mut kept.brought);
        kept.books.clear();
        let mut all = Vec::new();
        for (id, graph) in (0..).map(GraphId).zip(&system.graphs) {
            let mine = brought
                .iter()
                .position(|application| application.is_of(graph));
            let application = match mine {
                Some(at) => brought.swap_remove(at),
                None => Application::new(graph)?,
            };
            let tiles = application.tiles_in(system)?;
            let books = tiles.iter().map(|tile| (id, Arc::clone(tile.book())));
            kept.books.extend(books);
            all.extend(tiles);
        }
        match brought.first() {
            Some(other) => Err(GraphError::NoSuch(other.name().to_owned())),
            None => Ok(all),
        }
    }
}
