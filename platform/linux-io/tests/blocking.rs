//! Calls that block: they stop the light thread that makes them, and nobody else.

#[path = "../../linux/tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Wall};

use common::{Log, alone, background, for_ms, input, periodic};
use punctual_linux::{CpuOutcome, Ending, run};

/// Runs `body` once as the most urgent thread, beside a periodic thread that counts and one that
/// never pauses. Returns what the two counted, and the CPU.
fn beside_others(ms: u64, body: impl FnOnce() + Send + 'static) -> (u64, u64, CpuOutcome<Log>) {
    let _alone = alone();
    let (ticks, turns) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let count = |counter: &Arc<AtomicU64>| {
        let counter = Arc::clone(counter);
        move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (tick, turn) = (count(&ticks), count(&turns));
    let mut body = Some(body);
    let specs = vec![
        background("blocks", 9, move |_| {
            if let Some(body) = body.take() {
                body();
            }
        }),
        periodic("ticks", 5, 1_000, 100, move |_| tick()),
        background("hog", 1, move |_| {
            for _ in 0..10_000 {
                std::hint::spin_loop();
            }
            turn();
        }),
    ];
    let input = input(specs, 1_000, Log::with_room(100_000));
    let outcome = run(vec![input], &for_ms(ms)).expect("a run");
    assert_eq!(outcome.ending, Ending::Complete);
    assert_eq!(outcome.panics, []);
    let cpu = outcome.cpus.into_iter().next().expect("one CPU");
    (
        ticks.load(Ordering::Relaxed),
        turns.load(Ordering::Relaxed),
        cpu,
    )
}

#[test]
fn a_reader_that_waits_lets_others_run_and_gets_what_comes() {
    let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
    let done = Arc::new(AtomicBool::new(false));
    let feeder = std::thread::spawn(move || {
        for n in 0..20_u8 {
            std::thread::sleep(Duration::from_millis(5));
            theirs.write_all(&[n]).expect("a reader");
        }
    });
    let over = Arc::clone(&done);
    let (ticks, turns, cpu) = beside_others(1_500, move || {
        for n in 0..20 {
            let mut byte = [0];
            ours.read_exact(&mut byte).expect("a writer");
            assert_eq!(byte, [n]);
        }
        over.store(true, Ordering::Relaxed);
    });
    feeder.join().expect("it ends");
    assert!(done.load(Ordering::Relaxed), "all twenty came");
    let stolen = cpu.counters.missing_ns / 1_000_000;
    assert!(ticks + stolen >= 290, "{ticks} ticks, {stolen} ms stolen");
    assert!(turns > 0);
}

#[test]
fn two_light_threads_of_one_cpu_talk_through_a_pipe_both_ways() {
    let (mut left, mut right) = UnixStream::pair().expect("a pair");
    let rounds = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&rounds);
    let _alone = alone();
    let mut first = true;
    let mut second = true;
    let specs = vec![
        background("asks", 2, move |_| {
            if std::mem::take(&mut first) {
                for n in 0..500_u64 {
                    left.write_all(&n.to_le_bytes()).expect("a reader");
                    let mut answer = [0; 8];
                    left.read_exact(&mut answer).expect("an answer");
                    assert_eq!(u64::from_le_bytes(answer), n + 1);
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        }),
        background("answers", 1, move |_| {
            if std::mem::take(&mut second) {
                let mut question = [0; 8];
                while right.read_exact(&mut question).is_ok() {
                    let n = u64::from_le_bytes(question);
                    right.write_all(&(n + 1).to_le_bytes()).expect("a reader");
                }
            }
        }),
    ];
    let input = input(specs, 1_000, Log::with_room(100_000));
    let outcome = run(vec![input], &for_ms(1_000)).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(rounds.load(Ordering::Relaxed), 500);
}

#[test]
fn a_write_that_does_not_fit_at_once_is_whole_and_in_order_all_the_same() {
    const BYTES: usize = 1 << 20;
    let (mut from, mut to) = std::io::pipe().expect("a pipe");
    let (whole, read) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (wrote, right) = (Arc::clone(&whole), Arc::clone(&read));
    let pattern = || (0..251_u8).cycle().take(BYTES);
    let (mut first, mut second) = (true, true);
    let _alone = alone();
    let specs = vec![
        background("writes", 2, move |_| {
            if std::mem::take(&mut first) {
                let bytes: Vec<u8> = pattern().collect();
                // One call: a pipe that blocks takes everything before it returns.
                let count = to.write(&bytes).expect("a reader");
                wrote.store(count as u64, Ordering::Relaxed);
            }
        }),
        background("reads", 1, move |_| {
            if std::mem::take(&mut second) {
                let mut bytes = vec![0; BYTES];
                from.read_exact(&mut bytes).expect("a writer");
                let equal = bytes.into_iter().zip(pattern()).filter(|(a, b)| a == b);
                right.store(equal.count() as u64, Ordering::Relaxed);
            }
        }),
    ];
    let input = input(specs, 1_000, Log::with_room(100_000));
    let outcome = run(vec![input], &for_ms(1_000)).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(whole.load(Ordering::Relaxed), BYTES as u64);
    assert_eq!(read.load(Ordering::Relaxed), BYTES as u64);
}

#[test]
fn connections_are_made_accepted_and_answered_by_light_threads() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let client = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        let mut stream = TcpStream::connect(address).expect("a listener");
        stream.write_all(b"ping").expect("a reader");
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("an answer");
        answer
    });
    let (ticks, _, cpu) = beside_others(1_500, move || {
        let (mut stream, peer) = listener.accept().expect("a client");
        assert!(peer.ip().is_loopback());
        let mut question = [0; 4];
        stream.read_exact(&mut question).expect("a question");
        assert_eq!(&question, b"ping");
        stream.write_all(b"pong").expect("a reader");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let here = udp.local_addr().expect("bound");
        udp.send_to(b"self", here).expect("sent");
        let mut message = [0; 8];
        let (bytes, from) = udp.recv_from(&mut message).expect("came");
        assert_eq!((&message[..bytes], from), (&b"self"[..], here));
    });
    assert_eq!(&client.join().expect("it ends"), b"pong");
    let stolen = cpu.counters.missing_ns / 1_000_000;
    assert!(ticks + stolen >= 290, "{ticks} ticks, {stolen} ms stolen");
}

#[test]
fn limits_on_waiting_end_calls_of_light_threads_too() {
    let seen = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&seen);
    let (ticks, _, cpu) = beside_others(1_500, move || {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let limit = Duration::from_millis(20);
        ours.set_read_timeout(Some(limit)).expect("a socket");
        let start = Wall::now();
        let error = (&ours).read(&mut [0]).expect_err("nobody writes");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        assert!(start.elapsed() >= limit, "not before its time");
        let mut entry = libc::pollfd {
            fd: ours.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let start = Wall::now();
        // SAFETY: one valid entry.
        assert_eq!(unsafe { libc::poll(&mut entry, 1, 20) }, 0);
        assert!(start.elapsed() >= limit, "not before its time");
        std::thread::sleep(limit);
        assert!(start.elapsed() >= 2 * limit);
        done.store(true, Ordering::Relaxed);
    });
    assert!(seen.load(Ordering::Relaxed), "it came to the end");
    let stolen = cpu.counters.missing_ns / 1_000_000;
    assert!(ticks + stolen >= 190, "{ticks} ticks, {stolen} ms stolen");
}

#[test]
fn files_are_written_read_and_made_durable_by_light_threads() {
    let path = std::env::temp_dir().join(format!("punctual-blocking-{}", std::process::id()));
    let file = path.clone();
    let seen = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&seen);
    let _ = beside_others(1_500, move || {
        let text = "what is written is read\n".repeat(1_000);
        let mut written = std::fs::File::create(&file).expect("a file");
        written.write_all(text.as_bytes()).expect("room");
        written.sync_all().expect("a disk");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), text);
        done.store(true, Ordering::Relaxed);
    });
    let _ = std::fs::remove_file(path);
    assert!(seen.load(Ordering::Relaxed), "it came to the end");
}

#[test]
fn a_call_that_nobody_answers_does_not_keep_a_run_from_ending() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let (_, _, cpu) = beside_others(1_500, move || {
        let mut ours = ours;
        let _ = ours.read(&mut [0]);
        unreachable!("nobody writes");
    });
    assert!(cpu.abandoned >= 1, "the reader stays in its call");
    drop(theirs);
}

#[test]
fn a_call_that_stops_its_cpu_is_noticed_and_named() {
    let (_, _, cpu) = beside_others(1_500, || {
        let fifteen_ms = libc::timespec {
            tv_sec: 0,
            tv_nsec: 15_000_000,
        };
        let nobody = core::ptr::null_mut::<libc::c_void>();
        // A call by number passes by the functions of the C library.
        // SAFETY: the sets are empty and the time is valid.
        unsafe {
            libc::syscall(
                libc::SYS_pselect6,
                0,
                nobody,
                nobody,
                nobody,
                &fifteen_ms,
                nobody,
            )
        };
    });
    let said: Vec<&str> = cpu.waits.iter().map(|loss| loss.detail.as_str()).collect();
    assert!(
        said.iter()
            .any(|said| said.starts_with("`blocks` stopped its CPU in a system call")),
        "{said:?}"
    );
}

#[test]
fn calls_that_go_through_the_ring_stop_no_cpu() {
    // A look at descriptors that a signal finds at work is taken for a wait, now and then; a call
    // that does wait is found in every run.
    let mut found = Vec::new();
    for _ in 0..8 {
        found = waits_of_calls_through_the_ring();
        if found.is_empty() {
            return;
        }
    }
    panic!("{found:?}");
}

/// The waits inside the kernel that a run of such calls was seen in.
fn waits_of_calls_through_the_ring() -> Vec<String> {
    let (_, _, cpu) = beside_others(200, || {
        std::thread::sleep(Duration::from_millis(15));
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let limit = Duration::from_millis(15);
        ours.set_read_timeout(Some(limit)).expect("a socket");
        assert!((&ours).read(&mut [0]).is_err());
        let entry = libc::pollfd {
            fd: ours.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut many = [entry; 100];
        let nobody = core::ptr::null_mut::<libc::fd_set>();
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: 15_000,
        };
        // SAFETY: the entries and the time are there, and the sets are empty.
        unsafe {
            assert_eq!(libc::poll(many.as_mut_ptr(), 100, 15), 0);
            assert_eq!(libc::poll(nobody.cast(), 0, 15), 0);
            assert_eq!(libc::select(0, nobody, nobody, nobody, &raw mut time), 0);
        }
    });
    cpu.waits.iter().map(|wait| format!("{wait:?}")).collect()
}

/// Waits with one of two calls until a descriptor can be read from; the set has one word.
fn select_in_one_word(is_sharp: bool, set: *mut libc::fd_set, fd: i32) -> i32 {
    let nobody = core::ptr::null_mut::<libc::fd_set>();
    let (no_time, no_mask) = (core::ptr::null(), core::ptr::null());
    // SAFETY: the set has the one word that this descriptor needs, and so many the kernel touches.
    unsafe {
        set.cast::<u64>().write(1 << fd);
        match is_sharp {
            false => libc::select(fd + 1, set, nobody, nobody, core::ptr::null_mut()),
            true => libc::pselect(fd + 1, set, nobody, nobody, no_time, no_mask),
        }
    }
}

#[test]
fn what_comes_behind_the_words_of_a_set_is_left_alone() {
    let _alone = alone();
    let (mut from, mut to) = std::io::pipe().expect("a pipe");
    let fd = from.as_raw_fd();
    assert!(fd < 64, "a set of one word holds it");
    let words: Arc<[AtomicU64; 16]> = Arc::default();
    let guards = Arc::clone(&words);
    let waits = Arc::new(AtomicU64::new(0));
    let begun = Arc::clone(&waits);
    let ended = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ended);
    let (mut first, mut second) = (true, true);
    let specs = vec![
        background("waits", 9, move |_| {
            let rounds = if std::mem::take(&mut first) { 2 } else { 0 };
            for round in 1..=rounds {
                waits.store(round, Ordering::Relaxed);
                let set = words[0].as_ptr().cast::<libc::fd_set>();
                assert_eq!(select_in_one_word(round == 2, set, fd), 1);
                let behind = words[1..].iter().map(|word| word.load(Ordering::Relaxed));
                assert_eq!(behind.collect::<Vec<_>>(), [round; 15]);
                from.read_exact(&mut [0]).expect("it is there");
                ended.store(round, Ordering::Relaxed);
            }
        }),
        background("changes", 1, move |_| {
            let rounds = if std::mem::take(&mut second) { 2 } else { 0 };
            for round in 1..=rounds {
                // The other goes first, and leaves the processor to this one in its call only.
                while begun.load(Ordering::Relaxed) < round {
                    std::thread::sleep(Duration::from_millis(1));
                }
                for guard in &guards[1..] {
                    guard.store(round, Ordering::Relaxed);
                }
                to.write_all(&[1]).expect("a reader");
            }
        }),
    ];
    let input = input(specs, 1_000, Log::with_room(100_000));
    let outcome = run(vec![input], &for_ms(1_000)).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(counted.load(Ordering::Relaxed), 2, "both calls returned");
}
