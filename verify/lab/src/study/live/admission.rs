//! Two members on two CPUs that have themselves admitted, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_gang::{
    Admission, Attached, Form, Gang, LocalScheduler, Member, Operation, Outcome, Progress, Stage,
    Step, Wait,
};
use punctual_model::{Machine, Span, Work};
use punctual_thread::{Constraint, Runtime, Thread, thread};

use super::{LIMIT, LONGEST, POLICY, Told, two_cpus};
use crate::answers::Row;
use crate::gang_admission::{GANGS, STEPS, row};

/// The members of a gang on this machine.
const MEMBERS: usize = 2;

/// The period of the thread whose constraint changes.
const PERIOD: Span<punctual_model::Ns> = Span::from_ms(2);

/// The gangs of a member, one for each turn.
#[derive(Clone)]
struct Turns {
    gangs: Arc<Vec<Gang>>,
    over: Arc<AtomicBool>,
}

/// The instants of one admission, in nanoseconds of the run.
type Steps = [u64; STEPS.len()];

/// The scheduler of this CPU: it changes the constraint of a thread.
struct Local<'a> {
    thread: &'a Thread<()>,
    took: u64,
}

fn now() -> u64 {
    thread::now().map_or(0, |now| now.as_ns())
}

impl LocalScheduler for Local<'_> {
    fn admit(&mut self, constraint: &Attached) -> Result<(), u32> {
        let begin = now();
        let slice = Work::from_ns(constraint[0]);
        let asked = Constraint::reservation(PERIOD, slice).priority(5);
        let admitted = self.thread.change(asked).map_err(|_| 1);
        self.took = now() - begin;
        admitted
    }

    fn readmit(&mut self) {}

    fn correct_phase(&mut self, _order: usize, _members: usize) {}
}

/// Rows of so many admissions in each form.
pub(super) fn unit(rounds: u64) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (form, name) in [(Form::Linear, "linear"), (Form::Tree, "tree")] {
        let all = admissions(form, usize::try_from(rounds).unwrap_or(1))?;
        for (place, step) in STEPS.iter().enumerate() {
            let values: Vec<u64> = all.iter().map(|steps| steps[place]).collect();
            let name = format!("{step}, {name}, {}", GANGS[0]);
            rows.push(row(&name, MEMBERS as u64, &values));
        }
    }
    Ok(rows)
}

fn admissions(form: Form, rounds: usize) -> Result<Vec<Steps>, String> {
    let gangs: Result<Vec<Gang>, _> = (0..rounds).map(|_| Gang::new(MEMBERS, form, 1)).collect();
    let turns = Turns {
        gangs: Arc::new(gangs.map_err(|error| error.to_string())?),
        over: Arc::default(),
    };
    let [first, second] = two_cpus()?;
    let (theirs, (teller, told)) = (turns.clone(), Told::both());
    let runtime = Runtime::on(first, POLICY)
        .terms(Machine::default())
        .at_most(LONGEST)
        .main(Constraint::aperiodic(1))
        .and(second, POLICY, move || teller.tell(member(&theirs)));
    let both = runtime.start(move || (member(&turns), told.hear()));
    let (ours, theirs) = both.map_err(|error| error.to_string())?.result;
    let mut all = ours?;
    all.extend(theirs??);
    Ok(all)
}

/// All turns of one member.
fn member(turns: &Turns) -> Result<Vec<Steps>, String> {
    let over = Arc::clone(&turns.over);
    let body = move || {
        while !over.load(Ordering::Relaxed) && thread::wait_next_period().is_ok() {}
    };
    let first = Constraint::reservation(PERIOD, Work::from_us(100)).priority(5);
    let thread = thread::spawn("member", first, body).map_err(|error| error.to_string())?;
    let (mut all, mut parties) = (Vec::new(), Vec::new());
    let mut failed = None;
    for (turn, gang) in turns.gangs.iter().enumerate() {
        match admission(gang, &thread, turn) {
            Ok((steps, party)) => {
                all.push(steps);
                // To leave would break the gang for the other one, who may still be inside.
                parties.push(party);
            }
            Err(what) => {
                failed = Some(what);
                break;
            }
        }
        // Until the former constraint counts no more.
        thread::sleep(Span::from_ns(3 * PERIOD.as_ns()));
    }
    turns.over.store(true, Ordering::Relaxed);
    let ended = thread
        .join_within(LIMIT)
        .map_err(|(error, _)| format!("{error:?}"));
    failed.map_or(ended.map(|()| all), Err)
}

fn admission<'g>(
    gang: &'g Gang,
    thread: &Thread<()>,
    turn: usize,
) -> Result<(Steps, Member<&'g Gang>), String> {
    let slice = if turn.is_multiple_of(2) {
        200_000
    } else {
        100_000
    };
    let mut admission = Admission::new([slice; 8]);
    let mut local = Local { thread, took: 0 };
    let begun = now();
    let mut member = Member::join(gang).map_err(|error| error.to_string())?;
    let joined = now();
    // The first one waits for the other: that is no part of an election.
    loop {
        match member.step(Operation::Barrier) {
            Step::More => {}
            Step::Wait(wait) => spin(&mut member, wait),
            Step::End(Outcome::Done(_)) => break,
            Step::End(Outcome::Broken(broken)) => return Err(format!("{broken:?}")),
        }
    }
    let met = now();
    let [mut elected, mut reduced, mut released] = [0; 3];
    let over = loop {
        let before = admission.stage();
        let progress = admission.step(&mut member, &mut local);
        match (before, admission.stage()) {
            (Stage::Election, Stage::LockAndAttach | Stage::Barrier) => elected = now(),
            (Stage::Reduction, Stage::FinalBarrier) => reduced = now(),
            (Stage::FinalBarrier, Stage::PhaseCorrection) => released = now(),
            _ => {}
        }
        match progress {
            Progress::More => {}
            Progress::Wait(wait) => spin(&mut member, wait),
            Progress::End(punctual_gang::Admitted::All { .. }) => break now(),
            Progress::End(end) => return Err(format!("it is not admitted: {end:?}")),
        }
    };
    let steps = [
        joined - begun,
        elected - met,
        reduced - elected,
        released - reduced,
        local.took,
        over - met,
    ];
    Ok((steps, member))
}

fn spin(member: &mut Member<&Gang>, wait: Wait) {
    let begin = now();
    while member.gang().look(wait.word) == wait.seen {
        if now() - begin > LIMIT.as_ns() {
            let _named = member.accuse();
            return;
        }
        std::hint::spin_loop();
    }
}
