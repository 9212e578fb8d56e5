//! Waiting for one of several descriptors.

use core::ffi::c_int;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::calls::{NOWHERE, Told};
use crate::{Said, Scene, alone_on_stage, compare, with_partner};

const NO_SIGNALS: *const libc::sigset_t = core::ptr::null();

fn entry(fd: c_int, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

fn ms(ms: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: 0,
        tv_nsec: ms * 1_000_000,
    }
}

/// What `poll` and `ppoll` say of these descriptors.
fn polled(said: &mut Said, entries: &[libc::pollfd], wait_ms: c_int) {
    let count = entries.len() as libc::nfds_t;
    for precise in [false, true] {
        let mut entries = entries.to_vec();
        let place = entries.as_mut_ptr();
        let limit = ms(i64::from(wait_ms));
        let start = Instant::now();
        // SAFETY: so many entries are there.
        let result = unsafe {
            if precise && wait_ms >= 0 {
                libc::ppoll(place, count, &raw const limit, NO_SIGNALS)
            } else if precise {
                libc::ppoll(place, count, core::ptr::null(), NO_SIGNALS)
            } else {
                libc::poll(place, count, wait_ms)
            }
        };
        let early = start.elapsed() < Duration::from_millis(wait_ms.max(0) as u64) && result == 0;
        let seen: Vec<i16> = entries.iter().map(|entry| entry.revents).collect();
        said.say(
            "poll",
            format!("{} {seen:?} {early}", Told::new(result as isize)),
        );
    }
}

fn polls() -> Vec<Scene> {
    let scene = alone_on_stage("poll", |said: &mut Said| {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let (from, to) = std::io::pipe().expect("a pipe");
        let file = std::fs::File::open("/proc/self/status").expect("Linux");
        let (read, fd) = (libc::POLLIN, ours.as_raw_fd());
        for wait in [0, 5] {
            polled(said, &[], wait);
            polled(said, &[entry(fd, read)], wait);
            polled(
                said,
                &[entry(fd, 0), entry(-1, read), entry(-7, read)],
                wait,
            );
            polled(said, &[entry(fd, read); 40], wait);
            polled(said, &vec![entry(fd, read); 2_000], wait);
        }
        for wait in [0, 5, -1] {
            polled(said, &[entry(1 << 20, read), entry(fd, read)], wait);
            polled(said, &[entry(fd, read | libc::POLLOUT)], wait);
            polled(
                said,
                &[entry(file.as_raw_fd(), read), entry(fd, read)],
                wait,
            );
            let both = [
                entry(from.as_raw_fd(), read),
                entry(to.as_raw_fd(), libc::POLLOUT),
            ];
            polled(said, &both, wait);
        }
        theirs.write_all(b"here").expect("room");
        drop(to);
        for wait in [0, 5, -1] {
            polled(said, &[entry(fd, read), entry(from.as_raw_fd(), 0)], wait);
        }
        drop(theirs);
        polled(said, &[entry(fd, 0)], -1);
        let limits = [(0, 1_000_000_000), (-1, 0), (0, -1)];
        for (tv_sec, tv_nsec) in limits {
            let limit = libc::timespec { tv_sec, tv_nsec };
            // SAFETY: nothing is there; what is said of it is asked.
            unsafe {
                let nobody = core::ptr::null_mut();
                let result = libc::ppoll(nobody, 0, &raw const limit, NO_SIGNALS);
                said.say("limit", Told::new(result as isize));
            }
        }
        // SAFETY: as above.
        unsafe {
            said.say(
                "nowhere",
                Told::new(libc::poll(NOWHERE.cast(), 1, 5) as isize),
            );
            said.say(
                "too many",
                Told::new(libc::poll(NOWHERE.cast(), 1 << 40, 5) as isize),
            );
        }
    });
    vec![scene]
}

#[test]
fn poll_answers_as_elsewhere() {
    compare(polls);
}

/// The descriptors of a set below 64.
fn members(set: &libc::fd_set) -> Vec<c_int> {
    // SAFETY: the descriptors are below the size of the set.
    (0..64)
        .filter(|&fd| unsafe { libc::FD_ISSET(fd, set) })
        .collect()
}

fn set_of(descriptors: &[c_int]) -> libc::fd_set {
    // SAFETY: all zero is a valid empty set.
    let mut set: libc::fd_set = unsafe { core::mem::zeroed() };
    for &fd in descriptors {
        assert!(fd < 1_024);
        // SAFETY: the descriptor is below the size of the set.
        unsafe { libc::FD_SET(fd, &raw mut set) };
    }
    set
}

/// What `select` and `pselect` say; members as places in the list, for numbers differ.
fn selected(said: &mut Said, from: &[c_int], to: &[c_int], wait_ms: Option<i64>) {
    let place = |set: &libc::fd_set, list: &[c_int]| -> Vec<usize> {
        let members = members(set);
        (0..list.len())
            .filter(|&n| members.contains(&list[n]))
            .collect()
    };
    let most = from.iter().chain(to).max().map_or(0, |most| most + 1);
    for precise in [false, true] {
        let (mut reading, mut writing) = (set_of(from), set_of(to));
        let mut failing = set_of(from);
        let mut limit = libc::timeval {
            tv_sec: 0,
            tv_usec: wait_ms.unwrap_or(0) * 1_000,
        };
        let sharp = ms(wait_ms.unwrap_or(0));
        let (r, w, x) = (&raw mut reading, &raw mut writing, &raw mut failing);
        let start = Instant::now();
        // SAFETY: the sets and the times are there.
        let result = unsafe {
            match (precise, wait_ms) {
                (false, None) => libc::select(most, r, w, x, core::ptr::null_mut()),
                (false, _) => libc::select(most, r, w, x, &raw mut limit),
                (true, None) => libc::pselect(most, r, w, x, core::ptr::null(), NO_SIGNALS),
                (true, _) => libc::pselect(most, r, w, x, &raw const sharp, NO_SIGNALS),
            }
        };
        let told = Told::new(result as isize);
        let wait = Duration::from_millis(wait_ms.unwrap_or(0).max(0).unsigned_abs());
        let early = start.elapsed() < wait && result == 0;
        let sets = [
            place(&reading, from),
            place(&writing, to),
            place(&failing, from),
        ];
        said.say("select", format!("{told} {sets:?} {early}"));
        if result == 0 && !precise {
            said.say("left", limit.tv_usec);
        }
    }
}

fn selects() -> Vec<Scene> {
    let scene = alone_on_stage("select", |said: &mut Said| {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let (from, to) = std::io::pipe().expect("a pipe");
        let (fd, pipe) = (ours.as_raw_fd(), from.as_raw_fd());
        for wait in [Some(0), Some(5)] {
            selected(said, &[], &[], wait);
            selected(said, &[fd, pipe], &[], wait);
            // Beyond all that are open, which the kernel does not look at; and closed.
            selected(said, &[900, fd], &[], wait);
            selected(said, &[fd, 50], &[], wait);
        }
        for wait in [Some(0), Some(5), None] {
            selected(said, &[fd], &[fd, to.as_raw_fd()], wait);
        }
        theirs.write_all(b"here").expect("room");
        drop(to);
        for wait in [Some(0), Some(5), None] {
            selected(said, &[fd, pipe], &[fd], wait);
        }
        drop(theirs);
        selected(said, &[fd], &[fd], None);
        let nobody = core::ptr::null_mut();
        // SAFETY: nothing is there; what is said of it is asked.
        unsafe {
            for (tv_sec, tv_usec) in [(-1, 0), (0, -1)] {
                let mut limit = libc::timeval { tv_sec, tv_usec };
                let result = libc::select(0, nobody, nobody, nobody, &raw mut limit);
                said.say("limit", Told::new(result as isize));
            }
            let mut limit = libc::timeval {
                tv_sec: 0,
                tv_usec: 5_000,
            };
            let result = libc::select(-1, nobody, nobody, nobody, &raw mut limit);
            said.say("count", Told::new(result as isize));
            let mut limit = libc::timeval {
                tv_sec: 0,
                tv_usec: 1_000_100,
            };
            let result = libc::select(0, nobody, nobody, nobody, &raw mut limit);
            said.say("many microseconds", Told::new(result as isize));
        }
    });
    vec![scene]
}

#[test]
fn select_answers_as_elsewhere() {
    compare(selects);
}

fn epoll() -> OwnedFd {
    // SAFETY: no memory is named; it is new and nobody else's.
    unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(0)) }
}

fn watch(epoll: &OwnedFd, fd: c_int, events: c_int) -> Told {
    let mut event = libc::epoll_event {
        events: events.cast_unsigned(),
        u64: 7,
    };
    // SAFETY: the event is there.
    Told::new(
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) }
            as isize,
    )
}

fn seen(said: &mut Said, epoll: c_int, most: c_int, wait_ms: c_int) {
    for precise in [false, true] {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let place = events.as_mut_ptr();
        let start = Instant::now();
        // SAFETY: the events are there, and never more are asked for.
        let result = unsafe {
            if precise {
                libc::epoll_pwait(epoll, place, most, wait_ms, NO_SIGNALS)
            } else {
                libc::epoll_wait(epoll, place, most, wait_ms)
            }
        };
        let early = start.elapsed() < Duration::from_millis(wait_ms.max(0) as u64) && result == 0;
        let (bits, data) = (events[0].events, events[0].u64);
        said.say(
            "epoll",
            format!("{} {bits} {data} {early}", Told::new(result as isize)),
        );
    }
}

fn epolls() -> Vec<Scene> {
    let scene = alone_on_stage("epoll", |said: &mut Said| {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let set = epoll();
        for wait in [0, 5, -1] {
            seen(said, set.as_raw_fd(), 0, wait);
            seen(said, set.as_raw_fd(), -1, wait);
            seen(said, ours.as_raw_fd(), 4, wait);
            seen(said, -1, 4, wait);
        }
        said.say(
            "watch",
            watch(&set, ours.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET),
        );
        for wait in [0, 5] {
            seen(said, set.as_raw_fd(), 4, wait);
        }
        theirs.write_all(b"here").expect("room");
        for wait in [0, 5] {
            seen(said, set.as_raw_fd(), 4, wait);
        }
        drop(theirs);
        seen(said, set.as_raw_fd(), 4, 5);
    });
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let body = move |said: &mut Said| {
        let set = epoll();
        said.say("watch", watch(&set, ours.as_raw_fd(), libc::EPOLLIN));
        for _ in 0..3 {
            seen(said, set.as_raw_fd(), 4, -1);
            polled(said, &[entry(ours.as_raw_fd(), libc::POLLIN)], -1);
            selected(said, &[ours.as_raw_fd()], &[], None);
            said.say("read", format!("{:?}", (&ours).read(&mut [0; 8])));
            said.say("answer", format!("{:?}", (&ours).write(b"read")));
        }
    };
    let partner = move || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(5));
            theirs.write_all(b"here").expect("a reader");
            theirs.read_exact(&mut [0; 4]).expect("an answer");
        }
        String::new()
    };
    vec![scene, with_partner("what comes later", body, partner)]
}

#[test]
fn epoll_answers_as_elsewhere() {
    compare(epolls);
}
