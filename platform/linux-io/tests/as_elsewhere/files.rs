//! Files, pipes and counters: at a place, at the end, and where there is no place.

use core::ffi::c_int;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::calls::{Told, digest, pattern, pieces, read, readv, shown, write, writev};
use crate::{Said, Scene, alone_on_stage, compare, with_partner};

fn pread(fd: c_int, to: &mut [u8], at: i64) -> Told {
    // SAFETY: the place has this room.
    Told::new(unsafe { libc::pread(fd, to.as_mut_ptr().cast(), to.len(), at) })
}

fn pwrite(fd: c_int, from: &[u8], at: i64) -> Told {
    // SAFETY: so many bytes are there.
    Told::new(unsafe { libc::pwrite(fd, from.as_ptr().cast(), from.len(), at) })
}

fn preadv(fd: c_int, to: &mut [u8], lengths: &[usize], at: i64) -> Told {
    let pieces = pieces(to, lengths);
    let count = c_int::try_from(pieces.len()).expect("few");
    // SAFETY: the pieces lie in the place.
    Told::new(unsafe { libc::preadv(fd, pieces.as_ptr(), count, at) })
}

fn pwritev(fd: c_int, from: &[u8], lengths: &[usize], at: i64) -> Told {
    let pieces = pieces(from, lengths);
    let count = c_int::try_from(pieces.len()).expect("few");
    // SAFETY: the pieces lie in the place.
    Told::new(unsafe { libc::pwritev(fd, pieces.as_ptr(), count, at) })
}

/// A file without a name.
fn nameless() -> File {
    // SAFETY: the name is a text.
    let made = unsafe { libc::memfd_create(c"punctual".as_ptr(), 0) };
    assert!(made >= 0);
    // SAFETY: it is new and nobody else's.
    File::from(unsafe { OwnedFd::from_raw_fd(made) })
}

fn at_places(said: &mut Said, file: &File) {
    let fd = file.as_raw_fd();
    let mut place = [0; 40];
    for at in [0, 5, 100, -1, i64::MAX] {
        said.say("pwrite", pwrite(fd, b"a place", at));
        said.say("pwritev", pwritev(fd, b"and pieces", &[3, 0, 7], at));
        said.say("pread", pread(fd, &mut place, at));
        said.say("bytes", shown(&place));
        said.say("preadv", preadv(fd, &mut place, &[1, 4], at));
        said.say("bytes", shown(&place));
        said.say("nothing", pread(fd, &mut [], at));
        said.say("nothing", pwrite(fd, b"", at));
    }
    // SAFETY: no memory is named.
    unsafe {
        said.say("fsync", Told::new(libc::fsync(fd)));
        said.say("fdatasync", Told::new(libc::fdatasync(fd)));
    }
}

fn places() -> Vec<Scene> {
    let files = alone_on_stage("files", |said: &mut Said| {
        let path = format!("punctual-as-elsewhere-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        let options = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .clone();
        let stored = options.open(&path).expect("a file");
        let appended = File::options()
            .append(true)
            .read(true)
            .open(&path)
            .expect("a file");
        std::fs::remove_file(&path).expect("there");
        for mut file in [nameless(), stored, appended] {
            at_places(said, &file);
            said.say("place", format!("{:?}", file.stream_position()));
            let fd = file.as_raw_fd();
            said.say("write", write(fd, b"where it is"));
            said.say("writev", writev(fd, b"and behind", &[5, 5]));
            said.say("place", format!("{:?}", file.stream_position()));
            let mut place = [0; 200];
            said.say("read", read(fd, &mut place));
            file.rewind().expect("a file");
            said.say("read", read(fd, &mut place));
            said.say("bytes", digest(&place));
            said.say("readv", readv(fd, &mut place, &[10, 10]));
            file.rewind().expect("a file");
            said.say("readv", readv(fd, &mut place, &[10, 10]));
            said.say("much", write(fd, &pattern(3 << 20)));
            said.say("length", file.metadata().expect("a file").len());
        }
    });
    vec![files, elsewhere()]
}

fn elsewhere() -> Scene {
    alone_on_stage("elsewhere", |said: &mut Said| {
        let (from, to) = std::io::pipe().expect("a pipe");
        let mut to_keep = to.try_clone().expect("a pipe");
        to_keep.write_all(&pattern(1_000)).expect("room");
        let stream = std::os::unix::net::UnixStream::pair().expect("a pair");
        let folder = File::open("/").expect("a folder");
        let nowhere = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .expect("Linux");
        let zero = File::options()
            .read(true)
            .write(true)
            .open("/dev/zero")
            .expect("Linux");
        let pipes = [
            File::from(OwnedFd::from(from)),
            File::from(OwnedFd::from(to)),
        ];
        let stream = File::from(OwnedFd::from(stream.0));
        for file in pipes.iter().chain([&stream, &folder, &nowhere, &zero]) {
            at_places(said, file);
        }
        // SAFETY: no memory is named, and what is written is not looked at.
        unsafe {
            said.say("fsync", Told::new(libc::fsync(-1)));
            said.say("fdatasync", Told::new(libc::fdatasync(-1)));
            let much = core::ptr::without_provenance(1 << 20);
            let bytes = 3 << 30;
            said.say(
                "most",
                Told::new(libc::write(nowhere.as_raw_fd(), much, bytes)),
            );
            let piece = [libc::iovec {
                iov_base: much.cast_mut(),
                iov_len: bytes,
            }; 2];
            let fd = nowhere.as_raw_fd();
            said.say("most", Told::new(libc::writev(fd, piece.as_ptr(), 2)));
            said.say("most", Told::new(libc::pwrite(fd, much, bytes, 0)));
            said.say("most", Told::new(libc::read(fd, much.cast_mut(), bytes)));
        }
        said.say("closed", pread(-1, &mut [0; 4], 0));
        said.say("closed", pwrite(-1, b"text", 0));
    })
}

#[test]
fn what_has_places_and_what_has_none_answers_as_elsewhere() {
    compare(places);
}

extern "C" fn nothing(_: c_int) {}

/// A limit on the size of files, in bytes.
///
/// It holds for the whole process: it lies far above what the harness itself may have written to
/// its log while a test holds it.
const LARGEST: i64 = 1 << 40;

fn full() -> Vec<Scene> {
    let scene = alone_on_stage("a limit on files", |said: &mut Said| {
        let mut before = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the places are there; all is restored below.
        unsafe {
            libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut before);
            let limit = libc::rlimit {
                rlim_cur: LARGEST.cast_unsigned(),
                ..before
            };
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            libc::signal(
                libc::SIGXFSZ,
                nothing as extern "C" fn(c_int) as libc::sighandler_t,
            );
        }
        let mut file = nameless();
        let bytes = pattern(7_000);
        let start = std::io::SeekFrom::Start(LARGEST.cast_unsigned() - 10_000);
        file.seek(start).expect("a place");
        for _ in 0..3 {
            said.say("write", write(file.as_raw_fd(), &bytes));
        }
        said.say("pwrite", pwrite(file.as_raw_fd(), &bytes, LARGEST - 5_000));
        said.say(
            "pwritev",
            pwritev(file.as_raw_fd(), &bytes, &[3_000, 3_000], LARGEST - 5_000),
        );
        // SAFETY: as above.
        unsafe {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const before);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        said.say("write", write(file.as_raw_fd(), &bytes));
    });
    vec![scene]
}

#[test]
fn a_file_that_may_not_grow_takes_what_it_may() {
    compare(full);
}

fn pipes() -> Vec<Scene> {
    let written = |name, call: fn(c_int, &[u8]) -> Told| {
        let (mut from, to) = std::io::pipe().expect("a pipe");
        let body = move |said: &mut Said| {
            said.say("much", call(to.as_raw_fd(), &pattern(1 << 20)));
            said.say("little", call(to.as_raw_fd(), b"more"));
        };
        with_partner(name, body, move || {
            let (mut all, mut place) = (Vec::new(), vec![0; 3_000]);
            while let Ok(count @ 1..) = from.read(&mut place) {
                all.extend_from_slice(&place[..count]);
                if all.len() % 7 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            digest(&all).to_string()
        })
    };
    let (from, mut to) = std::io::pipe().expect("a pipe");
    let reading = move |said: &mut Said| {
        let mut place = [0; 10];
        let fd = from.as_raw_fd();
        for _ in 0..3 {
            said.say("read", read(fd, &mut place));
            said.say("bytes", shown(&place));
            said.say("readv", readv(fd, &mut place, &[1, 0, 9]));
            said.say("bytes", shown(&place));
        }
    };
    let feeding = move || {
        for text in ["one", "two", "three", "four"] {
            std::thread::sleep(Duration::from_millis(5));
            to.write_all(text.as_bytes()).expect("a reader");
            // Each is read before the next is written.
            while unread(&to) > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        String::new()
    };
    vec![
        written("write", write),
        written("writev", |fd, bytes| {
            writev(fd, bytes, &[1, 500_000, 0, 1 << 20])
        }),
        with_partner("read", reading, feeding),
    ]
}

fn unread(pipe: &std::io::PipeWriter) -> c_int {
    let mut bytes = 0;
    // SAFETY: the place is there.
    unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    bytes
}

#[test]
fn pipes_take_all_and_give_what_there_is() {
    compare(pipes);
}

fn has_room(counter: &File) -> bool {
    let mut entry = libc::pollfd {
        fd: counter.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the entry is there.
    unsafe { libc::poll(&raw mut entry, 1, 0) > 0 }
}

fn counters() -> Vec<Scene> {
    // SAFETY: no memory is named.
    let made = unsafe { libc::eventfd(0, 0) };
    // SAFETY: it is new and nobody else's.
    let events = File::from(unsafe { OwnedFd::from_raw_fd(made) });
    let theirs = events.try_clone().expect("a counter");
    let most = u64::MAX - 1;
    let body = move |said: &mut Said| {
        let fd = events.as_raw_fd();
        let mut place = [0; 12];
        said.say("too small", read(fd, &mut place[..7]));
        said.say("too small", write(fd, &place[..7]));
        said.say("too much", write(fd, &u64::MAX.to_ne_bytes()));
        said.say("read", read(fd, &mut place));
        said.say("bytes", format!("{place:?}"));
        said.say("most", write(fd, &most.to_ne_bytes()));
        // There is room only when the partner has read.
        said.say("one more", write(fd, &1_u64.to_ne_bytes()));
        // SAFETY: no memory is named.
        let time = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) };
        // SAFETY: it is new and nobody else's.
        let time = unsafe { OwnedFd::from_raw_fd(time) };
        let ms = |ms| libc::timespec {
            tv_sec: 0,
            tv_nsec: ms * 1_000_000,
        };
        for wait in [0_i64, 1, 15] {
            let once = libc::itimerspec {
                it_interval: ms(0),
                it_value: ms(wait.max(1)),
            };
            // SAFETY: the time is valid, and nobody wants the old one.
            unsafe {
                let nobody = core::ptr::null_mut();
                libc::timerfd_settime(time.as_raw_fd(), 0, &raw const once, nobody);
            }
            said.say("too small", read(time.as_raw_fd(), &mut place[..4]));
            said.say("time", read(time.as_raw_fd(), &mut place));
            said.say("bytes", format!("{:?}", &place[..8]));
        }
        said.say("write", write(time.as_raw_fd(), &place));
    };
    vec![with_partner("counters", body, move || {
        let mut theirs = theirs;
        std::thread::sleep(Duration::from_millis(5));
        theirs.write_all(&3_u64.to_ne_bytes()).expect("room");
        while has_room(&theirs) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(5));
        let mut place = [0; 8];
        let mut read = Vec::new();
        while read.last() != Some(&1) {
            theirs.read_exact(&mut place).expect("a counter");
            read.push(u64::from_ne_bytes(place));
        }
        String::new()
    })]
}

#[test]
fn counters_of_events_and_of_time_answer_as_elsewhere() {
    compare(counters);
}
