//! The same calls on a kernel thread and on a light one: what they return must be equal.
//!
//! A scene is a small program of calls, and what its partner does meanwhile on a kernel thread. It
//! is played by an ordinary kernel thread, by a light thread, and by one whose calls were mostly in
//! vain, so that they are not tried before they wait. Counts, errors and bytes are compared.

#[path = "../../../linux/tests/common/mod.rs"]
mod common;

mod calls;
mod closed;
mod connections;
mod files;
mod messages;
mod streams;
mod times;
mod waiting;

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use common::{Log, alone, background, input, until_stopped};
use punctual_linux::{Ending, run};

/// What the calls of a scene returned.
#[derive(Debug, Default)]
struct Said(Vec<String>);

impl Said {
    fn say(&mut self, call: &str, result: impl std::fmt::Display) {
        self.0.push(format!("{call}: {result}"));
    }
}

type Body = Box<dyn FnOnce(&mut Said) + Send>;
type Partner = Box<dyn FnOnce() -> String + Send>;

struct Scene {
    name: &'static str,
    body: Body,
    partner: Partner,
}

/// A scene of one thread.
fn alone_on_stage(name: &'static str, body: impl FnOnce(&mut Said) + Send + 'static) -> Scene {
    with_partner(name, body, String::new)
}

/// A scene whose partner begins when the body does.
fn with_partner(
    name: &'static str,
    body: impl FnOnce(&mut Said) + Send + 'static,
    partner: impl FnOnce() -> String + Send + 'static,
) -> Scene {
    Scene {
        name,
        body: Box::new(body),
        partner: Box::new(partner),
    }
}

/// A partner that waits for its scene, on a kernel thread.
struct Waiting {
    name: &'static str,
    thread: JoinHandle<String>,
}

fn prepared(scenes: Vec<Scene>) -> (Vec<(Sender<()>, Body)>, Vec<Waiting>) {
    let prepare = |scene: Scene| {
        let (begin, begun): (_, Receiver<()>) = channel();
        let thread = std::thread::spawn(move || match begun.recv() {
            Ok(()) => (scene.partner)(),
            Err(_) => "the scene was not played".to_owned(),
        });
        let name = scene.name;
        ((begin, scene.body), Waiting { name, thread })
    };
    scenes.into_iter().map(prepare).unzip()
}

fn play(bodies: Vec<(Sender<()>, Body)>) -> Vec<Said> {
    let play_one = |(begin, body): (Sender<()>, Body)| {
        let mut said = Said::default();
        let _ = begin.send(());
        body(&mut said);
        said
    };
    bodies.into_iter().map(play_one).collect()
}

fn told(said: Vec<Said>, partners: Vec<Waiting>) -> Vec<(&'static str, Vec<String>)> {
    let tell = |(mut said, partner): (Said, Waiting)| {
        let result = partner.thread.join().expect("a partner that ends");
        said.say("partner", result);
        (partner.name, said.0)
    };
    said.into_iter().zip(partners).map(tell).collect()
}

/// As a light thread, which has first met with so many calls in vain.
fn by_light(scenes: Vec<Scene>, in_vain: usize) -> Vec<(&'static str, Vec<String>)> {
    let (bodies, partners) = prepared(scenes);
    let answer = Arc::new(Mutex::new(None));
    let place = Arc::clone(&answer);
    let mut bodies = Some(bodies);
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let specs = vec![
        background("calls", 9, move |_| {
            if let Some(bodies) = bodies.take() {
                discourage(in_vain);
                let said = play(bodies);
                *place.lock().expect("one at a time") = Some(said);
                stop.store(true, Ordering::Relaxed);
            }
        }),
        background("hog", 1, |_| {
            for _ in 0..1_000 {
                std::hint::spin_loop();
            }
        }),
    ];
    let input = input(specs, 1_000, Log::with_room(0));
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert!(
        matches!(outcome.ending, Ending::Stopped | Ending::Complete),
        "{:?}",
        outcome.ending
    );
    let said = answer.lock().expect("one at a time").take();
    told(said.expect("the scenes were played to the end"), partners)
}

/// Reads and writes in vain, so that the next calls are not tried before they wait.
fn discourage(times: usize) {
    let (ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("a socket");
    let mut bytes = vec![0; 1 << 20];
    while calls::write(ours.as_raw_fd(), &bytes).count() > 0 {}
    for _ in 0..times {
        assert_eq!(calls::read(ours.as_raw_fd(), &mut bytes).count(), -1);
        assert_eq!(calls::write(ours.as_raw_fd(), &bytes).count(), -1);
    }
}

/// Plays the scenes everywhere and compares.
fn compare(scenes: fn() -> Vec<Scene>) {
    let _alone = alone();
    let (bodies, partners) = prepared(scenes());
    let elsewhere = std::thread::spawn(move || play(bodies));
    let elsewhere = told(elsewhere.join().expect("it ends"), partners);
    for (name, said) in &elsewhere {
        println!("{name}: {said:#?}");
    }
    // After 40 calls in vain the next 28 are not tried.
    for in_vain in [0, 40] {
        let here = by_light(scenes(), in_vain);
        let differ = elsewhere.iter().zip(&here).filter(|(a, b)| a != b);
        let differ: Vec<String> = differ
            .map(|(there, here)| {
                let lines = there.1.iter().zip(&here.1).filter(|(a, b)| a != b);
                let lines: Vec<String> = lines
                    .map(|(there, here)| format!("    {there}\n  light: {here}"))
                    .collect();
                format!("{}\n{}", there.0, lines.join("\n"))
            })
            .collect();
        assert!(
            differ.is_empty(),
            "after {in_vain} calls in vain:\n{}",
            differ.join("\n")
        );
    }
}
