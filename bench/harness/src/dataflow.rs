//! Graphs: their FIFOs beside the queues of others, and what a firing costs.

use std::hint::{black_box, spin_loop};

use punctual_fifo::{CopyEngine, Reader, Shape, Writer, fifo};
use punctual_rivals::queues::{self, BATCH, CAPACITY, TOKEN};
use punctual_rivals::{Place, on};

use super::figure::Bench;
use super::live::place;
use super::switching::rival;

/// Batches of one figure.
const BATCHES: usize = if cfg!(debug_assertions) { 20 } else { 1_000 };

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::in_cycles("dataflow.fifo", || on(place()?, copied).map(Into::into))
            .against("rtrb", rival(queues::rtrb))
            .against("crossbeam-channel", rival(queues::crossbeam)),
        Bench::in_cycles("dataflow.fifo.slices", || {
            on(place()?, slices).map(Into::into)
        })
        .against("rtrb chunks", rival(queues::rtrb_chunks)),
        Bench::in_cycles("dataflow.fifo.across", || across(place()?).map(Into::into))
            .against("rtrb", rival(queues::rtrb_across)),
    ]
}

/// Means of batches of `units` each, in nanoseconds, after one that warms up.
fn batches(units: u32, mut batch: impl FnMut()) -> Vec<f64> {
    batch();
    let sample = |_| {
        let start = std::time::Instant::now();
        batch();
        start.elapsed().as_secs_f64() * 1e9 / f64::from(units)
    };
    (0..BATCHES).map(sample).collect()
}

fn ends() -> Result<(Writer, Reader), String> {
    let sizes = u32::try_from(CAPACITY).and_then(|c| Ok((c, u32::try_from(TOKEN)?)));
    let (capacity, size) = sizes.map_err(|error| error.to_string())?;
    fifo(Shape::new(capacity, size)).map_err(|error| error.to_string())
}

/// A token in and out again, copied on both sides, as the calls of others do.
fn copied() -> Result<Vec<f64>, String> {
    let (mut writer, mut reader) = ends()?;
    let mut engine = CopyEngine::default();
    let mut token = [0_u8; TOKEN];
    Ok(batches(BATCH, || {
        for number in 0..BATCH {
            token[0] = number.to_le_bytes()[0];
            writer.write(&token, &mut engine);
            reader.read(&mut token, &mut engine);
            black_box(&token);
        }
    }))
}

/// Half of the FIFO as one slice, on both sides.
fn slices() -> Result<Vec<f64>, String> {
    let (mut writer, mut reader) = ends()?;
    let mut engine = CopyEngine::default();
    let half = u32::try_from(CAPACITY / 2).map_err(|error| error.to_string())?;
    Ok(batches(BATCH, || {
        for number in 0..BATCH {
            writer.claim(half);
            for token in writer.claimed().chunks_exact_mut(TOKEN) {
                token[0] = number.to_le_bytes()[0];
            }
            writer.release(half, &mut engine);
            reader.claim(half, &mut engine);
            for token in reader.claimed().chunks_exact(TOKEN) {
                black_box(token[0]);
            }
            reader.release(half);
        }
    }))
}

/// From one CPU to another, both of which look again and again, and so not in real time.
fn across(place: Place) -> Result<Vec<f64>, String> {
    let other = place.other.ok_or("there is one CPU only")?;
    let place = Place {
        real_time: false,
        ..place
    };
    let there = Place {
        cpu: other,
        ..place
    };
    let (mut writer, mut reader) = ends()?;
    let tokens = BATCH as usize * (BATCHES + 1);
    let reading = std::thread::spawn(move || {
        on(there, move || {
            let (mut engine, mut token) = (CopyEngine::default(), [0_u8; TOKEN]);
            for _ in 0..tokens {
                while !reader.read(&mut token, &mut engine) {
                    spin_loop();
                }
                black_box(&token);
            }
            Ok(())
        })
    });
    let samples = on(place, move || {
        let (mut engine, mut token) = (CopyEngine::default(), [0_u8; TOKEN]);
        Ok(batches(BATCH, || {
            for number in 0..BATCH {
                token[0] = number.to_le_bytes()[0];
                while !writer.write(&token, &mut engine) {
                    spin_loop();
                }
            }
        }))
    });
    reading.join().map_err(|_| "the reader panicked")??;
    samples
}
