//! Queues with which programs connect the stages of a stream, and threads as stages.
//!
//! A unit is one token in and out again, of [`TOKEN`] bytes, or one token handed from thread to
//! thread.

use std::hint::black_box;
use std::thread::spawn;

use crossbeam_channel::bounded;
use rtrb::RingBuffer;

use crate::Samples;
use crate::batch::batches;
use crate::thread::{Place, on, start};

/// Bytes of a token: a line of a cache.
pub const TOKEN: usize = 64;
/// Tokens of one batch.
pub const BATCH: u32 = 1_000;
/// Tokens that a queue holds.
pub const CAPACITY: usize = 16;

/// `push` and `pop` of rtrb, on one CPU.
///
/// # Errors
/// None but those of the place.
pub fn rtrb(place: Place) -> Samples {
    on(place, || {
        let (mut producer, mut consumer) = RingBuffer::new(CAPACITY);
        Ok(batches(BATCH, || {
            for number in 0..BATCH {
                let _is_full = producer.push(token(number));
                let _ = black_box(consumer.pop());
            }
        }))
    })
}

/// Chunks of rtrb: half the queue is written as slices, and read as slices.
///
/// # Errors
/// None but those of the place.
pub fn rtrb_chunks(place: Place) -> Samples {
    on(place, || {
        let (mut producer, mut consumer) = RingBuffer::<[u64; TOKEN / 8]>::new(CAPACITY);
        let half = CAPACITY / 2;
        Ok(batches(BATCH, || {
            for number in 0..BATCH {
                if let Ok(mut chunk) = producer.write_chunk(half) {
                    let (first, second) = chunk.as_mut_slices();
                    for place in first.iter_mut().chain(second) {
                        place[0] = u64::from(number);
                    }
                    chunk.commit_all();
                }
                if let Ok(chunk) = consumer.read_chunk(half) {
                    let (first, second) = chunk.as_slices();
                    for place in first.iter().chain(second) {
                        black_box(place[0]);
                    }
                    chunk.commit_all();
                }
            }
        }))
    })
}

/// A bounded channel of crossbeam, on one CPU.
///
/// # Errors
/// None but those of the place.
pub fn crossbeam(place: Place) -> Samples {
    on(place, || {
        let (sender, receiver) = bounded(CAPACITY);
        Ok(batches(BATCH, || {
            for number in 0..BATCH {
                let _is_full = sender.try_send(token(number));
                let _ = black_box(receiver.try_recv());
            }
        }))
    })
}

/// rtrb between two CPUs, both of which look again and again. In no real time: another CPU stays
/// free for the rest of the machine then.
///
/// # Errors
/// Where there is no second CPU.
pub fn rtrb_across(place: Place) -> Samples {
    let other = place.other.ok_or("there is one CPU only")?;
    let place = Place {
        real_time: false,
        ..place
    };
    let (mut producer, mut consumer) = RingBuffer::new(CAPACITY);
    let reading = start(place, other, move || {
        while !producer_is_gone(&consumer) {
            let _ = black_box(consumer.pop());
        }
    })?;
    let samples = on(place, move || {
        Ok(batches(BATCH, || {
            for number in 0..BATCH {
                while producer.push(token(number)).is_err() {
                    std::hint::spin_loop();
                }
            }
        }))
    });
    let _ = reading.join();
    samples
}

fn producer_is_gone<T>(consumer: &rtrb::Consumer<T>) -> bool {
    consumer.is_abandoned() && consumer.is_empty()
}

/// A function that is called where nobody can look into it.
///
/// # Errors
/// None but those of the place.
pub fn plain_call(place: Place) -> Samples {
    on(place, || {
        Ok(batches(BATCH, || {
            let mut sum = 0_u64;
            let stage: fn(u64) -> u64 = black_box(one_stage);
            for number in 0..u64::from(BATCH) {
                sum = stage(sum ^ number);
            }
            black_box(sum);
        }))
    })
}

#[inline(never)]
fn one_stage(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A thread of the kernel for each of two stages on one CPU, which wait for each other's token in
/// bounded channels of crossbeam.
///
/// # Errors
/// Where a thread does not start.
pub fn thread_per_actor(place: Place) -> Samples {
    on(place, || {
        let (there, arrives) = bounded::<[u8; TOKEN]>(1);
        let (back, returns) = bounded::<[u8; TOKEN]>(1);
        // It inherits the place and the class of its maker.
        let stage = spawn(move || {
            while let Ok(token) = arrives.recv() {
                if back.send(black_box(token)).is_err() {
                    break;
                }
            }
        });
        let rounds = BATCH / 10;
        let samples = batches(2 * rounds, || {
            for number in 0..rounds {
                let _ = there.send(token(number));
                let _ = black_box(returns.recv());
            }
        });
        drop(there);
        let _ = stage.join();
        Ok(samples)
    })
}

fn token(number: u32) -> [u8; TOKEN] {
    [number.to_le_bytes()[0]; TOKEN]
}
