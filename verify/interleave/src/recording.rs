//! A model of the ring between a recorder and its drain.

use loom::thread;

use crate::atomic::pause;
use crate::check::{Model, in_every_order};
use crate::record_ring::Ring;

/// The model.
pub const MODELS: [Model; 1] = [Model {
    property: "a drain takes whole entries, each once and in order, and makes room for more",
    run: || in_every_order(|| entries(true)) + in_every_order(|| entries(false)),
}];

/// An entry of two words, in pieces or in one, as the recorder puts them.
fn put(ring: &mut Ring, entry: u64) -> bool {
    let fits = match entry % 2 {
        0 => ring.put(&[entry]) && ring.put(&[!entry]),
        _ => ring.put_whole([entry, !entry]),
    };
    ring.commit();
    fits
}

/// Two entries fit. The third goes around the end: at once, if the first was taken by then, or when
/// both were.
fn entries(at_once: bool) {
    let mut ring = Ring::with_capacity(4).unwrap();
    let mut outlet = ring.outlet();
    let drain = thread::spawn(move || {
        let mut words = Vec::new();
        while words.len() < 4 {
            outlet.take(&mut words);
            assert_eq!(words.len() % 2, 0, "whole entries");
            pause();
        }
        (outlet, words)
    });
    assert!(put(&mut ring, 0) && put(&mut ring, 1));
    let mut third = at_once && put(&mut ring, 2);
    let (mut outlet, mut words) = drain.join().unwrap();
    outlet.take(&mut words);
    if !at_once {
        third = put(&mut ring, 2);
        assert!(third);
        outlet.take(&mut words);
    }
    // All room is there again. What gave up once goes on no more.
    let more = [3, 4].map(|entry| put(&mut ring, entry));
    assert_eq!(more, [third; 2]);
    assert!(ring.into_words().is_empty());
    outlet.take(&mut words);
    let expected = if third { 0..5 } else { 0..2 };
    let expected: Vec<u64> = expected.flat_map(|entry| [entry, !entry]).collect();
    assert_eq!(words, expected);
}
