//! A model of the FIFOs of graphs.

use loom::thread;

use crate::atomic::pause;
use crate::check::{Model, in_every_order};
use crate::fifo::{CopyEngine, Reader, Shape, Writer, fifo};

/// The models.
pub const MODELS: [Model; 2] = [
    Model {
        property: "claimed tokens reach the reader whole, each once and in order",
        run: || {
            let single = in_every_order(|| claims(Shape::new(2, 1), 1));
            single + in_every_order(|| claims(Shape::new(3, 1), 2))
        },
    },
    Model {
        property: "copied tokens reach the reader whole, each once and in order",
        run: || in_every_order(copies),
    },
];

/// How many firings each end has: the storage is used a second time.
const FIRINGS: u8 = 3;

/// Slices are made twice in a claim, so that another end in the middle of it is found.
fn hand_on(writer: &mut Writer, tokens: u8, number: u8) {
    while !writer.claim(u32::from(tokens)) {
        pause();
    }
    writer.claimed().fill(0xFF);
    for (at, place) in (0..).zip(writer.claimed()) {
        *place = number * tokens + at;
    }
    writer.release(u32::from(tokens), &mut CopyEngine::default());
}

fn take(reader: &mut Reader, tokens: u8, number: u8) {
    while !reader.claim(u32::from(tokens), &mut CopyEngine::default()) {
        pause();
    }
    for _ in 0..2 {
        let expected: Vec<u8> = (number * tokens..(number + 1) * tokens).collect();
        assert_eq!(reader.claimed(), expected);
    }
    reader.release(u32::from(tokens));
}

/// Firings of two tokens go around the end of three places.
fn claims(shape: Shape, tokens: u8) {
    let (mut writer, mut reader) = fifo(shape).unwrap();
    let writing = thread::spawn(move || {
        (0..FIRINGS).for_each(|number| hand_on(&mut writer, tokens, number));
        writer.space()
    });
    (0..FIRINGS).for_each(|number| take(&mut reader, tokens, number));
    assert_eq!(reader.tokens(), 0);
    assert!(writing.join().unwrap() <= shape.capacity);
}

fn copies() {
    let (mut writer, mut reader) = fifo(Shape::new(2, 1)).unwrap();
    let writing = thread::spawn(move || {
        for number in 0..FIRINGS {
            while !writer.write(&[number], &mut CopyEngine::default()) {
                pause();
            }
        }
    });
    for number in 0..FIRINGS {
        let mut token = [0xFF];
        while !reader.read(&mut token, &mut CopyEngine::default()) {
            pause();
        }
        assert_eq!(token, [number]);
    }
    writing.join().unwrap();
}
