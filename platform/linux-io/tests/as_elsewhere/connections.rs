//! Connections: made, refused, limited, and wrong.

use core::ffi::c_int;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::calls::{NOWHERE, Told, limit};
use crate::{Said, Scene, alone_on_stage, compare, with_partner};

fn socket(family: c_int, kind: c_int) -> OwnedFd {
    // SAFETY: no memory is named.
    let made = unsafe { libc::socket(family, kind, 0) };
    assert!(made >= 0);
    // SAFETY: it is new and nobody else's.
    unsafe { OwnedFd::from_raw_fd(made) }
}

fn internet(port: u16) -> libc::sockaddr_in {
    // SAFETY: all zero is a valid address.
    let mut name: libc::sockaddr_in = unsafe { core::mem::zeroed() };
    name.sin_family = libc::sa_family_t::try_from(libc::AF_INET).expect("small");
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
    name
}

/// An address that no file stands for.
fn local(text: &str) -> (libc::sockaddr_un, u32) {
    // SAFETY: all zero is a valid address.
    let mut name: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    name.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).expect("small");
    for (place, byte) in name.sun_path[1..].iter_mut().zip(text.bytes()) {
        *place = byte.cast_signed();
    }
    (name, u32::try_from(3 + text.len()).expect("short"))
}

fn connect<T>(fd: c_int, name: &T, length: u32) -> Told {
    // SAFETY: the kernel checks that the address is as long as said.
    Told::new(unsafe { libc::connect(fd, (&raw const *name).cast(), length) })
}

fn listen<T>(fd: c_int, name: &T, length: u32) {
    // SAFETY: the address is there and as long as said.
    unsafe {
        assert_eq!(libc::bind(fd, (&raw const *name).cast(), length), 0);
        assert_eq!(libc::listen(fd, 0), 0);
    }
}

fn accept(fd: c_int, flags: c_int) -> Told {
    let (name, length) = (core::ptr::null_mut(), core::ptr::null_mut());
    // SAFETY: nobody's name is wanted.
    let made = unsafe { libc::accept4(fd, name, length, flags) };
    if made >= 0 {
        // SAFETY: it is new and nobody else's.
        drop(unsafe { OwnedFd::from_raw_fd(made) });
    }
    Told::new(made.min(0))
}

fn wrong() -> Vec<Scene> {
    let scene = alone_on_stage("wrong", |said: &mut Said| {
        let file = std::fs::File::open("/proc/self/status").expect("Linux");
        let ours = socket(libc::AF_INET, libc::SOCK_STREAM);
        let udp = socket(libc::AF_INET, libc::SOCK_DGRAM);
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        for fd in [
            -1,
            1 << 20,
            file.as_raw_fd(),
            ours.as_raw_fd(),
            udp.as_raw_fd(),
        ] {
            said.say("accept", accept(fd, 0));
            said.say("accept4", accept(fd, 77));
        }
        said.say("accept4", accept(free.as_raw_fd(), 77));
        drop(free);
        for fd in [-1, file.as_raw_fd(), ours.as_raw_fd(), udp.as_raw_fd()] {
            said.say("connect", connect(fd, &internet(port), 16));
            said.say("too short", connect(fd, &internet(port), 3));
            said.say("too long", connect(fd, &internet(port), 4_000));
            // SAFETY: nothing is there, which it is to say.
            let nowhere = unsafe { libc::connect(fd, NOWHERE.cast(), 16) };
            said.say("nowhere", Told::new(nowhere));
        }
        let unix = socket(libc::AF_UNIX, libc::SOCK_STREAM);
        let (name, length) = local("nobody listens here");
        said.say("nobody", connect(unix.as_raw_fd(), &name, length));
        name_to_nowhere(said);
    });
    vec![scene]
}

/// Who has no place for the name loses the connection.
fn name_to_nowhere(said: &mut Said) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    limit(listener.as_raw_fd(), libc::SO_RCVTIMEO, 20);
    let _client = TcpStream::connect(listener.local_addr().expect("bound")).expect("a listener");
    let mut length = 16;
    let place = NOWHERE.cast();
    // SAFETY: nothing is there, which it is to say.
    let made = unsafe { libc::accept(listener.as_raw_fd(), place, &raw mut length) };
    said.say("accept", Told::new(made));
    said.say("accept", accept(listener.as_raw_fd(), 0));
}

#[test]
fn connections_that_cannot_be_are_refused_as_elsewhere() {
    compare(wrong);
}

fn names() -> Vec<Scene> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let body = move |said: &mut Said| {
        for room in [16, 3, 0, 100] {
            // SAFETY: all zero is a valid address.
            let mut name: [libc::sockaddr_in; 8] = unsafe { core::mem::zeroed() };
            let mut length = room;
            let place = name.as_mut_ptr().cast();
            // SAFETY: the places are there.
            let made = unsafe { libc::accept(listener.as_raw_fd(), place, &raw mut length) };
            said.say("accept", made >= 0);
            said.say("length", format!("{length} {}", name[0].sin_family));
            // SAFETY: it is new and nobody else's.
            drop(unsafe { OwnedFd::from_raw_fd(made) });
        }
        let stream = TcpStream::connect(address).expect("a listener");
        let again = connect(stream.as_raw_fd(), &internet(address.port()), 16);
        said.say("again", again);
    };
    let partner = move || {
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(3));
            drop(TcpStream::connect(address).expect("a listener"));
        }
        String::new()
    };
    vec![with_partner("names", body, partner)]
}

#[test]
fn who_connects_is_told_as_elsewhere() {
    compare(names);
}

fn limits() -> Vec<Scene> {
    let scene = alone_on_stage("limits", |said: &mut Said| {
        let ours = socket(libc::AF_INET, libc::SOCK_STREAM);
        listen(ours.as_raw_fd(), &internet(0), 16);
        limit(ours.as_raw_fd(), libc::SO_RCVTIMEO, 20);
        said.say("accept", accept(ours.as_raw_fd(), 0));
        let mut name = internet(0);
        let mut length = 16;
        // SAFETY: the places are there.
        unsafe {
            libc::getsockname(ours.as_raw_fd(), (&raw mut name).cast(), &raw mut length);
        }
        // One waits to be accepted; the next is not answered.
        let clients = [(); 3].map(|()| socket(libc::AF_INET, libc::SOCK_STREAM));
        for client in &clients {
            limit(client.as_raw_fd(), libc::SO_SNDTIMEO, 60);
            said.say("connect", connect(client.as_raw_fd(), &name, 16));
        }
        said.say("again", connect(clients[2].as_raw_fd(), &name, 16));

        let unix = socket(libc::AF_UNIX, libc::SOCK_STREAM);
        let thread = format!("{:?}", std::time::Instant::now());
        let (name, length) = local(&thread[thread.len() - 30..]);
        listen(unix.as_raw_fd(), &name, length);
        let clients = [(); 3].map(|()| socket(libc::AF_UNIX, libc::SOCK_STREAM));
        for client in &clients {
            limit(client.as_raw_fd(), libc::SO_SNDTIMEO, 60);
            said.say("connect", connect(client.as_raw_fd(), &name, length));
        }
        limit(unix.as_raw_fd(), libc::SO_RCVTIMEO, 20);
        said.say("accept", accept(unix.as_raw_fd(), 0));
        said.say("connect", connect(clients[2].as_raw_fd(), &name, length));
        said.say("again", connect(clients[2].as_raw_fd(), &name, length));
        for _ in 0..3 {
            said.say("accept", accept(unix.as_raw_fd(), libc::SOCK_CLOEXEC));
        }
    });
    vec![scene]
}

#[test]
fn limits_on_connecting_and_accepting_hold() {
    compare(limits);
}

fn begun() -> Vec<Scene> {
    let scene = alone_on_stage("begun", |said: &mut Said| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let name = internet(listener.local_addr().expect("bound").port());
        let ours = socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
        said.say("connect", connect(ours.as_raw_fd(), &name, 16));
        said.say("accept", accept(listener.as_raw_fd(), 0));
        said.say("connect", connect(ours.as_raw_fd(), &name, 16));
        said.say("connect", connect(ours.as_raw_fd(), &name, 16));
    });
    vec![scene]
}

#[test]
fn a_connection_that_is_not_waited_for_goes_on_as_elsewhere() {
    compare(begun);
}
