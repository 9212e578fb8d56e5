//! Words beside figures: the operation of a rival, and how far it is the same.

/// By the beginning of a row and a rival: its operation, and the part of ours that it leaves out.
/// The first that fits counts.
const DOES: &[(&str, &str, &str)] = &[
    (
        "",
        "boost.context",
        "a jump to another stack of the same thread and back, halved: no decision, clock, record or storage",
    ),
    (
        "",
        "corosensei",
        "a coroutine resumed and suspended, halved: inlined, no decision, clock or record",
    ),
    (
        "",
        "swapcontext",
        "a switch of the C library: registers, and the mask of signals by a system call",
    ),
    (
        "",
        "sched_yield",
        "a yield of one of two threads of one urgency on one CPU: the kernel's decision and switch",
    ),
    (
        "wake.cross_cpu",
        "futex",
        "half of a round trip of two threads on two CPUs, each of which sleeps until it is woken",
    ),
    (
        "",
        "futex, as long asleep",
        "a thread of another CPU that has slept for as long is woken: to its first instruction",
    ),
    (
        "",
        "a thread that spins",
        "a word that is written, to a thread of another CPU that looks at it all the while",
    ),
    (
        "",
        "futex",
        "half of a wake-up and a wait of two threads on one CPU: the same hand-over by the kernel",
    ),
    (
        "",
        "pipe",
        "half of a round trip of a byte between two threads on one CPU",
    ),
    (
        "",
        "POSIX message queue",
        "half of a round trip of a message between two threads on one CPU, by urgency",
    ),
    (
        "",
        "without a tree",
        "the same yield where one policy orders the CPU: what the levels add",
    ),
    (
        "",
        "decided by the core",
        "the same decision where the core asks the policy itself",
    ),
    (
        "",
        "one scheduler, no capability",
        "the same switch below one scheduler",
    ),
    (
        "",
        "pthread",
        "pthread_create and join, with a stack that the C library keeps",
    ),
    (
        "mutex.contended",
        "pthread mutex",
        "the same two threads, of SCHED_FIFO: one holds it, a more urgent one wants it and gets it",
    ),
    (
        "mutex.contended",
        "pthread mutex, inheriting",
        "the same, where the holder inherits the priority, as ours does",
    ),
    (
        "lock.scheduler.contended",
        "pthread mutex",
        "the same two threads, of SCHED_FIFO: one holds it, a more urgent one wants it and gets it",
    ),
    (
        "lock.scheduler.contended",
        "pthread mutex, inheriting",
        "the same, where the holder inherits the priority",
    ),
    (
        "",
        "pthread mutex",
        "lock and unlock that nobody else wants: an atomic instruction, no system call",
    ),
    (
        "",
        "pthread mutex, inheriting",
        "the same with priority inheritance: the thread's number instead of a bit",
    ),
    (
        "",
        "compare-and-exchange",
        "the least that keeps two CPUs apart: a locked instruction and a store",
    ),
    (
        "",
        "compare-and-exchange, not locked",
        "the same against signals of one CPU alone",
    ),
    (
        "",
        "restartable sequence",
        "plain loads and stores that a signal begins again",
    ),
    ("", "rseq", "the same by the kernel's restartable sequences"),
    (
        "",
        "futex wake, nobody waits",
        "one system call that finds nobody",
    ),
    (
        "",
        "futex lock and unlock, inheriting",
        "the kernel's own lock, always by two system calls",
    ),
    (
        "",
        "bare signal, sigreturn",
        "the same hole by a periodic timer and an empty handler: no decision, switch or timer to set",
    ),
    (
        "",
        "one-shot timer set again, two switches",
        "the same hole: the handler goes to another stack and back, and sets its timer again",
    ),
    (
        "",
        "clock_nanosleep",
        "a sleep to an absolute instant on an idle CPU: nobody is preempted",
    ),
    (
        "",
        "clock_nanosleep, a less urgent thread computes",
        "the same beside a thread of SCHED_FIFO that is preempted, as in ours",
    ),
    (
        "",
        "SCHED_DEADLINE, distance off its period",
        "how regular its wake-ups are; it does not tell how late all of them are",
    ),
    (
        "",
        "read by a pthread",
        "a system call that would wait in the kernel, which ours must not: it would stop the CPU",
    ),
    (
        "",
        "preadv2 without waiting by a pthread",
        "the very system call of ours, which waits for nothing, by a thread of the kernel",
    ),
    (
        "",
        "read by pthreads",
        "the same calls by threads of the kernel",
    ),
    (
        "",
        "epoll_wait by pthreads",
        "the same, where both wait for events first and read then",
    ),
    (
        "",
        "sched_setscheduler, two processes",
        "a more urgent thread changes the class of two processes at the instants of the same frame",
    ),
    (
        "",
        "SIGSTOP and SIGCONT, two processes",
        "the same by signals that stop and continue",
    ),
    (
        "",
        "cgroup quota (cpu.max), two processes",
        "the same by the quota of control groups, of ordinary processes",
    ),
    (
        "policy.swap",
        "sched_setscheduler",
        "the class of each of as many ready threads changed and changed back",
    ),
    (
        "",
        "sched_setscheduler",
        "the class of a ready thread changed and changed back",
    ),
    (
        "",
        "cgroup made",
        "a control group made, to which nothing is granted yet",
    ),
    (
        "sim job, 10 tasks, recorded",
        "SimSo",
        "the same set in Python, in processor time too; it keeps what happened as objects, ours as a log",
    ),
    (
        "",
        "SimSo",
        "the same set in Python, in processor time too: no overheads, and it keeps what happened",
    ),
    (
        "",
        "rtrb",
        "the same tokens through a queue of one producer and one consumer",
    ),
    (
        "",
        "rtrb chunks",
        "the same slices through a queue of one producer and one consumer",
    ),
    (
        "",
        "crossbeam-channel",
        "the same tokens through a bounded channel",
    ),
    (
        "",
        "a plain call",
        "a function that is not inlined: no firing rule, no tokens",
    ),
    (
        "",
        "a thread per actor",
        "two threads of the kernel on one CPU that wait for each other's tokens in channels",
    ),
    (
        "",
        "a line there and back",
        "two CPUs that answer each other through two lines: the least by which they can meet",
    ),
    (
        "",
        "pthread barrier",
        "a barrier of two on the same two CPUs, a round each",
    ),
    (
        "",
        "libgomp, active",
        "a barrier of two on the same two CPUs, a round each",
    ),
    (
        "",
        "libgomp, passive",
        "a barrier of two on the same two CPUs, a round each",
    ),
    (
        "",
        "libomp, active",
        "a barrier of two on the same two CPUs, a round each",
    ),
    (
        "",
        "libomp, passive",
        "a barrier of two on the same two CPUs, a round each",
    ),
    (
        "",
        "MPI",
        "a barrier of two on the same two CPUs, a round each",
    ),
];

/// The operation of a rival of a row; empty: nobody has said.
pub(super) fn does(row: &str, rival: &str) -> &'static str {
    let is = |(start, name, _): &&(&str, &str, &str)| row.starts_with(start) && *name == rival;
    DOES.iter().find(is).map_or("", |(_, _, does)| does)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rival_says_what_it_does() {
        for bench in crate::all() {
            for rival in bench.rivals() {
                assert_ne!(does(&bench.name, rival), "", "{}: {rival}", bench.name);
            }
        }
    }
}
