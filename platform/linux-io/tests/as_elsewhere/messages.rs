//! Messages: whole or not at all, with who sent them and what they carry.

use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::calls::{
    Told, limit, message, pattern, pieces, read, recv, recvfrom, recvmsg, send, sendmsg, shown,
    write, writev,
};
use crate::closed::socket_pair;
use crate::{Said, Scene, alone_on_stage, compare, with_partner};

fn datagrams() -> Vec<Scene> {
    let sizes = |name, kind| {
        alone_on_stage(name, move |said: &mut Said| {
            let [ours, theirs] = socket_pair(kind);
            let (from, to) = (theirs.as_raw_fd(), ours.as_raw_fd());
            let mut place = [0; 16];
            for flags in [0, libc::MSG_TRUNC, libc::MSG_PEEK, libc::MSG_WAITALL] {
                said.say("send", send(to, b"a message of 26 characters", 0));
                said.say("sendmsg", sendmsg(to, b"a message", &[4, 0, 5], 0));
                said.say("writev", writev(to, b"of pieces", &[2, 1, 6]));
                said.say("recv", recv(from, &mut place, flags));
                said.say("bytes", shown(&place));
                said.say("recvmsg", recvmsg(from, &mut place, &[4, 12], flags));
                said.say("bytes", shown(&place));
                said.say("recvfrom", recvfrom(from, &mut place, flags));
                said.say("bytes", shown(&place));
                while recv(from, &mut place, libc::MSG_DONTWAIT).count() >= 0 {}
            }
            said.say("too much", send(to, &pattern(4 << 20), 0));
            said.say("too much", write(to, &pattern(4 << 20)));
            said.say("nothing there", recv(from, &mut place, 0));
            said.say("nothing there", read(from, &mut place));
        })
    };
    let many = |name, kind| {
        let [ours, theirs] = socket_pair(kind);
        let body = move |said: &mut Said| {
            let text = pattern(20_000);
            for n in 0..100 {
                said.say("send", send(ours.as_raw_fd(), &text[..n * 200], 0));
            }
        };
        with_partner(name, body, move || {
            limit(theirs.as_raw_fd(), libc::SO_RCVTIMEO, 0);
            let mut came = 0;
            for n in 0..100 {
                let mut place = vec![0; 30_000];
                let got = recv(theirs.as_raw_fd(), &mut place, 0).count();
                came += usize::from(got == n * 200);
                std::thread::sleep(Duration::from_micros(200));
            }
            came.to_string()
        })
    };
    vec![
        sizes("datagrams", libc::SOCK_DGRAM),
        sizes("sequences", libc::SOCK_SEQPACKET),
        many("many datagrams", libc::SOCK_DGRAM),
        many("many of a sequence", libc::SOCK_SEQPACKET),
    ]
}

#[test]
fn messages_are_whole() {
    compare(datagrams);
}

fn senders() -> Vec<Scene> {
    let scene = alone_on_stage("udp", |said: &mut Said| {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let here = udp.local_addr().expect("bound");
        udp.set_read_timeout(Some(Duration::from_millis(10)))
            .expect("a socket");
        said.say("send_to", format!("{:?}", udp.send_to(b"self", here)));
        // SAFETY: all zero is a valid address.
        let mut name: libc::sockaddr_in = unsafe { core::mem::zeroed() };
        for room in [16, 4, 0, 200] {
            said.say("send_to", format!("{:?}", udp.send_to(b"self", here)));
            let (mut place, mut length) = ([0_u8; 8], room);
            // SAFETY: the places are there, and the name's is not written beyond its length.
            let got = unsafe {
                libc::recvfrom(
                    udp.as_raw_fd(),
                    place.as_mut_ptr().cast(),
                    8,
                    0,
                    (&raw mut name).cast(),
                    &raw mut length,
                )
            };
            said.say("recvfrom", Told::new(got));
            said.say("length", format!("{length} {}", name.sin_family));
        }
        said.say("send", send(udp.as_raw_fd(), b"to nobody", 0));
        let far = "127.0.0.1:9";
        said.say(
            "send_to",
            format!("{:?}", udp.send_to(&pattern(70_000), far)),
        );
        udp.connect(here).expect("ourselves");
        said.say("send", send(udp.as_raw_fd(), b"self", 0));
        let mut place = [0; 8];
        said.say("recv", recv(udp.as_raw_fd(), &mut place, 0));
        said.say("recv", recv(udp.as_raw_fd(), &mut place, 0));
        said.say("recv", recv(udp.as_raw_fd(), &mut place, 0));
    });
    vec![scene]
}

#[test]
fn who_sent_a_message_is_told_as_elsewhere() {
    compare(senders);
}

/// A message that carries a descriptor, too long for the buffer.
fn carrying() -> Vec<Scene> {
    const BYTES: usize = 1 << 20;
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let carried = std::fs::File::open("/proc/self/status").expect("Linux");
    let body = move |said: &mut Said| {
        let bytes = pattern(BYTES);
        let mut pieces = pieces(&bytes, &[1_000, 900_000, BYTES]);
        let mut whole = message(&mut pieces);
        let mut control = [0_u64; 8];
        // SAFETY: the room is that of one descriptor, and so aligned.
        unsafe {
            whole.msg_control = control.as_mut_ptr().cast();
            whole.msg_controllen = libc::CMSG_SPACE(4) as usize;
            let head = libc::CMSG_FIRSTHDR(&raw const whole);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(head)
                .cast::<i32>()
                .write_unaligned(carried.as_raw_fd());
            let sent = libc::sendmsg(ours.as_raw_fd(), &raw const whole, 0);
            said.say("sendmsg", Told::new(sent));
        }
        drop(ours);
    };
    vec![with_partner("a descriptor", body, move || {
        let (mut descriptors, mut all) = (0, 0);
        loop {
            let mut place = vec![0; 50_000];
            let mut pieces = pieces(&place, &[50_000]);
            let mut whole = message(&mut pieces);
            let mut control = [0_u64; 8];
            whole.msg_control = control.as_mut_ptr().cast();
            whole.msg_controllen = size_of_val(&control);
            // SAFETY: the message and what it names are there.
            let got = unsafe { libc::recvmsg(theirs.as_raw_fd(), &raw mut whole, 0) };
            // SAFETY: as above; a descriptor that came is ours.
            unsafe {
                let head = libc::CMSG_FIRSTHDR(&raw const whole);
                if !head.is_null() {
                    descriptors += 1;
                    let came = libc::CMSG_DATA(head).cast::<i32>().read_unaligned();
                    let mut file = std::fs::File::from(OwnedFd::from_raw_fd(came));
                    assert_eq!(file.read(&mut place[..4]).expect("Linux"), 4);
                }
            }
            match usize::try_from(got) {
                Ok(count @ 1..) => all += count,
                _ => return format!("{descriptors} descriptors, {all} bytes"),
            }
        }
    })]
}

#[test]
fn what_a_message_carries_is_carried_once() {
    compare(carrying);
}
