//! A panic where nothing may wait: said without the program's hook, which may lock.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::{done, free};
use punctual_thread::sync::SpinMutex;
use punctual_thread::thread::{self, JoinError};

/// What the program's hook locks, as that of the standard library does.
static OUTPUT: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_panic_in_the_use_of_a_spinning_mutex_does_not_wait_for_who_was_preempted() {
    std::panic::set_hook(Box::new(|panic| {
        let mut output = OUTPUT.lock().expect("nobody panics with it");
        output.push(panic.payload_as_str().unwrap_or_default().to_owned());
    }));
    let found = done(|| {
        let value = Arc::new(SpinMutex::new(1));
        let [begun, done] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (begins, is_done) = (Arc::clone(&begun), Arc::clone(&done));
        let holder = thread::spawn("has the lock of the hook", free(10), move || {
            let _output = OUTPUT.lock().expect("nobody panics with it");
            begins.store(true, Ordering::SeqCst);
            while !is_done.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        });
        while !begun.load(Ordering::SeqCst) {
            thread::sleep(common::ms(1));
        }
        let uses = Arc::clone(&value);
        let dies = thread::spawn("dies", free(60), move || {
            uses.with(|_| panic!("inside a use")).is_ok()
        });
        let died = dies.expect("there is room").join();
        let next = value.with(|value| *value);
        done.store(true, Ordering::SeqCst);
        let held = holder.expect("there is room").join();
        // Elsewhere the hook of the program says it, and waits for its lock as long as it takes.
        let dies = thread::spawn("dies too", free(60), || -> u8 { panic!("outside") });
        (died, next, held, dies.expect("there is room").join())
    });
    let said = |text: &str| JoinError::Panicked(text.to_owned());
    let (died, next, held, outside) = found;
    assert_eq!((died, next), (Err(said("inside a use")), Ok(1)));
    assert_eq!((held, outside), (Ok(()), Err(said("outside"))));
    let output = OUTPUT.lock().expect("nobody panics with it");
    assert_eq!(*output, ["outside"]);
}
