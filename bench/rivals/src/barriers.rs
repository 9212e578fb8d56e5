//! Barriers of two threads on two CPUs: of the C library, of OpenMP, of MPI.
//!
//! One unit is one barrier of both. Those of OpenMP and MPI are measured in a process of their own
//! ([`is_answered`]): how OpenMP waits is read once, when its library is loaded.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libloading::Library;
use libloading::os::unix::{Library as Global, RTLD_GLOBAL, RTLD_NOW};

use crate::Samples;
use crate::alone::{Alone, answered, ask};
use crate::call::check_number;
use crate::thread::{Place, finish, on, start};

/// Barriers of one batch.
const ROUNDS: u32 = 50;
/// Batches of one figure.
const BATCHES: usize = if cfg!(debug_assertions) { 20 } else { 1_000 };
/// The longest that one figure takes.
const AT_MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 200 } else { 1_000 });

/// Batches of barriers that two parties pass alike: the first one keeps the times, and says before
/// the last barrier of a batch whether another batch follows.
fn pass(is_first: bool, over: &AtomicBool, mut barrier: impl FnMut()) -> Vec<f64> {
    let mut samples = Vec::new();
    let started = Instant::now();
    let mut batch = 0;
    loop {
        let start = Instant::now();
        for round in 1..=ROUNDS {
            if round == ROUNDS && is_first {
                let is_last = batch >= BATCHES || started.elapsed() > AT_MOST;
                over.store(is_last, Ordering::Release);
            }
            barrier();
        }
        // The first batch warms up.
        if is_first && batch > 0 {
            samples.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
        }
        batch += 1;
        // Nobody may say something else before both have read this.
        let is_over = over.load(Ordering::Acquire);
        barrier();
        if is_over {
            return samples;
        }
    }
}

/// A barrier of the C library, in its place.
struct Barrier(UnsafeCell<libc::pthread_barrier_t>);

// SAFETY: a barrier is made to be waited for by several threads, and stays in its place.
unsafe impl Send for Barrier {}
// SAFETY: as above.
unsafe impl Sync for Barrier {}

impl Barrier {
    fn wait(&self) {
        // SAFETY: it was initialized, and lives as long as anybody has it.
        let _serial = unsafe { libc::pthread_barrier_wait(self.0.get()) };
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        // SAFETY: it was initialized, and nobody else has it any more.
        let _ = unsafe { libc::pthread_barrier_destroy(self.0.get()) };
    }
}

/// `pthread_barrier_wait`.
///
/// # Errors
/// Without a second CPU.
pub fn pthread(place: Place) -> Samples {
    let other = place.other.ok_or("it takes two CPUs")?;
    // SAFETY: a barrier is plain numbers, initialized by the next call.
    let barrier = Arc::new(Barrier(UnsafeCell::new(unsafe { zeroed() })));
    // SAFETY: it lives in its place until the last user is gone.
    let made = unsafe { libc::pthread_barrier_init(barrier.0.get(), null(), 2) };
    check_number("pthread_barrier_init", made)?;
    let over = Arc::new(AtomicBool::new(false));
    let (theirs, told) = (Arc::clone(&barrier), Arc::clone(&over));
    let second = start(place, other, move || {
        drop(pass(false, &told, || theirs.wait()))
    })?;
    let samples = on(place, move || Ok(pass(true, &over, || barrier.wait())));
    finish(second)?;
    samples
}

/// How the threads of an OpenMP program wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// They spin.
    Active,
    /// They give their CPU away.
    Passive,
}

/// The barrier of a parallel region of two threads, of the library with this file name.
///
/// # Errors
/// Without a second CPU or the library.
pub fn openmp(library: &'static str, waiting: Waiting, place: Place) -> Samples {
    let other = place.other.ok_or("it takes two CPUs")?;
    let policy = match waiting {
        Waiting::Active => "active",
        Waiting::Passive => "passive",
    };
    let places = format!("{{{}}},{{{other}}}", place.cpu);
    let alone = Alone {
        rival: format!("openmp {library}"),
        real_time: place.real_time,
        environment: vec![
            ("OMP_WAIT_POLICY", policy.to_owned()),
            ("OMP_PROC_BIND", "true".to_owned()),
            ("OMP_PLACES", places),
            ("OMP_DYNAMIC", "false".to_owned()),
        ],
        starter: None,
    };
    ask(&alone)
}

/// The things that both threads of a parallel region share.
struct Region<'a> {
    number: unsafe extern "C" fn() -> c_int,
    barrier: unsafe extern "C" fn(),
    over: AtomicBool,
    samples: &'a Mutex<Vec<f64>>,
}

extern "C" fn in_region(data: *mut c_void) {
    // SAFETY: it lives until the parallel region is over, which is behind every call of this.
    let region = unsafe { &*data.cast::<Region<'_>>() };
    // SAFETY: it is called inside of a parallel region of its library.
    let is_first = unsafe { (region.number)() } == 0;
    let samples = pass(is_first, &region.over, || {
        // SAFETY: both threads of the region call it equally often.
        unsafe { (region.barrier)() };
    });
    if is_first {
        *region
            .samples
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = samples;
    }
}

type Parallel = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);

/// In a process of its own: the barriers of a parallel region of the library with this name.
fn parallel_region(library: &str) -> Samples {
    // SAFETY: the libraries of OpenMP have no requirements for being loaded.
    let loaded = unsafe { Library::new(library) }.map_err(|error| format!("{library}: {error}"))?;
    let missing = |error: libloading::Error| format!("{library}: {error}");
    // SAFETY: GCC's ABI of OpenMP, which both libraries keep.
    let parallel = unsafe { loaded.get::<Parallel>(b"GOMP_parallel\0") }.map_err(missing)?;
    // SAFETY: as above.
    let barrier = unsafe { loaded.get(b"GOMP_barrier\0") }.map_err(missing)?;
    // SAFETY: OpenMP, omp_get_thread_num.
    let number = unsafe { loaded.get(b"omp_get_thread_num\0") }.map_err(missing)?;
    let samples = Mutex::new(Vec::new());
    let mut region = Region {
        number: *number,
        barrier: *barrier,
        over: AtomicBool::new(false),
        samples: &samples,
    };
    // SAFETY: the words outlive the region, and its function keeps its requirements.
    unsafe { parallel(in_region, (&raw mut region).cast(), 2, 0) };
    let samples = samples.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Threads of its pool may still execute code of the library.
    core::mem::forget(loaded);
    Ok(samples)
}

/// Whether this process was started to measure one of these barriers, which it has done then: it
/// should end with this success. A program that measures them calls this before anything else.
pub fn is_answered() -> Option<bool> {
    answered(|rival| match rival.split_once(' ') {
        Some(("openmp", library)) => parallel_region(library),
        _ if rival == "mpi" => world(),
        _ => Err(format!("no barrier is called `{rival}`")),
    })
}

/// The barrier of two processes, by a packaged implementation of MPI.
///
/// # Errors
/// Without a second CPU, `mpirun` or a library.
pub fn mpi(place: Place) -> Samples {
    let _other = place.other.ok_or("it takes two CPUs")?;
    let alone = Alone {
        rival: "mpi".to_owned(),
        real_time: place.real_time,
        environment: vec![
            ("OMPI_ALLOW_RUN_AS_ROOT", "1".to_owned()),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".to_owned()),
        ],
        starter: Some(("mpirun", vec!["-n", "2"])),
    };
    ask(&alone)
}

/// File names of libraries of MPI: Open MPI, MPICH.
const MPI: [&str; 3] = ["libmpi.so.40", "libmpi.so", "libmpich.so.12"];

/// MPICH's name of all processes.
const WORLD_OF_MPICH: usize = 0x4400_0000;

/// In a process of its own, with another one beside it: the barriers of both. The second one has no
/// samples.
fn world() -> Samples {
    let load = |name: &&str| {
        // SAFETY: a library of MPI has no requirements for being loaded; its parts look for its
        // names in the whole process.
        unsafe { Global::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }.ok()
    };
    let library = MPI
        .iter()
        .find_map(load)
        .ok_or("there is no library of MPI")?;
    let missing = |error: libloading::Error| error.to_string();
    type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
    type Rank = unsafe extern "C" fn(*const c_void, *mut c_int) -> c_int;
    type Barrier = unsafe extern "C" fn(*const c_void) -> c_int;
    type Finalize = unsafe extern "C" fn() -> c_int;
    // SAFETY: MPI 3.1, §8.7.
    let init = unsafe { library.get::<Init>(b"MPI_Init\0") }.map_err(missing)?;
    // SAFETY: §6.4.1; a communicator is a pointer in Open MPI, and a number in MPICH.
    let rank = unsafe { library.get::<Rank>(b"MPI_Comm_rank\0") }.map_err(missing)?;
    // SAFETY: §5.3.
    let barrier = unsafe { library.get::<Barrier>(b"MPI_Barrier\0") }.map_err(missing)?;
    // SAFETY: §8.7.
    let finalize = unsafe { library.get::<Finalize>(b"MPI_Finalize\0") }.map_err(missing)?;
    // SAFETY: Open MPI's structure of all processes; its address is their name.
    let of_open_mpi = unsafe { library.get::<*const c_void>(b"ompi_mpi_comm_world\0") };
    let world = match &of_open_mpi {
        Ok(symbol) => symbol.clone().into_raw().cast_const(),
        Err(_) => core::ptr::without_provenance(WORLD_OF_MPICH),
    };
    // SAFETY: no arguments are handed over, which MPI 3.1 allows.
    let begun = unsafe { init(null_mut(), null_mut()) };
    let mut number: c_int = 0;
    // SAFETY: the number lives during the call.
    let ranked = unsafe { rank(world, &raw mut number) };
    if begun != 0 || ranked != 0 {
        return Err("MPI does not begin".into());
    }
    // The processes share no memory here: a fixed number of batches.
    let mut samples = Vec::new();
    for batch in 0..=BATCHES / 10 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            // SAFETY: both processes call it equally often.
            let _code = unsafe { barrier(world) };
        }
        if batch > 0 && number == 0 {
            samples.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
        }
    }
    // SAFETY: nothing of MPI is called behind it.
    let _code = unsafe { finalize() };
    core::mem::forget(library);
    Ok(samples)
}
