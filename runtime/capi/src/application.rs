//! Streaming applications in C: a graph of actors that are functions, and its tiles.

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use ::punctual_graph::{Application, GraphError, Tile, TileBook};
use ::punctual_thread::tree::home;
use punctual_linux::job;
use punctual_model::{
    CpuId, Graph, Instant, Ns, Order, OrderRule, Preempted, Span, System, Tile as TileId, When,
    Work,
};

use crate::admission::{Why, keep_why};
use crate::edge::{answer, give, is_place, write_text};
use crate::graph::{Parts, meaningless, punctual_graph};
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::table::{Table, Used};

static APPLICATIONS: Table<Entry> = Table::new();

/// A streaming application. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_application {
    /// The library's.
    pub id: u64,
}

/// Its tiles, each executed by one thread at a time.
struct Entry {
    tiles: Vec<(TileId, Mutex<Tile>, Arc<TileBook>)>,
    /// Each actor, in the order of the program: the tile and its place there.
    actors: Vec<(usize, usize)>,
    stops: AtomicBool,
}

/// The instant at which the last first thread of a run ended, in its ticks.
static END: AtomicU64 = AtomicU64::new(0);

impl Entry {
    fn new(application: Application, parts: &Parts) -> Result<Entry, GraphError> {
        let tiles = application.tiles_without_slots()?;
        let book = |tile: Tile| (tile.tile(), Arc::clone(tile.book()), Mutex::new(tile));
        let tiles = tiles.into_iter().map(book);
        let tiles: Vec<_> = tiles.map(|(id, book, tile)| (id, tile, book)).collect();
        let place = |number: usize| {
            let at = |(_, _, book): &(TileId, Mutex<Tile>, Arc<TileBook>)| {
                let mut actors = book.actors.iter();
                actors.position(|actor| actor.actor.index() == number)
            };
            let mut all = tiles.iter().enumerate();
            all.find_map(|(tile, one)| Some((tile, at(one)?)))
        };
        let actors = (0..parts.actors()).filter_map(place).collect();
        Ok(Entry {
            tiles,
            actors,
            stops: AtomicBool::new(false),
        })
    }

    /// A tile that nobody executes; where the core decides, one of its actors.
    fn tile(&self, number: u32) -> Result<MutexGuard<'_, Tile>, Status> {
        let cpu = u16::try_from(number).map(CpuId);
        let here = self.tiles.iter().filter(|(tile, _, _)| Ok(tile.cpu) == cpu);
        let mut none = Status::PUNCTUAL_INVALID;
        for (_, tile, _) in here {
            match tile.try_lock() {
                Ok(tile) => return Ok(tile),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => none = Status::PUNCTUAL_BUSY,
            }
        }
        Err(none)
    }

    /// What is wrong with it, a line for each tile; empty: nothing.
    fn faults(&self, patience: Span<Ns>) -> Vec<String> {
        let now = job::executed().map_or(END.load(Ordering::Relaxed), |(now, _)| now.ticks());
        let now = Instant::from_ticks(now);
        let of_tile = |(id, _, book): &(TileId, Mutex<Tile>, Arc<TileBook>)| {
            let (decisions, refused) = book.decisions();
            let lied = || {
                format!(
                    "{refused} of {decisions} answers of the task scheduler were no actor that may fire"
                )
            };
            let fault = book.fault(now, patience);
            let fault = fault.or_else(|| (refused > 0).then(lied))?;
            let (graph, tile) = (&book.graph, id.cpu.0);
            Some(format!("graph `{graph}` on tile {tile}: {fault}"))
        };
        self.tiles.iter().filter_map(of_tile).collect()
    }

    /// So long may a function that has not returned execute before a report names it.
    fn patience(&self) -> Span<Ns> {
        let books = self.tiles.iter().map(|(_, _, book)| book);
        let wcets = books.flat_map(|book| book.actors.iter().map(|actor| book.wcet(actor)));
        let longest = wcets.max().unwrap_or_default();
        Span::from_ms(100).saturating_add(longest.as_span())
    }
}

/// A run ends, on the thread that is its first.
pub(crate) fn note_end() {
    if let Some((now, _)) = job::executed() {
        END.fetch_max(now.ticks(), Ordering::Relaxed);
    }
}

/// Another run begins.
pub(crate) fn forget_end() {
    END.store(0, Ordering::Relaxed);
}

/// What is wrong with the applications that there are.
pub(crate) fn faults_of_all() -> Vec<String> {
    let mut all = Vec::new();
    APPLICATIONS.each(|entry| all.extend(entry.faults(entry.patience())));
    all
}

fn find(application: punctual_application) -> Result<Used<'static, Entry>, Status> {
    APPLICATIONS.get(application.id)
}

/// Makes an application, with all the memory that it will use. What is described is copied, but for
/// the parameters, which are the functions' own. `PUNCTUAL_INVALID` when the description means
/// nothing and `PUNCTUAL_REFUSED` when the graph stops by itself, whatever executes it; then
/// `punctual_why` says where, and what would mend it. Legal everywhere, but not while others are to
/// be on time: it analyses the graph.
///
/// # Safety
/// `application` is null, or to a place for one; `graph` is null or to a description, with all that
/// it points to. Each function may be called with its parameter, on the stack of each thread that
/// executes its tile, by one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_application_create(
    application: *mut punctual_application,
    graph: *const punctual_graph,
) -> punctual_status {
    answer(|| {
        is_place(application)?;
        // SAFETY: as the caller vouches.
        let parts = unsafe { Parts::of(graph) }?;
        parts.is_sound()?;
        // SAFETY: as the caller vouches.
        let made = unsafe { parts.make() }?;
        let entry = Entry::new(made, &parts).map_err(|error| meaningless(&error))?;
        let id = APPLICATIONS.insert(entry)?;
        // SAFETY: as the caller vouches.
        unsafe { give(application, punctual_application { id }) }
    })
}

/// Ends it; `PUNCTUAL_BUSY` while a thread executes one of its tiles. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_application_destroy(
    application: punctual_application,
) -> punctual_status {
    answer(|| APPLICATIONS.remove(application.id))
}

/// Executes a tile of an application on the calling thread, firing after firing, until somebody
/// stops the application (`punctual_application_stop`). Where nobody may fire it looks again and
/// again: what the thread has of the processor, a reservation for example, is the tile's, and
/// nobody else notices what goes on there. The tile's task scheduler is called before each firing,
/// or once in each slot of the branch that has the thread in its care (`PUNCTUAL_BETWEEN_SLOTS`,
/// `PUNCTUAL_PASSED_OVER`): `PUNCTUAL_INVALID` when that has none, or no time between them. With
/// `PUNCTUAL_INLINE` it executes an actor of the tile that no other thread executes, and yields
/// after each firing.
///
/// Tasks are executed once, until all of them have returned. One goes on until a FIFO blocks it or
/// it returns; then the task scheduler is asked for the next that can go on.
///
/// `PUNCTUAL_FAILED` when a function of an actor answered something else than 0, or crashed, or the
/// task scheduler did: `punctual_why` says which. From then on the tile fires no more.
/// `PUNCTUAL_BUSY` while another thread executes it. A function that never returns keeps its
/// thread: others see it by `punctual_application_fault`. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_tile_run(
    application: punctual_application,
    tile: u32,
) -> punctual_status {
    answer(|| {
        crate::time::on_a_thread()?;
        let entry = find(application)?;
        let mut tile = entry.tile(tile)?;
        if tile.is_between_slots() {
            settle(&mut tile)?;
        }
        let done = tile.run_contained(|| entry.stops.load(Ordering::Relaxed));
        done.map_err(failed)
    })
}

/// One firing of a tile, on the calling thread: the task scheduler is asked, and the actor that it
/// names fires. `PUNCTUAL_NOTHING` when it names nobody that may. `punctual_actor_firings` counts
/// the firing from the next call on. `PUNCTUAL_NOT_ALLOWED` for a tile that decides between slots,
/// has tasks, or has a thread for each actor.
/// Otherwise as `punctual_tile_run`, but legal everywhere;
/// outside of a run a crash ends the process.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_tile_fire(
    application: punctual_application,
    tile: u32,
) -> punctual_status {
    answer(|| {
        let entry = find(application)?;
        let mut tile = entry.tile(tile)?;
        if tile.is_between_slots() || tile.is_plain() || tile.is_inline() {
            let words =
                "a tile between slots, inline or with tasks is executed by `punctual_tile_run`";
            keep_why(Why::Words(words.into()));
            return Err(Status::PUNCTUAL_NOT_ALLOWED);
        }
        let fired = tile.fire();
        match fired.map_err(failed)? {
            true => Ok(()),
            false => Err(Status::PUNCTUAL_NOTHING),
        }
    })
}

/// A tile that decides between slots gets those of its thread. The model says what is wrong with
/// them, of a graph of one actor.
fn settle(tile: &mut Tile) -> Answer {
    let wrong = |words: String| {
        keep_why(Why::Words(words));
        Err(Status::PUNCTUAL_INVALID)
    };
    let Some((system, home)) = home() else {
        return wrong("the scheduler of its thread came after the start, and has no slots".into());
    };
    let mut graph = Graph::new("tile");
    graph.actor("actor", home, Work::from_us(1));
    graph.orders.push(Order {
        tile: home,
        when: When::BetweenSlots(Preempted::Continues),
        by: OrderRule::RoundRobin,
    });
    let with_it = System {
        graphs: vec![graph],
        ..System::clone(&system)
    };
    if let Err(errors) = with_it.validate() {
        let words = errors.iter().map(|e| format!("{}: {}", e.message, e.help));
        return wrong(words.collect::<Vec<_>>().join("\n"));
    }
    match tile.settle(&system, home) {
        true => Ok(()),
        false => wrong("the scheduler of its thread has no slots".into()),
    }
}

fn failed(said: String) -> Status {
    keep_why(Why::Words(said));
    Status::PUNCTUAL_FAILED
}

/// Has the threads that execute the tiles of an application return, each after the firings that are
/// under way; others that come to execute it return at once. Tasks are told at their next call of a
/// FIFO. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_application_stop(application: punctual_application) -> punctual_status {
    answer(|| {
        let entry = find(application)?;
        entry.stops.store(true, Ordering::Relaxed);
        let books = entry.tiles.iter().map(|(_, _, book)| book);
        books.for_each(|book| book.stop());
        Ok(())
    })
}

/// The firings of an actor that have ended, by its place among the actors of its graph; also while
/// it is executed. Legal everywhere.
///
/// # Safety
/// `firings` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_actor_firings(
    application: punctual_application,
    actor: u32,
    firings: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(firings)?;
        let entry = find(application)?;
        let at = usize::try_from(actor).ok();
        let at = at.and_then(|at| entry.actors.get(at));
        let &(tile, place) = at.ok_or(Status::PUNCTUAL_INVALID)?;
        let (_, _, book) = &entry.tiles[tile];
        // SAFETY: as the caller vouches.
        unsafe { give(firings, book.actors[place].firings()) }
    })
}

/// What is wrong with an application, a line for each tile: a function that failed, one that has
/// not returned for longer than `patience_ns`, a task scheduler whose answers were refused.
/// `PUNCTUAL_NOTHING` when nothing is. `punctual_report` has the same of all applications that
/// there are when a run ends. See `punctual_why` for the buffer. Legal everywhere.
///
/// # Safety
/// As for `punctual_why`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_application_fault(
    application: punctual_application,
    patience_ns: u64,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> punctual_status {
    answer(|| {
        let faults = find(application)?.faults(Span::from_ns(patience_ns));
        if faults.is_empty() {
            return nothing();
        }
        // SAFETY: as the caller vouches.
        unsafe { write_text(&faults.join("\n"), buffer, capacity, length) }
    })
}

fn nothing() -> Answer {
    Err(Status::PUNCTUAL_NOTHING)
}
