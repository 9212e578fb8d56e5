//! Load beside the rounds: ordinary processes that this program starts from itself.
//!
//! Each is one child that ends when its standard input closes, when it is told to, and in any case
//! after its time. So none is left behind, also when this program is killed.

use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use punctual::{Ns, Span};
use punctual_terminal::ending::{Ended, Ending, Failure};
use serde::Serialize;

/// A kind of load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Computes on every CPU
    Cpu,
    /// Starts programs, one after the other
    Fork,
    /// Takes memory, walks through it and gives it back, on every CPU
    Memory,
    /// Sends itself streams and datagrams, over the loopback interface
    Network,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Fork => "fork",
            Kind::Memory => "memory",
            Kind::Network => "network",
        }
    }
}

/// The bytes of a block of memory: more than the caches of most machines.
const BLOCK: usize = 32 << 20;
/// Distance of two accesses: a line of the cache.
const LINE: usize = 64;
/// How long a child that does not come up has to say so.
const FIRST_MOMENT: Duration = Duration::from_millis(100);

/// Children that make load; they end with this.
#[derive(Debug, Default)]
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// Starts a child of each kind, which lives at most `limit`.
    pub(crate) fn start(kinds: &[Kind], limit: Duration) -> Result<Load, Failure> {
        let mut load = Load::default();
        if kinds.is_empty() {
            return Ok(load);
        }
        let here = std::env::current_exe().map_err(|why| failed(&why.to_string()))?;
        for kind in kinds {
            let mut command = Command::new(&here);
            let limit = format!("{}ms", limit.as_millis().max(1));
            command.args(["--be-load", kind.name(), "--for", &limit]);
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            load.0
                .push(command.spawn().map_err(|why| failed(&why.to_string()))?);
        }
        thread::sleep(FIRST_MOMENT);
        for (child, kind) in load.0.iter_mut().zip(kinds) {
            if let Ok(Some(how)) = child.try_wait() {
                return Err(failed(&format!("{} ended at once ({how})", kind.name())));
            }
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // By its own number, which stays its own until the wait.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn failed(why: &str) -> Failure {
    Failure::run(format!("the load does not start: {why}"))
}

/// Is load, until nobody wants it any more.
pub(crate) fn be(kind: Kind, limit: Option<Span<Ns>>) -> Ended {
    let limit = Duration::from_nanos(limit.map_or(1_000_000_000, Span::as_ns));
    let work = match kind {
        Kind::Cpu => each_cpu(compute),
        Kind::Fork => each_cpu(fork),
        Kind::Memory => each_cpu(walk),
        Kind::Network => network(),
    };
    work.map_err(|why| failed(&why.to_string()))?;
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(limit);
        std::process::exit(0);
    });
    // Closed when the program that wanted the load is over, however it ended.
    let mut nothing = [0];
    while let Err(error) = std::io::stdin().read(&mut nothing) {
        if error.kind() != ErrorKind::Interrupted {
            break;
        }
    }
    Ok(Ending::Good)
}

fn each_cpu(work: fn()) -> std::io::Result<()> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..cpus {
        let _ = thread::Builder::new().spawn(work)?;
    }
    Ok(())
}

fn compute() {
    let mut value = 1_u64;
    loop {
        value = black_box(
            value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
}

fn fork() {
    let Ok(here) = std::env::current_exe() else {
        return;
    };
    loop {
        let mut command = Command::new(&here);
        command
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if command.stderr(Stdio::null()).status().is_err() {
            // The machine has no room for one more process: later perhaps.
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn walk() {
    loop {
        let mut block = vec![0_u8; BLOCK];
        for _ in 0..4 {
            for byte in block.iter_mut().step_by(LINE) {
                *byte = byte.wrapping_add(1);
            }
        }
        let _ = black_box(block.first());
    }
}

fn network() -> std::io::Result<()> {
    let here = (Ipv4Addr::LOCALHOST, 0);
    let listener = TcpListener::bind(here)?;
    let mut out = TcpStream::connect(listener.local_addr()?)?;
    let (mut back, _) = listener.accept()?;
    let (one, other) = (UdpSocket::bind(here)?, UdpSocket::bind(here)?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    // A datagram that is lost ends no game.
    one.set_read_timeout(Some(Duration::from_millis(10)))?;
    let spawn = |work: Box<dyn FnOnce() + Send>| thread::Builder::new().spawn(work).map(drop);
    spawn(Box::new(move || {
        let block = [7_u8; 1 << 14];
        while out.write_all(&block).is_ok() {}
    }))?;
    spawn(Box::new(move || {
        let mut block = [0_u8; 1 << 14];
        while back.read(&mut block).is_ok_and(|n| n > 0) {}
    }))?;
    spawn(Box::new(move || {
        let mut datagram = [0_u8; 64];
        loop {
            let _ = one.send(&datagram);
            let _ = one.recv(&mut datagram);
        }
    }))?;
    spawn(Box::new(move || {
        let mut datagram = [0_u8; 64];
        while let Ok(n) = other.recv(&mut datagram) {
            let _ = other.send(&datagram[..n]);
        }
    }))
}
