//! Calls that are not to wait return at once, and calls that give what there is give it.

#[path = "../../linux/tests/common/mod.rs"]
mod common;

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::{Log, alone, background, for_ms, input};
use punctual_linux::{Ending, run};

/// What `body` returns as a light thread; `None`: it waited until the run was over. A run is long,
/// for machines with other things to do, and ends with the body.
fn by_light<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let _alone = alone();
    let answer = Arc::new(Mutex::new(None));
    let told = Arc::clone(&answer);
    let mut body = Some(body);
    let options = for_ms(8_000);
    let stop = Arc::clone(&options.stop);
    let specs = vec![background("calls", 9, move |_| {
        if let Some(body) = body.take() {
            let result = body();
            *told.lock().expect("one at a time") = Some(result);
            stop.store(true, Ordering::Relaxed);
        }
    })];
    let input = input(specs, 1_000, Log::with_room(100_000));
    let outcome = run(vec![input], &options).expect("a run");
    assert!(matches!(outcome.ending, Ending::Stopped | Ending::Complete));
    assert_eq!(outcome.panics, []);
    answer.lock().expect("one at a time").take()
}

fn never_waits(descriptor: &impl AsRawFd) {
    // SAFETY: no memory is named.
    let set = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(set, 0);
}

/// A descriptor that a call of the C library has made.
fn owned(descriptor: i32) -> OwnedFd {
    assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: it is new and nobody else's.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn kind<T: std::fmt::Debug>(result: std::io::Result<T>) -> ErrorKind {
    result.expect_err("there is nothing").kind()
}

/// The result of a call, and its error.
fn told(result: isize) -> Result<usize, ErrorKind> {
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error().kind())
}

#[test]
fn a_pipe_that_is_not_to_be_waited_for_gives_and_takes_what_it_can() {
    let (from, to) = std::io::pipe().expect("a pipe");
    let told = by_light(move || {
        let (mut from, mut to): (PipeReader, PipeWriter) = (from, to);
        never_waits(&from);
        never_waits(&to);
        // Some of these are tried first and some are not.
        for _ in 0..100 {
            assert_eq!(kind(from.read(&mut [0])), ErrorKind::WouldBlock);
        }
        let much = vec![7; 100 << 10];
        let fits = to.write(&much).expect("room");
        assert!(fits > 0 && fits < much.len(), "{fits}");
        for _ in 0..100 {
            assert_eq!(kind(to.write(&much)), ErrorKind::WouldBlock);
        }
        let mut all = vec![0; 100 << 10];
        let came = from.read(&mut all).expect("much");
        let pieces = [std::io::IoSlice::new(&much[..came])];
        let again = to.write_vectored(&pieces).expect("room again");
        (fits, came, again)
    });
    let (fits, came, again) = told.expect("nothing of that waits");
    assert_eq!((came, again), (fits, fits));
}

#[test]
fn sockets_that_are_not_to_be_waited_for_answer_at_once() {
    let end = by_light(|| {
        let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a socket");
        for _ in 0..100 {
            assert_eq!(kind(ours.read(&mut [0])), ErrorKind::WouldBlock);
            let mut byte = [0];
            let mut pieces = [std::io::IoSliceMut::new(&mut byte)];
            assert_eq!(kind(ours.read_vectored(&mut pieces)), ErrorKind::WouldBlock);
        }
        theirs.write_all(b"here").expect("room");
        let mut four = [0; 64];
        assert_eq!(ours.read(&mut four).expect("something"), 4);
        let much = vec![7; 1 << 20];
        while ours.write(&much).is_ok() {}
        assert_eq!(kind(ours.write(&much)), ErrorKind::WouldBlock);
        let pieces = [std::io::IoSlice::new(&much)];
        assert_eq!(kind(ours.write_vectored(&pieces)), ErrorKind::WouldBlock);

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock);
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        udp.set_nonblocking(true).expect("a socket");
        for _ in 0..100 {
            assert_eq!(kind(udp.recv_from(&mut [0; 8])), ErrorKind::WouldBlock);
            assert_eq!(kind(udp.recv(&mut [0; 8])), ErrorKind::WouldBlock);
        }
        let here = udp.local_addr().expect("bound");
        assert_eq!(udp.send_to(b"self", here).expect("room"), 4);
        assert_eq!(udp.recv_from(&mut [0; 8]).expect("came"), (4, here));
        let (full, _kept) = UnixDatagram::pair().expect("a pair");
        full.set_nonblocking(true).expect("a socket");
        while full.send(b"more").is_ok() {}
        assert_eq!(kind(full.send(b"more")), ErrorKind::WouldBlock);
    });
    assert_eq!(end, Some(()));
}

#[test]
fn a_flag_not_to_wait_holds_for_one_call() {
    let end = by_light(|| {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let (fd, flag) = (ours.as_raw_fd(), libc::MSG_DONTWAIT);
        let mut bytes = vec![7_u8; 1 << 20];
        let (place, room) = (bytes.as_mut_ptr().cast::<libc::c_void>(), bytes.len());
        let mut piece = libc::iovec {
            iov_base: place,
            iov_len: room,
        };
        // SAFETY: all zero is a valid empty message.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        let nobody = core::ptr::null_mut();
        let length = core::ptr::null_mut();
        for _ in 0..100 {
            // SAFETY: the place has this room, and the message names it.
            let results = unsafe {
                [
                    told(libc::recv(fd, place, room, flag)),
                    told(libc::recv(fd, place, room, flag | libc::MSG_WAITALL)),
                    told(libc::recvfrom(fd, place, room, flag, nobody, length)),
                    told(libc::recvmsg(fd, &raw mut message, flag)),
                ]
            };
            assert_eq!(results, [Err(ErrorKind::WouldBlock); 4]);
        }
        // SAFETY: as above.
        let fits = told(unsafe { libc::send(fd, place, room, flag) }).expect("room");
        assert!(fits > 0 && fits < room, "{fits}");
        // SAFETY: as above.
        while unsafe { libc::send(fd, place, room, flag) } > 0 {}
        // SAFETY: as above.
        let results = unsafe {
            [
                told(libc::send(fd, place, room, flag)),
                told(libc::sendto(fd, place, room, flag, nobody, 0)),
                told(libc::sendmsg(fd, &raw const message, flag)),
            ]
        };
        assert_eq!(results, [Err(ErrorKind::WouldBlock); 3]);
    });
    assert_eq!(end, Some(()));
}

#[test]
fn a_connection_that_is_not_to_be_waited_for_is_begun() {
    let end = by_light(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        // SAFETY: all zero is a valid address.
        let mut name: libc::sockaddr_in = unsafe { core::mem::zeroed() };
        name.sin_family = libc::sa_family_t::try_from(libc::AF_INET).expect("small");
        name.sin_port = address.port().to_be();
        name.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        let length = libc::socklen_t::try_from(size_of_val(&name)).expect("small");
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        // SAFETY: no memory is named.
        let socket = owned(unsafe { libc::socket(libc::AF_INET, kind, 0) });
        // SAFETY: the address is valid and as long as said.
        let begun = unsafe { libc::connect(socket.as_raw_fd(), (&raw const name).cast(), length) };
        let error = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((begun, error), (-1, Some(libc::EINPROGRESS)));
        let (mut stream, _) = listener.accept().expect("it goes on by itself");
        stream.write_all(b"here").expect("a reader");
    });
    assert_eq!(end, Some(()));
}

#[test]
fn counters_of_events_and_of_time_give_what_there_is_to_a_larger_place() {
    let end = by_light(|| {
        // SAFETY: no memory is named.
        let events = owned(unsafe { libc::eventfd(0, 0) });
        let mut events = std::fs::File::from(events);
        let mut place = [0; 64];
        for n in 1..100_u64 {
            assert_eq!(events.write(&n.to_ne_bytes()).expect("room"), 8);
            assert_eq!(events.read(&mut place).expect("an event"), 8);
            assert_eq!(place[..8], n.to_ne_bytes());
        }
        never_waits(&events);
        for _ in 0..100 {
            assert_eq!(kind(events.read(&mut place)), ErrorKind::WouldBlock);
        }
        // SAFETY: no memory is named.
        let time = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) });
        let never = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let once = libc::itimerspec {
            it_interval: never,
            it_value: libc::timespec {
                tv_sec: 0,
                tv_nsec: 1,
            },
        };
        let nobody = core::ptr::null_mut();
        for _ in 0..20 {
            // SAFETY: the time is valid, and nobody wants the old one.
            let set =
                unsafe { libc::timerfd_settime(time.as_raw_fd(), 0, &raw const once, nobody) };
            assert_eq!(set, 0);
            // SAFETY: the place has this room.
            let bytes = unsafe { libc::read(time.as_raw_fd(), place.as_mut_ptr().cast(), 64) };
            assert_eq!((bytes, place[0]), (8, 1));
        }
    });
    assert_eq!(end, Some(()));
}

#[test]
fn an_empty_message_is_one() {
    let came = by_light(|| {
        let (ours, theirs) = UnixDatagram::pair().expect("a pair");
        theirs.set_nonblocking(true).expect("a socket");
        (0..20)
            .filter(|_| {
                // SAFETY: no byte is read.
                let sent = unsafe { libc::write(ours.as_raw_fd(), [0].as_ptr().cast(), 0) };
                assert_eq!(sent, 0);
                theirs.recv(&mut [0; 8]).is_ok_and(|bytes| bytes == 0)
            })
            .count()
    });
    assert_eq!(came, Some(20));
}

#[test]
fn a_limit_on_sending_holds_for_a_whole_write() {
    const BYTES: usize = 1 << 26;
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let limit = std::time::Duration::from_millis(100);
    ours.set_write_timeout(Some(limit)).expect("a socket");
    // Fast enough for every part of the write, and far too slow for all of it.
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let reader = std::thread::spawn(move || {
        let mut place = vec![0; 1 << 16];
        while !is_over.load(Ordering::Relaxed) && theirs.read(&mut place).is_ok_and(|n| n > 0) {
            std::thread::sleep(limit / 10);
        }
    });
    let wrote = by_light(move || {
        let bytes = vec![7_u8; BYTES];
        // The standard library sends to sockets, and does not write.
        // SAFETY: so many bytes can be read there.
        told(unsafe { libc::write(ours.as_raw_fd(), bytes.as_ptr().cast(), BYTES) })
    });
    over.store(true, Ordering::Relaxed);
    let wrote = wrote.expect("it ends long before the reader has all");
    let wrote = wrote.expect("some of it");
    assert!(wrote > 0 && wrote < BYTES, "{wrote}");
    reader.join().expect("it ends");
}
