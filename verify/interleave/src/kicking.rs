//! Models of the mailbox: no news is left unseen, whatever its CPU does just then.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use punctual_model::{Instant, Span};

use crate::atomic::AtomicU32;
use crate::check::{Model, in_every_order};
use crate::kicks::{Kicks, WINDOW_NS};
use crate::mailbox::{Call, Mailbox};
use crate::ring::Ring;

/// The models.
pub const MODELS: [Model; 5] = [
    Model {
        property: "a CPU that goes to sleep sees the news, or is woken",
        run: || in_every_order(sleeper),
    },
    Model {
        property: "a CPU that begins to execute sees the news, or a signal interrupts it",
        run: || in_every_order(executing),
    },
    Model {
        property: "a CPU that is not to be interrupted sees the news before it sleeps",
        run: || in_every_order(nudged),
    },
    Model {
        property: "a CPU that lets in no more kicks sees the news when its window ends",
        run: || in_every_order(rationed),
    },
    Model {
        property: "a CPU that looks by itself is left alone, also after it has slept",
        run: || in_every_order(looking),
    },
];

/// One CPU that gets news from two others.
struct Cpu {
    mailbox: Mailbox,
    rings: [Ring<u32, 2>; 2],
    kernel: Kernel,
}

/// What the kernel does for us: sleep on a word, wake, deliver signals.
struct Kernel {
    /// Signals that have been sent and not been delivered.
    signals: Mutex<bool>,
    changed: Condvar,
}

impl Kernel {
    fn new() -> Kernel {
        Kernel {
            signals: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// As futex(2): looks at the word and goes to sleep in one.
    fn wait(&self, word: &AtomicU32, value: u32) {
        let guard = self.signals.lock().unwrap();
        if word.load(core::sync::atomic::Ordering::Relaxed) == value {
            drop(self.changed.wait(guard).unwrap());
        }
    }

    /// Nobody sleeps on another word here.
    fn wake(&self, _word: &AtomicU32) {
        drop(self.signals.lock().unwrap());
        self.changed.notify_all();
    }

    fn send_signal(&self) {
        *self.signals.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// A thread executes until a signal interrupts it.
    fn execute(&self) {
        let mut signals = self.signals.lock().unwrap();
        while !*signals {
            signals = self.changed.wait(signals).unwrap();
        }
        *signals = false;
    }
}

impl Cpu {
    fn new() -> Arc<Cpu> {
        Arc::new(Cpu {
            mailbox: Mailbox::new(),
            rings: [Ring::new(), Ring::new()],
            kernel: Kernel::new(),
        })
    }

    /// By CPU `from`.
    fn send(&self, from: usize, soon: bool) {
        assert!(self.rings[from].push(7));
        match self.mailbox.kick(soon) {
            Call::Nothing => {}
            Call::Wake => self.kernel.wake(self.mailbox.word()),
            Call::Signal => self.kernel.send_signal(),
        }
    }

    fn has_mail(&self) -> bool {
        self.rings.iter().any(|ring| !ring.is_empty())
    }

    /// Everything that has come; how many pieces.
    fn look(&self) -> usize {
        let pop = |ring: &Ring<u32, 2>| ring.pop().map(|news| assert_eq!(news, 7));
        let all = self.rings.iter();
        all.map(|ring| core::iter::from_fn(|| pop(ring)).count())
            .sum()
    }

    /// An entry of the scheduler.
    fn enter(&self) -> usize {
        if self.mailbox.is_signalled() {
            self.mailbox.acknowledge();
        }
        self.look()
    }

    fn sleep(&self) {
        let wait = |word: &AtomicU32, seen| self.kernel.wait(word, seen);
        self.mailbox.sleep(|| self.has_mail(), wait);
    }
}

fn senders(cpu: &Arc<Cpu>, count: usize, soon: bool) -> Vec<thread::JoinHandle<()>> {
    let start = |from| {
        let cpu = Arc::clone(cpu);
        thread::spawn(move || cpu.send(from, soon))
    };
    (0..count).map(start).collect()
}

fn sleeper() {
    let cpu = Cpu::new();
    cpu.mailbox.polls();
    let others = senders(&cpu, 2, true);
    let mut seen = 0;
    // Ends in a deadlock, which loom finds, when it sleeps beside its news.
    while seen < others.len() {
        cpu.sleep();
        seen += cpu.look();
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(seen + cpu.look(), 2, "nothing comes twice");
}

fn executing() {
    let cpu = Cpu::new();
    cpu.mailbox.polls();
    let others = senders(&cpu, 2, true);
    cpu.mailbox.executes();
    // An entry of its own, as a thread that yields makes.
    let mut seen = cpu.enter();
    while seen < others.len() {
        cpu.kernel.execute();
        seen += cpu.enter();
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(seen + cpu.look(), 2, "nothing comes twice");
}

fn nudged() {
    let cpu = Cpu::new();
    let others = senders(&cpu, 2, false);
    let mut seen = cpu.enter();
    cpu.mailbox.polls();
    while seen < others.len() {
        cpu.sleep();
        seen += cpu.look();
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(seen + cpu.look(), 2, "nothing comes twice");
}

fn rationed() {
    let (window, mut now) = (Span::from_ticks(WINDOW_NS), Instant::ZERO);
    let mut kicks = Kicks::default();
    // The window has let in what it lets in, and one more has come: the flag stays up.
    while kicks.hear(now, window) {}
    let cpu = Cpu::new();
    assert_eq!(cpu.mailbox.kick(true), Call::Signal);
    let others = senders(&cpu, 2, true);
    let mut seen = 0;
    while seen < others.len() {
        match kicks.due() {
            Some(due) => now = due,
            None => cpu.kernel.execute(),
        }
        if cpu.mailbox.is_signalled() && kicks.hear(now, window) {
            cpu.mailbox.acknowledge();
        }
        seen += cpu.look();
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(seen + cpu.look(), 2, "nothing comes twice");
}

fn looking() {
    let cpu = Cpu::new();
    cpu.mailbox.polls();
    assert_eq!(cpu.mailbox.kick(true), Call::Nothing);
    cpu.mailbox
        .sleep(|| true, |_, _| panic!("it sleeps beside its news"));
    assert_eq!(cpu.mailbox.kick(true), Call::Nothing);
}
