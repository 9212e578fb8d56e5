//! Peers that have gone, calls of no bytes, and descriptors that are none.

use core::ffi::c_int;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::calls::{
    NOWHERE, Told, limit, message, pattern, pieces, read, readv, recv, recvfrom, recvmsg, send,
    sendmsg, sendto, set, write, writev,
};
use crate::{Said, Scene, alone_on_stage, compare, with_partner};

fn all_ways_of_sending(said: &mut Said, fd: c_int, flags: c_int) {
    let bytes = b"to nobody";
    said.say("send", send(fd, bytes, flags));
    said.say("sendto", sendto(fd, bytes, flags));
    said.say("sendmsg", sendmsg(fd, bytes, &[3, 3], flags));
    said.say("write", write(fd, bytes));
    said.say("writev", writev(fd, bytes, &[3, 3]));
}

fn all_ways_of_receiving(said: &mut Said, fd: c_int) {
    let mut place = [0; 10];
    said.say("recv", recv(fd, &mut place, 0));
    said.say("recv all", recv(fd, &mut place, libc::MSG_WAITALL));
    said.say("recvfrom", recvfrom(fd, &mut place, 0));
    said.say("recvmsg", recvmsg(fd, &mut place, &[3, 3], 0));
    said.say("read", read(fd, &mut place));
    said.say("readv", readv(fd, &mut place, &[3, 3]));
}

fn gone() -> Vec<Scene> {
    let scene = |name, kind| {
        alone_on_stage(name, move |said: &mut Said| {
            for flags in [0, libc::MSG_NOSIGNAL] {
                let [ours, theirs] = socket_pair(kind);
                drop(theirs);
                all_ways_of_sending(said, ours.as_raw_fd(), flags);
                all_ways_of_receiving(said, ours.as_raw_fd());
            }
        })
    };
    let pipes = alone_on_stage("pipes", |said: &mut Said| {
        let (from, to) = std::io::pipe().expect("a pipe");
        drop(from);
        said.say("write", write(to.as_raw_fd(), b"to nobody"));
        said.say("writev", writev(to.as_raw_fd(), b"to nobody", &[3, 3]));
        said.say("nothing", write(to.as_raw_fd(), b""));
        let (from, to) = std::io::pipe().expect("a pipe");
        drop(to);
        said.say("read", read(from.as_raw_fd(), &mut [0; 8]));
        said.say("readv", readv(from.as_raw_fd(), &mut [0; 8], &[3, 3]));
    });
    vec![
        scene("stream", libc::SOCK_STREAM),
        scene("sequence", libc::SOCK_SEQPACKET),
        scene("datagram", libc::SOCK_DGRAM),
        pipes,
    ]
}

pub(crate) fn socket_pair(kind: c_int) -> [OwnedFd; 2] {
    let mut pair = [0; 2];
    // SAFETY: there is room for two.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) };
    assert_eq!(made, 0);
    // A datagram that nobody sends is not waited for in these scenes.
    let own = |fd| {
        limit(fd, libc::SO_RCVTIMEO, 10);
        // SAFETY: it is new and nobody else's.
        unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) }
    };
    pair.map(own)
}

#[test]
fn who_sends_to_nobody_is_told_as_elsewhere() {
    compare(gone);
}

/// Unread bytes would be told to the other side, once.
fn until_closed(ours: &UnixStream) {
    let mut entry = libc::pollfd {
        fd: ours.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: the entry is there.
    unsafe { libc::poll(&raw mut entry, 1, -1) };
}

fn going() -> Vec<Scene> {
    let scene = |name, call: fn(c_int, &[u8]) -> Told| {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let body = move |said: &mut Said| {
            let bytes = pattern(4 << 20);
            let sent = call(ours.as_raw_fd(), &bytes).count();
            said.say("some", sent > 0 && sent < 4 << 20);
            said.say("then", call(ours.as_raw_fd(), &bytes));
        };
        with_partner(name, body, move || {
            // Something has come; more is on its way, and nobody will read it.
            (&theirs).read_exact(&mut [0]).expect("a writer");
            std::thread::sleep(std::time::Duration::from_millis(5));
            theirs.shutdown(Shutdown::Read).expect("a socket");
            until_closed(&theirs);
            String::new()
        })
    };
    vec![
        scene("send", |fd, bytes| send(fd, bytes, 0)),
        scene("sendto", |fd, bytes| sendto(fd, bytes, 0)),
        scene("write", write),
        scene("writev", |fd, bytes| writev(fd, bytes, &[1 << 21, 1 << 21])),
        scene("sendmsg", |fd, bytes| {
            sendmsg(fd, bytes, &[1 << 21, 1 << 21], 0)
        }),
    ]
}

#[test]
fn who_sends_to_somebody_who_goes_is_told_how_much_went() {
    compare(going);
}

fn nothing() -> Vec<Scene> {
    let scene = |name, kind| {
        alone_on_stage(name, move |said: &mut Said| {
            let [ours, theirs] = socket_pair(kind);
            let fd = ours.as_raw_fd();
            said.say("send", send(fd, b"", 0));
            said.say("sendto", sendto(fd, b"", 0));
            said.say("sendmsg", sendmsg(fd, b"", &[], 0));
            said.say("sendmsg", sendmsg(fd, b"", &[0, 0], 0));
            said.say("write", write(fd, b""));
            said.say("writev", writev(fd, b"", &[]));
            said.say("writev", writev(fd, b"", &[0, 0]));
            said.say("read", read(theirs.as_raw_fd(), &mut []));
            said.say("readv", readv(theirs.as_raw_fd(), &mut [], &[]));
            said.say("readv", readv(theirs.as_raw_fd(), &mut [], &[0]));
            all_ways_of_receiving(said, theirs.as_raw_fd());
            said.say("write", write(fd, b"something"));
            said.say("recv", recv(theirs.as_raw_fd(), &mut [], 0));
            all_ways_of_receiving(said, theirs.as_raw_fd());
        })
    };
    vec![
        scene("stream", libc::SOCK_STREAM),
        scene("sequence", libc::SOCK_SEQPACKET),
        scene("datagram", libc::SOCK_DGRAM),
    ]
}

#[test]
fn calls_of_no_bytes_are_answered_as_elsewhere() {
    compare(nothing);
}

fn wrong() -> Vec<Scene> {
    let descriptors = alone_on_stage("descriptors", |said: &mut Said| {
        let file = std::fs::File::open("/proc/self/status").expect("Linux");
        let (from, to) = std::io::pipe().expect("a pipe");
        let folder = std::fs::File::open("/").expect("a folder");
        let none = [-1, 1 << 20, -100];
        let some = [&file as &dyn AsRawFd, &from, &folder].map(AsRawFd::as_raw_fd);
        for fd in none.into_iter().chain(some) {
            all_ways_of_sending(said, fd, 0);
        }
        for fd in none.into_iter().chain([to.as_raw_fd(), folder.as_raw_fd()]) {
            all_ways_of_receiving(said, fd);
        }
    });
    let arguments = alone_on_stage("arguments", |said: &mut Said| {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        limit(ours.as_raw_fd(), libc::SO_RCVTIMEO, 10);
        let fd = ours.as_raw_fd();
        let mut piece = pieces(b"text", &[4]);
        // SAFETY: what these name is not there, which they are to say.
        unsafe {
            said.say("writev", Told::new(libc::writev(fd, piece.as_ptr(), -1)));
            said.say("writev", Told::new(libc::writev(fd, piece.as_ptr(), 2_000)));
            said.say("readv", Told::new(libc::readv(fd, piece.as_ptr(), -1)));
            said.say("readv", Told::new(libc::readv(fd, piece.as_ptr(), 2_000)));
            said.say("writev", Told::new(libc::writev(fd, NOWHERE.cast(), 1)));
            said.say("send", Told::new(libc::send(fd, NOWHERE, 4, 0)));
            said.say("write", Told::new(libc::write(fd, NOWHERE, 4)));
            said.say("sendmsg", Told::new(libc::sendmsg(fd, NOWHERE.cast(), 0)));
            said.say("recvmsg", Told::new(libc::recvmsg(fd, NOWHERE.cast(), 0)));
            piece[0].iov_base = NOWHERE;
            let whole = message(&mut piece);
            said.say("sendmsg", Told::new(libc::sendmsg(fd, &raw const whole, 0)));
            theirs.write_all(b"here").expect("room");
            said.say("recv", Told::new(libc::recv(fd, NOWHERE, 4, 0)));
            said.say("read", Told::new(libc::read(fd, NOWHERE, 4)));
        }
        all_ways_of_receiving(said, fd);
        set(fd, libc::SO_RCVLOWAT, 1);
        let mut place = [0; 4];
        said.say("out of band", recv(fd, &mut place, libc::MSG_OOB));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        said.say(
            "errors",
            recv(udp.as_raw_fd(), &mut place, libc::MSG_ERRQUEUE),
        );
        let direction = alone_direction();
        said.say("read", read(direction[1].as_raw_fd(), &mut place));
        said.say("write", write(direction[0].as_raw_fd(), &place));
        said.say("writev", writev(direction[0].as_raw_fd(), &place, &[2, 2]));
        said.say(
            "readv",
            readv(direction[1].as_raw_fd(), &mut place, &[2, 2]),
        );
    });
    vec![descriptors, arguments]
}

fn alone_direction() -> [OwnedFd; 2] {
    let (from, to) = std::io::pipe().expect("a pipe");
    [from.into(), to.into()]
}

#[test]
fn wrong_calls_are_answered_as_elsewhere() {
    compare(wrong);
}
