//! The image of the engine on real FIFOs, with every task scheduler that a graph may declare
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;

use punctual_fifo::{CopyEngine, Reader, Writer};
use punctual_firing::{Activity, Call, Declared, Engine, Fifos, Plain};
use punctual_model::{Graph, Tile};

/// The ends of FIFOs on one tile, by their places in the graph.
struct Ends {
    readers: Vec<Option<Reader>>,
    writers: Vec<Option<Writer>>,
    copies: CopyEngine,
}

impl Fifos for Ends {
    fn tokens(&self, fifo: usize) -> u32 {
        let reader = self.readers.get(fifo).and_then(Option::as_ref);
        reader.map_or(0, Reader::tokens)
    }

    fn space(&self, fifo: usize) -> u32 {
        let writer = self.writers.get(fifo).and_then(Option::as_ref);
        writer.map_or(0, Writer::space)
    }

    fn consume(&mut self, fifo: usize, count: u32) {
        if let Some(Some(reader)) = self.readers.get_mut(fifo) {
            reader.release(count);
        }
    }

    fn produce(&mut self, fifo: usize, count: u32) {
        if let Some(Some(writer)) = self.writers.get_mut(fifo) {
            writer.release(count, &mut self.copies);
        }
    }
}

type Of = Engine<Declared>;
type NotRealTime = Plain<Declared>;

/// Keeps all calls of the engine in the image.
#[inline]
fn keep_engine() {
    black_box::<fn(&Graph, Tile) -> Of>(Engine::declared);
    black_box::<fn(&mut Of, &mut Ends) -> Activity>(|of, ends| of.next(ends, &mut ()));
    black_box::<fn(&mut Of)>(|of| of.preempted(&mut ()));
    black_box::<fn(&mut Of, &mut Ends) -> Activity>(|of, ends| of.resumed(ends, &mut ()));
    black_box::<fn(&mut Of, usize, usize, u32) -> bool>(Engine::set_rate);
    black_box::<fn(Of)>(drop);
    black_box::<fn(usize, Declared) -> NotRealTime>(Plain::new);
    black_box::<fn(&mut NotRealTime, &Ends) -> Option<usize>>(|of, ends| of.next(ends, &mut ()));
    black_box::<fn(&mut NotRealTime, Call, &Ends) -> bool>(|of, call, ends| {
        of.call(call, ends, &mut ())
    });
    black_box::<fn(&mut NotRealTime)>(|of| of.goes_on(&mut ()));
    black_box::<fn(&mut NotRealTime)>(|of| of.ends(&mut ()));
    black_box::<fn(&mut NotRealTime)>(|of| of.preempted(&mut ()));
    black_box::<fn(&mut NotRealTime) -> Option<usize>>(|of| of.resumed(&mut ()));
}

#[cfg(target_os = "none")]
// SAFETY: the entry of an image that nothing else is linked with; no other has this name.
#[unsafe(no_mangle)]
extern "C" fn _start() {
    punctual_footprint::keep_fifo();
    keep_engine();
}

#[cfg(not(target_os = "none"))]
fn main() {
    punctual_footprint::keep_fifo();
    keep_engine();
}
