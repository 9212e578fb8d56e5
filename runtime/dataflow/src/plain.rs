//! A tile whose application is not real-time: each task is a direct thread
//!
//! A task goes on until a FIFO blocks it or it ends; the end of a slot only interrupts it. Where a
//! FIFO blocks it, it calls the application's task scheduler on its own stack, and switches to the
//! task that this one names (CompOSe §4.2.3, Fig. 6). Where nobody may go on, it asks again.

use std::sync::{Arc, OnceLock};

use punctual_direct::{self as direct, Choice, DirectError, DirectId, HelpingLock, Scheduler};
use punctual_firing::{Call, Observer, Plain, State};
use punctual_linux::job;

use crate::actor::Course;
use crate::between::AnyScheduler;
use crate::book::{Notes, TileBook};
use crate::ends::{Ends, Gauges, Part};
use crate::meter::Meter;

/// Bytes of a task's stack.
const STACK: usize = 256 * 1024;

/// The code of a task.
pub(crate) type Code = Box<dyn FnOnce(&mut TaskFifos) + Send>;

/// A tile before its run.
pub(crate) struct PlainTile {
    pub(crate) scheduler: AnyScheduler,
    /// By the place of the task: its code, its FIFOs in the graph (inputs, outputs), its ends.
    pub(crate) tasks: Vec<(Code, [Vec<usize>; 2], Ends)>,
    pub(crate) gauges: Arc<Gauges>,
}

struct Shared {
    plain: Plain<AnyScheduler>,
    book: Arc<TileBook>,
    /// Its clock.
    meter: Meter,
}

/// The FIFOs of a task, whose calls wait where tokens or space are missing. Another task of the
/// tile goes on meanwhile.
pub struct TaskFifos {
    place: usize,
    shared: Arc<HelpingLock<Shared>>,
    choice: Arc<Choice>,
    threads: Arc<OnceLock<Vec<DirectId>>>,
    gauges: Arc<Gauges>,
    fifos: [Vec<usize>; 2],
    ends: Ends,
    notes: Notes,
    rounds: u64,
}

impl core::fmt::Debug for TaskFifos {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TaskFifos")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Writes down what the engine does, now.
struct Pen<'a> {
    book: &'a TileBook,
    meter: &'a Meter,
}

impl Observer for Pen<'_> {
    fn moved(&mut self, place: usize, rounds: u64, state: State, preempted: bool) {
        let now = self.meter.read().now;
        self.book.keep(now, place, rounds, (state, preempted));
    }

    fn called(&mut self, place: usize, rounds: u64, call: Call, goes_on: bool) {
        let now = self.meter.read().now;
        self.book.keep_call(now, (place, rounds), call, goes_on);
    }

    fn refused(&mut self, _answer: usize) {
        self.book.refuse();
    }
}

impl PlainTile {
    /// On its light thread, until all tasks have ended.
    pub(crate) fn run(self, book: &Arc<TileBook>) -> Result<(), DirectError> {
        let count = self.tasks.len();
        let mut scheduler = Scheduler::try_new(count, STACK)?;
        let choice = Arc::new(Choice::new());
        scheduler.choose_by(Arc::clone(&choice));
        let shared = Arc::new(HelpingLock::new(Shared {
            plain: Plain::new(count, self.scheduler),
            book: Arc::clone(book),
            meter: Meter::new(),
        }));
        let threads = Arc::new(OnceLock::new());
        let mut all = Vec::new();
        for (place, (code, fifos, ends)) in self.tasks.into_iter().enumerate() {
            let mut task = TaskFifos {
                place,
                shared: Arc::clone(&shared),
                choice: Arc::clone(&choice),
                threads: Arc::clone(&threads),
                gauges: Arc::clone(&self.gauges),
                fifos,
                ends,
                notes: Notes::told(Arc::clone(book), Meter::new()),
                rounds: 0,
            };
            let book = Arc::clone(book);
            all.push(scheduler.spawn(move || {
                let life = || {
                    if task.wait(None) {
                        task.begin_round();
                        code(&mut task);
                        task.end();
                    }
                };
                if let Err(said) = job::contain(life) {
                    book.fail(&said);
                }
            })?);
        }
        // Nobody has set it.
        let _ = threads.set(all);
        let _report = scheduler.run();
        Ok(())
    }
}

impl TaskFifos {
    /// How many FIFOs the task reads, and how many it writes.
    pub fn counts(&self) -> (usize, usize) {
        (self.fifos[0].len(), self.fifos[1].len())
    }

    /// The bytes of one token of an input; `None`: there is no such input.
    pub fn input_size(&self, input: usize) -> Option<usize> {
        self.ends
            .reader(*self.fifos[0].get(input)?)?
            .token_size()
            .into()
    }

    /// The bytes of one token of an output; `None`: there is no such output.
    pub fn output_size(&self, output: usize) -> Option<usize> {
        self.ends
            .writer(*self.fifos[1].get(output)?)?
            .token_size()
            .into()
    }

    /// Moves tokens of an input into a buffer, as many as it takes; waits for them. `false`: there
    /// is no such input, the buffer takes no whole number of tokens, or more than the FIFO ever
    /// holds, or the application was stopped. O(bytes), and the waiting.
    pub fn read(&mut self, input: usize, into: &mut [u8]) -> bool {
        let size = self.input_size(input).filter(|&size| size > 0);
        let Some(tokens) = size.and_then(|size| whole(into.len(), size)) else {
            return false;
        };
        let fifo = self.fifos[0][input];
        self.gauges.holds(fifo, tokens) && {
            self.wait(Some((Call::Read(small(fifo), tokens), fifo))) && self.ends.read(fifo, into)
        }
    }

    /// Copies tokens from a buffer to an output; waits for space. `false`: there is no such output,
    /// the buffer has no whole number of tokens, or more than the FIFO ever holds, or the
    /// application was stopped. O(bytes), and the waiting.
    pub fn write(&mut self, output: usize, from: &[u8]) -> bool {
        let size = self.output_size(output).filter(|&size| size > 0);
        let Some(tokens) = size.and_then(|size| whole(from.len(), size)) else {
            return false;
        };
        let fifo = self.fifos[1][output];
        self.gauges.holds(fifo, tokens) && {
            self.wait(Some((Call::Write(small(fifo), tokens), fifo))) && self.ends.write(fifo, from)
        }
    }

    /// As [`TaskFifos::read`], and forgets the tokens: also where a token has no bytes.
    pub fn skip(&mut self, input: usize, tokens: u32) -> bool {
        let Some(&fifo) = self.fifos[0].get(input) else {
            return false;
        };
        self.gauges.holds(fifo, tokens) && {
            self.wait(Some((Call::Read(small(fifo), tokens), fifo))) && self.ends.skip(fifo, tokens)
        }
    }

    /// As [`TaskFifos::write`], with bytes of one value: also where a token has no bytes.
    pub fn fill(&mut self, output: usize, tokens: u32, value: u8) -> bool {
        let Some(&fifo) = self.fifos[1].get(output) else {
            return false;
        };
        self.gauges.holds(fifo, tokens) && {
            self.wait(Some((Call::Write(small(fifo), tokens), fifo)))
                && self.ends.fill(fifo, tokens, value)
        }
    }

    /// Has all tasks of this tile wait no more: their calls move nothing from now on.
    pub fn stop(&self) {
        self.notes.book.stop();
    }

    /// Whether somebody has stopped the application on this tile ([`TileBook::stop`]).
    pub fn is_stopped(&self) -> bool {
        self.notes.book.is_stopped()
    }

    /// A round of the task ends here, and the next begins: rounds are counted, and compared with
    /// the wcet of the task.
    pub fn next_round(&mut self) {
        self.end_round();
        let shared = Arc::clone(&self.shared);
        if let Ok(mut shared) = shared.lock() {
            let Shared { plain, book, meter } = &mut *shared;
            plain.goes_on(&mut Pen { book, meter });
        }
        self.begin_round();
    }

    pub(crate) fn course(&self) -> &Course {
        &self.notes.course
    }

    fn begin_round(&mut self) {
        let now = self.notes.read();
        self.notes.begin(now.executed.ticks(), job::entries());
    }

    fn end_round(&mut self) {
        let now = self.notes.read();
        self.notes.end_firing(self.place, self.rounds, now);
        self.rounds += 1;
    }

    fn end(&mut self) {
        self.end_round();
        if self.is_stopped() {
            // The engine names another, perhaps.
            return self.notes.book.actors[self.place].finish();
        }
        let Ok(mut shared) = self.shared.lock() else {
            return;
        };
        let Shared { plain, book, meter } = &mut *shared;
        plain.ends(&mut Pen { book, meter });
        book.actors[self.place].finish();
        self.notes.idles();
    }

    /// Returns when the task runs, and its call of a FIFO goes on, or it is stopped (`false`).
    /// Others run meanwhile.
    fn wait(&mut self, call: Option<(Call, usize)>) -> bool {
        let now = self.notes.read();
        let left = now.executed.ticks();
        self.notes.calls(now);
        let mut has_waited = false;
        loop {
            job::checkpoint();
            if self.is_stopped() {
                return false;
            }
            match self.ask(call.map(|(call, _)| call)) {
                Asked::GoesOn => break,
                Asked::Another(task) => {
                    has_waited = true;
                    let thread = self.threads.get().and_then(|all| all.get(task));
                    if let Some(&thread) = thread {
                        self.choice.set_next(thread);
                        direct::yield_to(thread);
                    }
                }
                Asked::Nobody => {
                    has_waited = true;
                    core::hint::spin_loop();
                }
            }
        }
        if has_waited {
            let aside = &self.notes.course.aside;
            let more = self.notes.read().executed.ticks().saturating_sub(left);
            aside.set(aside.get() + more);
        }
        self.notes.executes(self.place);
        true
    }

    fn ask(&mut self, call: Option<Call>) -> Asked {
        let Ok(mut shared) = self.shared.lock() else {
            return Asked::Nobody;
        };
        let Shared { plain, book, meter } = &mut *shared;
        if book.has_failed() {
            return Asked::Nobody;
        }
        let look = &Part {
            gauges: &self.gauges,
            own: None,
        };
        let pen = &mut Pen { book, meter };
        if plain.running() == Some(self.place) {
            let goes_on = call.is_none_or(|call| plain.call(call, look, pen));
            if goes_on {
                return Asked::GoesOn;
            }
        }
        let next = plain.running().or_else(|| {
            self.notes.decides(true);
            let next = plain.next(look, pen);
            self.notes.idles();
            next
        });
        match next {
            Some(task) if task == self.place => match call {
                // The same call, which goes on now.
                Some(call) if !plain.call(call, look, pen) => Asked::Nobody,
                _ => Asked::GoesOn,
            },
            Some(task) => Asked::Another(task),
            None => Asked::Nobody,
        }
    }
}

enum Asked {
    GoesOn,
    Another(usize),
    Nobody,
}

fn whole(bytes: usize, size: usize) -> Option<u32> {
    let tokens = bytes.is_multiple_of(size).then(|| bytes / size)?;
    u32::try_from(tokens).ok()
}

fn small(fifo: usize) -> u32 {
    u32::try_from(fifo).unwrap_or(u32::MAX)
}
