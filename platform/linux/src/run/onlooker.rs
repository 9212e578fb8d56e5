//! The onlooker: a helper thread that learns who took time from a run, while that still lives.
//!
//! Where the kernel records the switches of a CPU for this user, entries know a taker by its number
//! and ask for its name. Elsewhere it tells how long each thread of the machine executed, and on
//! which CPU it did so last. The onlooker compares that from look to look, on CPUs from which
//! somebody took time meanwhile. Where carriers are real-time it leaves out all threads that are
//! not: these make way at once, and have executed in the idle time of a carrier. Looks cost at most
//! a fiftieth of one CPU, none of the run's if another is free.

use core::sync::atomic::Ordering;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Wall};

use punctual_model::Instant;

use crate::record::outcome::{Mode, TakingThread};
use crate::record::per_cpu::Shared;
use crate::record::takers::{MOST_TAKERS, Taken};
use crate::record::thread_group::is_of_a_group;
use crate::run::watchdog::free_of;
use crate::sys::{self, HostClass, account_of};
use crate::time::clock::Clock;

/// Questions are answered so often. A thread that ends sooner keeps its number only.
const EVERY: Duration = Duration::from_millis(25);
/// From one look at all threads to the next, at least: a few ticks of the kernel's own clock.
const LOOK: Duration = Duration::from_millis(100);
/// A look may cost this part of the time until the next.
const ONE_IN: u32 = 50;
const STACK: usize = 256 << 10;
/// So many threads share what was taken between two looks.
const MOST: usize = 4;
/// A thread that executed less between two looks took nothing worth a name.
const LEAST_NS: u64 = 20_000;

/// An onlooker that looks.
#[derive(Debug)]
pub(crate) struct Onlooker {
    over: Sender<()>,
    handle: JoinHandle<Seen>,
}

/// Its findings.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    names: BTreeMap<u32, String>,
    looks: Vec<Look>,
}

/// The threads that executed between two looks and were on one CPU at the end.
#[derive(Debug)]
struct Look {
    cpu: usize,
    from: Instant,
    to: Instant,
    /// The numbers of the threads that executed longest, and how long, most first.
    shares: Vec<(u32, u64)>,
    /// How long all threads executed, these and the others.
    all: u64,
}

impl Onlooker {
    /// Starts looking at the CPUs `hosts`, whose carriers have the class of `mode`. `told`: the
    /// kernel tells who has them.
    ///
    /// # Errors
    /// No thread can be made.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        hosts: &[u32],
        clock: Clock,
        (mode, told): (Mode, bool),
    ) -> io::Result<Onlooker> {
        let (over, ends) = channel();
        let (shared, hosts, free) = (Arc::clone(shared), hosts.to_vec(), free_of(hosts));
        let look = move || {
            // Refused, it looks from where it is.
            let _ = match free.is_empty() {
                true => sys::set_host_class(None, HostClass::IDLE),
                false => sys::pin(None, &free),
            };
            let mut looking = Looking::new(&shared, &hosts, clock, mode);
            let mut next = Wall::now();
            loop {
                let is_over = !matches!(ends.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                looking.answer();
                if !told && (is_over || Wall::now() >= next) {
                    let start = Wall::now();
                    looking.look();
                    next = start + LOOK.max(start.elapsed() * ONE_IN);
                }
                if is_over {
                    return looking.seen;
                }
            }
        };
        let name = "punctual/onlook".to_owned();
        // A run locks what it maps: no more than it takes.
        let thread = std::thread::Builder::new().name(name).stack_size(STACK);
        let handle = thread.spawn(look)?;
        Ok(Onlooker { over, handle })
    }

    /// The run is over: one look more, and what was seen.
    pub(crate) fn finish(self) -> Seen {
        drop(self.over);
        self.handle.join().unwrap_or_default()
    }
}

/// An onlooker at work.
struct Looking<'a> {
    shared: &'a Shared,
    hosts: &'a [u32],
    clock: Clock,
    mode: Mode,
    seen: Seen,
    /// How long each thread had executed at the last look, which was when.
    executed: HashMap<u32, u64>,
    last: Instant,
    /// How often somebody unknown had taken time from each CPU.
    untold: Vec<u32>,
}

impl Looking<'_> {
    fn new<'a>(shared: &'a Shared, hosts: &'a [u32], clock: Clock, mode: Mode) -> Looking<'a> {
        let mut looking = Looking {
            shared,
            hosts,
            clock,
            mode,
            seen: Seen::default(),
            executed: HashMap::new(),
            last: Instant::ZERO,
            untold: vec![0; hosts.len()],
        };
        looking.compare(|_, _| ());
        looking
    }

    /// Asks the kernel for the names that are wanted.
    fn answer(&mut self) {
        for thread in self.shared.questions.iter().flat_map(|asked| asked.take()) {
            self.seen.name(thread);
        }
    }

    /// Calls `more` with each thread of the machine that executed since the last time, and with how
    /// long it did.
    fn compare(&mut self, mut more: impl FnMut(u32, u64)) {
        let mut executed = HashMap::with_capacity(self.executed.len());
        for process in numbers_in("/proc") {
            for thread in numbers_in(&format!("/proc/{process}/task")) {
                let Some(now) = account_of(process, thread).map(|account| account.executed_ns)
                else {
                    continue;
                };
                // Of a new one, all is new.
                let before = self.executed.get(&thread).copied().unwrap_or(0);
                let ns = now.saturating_sub(before);
                if ns >= LEAST_NS {
                    more(thread, ns);
                }
                executed.insert(thread, now);
            }
        }
        self.executed = executed;
    }

    fn look(&mut self) {
        let shares = self.shares();
        let to = self.clock.now();
        for (cpu, shares) in shares.into_iter().enumerate() {
            self.note(cpu, shares, to);
        }
        self.last = to;
    }

    /// The threads that may have taken time from each CPU since the last time, and how long each
    /// executed.
    fn shares(&mut self) -> Vec<Vec<(u32, u64)>> {
        let mut shares: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.hosts.len()];
        let (shared, hosts, mode) = (self.shared, self.hosts, self.mode);
        let carriers: Vec<Option<u32>> = (0..hosts.len())
            .map(|cpu| shared.post.carrier(cpu).map(|carrier| carrier.number()))
            .collect();
        self.compare(|thread, ns| {
            let is_ours = carriers.contains(&Some(thread));
            let makes_way = mode == Mode::RealTime && !sys::is_real_time(thread);
            if is_ours || makes_way || i32::try_from(thread).is_ok_and(is_of_a_group) {
                return;
            }
            let at = last_cpu(thread).and_then(|on| hosts.iter().position(|&host| host == on));
            if let Some(place) = at {
                shares[place].push((thread, ns));
            }
        });
        shares
    }

    /// Notes who had a CPU most, if somebody unknown had it.
    fn note(&mut self, cpu: usize, shares: Vec<(u32, u64)>, to: Instant) {
        let look = Look::new(cpu, (self.last, to), shares);
        let questions = &self.shared.questions[cpu];
        let carrier = self.shared.post.carrier(cpu).map(|tid| tid.number());
        questions.note_account(carrier.and_then(|tid| account_of(std::process::id(), tid)));
        let untold = questions.untold.load(Ordering::Relaxed);
        let is_news = core::mem::replace(&mut self.untold[cpu], untold) != untold;
        let looks = self.seen.looks.iter().filter(|look| look.cpu == cpu);
        if is_news && looks.count() < MOST_TAKERS {
            for (thread, _) in &look.shares {
                self.seen.name(*thread);
            }
            self.seen.looks.push(look);
        }
    }
}

impl Look {
    /// Those of `shares` that executed longest.
    fn new(cpu: usize, (from, to): (Instant, Instant), mut shares: Vec<(u32, u64)>) -> Look {
        let all = shares
            .iter()
            .fold(0, |all: u64, (_, ns)| all.saturating_add(*ns));
        shares.sort_unstable_by_key(|(_, ns)| Reverse(*ns));
        shares.truncate(MOST);
        Look {
            cpu,
            from,
            to,
            shares,
            all,
        }
    }
}

impl Seen {
    /// Those who took time from a CPU, with names; the unknown are left out.
    pub(crate) fn named(&mut self, cpu: usize, takers: &[Taken]) -> Vec<TakingThread> {
        let mut named = Vec::with_capacity(takers.len());
        for taken in takers {
            let shares = match taken.thread {
                Some(thread) => vec![(thread, taken.ns)],
                None => self.looked_at(cpu, taken),
            };
            let of = |(thread, ns)| TakingThread {
                at: taken.at,
                ns,
                name: self.name(thread).to_owned(),
            };
            named.extend(shares.into_iter().map(of));
        }
        named
    }

    /// The threads that had the CPU when somebody took that, if they had it long enough: as much of
    /// it each as it executed between the two looks, in proportion to all that did.
    fn looked_at(&self, cpu: usize, taken: &Taken) -> Vec<(u32, u64)> {
        let mut looks = self.looks.iter().filter(|look| look.cpu == cpu);
        let Some(look) = looks.find(|look| look.from < taken.at && taken.at <= look.to) else {
            return Vec::new();
        };
        let all = look.all;
        if all.saturating_mul(2) < taken.ns {
            return Vec::new();
        }
        let part = |&(thread, ns): &(u32, u64)| {
            let part = u128::from(ns) * u128::from(taken.ns.min(all)) / u128::from(all.max(1));
            (thread, u64::try_from(part).unwrap_or(ns))
        };
        let parts = look.shares.iter().map(part);
        parts.filter(|(_, ns)| *ns >= LEAST_NS).collect()
    }

    fn name(&mut self, thread: u32) -> &str {
        self.names.entry(thread).or_insert_with(|| name_of(thread))
    }
}

/// `thread of program`, as the kernel calls them; one name, if they have the same.
fn name_of(thread: u32) -> String {
    let read = |path: String| std::fs::read_to_string(path).ok();
    let comm = |number: u32| read(format!("/proc/{number}/comm"));
    let Some(name) = comm(thread) else {
        return format!("thread {thread}, which has ended");
    };
    let status = read(format!("/proc/{thread}/status")).unwrap_or_default();
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let leader = leader.and_then(|number| number.trim().parse().ok());
    let program = leader.filter(|&leader| leader != thread).and_then(comm);
    match program {
        Some(program) => format!("{} of {}", name.trim_end(), program.trim_end()),
        None => name.trim_end().to_owned(),
    }
}

/// The numbers among the names in a folder.
fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// The CPU that a thread executed on last.
fn last_cpu(thread: u32) -> Option<u32> {
    const FIELD: usize = 36; // `processor`, counted from the field behind the name
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use punctual_linux_io::Origin;

    use super::*;
    use crate::record::post::Post;
    use crate::time::clock::clock_rate;

    #[test]
    fn those_who_had_the_cpu_in_the_look_around_it_share_what_was_taken() {
        let (at, us) = (Instant::from_ticks, |us: u64| us * 1_000);
        let look =
            |from, to, shares: &[(u32, u64)]| Look::new(1, (at(from), at(to)), shares.to_vec());
        let names = [(7, "hog".to_owned()), (8, "sh".to_owned())];
        let mut seen = Seen {
            names: BTreeMap::from(names),
            looks: vec![
                look(0, 100, &[(7, us(300)), (8, us(100))]),
                look(100, 200, &[(8, us(100))]),
            ],
        };
        let taken = |ticks, ns, thread| Taken {
            at: at(ticks),
            ns,
            thread,
        };
        let takers = [
            taken(100, us(200), None),
            taken(150, us(201), None),
            taken(150, us(200), None),
            taken(250, us(50), None),
            taken(250, us(50), Some(7)),
        ];
        let named = seen.named(1, &takers);
        let told: Vec<_> = named.iter().map(|t| (t.name.as_str(), t.ns)).collect();
        let (first, second) = (("hog", us(150)), ("sh", us(50)));
        assert_eq!(told, [first, second, ("sh", us(100)), ("hog", us(50))]);
        assert!(seen.named(0, &takers[..4]).is_empty());
    }

    #[test]
    fn the_part_of_each_of_many_threads_is_one_of_all() {
        let (at, ms) = (Instant::from_ticks, |ms: u64| ms * 1_000_000);
        let many: Vec<(u32, u64)> = (1..=20).map(|thread| (thread, ms(5))).collect();
        let mut seen = Seen {
            names: BTreeMap::new(),
            looks: vec![Look::new(0, (at(0), at(100)), many)],
        };
        let taken = |ns| Taken {
            at: at(50),
            ns,
            thread: None,
        };
        let told = |seen: &mut Seen, ns| -> Vec<u64> {
            let named = seen.named(0, &[taken(ns)]);
            named.iter().map(|taking| taking.ns).collect()
        };
        assert_eq!(told(&mut seen, ms(8)), [400_000; MOST]);
        // More than the four had, and no more than twice what all had.
        assert_eq!(told(&mut seen, ms(100)), [ms(5); MOST]);
        assert_eq!(told(&mut seen, ms(201)), []);
    }

    /// Tells whether the onlooker holds the calling thread for one that may have taken time.
    fn is_suspected(mode: Mode) -> bool {
        let hosts = sys::allowed_cpus().expect("known");
        let post = Post::new(hosts.len(), libc::SIGURG);
        let origin = (Origin::of_caller(&[]), None);
        let shared = Shared::new(post, 1, Arc::default(), origin);
        let own = sys::current_thread().number();
        let executed = || account_of(std::process::id(), own).map_or(0, |a| a.executed_ns);
        let mut looking = Looking::new(&shared, &hosts, Clock::starting_in(clock_rate(), 0), mode);
        let before = executed();
        while executed() < before + 10 * LEAST_NS {
            std::hint::spin_loop();
        }
        let mut shares = looking.shares().into_iter().flatten();
        shares.any(|(thread, _)| thread == own)
    }

    /// The calling thread is the onlooker, too: it excuses only carriers.
    #[test]
    fn only_a_real_time_thread_takes_time_from_a_real_time_carrier() {
        let looks = || {
            let ordinary = [Mode::BestEffort, Mode::RealTime].map(is_suspected);
            let permitted = sys::set_host_class(None, HostClass::fifo(1)).is_ok();
            (ordinary, permitted.then(|| is_suspected(Mode::RealTime)))
        };
        let (ordinary, real_time) = std::thread::spawn(looks).join().expect("it ends");
        assert_eq!(ordinary, [true, false]);
        match real_time {
            Some(is_suspected) => assert!(is_suspected),
            None => eprintln!("SKIPPED the real-time thread: SCHED_FIFO is not permitted"),
        }
    }

    #[test]
    fn a_thread_has_its_own_name_and_that_of_its_program() {
        let process = std::process::id();
        let (tell, told) = channel();
        let (end, ends) = channel::<()>();
        let thread = std::thread::Builder::new().name("a name".into());
        let thread = thread.spawn(move || {
            tell.send(sys::current_thread().number()).expect("heard");
            let _ = ends.recv();
        });
        let number = told.recv().expect("told");
        let (of_thread, of_program) = (name_of(number), name_of(process));
        assert_eq!(of_thread, format!("a name of {of_program}"));
        assert!(last_cpu(number).is_some());
        drop(end);
        thread.expect("a thread").join().expect("it ends");
    }
}
