//! What flows through sockets: all of what is sent, and as much as is asked for.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::calls::{
    digest, limit, pattern, read, readv, recv, recvfrom, recvmsg, send, sendmsg, sendto, shown,
    write, writev,
};
use crate::{Said, Scene, alone_on_stage, compare, with_partner};

const MUCH: usize = 2 << 20;

fn pair(tcp: bool) -> (OwnedFd, OwnedFd) {
    if !tcp {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        return (ours.into(), theirs.into());
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("a listener");
    let (theirs, _) = listener.accept().expect("a client");
    (ours.into(), theirs.into())
}

/// A partner that reads slowly to the end.
fn slow_reader(from: OwnedFd) -> impl FnOnce() -> String + Send {
    move || {
        let mut from = std::fs::File::from(from);
        let (mut all, mut place) = (Vec::new(), vec![0; 100_000]);
        loop {
            match from.read(&mut place) {
                Ok(count @ 1..) => all.extend_from_slice(&place[..count]),
                end => return format!("{end:?} after {}", digest(&all)),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A partner that writes this little by little.
fn slow_writer(to: OwnedFd, parts: &'static [&'static str]) -> impl FnOnce() -> String + Send {
    move || {
        let mut to = std::fs::File::from(to);
        for part in parts {
            std::thread::sleep(Duration::from_millis(5));
            to.write_all(part.as_bytes()).expect("a reader");
        }
        String::new()
    }
}

fn sends_all(
    name: &'static str,
    tcp: bool,
    call: impl Fn(&OwnedFd, &[u8]) -> crate::calls::Told + Send + 'static,
) -> Scene {
    let (ours, theirs) = pair(tcp);
    let body = move |said: &mut Said| {
        said.say("much", call(&ours, &pattern(MUCH)));
        said.say("little", call(&ours, b"more"));
    };
    with_partner(name, body, slow_reader(theirs))
}

/// Pieces of very different lengths, some of them empty.
fn lengths() -> Vec<usize> {
    let mut lengths = vec![0, 1, 300_000, 0, 7, 500_000];
    lengths.extend([10_000; 100]);
    lengths.extend([0, MUCH]);
    lengths
}

fn sending() -> Vec<Scene> {
    [false, true]
        .into_iter()
        .flat_map(|tcp| {
            [
                sends_all("send", tcp, |to, bytes| send(to.as_raw_fd(), bytes, 0)),
                sends_all("sendto", tcp, |to, bytes| sendto(to.as_raw_fd(), bytes, 0)),
                sends_all("write", tcp, |to, bytes| write(to.as_raw_fd(), bytes)),
                sends_all("writev", tcp, |to, bytes| {
                    writev(to.as_raw_fd(), bytes, &lengths())
                }),
                sends_all("sendmsg", tcp, |to, bytes| {
                    sendmsg(to.as_raw_fd(), bytes, &lengths(), libc::MSG_NOSIGNAL)
                }),
            ]
        })
        .collect()
}

#[test]
fn what_is_sent_is_sent_whole() {
    compare(sending);
}

fn receives(
    name: &'static str,
    tcp: bool,
    call: impl Fn(&OwnedFd, &mut [u8]) -> crate::calls::Told + Send + 'static,
) -> Scene {
    let (ours, theirs) = pair(tcp);
    let body = move |said: &mut Said| {
        for _ in 0..3 {
            let mut place = [0; 10];
            said.say("ten", call(&ours, &mut place));
            said.say("bytes", shown(&place));
        }
    };
    with_partner(
        name,
        body,
        slow_writer(theirs, &["012", "3", "456789ab", "cd"]),
    )
}

fn receiving() -> Vec<Scene> {
    let all = libc::MSG_WAITALL;
    [false, true]
        .into_iter()
        .flat_map(|tcp| {
            [
                receives("recv", tcp, move |fd, to| recv(fd.as_raw_fd(), to, all)),
                receives("recvfrom", tcp, move |fd, to| {
                    recvfrom(fd.as_raw_fd(), to, all)
                }),
                receives("recvmsg", tcp, move |fd, to| {
                    recvmsg(fd.as_raw_fd(), to, &[4, 0, 6], all)
                }),
            ]
        })
        .collect()
}

#[test]
fn all_that_is_asked_for_is_received_or_what_came_before_the_end() {
    compare(receiving);
}

fn looking() -> Vec<Scene> {
    let (ours, theirs) = pair(false);
    let (first, second) = pair(true);
    let look = |ours: OwnedFd| {
        move |said: &mut Said| {
            let fd = ours.as_raw_fd();
            let mut place = [0; 10];
            said.say(
                "peek",
                recv(fd, &mut place[..2], libc::MSG_PEEK | libc::MSG_WAITALL),
            );
            said.say("bytes", shown(&place));
            said.say(
                "peek all",
                recv(fd, &mut place, libc::MSG_PEEK | libc::MSG_WAITALL),
            );
            said.say("bytes", shown(&place));
            said.say("readv", readv(fd, &mut place, &[1, 0, 9]));
            said.say("bytes", shown(&place));
            said.say("end", read(fd, &mut place));
        }
    };
    vec![
        with_partner("peek", look(ours), slow_writer(theirs, &["0123456"])),
        with_partner(
            "tcp peek",
            look(first),
            slow_writer(second, &["0123456", "789"]),
        ),
    ]
}

#[test]
fn what_was_only_looked_at_is_there_afterwards() {
    compare(looking);
}

fn limits() -> Vec<Scene> {
    let body = |tcp: bool| {
        let (ours, theirs) = pair(tcp);
        move |said: &mut Said| {
            let (fd, all) = (ours.as_raw_fd(), libc::MSG_WAITALL);
            limit(fd, libc::SO_RCVTIMEO, 20);
            let mut place = [0; 10];
            said.say("recv", recv(fd, &mut place, 0));
            said.say("recvfrom", recvfrom(fd, &mut place, 0));
            said.say("recvmsg", recvmsg(fd, &mut place, &[3, 3], 0));
            said.say("read", read(fd, &mut place));
            said.say("readv", readv(fd, &mut place, &[3, 3]));
            for waiting in ["abc", "defg", "h"] {
                said.say("there", write(theirs.as_raw_fd(), waiting.as_bytes()));
                said.say("recv all", recv(fd, &mut place, all));
                said.say("there", write(theirs.as_raw_fd(), waiting.as_bytes()));
                said.say("recvfrom all", recvfrom(fd, &mut place, all));
                said.say("there", write(theirs.as_raw_fd(), waiting.as_bytes()));
                said.say("recvmsg all", recvmsg(fd, &mut place, &[2, 8], all));
                said.say("bytes", shown(&place));
            }
        }
    };
    vec![
        alone_on_stage("limits", body(false)),
        alone_on_stage("limits of tcp", body(true)),
    ]
}

#[test]
fn limits_on_receiving_hold_for_all_of_it() {
    compare(limits);
}

fn limited_sending() -> Vec<Scene> {
    let scene = |name, call: fn(i32, &[u8]) -> crate::calls::Told| {
        let (ours, theirs) = pair(false);
        alone_on_stage(name, move |said: &mut Said| {
            let fd = ours.as_raw_fd();
            limit(fd, libc::SO_SNDTIMEO, 20);
            // As much as the buffers hold, which is the same everywhere.
            said.say("much", call(fd, &pattern(MUCH)));
            said.say("more", call(fd, &pattern(MUCH)));
            limit(fd, libc::SO_SNDTIMEO, 0);
            said.say("in no time", send(fd, b"more", libc::MSG_DONTWAIT));
            let mut place = vec![0; MUCH];
            let got = recv(theirs.as_raw_fd(), &mut place, libc::MSG_DONTWAIT);
            let whole = usize::try_from(got.count()).expect("something");
            said.say("got", got.count() > 0 && place[..whole] == pattern(whole));
        })
    };
    vec![
        scene("send", |fd, bytes| send(fd, bytes, 0)),
        scene("sendto", |fd, bytes| sendto(fd, bytes, 0)),
        scene("write", write),
        scene("writev", |fd, bytes| writev(fd, bytes, &lengths())),
        scene("sendmsg", |fd, bytes| sendmsg(fd, bytes, &lengths(), 0)),
    ]
}

#[test]
fn limits_on_sending_hold_for_all_of_it() {
    compare(limited_sending);
}
