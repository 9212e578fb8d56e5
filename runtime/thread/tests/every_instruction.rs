//! What threads share, preempted at every instruction of its use.
//!
//! In each scene two threads use one thing together. One of them is stepped (trap flag): the
//! preemption signal of the run comes at each instruction of its calls that has not been
//! interrupted yet, of the core and the policy too, until a round meets no new one. Under the
//! policies of a CPU such a signal is an entry after which the same thread goes on; under one more,
//! which gives the processor to somebody else at every entry, the other thread makes its own calls
//! in between, at each of these places. Nothing may be lost, given twice, or had by two at a time.
//!
//! Release builds cover every instruction; debug builds, which execute twenty times as many, those
//! of a few rounds. At every stop INV-1 to INV-6 are looked at in the records of all threads.

mod common;
mod scenes;
#[path = "../../../platform/linux/tests/common/stepped.rs"]
mod stepped;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex as HostMutex};

use common::{FIXED, alone, test_cpu};
use punctual_kern::{Attributes, NoSink, Pick, Plan, Policy, ReadyQueue, SlotTerms};
use punctual_linux::{Body, CpuInput, JobInfo, RunOptions, ThreadInput, clock_rate, job, run};
use punctual_model::{
    Class, Cpu, CpuId, Instant, Ns, PolicyKind, Span, System, Task, ThreadId, Work,
};
use punctual_policy::AnyPolicy;
use punctual_switch::stepping;
use punctual_tables::Tables;
use scenes::{SCENES, Scene, TORN, Things};
use stepped::{Covered, everywhere_else};

/// Rounds of a debug build.
const SAMPLED: u64 = 1;

/// A round has a few thousand steps. On a busy machine an entry that is stepped takes longer than
/// what it arms; such rounds would go on and on.
const STEPS: u64 = 12_000;

/// For how many turns the other thread holds what it has: with two instructions of the driving
/// thread in between, or three.
const HOLDS: [u32; 2] = [2, 3];

/// Whoever has executed goes behind everybody else: each entry of the scheduler is a switch.
#[derive(Debug)]
struct Contrary {
    ready: ReadyQueue<u64>,
    turns: u64,
}

impl Contrary {
    fn last(&mut self, thread: ThreadId) {
        self.turns += 1;
        self.ready.insert(thread, self.turns);
    }
}

impl Policy for Contrary {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.last(thread);
    }
    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
    }
    fn update(&mut self, _: ThreadId, _: &Attributes) {}
    fn charge(&mut self, thread: ThreadId, _: Work) {
        if self.ready.first().is_some_and(|(first, _)| first == thread) {
            self.last(thread);
        }
    }
    fn pick(&mut self, _: Instant) -> Pick {
        let first = self.ready.first();
        first.map_or(Pick::NOBODY, |(thread, _)| Pick::run(thread))
    }
}

/// Ends the run, also when something was found.
struct Ends(Arc<AtomicBool>, Arc<Things>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.1.over.store(true, Relaxed);
        self.0.store(true, Relaxed);
    }
}

/// What the threads of a scene do: the one that is stepped, the other, and one that has nothing to
/// do but to be there.
fn bodies(
    scene: &'static Scene,
    stop: &Arc<AtomicBool>,
) -> (Vec<Body>, Arc<Things>, Arc<HostMutex<Covered>>) {
    let things = Arc::new(Things::default());
    let covered = Arc::new(HostMutex::new(Covered::default()));
    let (kept, ends) = (
        Arc::clone(&covered),
        (Arc::clone(stop), Arc::clone(&things)),
    );
    let (driving, contending, idling) = (
        Arc::clone(&things),
        Arc::clone(&things),
        Arc::clone(&things),
    );
    let drives: Body = Box::new(move |_: &JobInfo| {
        let _ends = Ends(Arc::clone(&ends.0), Arc::clone(&ends.1));
        driving.prepare();
        let found = everywhere_else(SAMPLED, |_, place| {
            place.begin();
            let done = (scene.drive)(&driving);
            place.end();
            done.expect("in a run");
            driving.rounds.add();
            assert_eq!(driving.found(), None);
            // The other's turn in any case.
            driving.give_way();
        });
        driving.finish();
        *kept.lock().expect("one writer") = found;
    });
    let contends: Body = Box::new(move |_: &JobInfo| {
        contending.enter();
        // An error says that the run is over.
        while !contending.over.load(Relaxed) && (scene.contend)(&contending).is_ok() {
            contending.turns.add();
            contending.give_way();
        }
        contending.leave();
    });
    let idles: Body = Box::new(move |_: &JobInfo| {
        while idling.hold.get() > 0 && !idling.over.load(Relaxed) {
            job::yield_now();
        }
    });
    (vec![drives, contends, idles], things, covered)
}

/// Flies a scene; what it covered, and what was found wrong. `turns`: see [`Things::hold`].
fn flown<P: Policy + Send + 'static>(
    scene: &'static Scene,
    policy: PolicyKind<Ns>,
    make: impl Fn(PolicyKind, usize, &[SlotTerms]) -> P,
    turns: u32,
) -> (Covered, Option<String>) {
    let _alone = alone();
    // Stepped code is a thousand times slower: what is due soon would always be due. So the jobs do
    // not end, and their budgets neither.
    let endless = Span::from_ms(3_600_000);
    let class = Class::Periodic {
        period: endless,
        wcet: endless.as_work(),
        relative_deadline: endless,
    };
    let names = ["drives", "contends", "idles"];
    let system = System {
        cpus: vec![Cpu {
            name: "0".to_owned(),
            host: None,
            policy,
        }],
        tasks: names.map(|name| Task::new(name, CpuId(0), class)).into(),
        ..System::default()
    };
    let tables = Tables::new(&system, clock_rate().frequency);
    let options = RunOptions {
        duration_ns: Some(240_000_000_000),
        real_time: false,
        ..RunOptions::default()
    };
    let (bodies, things, covered) = bodies(scene, &options.stop);
    things.hold.set(turns);
    let thread = |(index, (name, body)): (u32, (&str, Body))| ThreadInput {
        id: ThreadId::new(index, 0),
        name: name.to_owned(),
        body,
    };
    let cpu = CpuInput {
        host: test_cpu(),
        name: "0".to_owned(),
        shard: tables.cpus[0].build(make).expect("a valid system"),
        sink: NoSink,
        threads: (0..)
            .zip(names.into_iter().zip(bodies))
            .map(thread)
            .collect(),
        children: Vec::new(),
        resources: Vec::new(),
        arrivals: Vec::new(),
        plan: Plan::default(),
    };
    let outcome = run(vec![cpu], &options).expect("a run");
    let panics = outcome.panics.iter().map(|panic| panic.message.clone());
    let found = panics.chain(things.judged()).next();
    let covered = core::mem::take(&mut *covered.lock().expect("one writer"));
    let found = found.or((covered.rounds == 0).then(|| "it did not come to its end".to_owned()));
    (covered, found)
}

fn contrary(_: PolicyKind, capacity: usize, _: &[SlotTerms]) -> Contrary {
    Contrary {
        ready: ReadyQueue::new(capacity),
        turns: 0,
    }
}

/// Flies all scenes and says what they covered.
fn fly_all(name: &str, fly: impl Fn(&'static Scene) -> (Covered, Option<String>)) {
    stepping::forget();
    stepping::stop_after(STEPS);
    let (mut interrupted, mut boundaries) = (0, 0);
    for scene in &SCENES {
        let (covered, found) = fly(scene);
        assert_eq!(found, None, "{name}, {}", scene.name);
        println!("{name}, {}: {covered}", scene.name);
        interrupted += covered.interrupted;
        boundaries += covered.boundaries;
    }
    assert!(interrupted > 1_000, "{interrupted}");
    println!(
        "{name}: {interrupted} instructions interrupted, INV-1 to INV-6 held at all {boundaries} \
         boundaries"
    );
}

#[test]
fn what_threads_share_survives_a_preemption_at_every_instruction_under_every_policy() {
    let policies = [
        FIXED,
        PolicyKind::FixedPriority { preemptive: false },
        PolicyKind::EarliestDeadlineFirst,
        PolicyKind::Fifo,
        PolicyKind::RoundRobin {
            timeslice: Span::from_ms(200),
        },
    ];
    for policy in policies {
        fly_all(&format!("{policy:?}"), |scene| {
            flown(scene, policy, AnyPolicy::new, 0)
        });
    }
}

#[test]
fn what_threads_share_survives_a_switch_at_every_instruction() {
    for turns in HOLDS {
        fly_all(
            &format!("a switch at every entry, {turns} in a hold"),
            |scene| flown(scene, FIXED, contrary, turns),
        );
    }
}

#[test]
fn a_lock_that_looks_before_it_takes_is_caught() {
    let fly = |turns| {
        stepping::forget();
        stepping::stop_after(STEPS);
        let (covered, found) = flown(&TORN, FIXED, contrary, turns);
        println!("{covered}: {found:?}");
        found
    };
    // Where the two meet differs from flight to flight.
    assert!((1..=3).cycle().take(30).any(|turns| fly(turns).is_some()));
}
