//! A FIFO against a queue of the standard library, on one thread and on two.

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use punctual_generate::Random;

use crate::{CopyEngine, FifoError, Reader, Shape, Writer, fifo};

/// Histories under Miri are as long as it can execute.
const HISTORIES: u64 = if cfg!(miri) { 20 } else { 2_000 };

fn small(random: &mut Random, low: u64, high: u64) -> u32 {
    u32::try_from(random.within(low, high)).expect("small")
}

/// A shape with claims that often go around the end.
fn drawn(random: &mut Random) -> Shape {
    let capacity = small(random, 1, 9);
    Shape {
        longest_write: small(random, 1, u64::from(capacity)),
        longest_read: small(random, 1, u64::from(capacity)),
        is_remote_to_writer: random.happens(200),
        is_remote_to_reader: random.happens(200),
        ..Shape::new(capacity, small(random, 1, 5))
    }
}

/// The bytes of a token, by its number.
fn token(number: u64, size: usize) -> impl Iterator<Item = u8> {
    (0..size as u64).map(move |byte| number.wrapping_mul(37).wrapping_add(byte).to_le_bytes()[0])
}

struct Both {
    writer: Writer,
    reader: Reader,
    engine: CopyEngine,
    shape: Shape,
    /// The twin: numbers of the tokens.
    queue: VecDeque<u64>,
    next: u64,
}

impl Both {
    fn room(&self) -> u32 {
        self.shape.capacity - u32::try_from(self.queue.len()).expect("no more than fit")
    }

    fn size(&self) -> usize {
        self.shape.token_size as usize
    }

    fn bytes(&self, numbers: impl Iterator<Item = u64>) -> Vec<u8> {
        numbers
            .flat_map(|number| token(number, self.size()))
            .collect()
    }

    fn append(&mut self, tokens: u32) {
        self.queue.extend(self.next..self.next + u64::from(tokens));
        self.next += u64::from(tokens);
    }

    fn take(&mut self, tokens: u32) -> Vec<u8> {
        let numbers: Vec<u64> = self.queue.drain(..tokens as usize).collect();
        self.bytes(numbers.into_iter())
    }

    /// Claims, hands on all or a part.
    fn claim_and_write(&mut self, tokens: u32, part: u32) {
        let fits = tokens <= self.shape.longest_write && tokens <= self.room();
        assert_eq!(self.writer.claim(tokens), fits);
        if fits {
            let bytes = self.bytes(self.next..self.next + u64::from(tokens));
            self.writer.claimed().copy_from_slice(&bytes);
            self.writer.release(part.min(tokens), &mut self.engine);
            self.append(part.min(tokens));
        }
    }

    fn claim_and_read(&mut self, tokens: u32, part: u32) {
        let are_there = tokens <= self.shape.longest_read && tokens as usize <= self.queue.len();
        assert_eq!(self.reader.claim(tokens, &mut self.engine), are_there);
        if are_there {
            let seen = self.reader.claimed().to_vec();
            let part = part.min(tokens);
            let expected = self.bytes(self.queue.iter().take(tokens as usize).copied());
            assert_eq!(seen, expected);
            self.reader.release(part);
            self.take(part);
        }
    }

    fn copy_in(&mut self, tokens: u32) {
        let bytes = self.bytes(self.next..self.next + u64::from(tokens));
        let fits = tokens <= self.room();
        assert_eq!(self.writer.write(&bytes, &mut self.engine), fits);
        if fits {
            self.append(tokens);
        }
    }

    fn copy_out(&mut self, tokens: u32) {
        let mut bytes = vec![0; tokens as usize * self.size()];
        let are_there = tokens as usize <= self.queue.len();
        assert_eq!(self.reader.read(&mut bytes, &mut self.engine), are_there);
        if are_there {
            assert_eq!(bytes, self.take(tokens));
        }
    }
}

#[test]
fn it_holds_what_a_queue_holds_in_every_drawn_history() {
    let mut copied = 0;
    for history in 0..HISTORIES {
        let mut random = Random::at(45, &[history]);
        let shape = drawn(&mut random);
        let (writer, reader) = fifo(shape).expect("a shape");
        let mut both = Both {
            writer,
            reader,
            engine: CopyEngine::default(),
            shape,
            queue: VecDeque::new(),
            next: 0,
        };
        for _ in 0..60 {
            let most = u64::from(shape.capacity) + 1;
            let tokens = small(&mut random, 0, most);
            let part = small(&mut random, 0, most);
            match random.below(6) {
                0 | 1 => both.claim_and_write(tokens, part),
                2 | 3 => both.claim_and_read(tokens, part),
                4 => both.copy_in(tokens),
                _ => both.copy_out(tokens),
            }
            assert_eq!(both.reader.tokens() as usize, both.queue.len());
            assert_eq!(both.writer.space(), both.room());
        }
        copied += both.engine.bytes;
    }
    assert!(copied > 0, "no claim went around the end");
}

#[test]
fn two_threads_move_every_token_once_and_in_order() {
    let tokens = if cfg!(miri) { 60_u64 } else { 60_000 };
    // 3 and 2 do not divide 7: claims go around the end on both sides.
    let shape = Shape {
        longest_write: 3,
        longest_read: 2,
        ..Shape::new(7, 8)
    };
    let (mut writer, mut reader) = fifo(shape).expect("a shape");
    let writing = std::thread::spawn(move || {
        let mut engine = CopyEngine::default();
        for first in (0..tokens).step_by(3) {
            while !writer.claim(3) {
                std::thread::yield_now();
            }
            for (place, number) in writer.claimed().chunks_exact_mut(8).zip(first..) {
                place.copy_from_slice(&number.to_le_bytes());
            }
            writer.release(3, &mut engine);
        }
        engine.bytes
    });
    let mut engine = CopyEngine::default();
    for first in (0..tokens).step_by(2) {
        while !reader.claim(2, &mut engine) {
            std::thread::yield_now();
        }
        for (bytes, number) in reader.claimed().chunks_exact(8).zip(first..) {
            assert_eq!(bytes, number.to_le_bytes());
        }
        reader.release(2);
    }
    assert!(writing.join().expect("it ends") > 0 && engine.bytes > 0);
    assert_eq!(reader.tokens(), 0);
}

#[test]
fn tokens_are_aligned_as_c_aligns_what_it_allocates() {
    let (mut writer, mut reader) = fifo(Shape::new(4, 16)).expect("a shape");
    for _ in 0..4 {
        assert!(writer.claim(3));
        assert_eq!(writer.claimed().as_ptr().addr() % 16, 0);
        writer.release(3, &mut CopyEngine::default());
        assert!(reader.claim(3, &mut CopyEngine::default()));
        assert_eq!(reader.claimed().as_ptr().addr() % 16, 0);
        reader.release(3);
    }
}

#[test]
fn shapes_that_mean_nothing_are_refused_and_tokens_without_bytes_are_counted() {
    let too_long = Shape {
        longest_read: 5,
        ..Shape::new(4, 1)
    };
    for shape in [Shape::new(0, 4), too_long, Shape::new(u32::MAX, u32::MAX)] {
        assert_eq!(fifo(shape).expect_err("no FIFO"), FifoError::Shape(shape));
    }
    let (mut writer, mut reader) = fifo(Shape::new(2, 0)).expect("tokens of no bytes");
    assert!(writer.claim(2) && writer.claimed().is_empty());
    writer.release(2, &mut CopyEngine::default());
    assert!(!writer.claim(1));
    assert!(reader.claim(1, &mut CopyEngine::default()) && reader.claimed().is_empty());
    reader.release(1);
    assert_eq!((reader.tokens(), writer.space()), (1, 1));
}

#[test]
fn a_write_or_a_read_gives_up_the_claim_before_it() {
    let mut engine = CopyEngine::default();
    let (mut writer, mut reader) = fifo(Shape::new(4, 1)).expect("small");
    assert!(writer.claim(4));
    assert!(writer.write(b"abcd", &mut engine));
    assert!(writer.claimed().is_empty(), "they are the reader's");
    assert_eq!(writer.space(), 0);
    assert!(reader.claim(4, &mut engine));
    assert!(reader.read(&mut [0; 4], &mut engine));
    assert!(reader.claimed().is_empty(), "they are the writer's");
}
