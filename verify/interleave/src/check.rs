//! Models, how they are run, and what became of their mutants.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::weaken::{self, Mutant};

/// Threads are interrupted at most so often in one order, where a model does not say otherwise;
/// most mistakes need one or two (Musuvathi and Qadeer 2007).
const PREEMPTIONS: usize = 3;

/// What is checked of some words.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// What holds, as a sentence.
    pub property: &'static str,
    /// Goes through every order; panics where the property does not hold. Returns how many there
    /// were.
    pub run: fn() -> u64,
}

/// Goes through the orders of `body`, which starts threads of loom; how many there were.
pub(crate) fn in_every_order(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let orders = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&orders);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        body();
    });
    orders.load(Ordering::Relaxed)
}

/// What became of some models and their mutants.
#[derive(Clone, Debug, Default)]
pub struct Result {
    /// Mistakes that a model has noticed.
    pub noticed: BTreeSet<Mutant>,
    /// Mistakes that none has noticed so far.
    pub unnoticed: BTreeSet<Mutant>,
}

/// Runs a model as it is, and with every mistake that none has noticed before: those in processes
/// of their own, of this very program (`child`), because loom may end a process whose threads it
/// cannot clean up. Returns in how many orders the model was run as it is.
///
/// # Panics
/// When the property of the model does not hold, or the program does not start.
pub fn run(model: &Model, program: &Path, result: &mut Result) -> u64 {
    let (orders, mutants) = weaken::collect(model.run);
    for mutant in mutants {
        if result.noticed.contains(&mutant) {
            continue;
        }
        let mut child = Command::new(program);
        child.arg(model.property).args(mutant.words());
        child.stdout(Stdio::null()).stderr(Stdio::null());
        let ended = child.status().expect("this program starts");
        if was_noticed(ended) {
            result.unnoticed.remove(&mutant);
            result.noticed.insert(mutant);
        } else {
            result.unnoticed.insert(mutant);
        }
    }
    orders
}

/// Whether a process ended by a panic, or by an abort in the middle of one. Any other end says
/// nothing of the mistake.
///
/// # Panics
/// On any other end but success.
fn was_noticed(ended: ExitStatus) -> bool {
    const PANIC: i32 = 101;
    const ABORT: i32 = 6;
    let noticed = ended.code() == Some(PANIC) || ended.signal() == Some(ABORT);
    assert!(
        noticed || ended.success(),
        "a model with a mistake ended neither well nor by noticing it: {ended}"
    );
    noticed
}

/// What a process that was started by [`run`] does: the model with the mistake that the arguments
/// name. Panics when it is noticed. `None`: they name none.
pub fn child(arguments: &[String]) -> Option<()> {
    let (property, mutant) = arguments.split_first()?;
    let model = crate::models().find(|model| model.property == property)?;
    weaken::make(Mutant::read(mutant)?);
    (model.run)();
    Some(())
}
