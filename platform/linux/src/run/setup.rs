//! What a carrier does before and after it carries: its class, signals, timer, and light threads.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use punctual_kern::{NodeId, Policy, Sink};
use punctual_linux_io::Ring;
use punctual_model::ThreadId;
use punctual_switch::instructions::read_thread_pointer;
use punctual_switch::{Control, DispatchRecord};

use crate::entry::child::{self, Child};
use crate::entry::cpu::{Core, Cpu, by_policy};
use crate::entry::give_back::Owed;
use crate::entry::missing::MissingTime;
use crate::record::input::{ChildInput, CpuInput, GiveBack, RunError, RunOptions, ThreadInput};
use crate::record::light::{Light, Phase};
use crate::record::local::local;
use crate::record::outcome::{CpuOutcome, Loss, Mode, Panic};
use crate::record::per_cpu::{ByPolicy, PerCpu, Shared};
use crate::record::pool::{Stage, discard};
use crate::record::text::LibraryText;
use crate::run::carrier::{end_threads, run_loop, start_threads};
use crate::run::life::main;
use crate::storage::stack::{AlternateStack, Stack};
use crate::storage::tls::{Library, Storage};
use crate::sys::{self, HostClass, SwitchLog, SwitchWatch};
use crate::time::clock::{Clock, clock_rate};

/// What a carrier is given.
pub(crate) struct CarrierInput<P, S> {
    pub(crate) index: usize,
    pub(crate) cpu: CpuInput<P, S>,
    pub(crate) options: RunOptions,
    pub(crate) signal: i32,
    pub(crate) library: Library,
    pub(crate) shared: Arc<Shared>,
}

/// A carrier is ready to start.
pub(crate) struct Ready {
    pub(crate) real_time: bool,
    /// The kernel tells when it lets somebody else on to the CPU.
    pub(crate) watched: bool,
    /// It tells who that is.
    pub(crate) told: bool,
    pub(crate) lost: Vec<Loss>,
}

/// All carriers are ready: go.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) clock: Clock,
    pub(crate) mode: Mode,
}

/// The life of a carrier. `None`: the run was given up before its start.
pub(crate) fn carrier<P, S>(
    input: CarrierInput<P, S>,
    ready: &Sender<Result<Ready, RunError>>,
    start: &Receiver<Start>,
) -> Option<(CpuOutcome<S>, Vec<Panic>)>
where
    P: Policy + Send + 'static,
    S: Sink + Send + 'static,
{
    let (index, shared) = (input.index, Arc::clone(&input.shared));
    let gives_back = input.options.give_back;
    let Prepared { said, cpu, lights } = match prepare(input) {
        Ok(prepared) => prepared,
        Err(error) => {
            // The caller waits for this; when it does not any more, there is nobody to tell.
            let _ = ready.send(Err(error));
            return None;
        }
    };
    let host = cpu.cast::<PerCpu>().cast_const();
    // SAFETY: the CPU is alive until it is taken apart below. This reference is shared with light
    // threads and signals: only cells and atomics of the host are used through it.
    let shared_cpu = unsafe { &*cpu };
    let threads: Vec<*const Light> = lights.iter().map(|l| &raw const **l).collect();
    shared_cpu.host.gate.close();
    local(|l| l.host.set(host));
    let alternate = AlternateStack::install();
    // SAFETY: this is the carrier, with the gate closed; the threads are new.
    unsafe { start_threads(host, &threads) };
    let sent = ready.send(Ok(said)).is_ok();
    let start = start.recv().ok().filter(|_| sent);
    if let Some(start) = start {
        let gives_back = match start.mode {
            Mode::RealTime => gives_back,
            Mode::BestEffort => GiveBack::Nothing,
        };
        // SAFETY: gate closed, and nobody else borrows the core before the first entry.
        unsafe { (*shared_cpu.core()).begin(&shared_cpu.host, gives_back, start.clock) };
        shared_cpu.host.set_clock(start.clock);
        shared.post.register(index, sys::current_thread());
        // SAFETY: this is the carrier, with the gate closed and no reference into the core alive.
        unsafe { run_loop::<P, S>(host) };
    }
    shared_cpu.host.timer.disarm();
    // SAFETY: as above; the run is over.
    let abandoned = unsafe { end_threads(host, &threads) };
    // From here on a late timer signal finds no host and returns (rule 4 of design note 0004).
    local(|l| l.host.set(core::ptr::null()));
    drop(alternate);
    shared_cpu.finish_counters();
    let counters = shared_cpu.host.counters.get();
    let spawned = shared_cpu.host.pool.spawned();
    let taken = shared_cpu.host.takers.take();
    if let Ok(mut all) = shared.taken.lock() {
        all.push((index, taken));
    }
    let held_up = shared_cpu.host.held_up();
    let waits = lights.iter().filter_map(|light| loss_of(light)).collect();
    let panics = reap(index, lights);
    // SAFETY: it came from a box; threads that were abandoned never run again, so nobody uses it.
    let sink = unsafe { Box::from_raw(cpu) }.into_sink();
    let outcome = CpuOutcome {
        sink,
        counters,
        abandoned,
        spawned,
        waits,
        takers: Vec::new(),
        held_up,
    };
    start.map(|_| (outcome, panics))
}

/// What a thread that waited inside the kernel cost the others.
fn loss_of(light: &Light) -> Option<Loss> {
    let (times, call) = light.waits();
    let call = call.map_or_else(String::new, |number| format!(" (number {number})"));
    (times > 0).then(|| Loss {
        what: "blocking calls",
        detail: format!(
            "`{}` stopped its CPU in a system call{call}, seen {times} times",
            light.name()
        ),
    })
}

/// Frees what has finished and leaks what has not (INV-L1 of `light`).
#[allow(clippy::vec_box)] // Their addresses are known to the CPU and to the threads themselves.
fn reap(cpu: usize, lights: Vec<Box<Light>>) -> Vec<Panic> {
    let mut panics = Vec::new();
    for light in lights {
        if light.phase.get() != Phase::Finished {
            Box::leak(light);
        } else if light.pooled.stage.get() != Stage::NotPooled {
            // What it said has been kept; what nobody began or took is dropped here.
            discard(&light.pooled);
        } else if let Some(message) = light.take_panic() {
            let (thread, name) = (light.id(), light.name().to_owned());
            panics.push(Panic {
                cpu,
                thread,
                name,
                message,
            });
        }
    }
    panics
}

/// A carrier's CPU and threads. The CPU is behind a raw pointer, from a box: light threads and
/// signals reach it by address, which a box would claim for itself.
#[allow(clippy::vec_box)] // As for `reap`.
struct Prepared<P, S> {
    said: Ready,
    cpu: *mut Cpu<P, S>,
    lights: Vec<Box<Light>>,
}

/// Everything that can fail, before the run starts.
fn prepare<P, S>(input: CarrierInput<P, S>) -> Result<Prepared<P, S>, RunError>
where
    P: Policy + Send + 'static,
    S: Sink + Send + 'static,
{
    let system = |what: &'static str| move |error| RunError::System { what, error };
    let CarrierInput {
        index,
        cpu: input,
        options,
        signal,
        library,
        shared,
    } = input;
    sys::pin(None, &[input.host]).map_err(system("pin a kernel thread to its CPU"))?;
    sys::sharpen_sleep();
    sys::block_signals_except(signal);
    let mut said = take_class(&options);
    let timer = sys::Timer::try_new(signal).map_err(system("create a timer"))?;
    let clock = Clock::starting_in(clock_rate(), 0);
    let watch = SwitchWatch::try_new().unwrap_or_else(|_| SwitchWatch::of_nobody());
    let switches = SwitchLog::try_new(input.host).unwrap_or_else(|_| SwitchLog::of_nobody());
    said.watched = watch.is_on();
    said.told = switches.is_on();
    let frame = options.frames.get(index).cloned().flatten();
    let mut host = PerCpu::new(
        index,
        entries::<P, S>(frame.is_some(), clock),
        clock,
        shared,
        LibraryText::find(),
        timer,
        (watch, switches),
        DispatchRecord::running(read_thread_pointer(), Control::Kept),
        input.resources,
    );
    host.questions().note_account(host.account.read());
    host.limits.sample(&clock, options.sample_ns);
    host.allow_early(options.early_ns);
    host.divide(frame);
    // SAFETY: nobody else knows the host yet.
    unsafe { *host.ring.get() = make_ring(input.host, &mut said) };
    let home = host.shared.number << 16 | index as u64;
    let has_one_home = input.shard.tree().capacity().nodes == 0;
    host.pool.set_up(home, has_one_home, options.spawned);
    let mut core = Core::new(input.shard, input.sink, input.arrivals, &options);
    core.plan = input.plan;
    core.threads.resize(core.shard.places(), core::ptr::null());
    let (nodes, children) = make_children::<P, S>(input.children);
    let threads = input.threads.into_iter().chain(children).collect();
    let cpu = Box::into_raw(Cpu::new(host, core));
    let made = make_threads(cpu.cast::<PerCpu>(), threads, &options, library);
    match made {
        Ok(lights) => {
            let of_children = lights.iter().filter(|light| is_child(light.id()));
            let paired = nodes.iter().zip(of_children);
            let children = paired
                .map(|(&node, light)| Child::new(node, light))
                .collect();
            // SAFETY: alive, and nobody else knows it yet.
            let shared_cpu = unsafe { &*cpu };
            for light in lights.iter().rev().filter(|light| light.is_free()) {
                shared_cpu.host.pool.put(light);
            }
            for light in lights.iter().filter(|light| !is_child(light.id())) {
                // SAFETY: nobody borrows the core before the run.
                unsafe { (*shared_cpu.core()).set_thread(light) };
            }
            // SAFETY: as above.
            unsafe { (*shared_cpu.core()).children = children };
            let addresses = lights.iter().map(|l| &raw const **l).collect();
            // SAFETY: nobody looks at the list before the run.
            unsafe { *shared_cpu.host.lights.get() = addresses };
            Ok(Prepared { said, cpu, lights })
        }
        Err(error) => {
            // SAFETY: it came from a box, and nobody uses it.
            drop(unsafe { Box::from_raw(cpu) });
            Err(error)
        }
    }
}

/// The entries of a CPU, which divides time or does not, and where a switch takes no call of the
/// kernel or does.
fn entries<P: Policy + 'static, S: Sink>(divides: bool, clock: Clock) -> ByPolicy {
    let is_swift = clock.is_counter() && sys::can_write_thread_pointer();
    match (divides, is_swift) {
        (true, true) => by_policy::<P, S, true, true>(),
        (true, false) => by_policy::<P, S, true, false>(),
        (false, true) => by_policy::<P, S, false, true>(),
        (false, false) => by_policy::<P, S, false, false>(),
    }
}

/// What blocking calls go through, if the kernel has it.
fn make_ring(host: u32, said: &mut Ready) -> Option<Ring> {
    let refused = |error| {
        said.lost.push(Loss {
            what: "io_uring",
            detail: format!("a call that blocks stops its whole CPU ({error})"),
        });
    };
    Ring::try_new(host).map_err(refused).ok()
}

/// The light threads of children have numbers that no thread of a shard has.
const FIRST_CHILD: u32 = 1 << 31;

fn is_child(id: ThreadId) -> bool {
    id.index() >= FIRST_CHILD as usize
}

/// Children as light threads, and which scheduler each is.
fn make_children<P, S>(children: Vec<ChildInput>) -> (Vec<NodeId>, Vec<ThreadInput>)
where
    P: Policy + 'static,
    S: Sink + 'static,
{
    let numbered = (FIRST_CHILD..).zip(children);
    let as_thread = |(number, ChildInput { name, code }): (u32, ChildInput)| {
        let (node, id) = (code.node(), ThreadId::new(number, 0));
        let body = child::body::<P, S>(code);
        (node, ThreadInput { id, name, body })
    };
    numbered.map(as_thread).unzip()
}

#[allow(clippy::vec_box)] // As for `reap`.
fn make_threads(
    host: *const PerCpu,
    inputs: Vec<ThreadInput>,
    options: &RunOptions,
    library: Library,
) -> Result<Vec<Box<Light>>, RunError> {
    let refused = |what| move |error| RunError::System { what, error };
    let mut lights = Vec::with_capacity(inputs.len() + options.pool);
    let given = inputs
        .into_iter()
        .map(|input| (input.id, input.name, Some(input.body)));
    let pooled = (0..options.pool).map(|_| (ThreadId::new(u32::MAX, 0), String::new(), None));
    for (id, name, body) in given.chain(pooled) {
        let first = match options.lock_stacks {
            true => usize::MAX,
            false => Stack::first_bytes(options.stack_bytes),
        };
        let stack = Stack::with_first(options.stack_bytes, first);
        let stack = stack.map_err(refused("map a stack"))?;
        let storage = Storage::try_new(library)
            .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::OutOfMemory))
            .map_err(refused("allocate thread-local storage"))?;
        lights.push(Light::new(
            host, id, &name, body, stack, storage, library, main,
        ));
    }
    Ok(lights)
}

fn take_class(options: &RunOptions) -> Ready {
    let mut lost = Vec::new();
    let mut real_time = false;
    if options.real_time {
        match sys::set_host_class(None, HostClass::fifo(options.priority)) {
            Ok(()) => real_time = true,
            Err(error) => lost.push(Loss {
                what: "SCHED_FIFO",
                detail: format!("other threads of this machine come in between ({error})"),
            }),
        }
    }
    Ready {
        real_time,
        watched: false,
        told: false,
        lost,
    }
}

impl<P: Policy, S: Sink> Core<P, S> {
    /// The run gets its origin.
    fn begin(&mut self, host: &PerCpu, gives_back: GiveBack, clock: Clock) {
        self.missing = MissingTime::starting(clock, &host.watch);
        self.owed = Owed::new(gives_back, &clock);
    }
}
