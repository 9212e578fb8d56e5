//! Threads that use one place of the pool one after the other share no thread-locals.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{FIXED, alone, fly, free, ms, runtime};
use punctual_thread::{StartError, thread};

/// Counts its drops.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static PLAIN: Cell<u32> = const { Cell::new(7) };
    static LAZY: RefCell<Vec<u32>> = RefCell::new(vec![1, 2]);
    static DROPPED: RefCell<Option<Counted>> = const { RefCell::new(None) };
}

#[test]
fn every_thread_finds_its_thread_locals_new_and_drops_them_once() {
    let drops = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&drops);
    let one = runtime(FIXED).threads(1);
    let finished = fly(one, move || {
        (0..50_u32)
            .map(|n| {
                let counts = Arc::clone(&counts);
                let before = counts.load(Ordering::SeqCst);
                let spawned = thread::spawn("one", free(60), move || {
                    let found = (PLAIN.get(), LAZY.with_borrow(Clone::clone));
                    let nothing = DROPPED.with_borrow(Option::is_none);
                    PLAIN.set(n);
                    LAZY.with_borrow_mut(|list| list.push(n));
                    DROPPED.set(Some(Counted(counts)));
                    if n % 3 == 0 {
                        thread::sleep(ms(1));
                    }
                    (found, nothing, before)
                });
                spawned.expect("its place is free").join()
            })
            .collect::<Vec<_>>()
    });
    let new = (7, vec![1, 2]);
    for (n, thread) in (0..).zip(finished.result) {
        assert_eq!(thread, Ok((new.clone(), true, n)), "thread {n}");
    }
    assert_eq!(drops.load(Ordering::SeqCst), 50);
}

#[test]
fn ids_of_the_standard_library_are_not_used_twice() {
    let one = runtime(FIXED).threads(1);
    let finished = fly(one, || {
        let id = |_| {
            let spawned = thread::spawn("one", free(60), || std::thread::current().id());
            spawned.ok()?.join().ok()
        };
        (0..20).map(id).collect::<Vec<_>>()
    });
    let ids: std::collections::HashSet<_> = finished.result.iter().flatten().collect();
    assert_eq!(ids.len(), 20);
}

#[test]
fn destructors_of_a_cancelled_thread_may_wait() {
    struct Waits(Arc<AtomicU32>);
    impl Drop for Waits {
        fn drop(&mut self) {
            thread::sleep(ms(1));
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    thread_local! {
        static WAITS: RefCell<Option<Waits>> = const { RefCell::new(None) };
    }
    let ends = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&ends);
    let finished = fly(runtime(FIXED), move || {
        let spawned = thread::spawn("waits", free(60), move || {
            WAITS.set(Some(Waits(counts)));
            thread::block();
        });
        let spawned = spawned.expect("there is room");
        (spawned.cancel(), spawned.join())
    });
    let (cancelled, ended) = finished.result;
    assert!(cancelled);
    assert_eq!(ended, Err(thread::JoinError::Cancelled));
    assert_eq!(ends.load(Ordering::SeqCst), 1);
}

/// Set in a process of the next test that was started with a library that makes keys.
const STALE: &str = "PUNCTUAL_TEST_STALE_LOCALS";

#[test]
fn a_strict_run_does_not_begin_beside_a_library_that_keeps_thread_locals_stale() {
    let strict = runtime(FIXED).strict(true);
    if std::env::var_os(STALE).is_none() {
        fly(strict, || ());
        return in_a_process_with_keys();
    }
    let refused = {
        let _alone = alone();
        strict.start(|| ())
    };
    let Err(error @ StartError::StaleLocals { .. }) = refused else {
        panic!("it began: {refused:?}");
    };
    let words = "as those of `libkeys_of_a_test.so` cannot be made new";
    assert!(error.to_string().contains(words), "{error}");
    let begun = fly(runtime(FIXED), || ());
    let mut lost = begun.outcome.lost.iter();
    assert!(lost.any(|loss| loss.detail.contains(words)));
}

fn in_a_process_with_keys() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = source.join("../capi/library/tests/c/with_locals.c");
    // Of this process, as another user may have one of the same name.
    let folder = std::env::temp_dir().join(format!("punctual-locals-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("room in the folder for such files");
    let library = folder.join("libkeys_of_a_test.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-DKEYS", "-o"]);
    let made = cc
        .arg(&library)
        .arg(source)
        .status()
        .expect("Rust's linker");
    assert!(made.success());
    let name =
        "locals::a_strict_run_does_not_begin_beside_a_library_that_keeps_thread_locals_stale";
    let this = std::env::current_exe().expect("Linux");
    let mut again = Command::new(this);
    again.args(["--exact", name, "--nocapture"]);
    let ran = again.env(STALE, "1").env("LD_PRELOAD", &library).output();
    let ran = ran.expect("a program that starts");
    let _ = std::fs::remove_dir_all(&folder);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
