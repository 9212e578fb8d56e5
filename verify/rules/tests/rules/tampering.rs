//! No record of a run can be changed unnoticed, but for what the run was told from outside.

use crate::common::{FIXED, composed, cpu, log_of, missing, periodic, rich, simulate};
use punctual_kern::{Event, Next, Shard};
use punctual_model::{
    Class, Frequency, Instant, Late, Ns, PolicyKind, Priority, Span, System, ThreadId,
};
use punctual_policy::AnyPolicy;
use punctual_rules::check;
use punctual_tables::Tables;
use punctual_trace::{Log, Recorder, replay, text};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

/// Threads that yield, wait, are woken and end their jobs.
fn told(kind: PolicyKind<Ns>) -> Log {
    let mut system = System {
        cpus: vec![cpu("0", kind)],
        ..System::default()
    };
    for name in ["a", "b", "c"] {
        system.tasks.push(periodic(name, 0, 1, 200, 1));
    }
    system.tasks[2].class = Class::Aperiodic;
    system.tasks[1].late = Late::Skip;
    system.tasks[1].priority = Priority::new(2);
    let tables = Tables::new(&system, Frequency::NANOSECONDS);
    let cpu = &tables.cpus[0];
    let mut shard: Shard<AnyPolicy> = cpu
        .build(AnyPolicy::new)
        .expect("tables that hang together");
    let mut recorder = Recorder::with_capacity(1 << 18).expect("memory");
    let mut now = Instant::ZERO;
    let mut decision = shard.handle(now, Event::Tick, &mut recorder);
    for step in 1..60_u64 {
        let until = now.saturating_add(Span::from_ticks(40_000));
        let event = match (step % 5, decision.next) {
            (0, Next::Thread(_)) => Event::Block { until: None },
            (1 | 2, Next::Thread(_)) => Event::Yield,
            (3, Next::Thread(_)) => Event::Complete,
            _ => Event::Wake(ThreadId::new(u32::try_from(step % 3).expect("small"), 0)),
        };
        let due = decision.arm.filter(|&arm| arm <= until);
        now = due.unwrap_or(until);
        let event = if due.is_some() { Event::Tick } else { event };
        decision = shard.handle(now, event, &mut recorder);
    }
    log_of(system, tables, recorder, now)
}

/// The text of a log: what stands before its records, and its lines from there.
fn lines(log: &Log) -> (String, Vec<String>) {
    let mut bytes = Vec::new();
    text::write(log, &mut bytes).expect("memory takes it");
    let all = String::from_utf8(bytes).expect("text");
    let at = all.find("\nrecords 0\n").expect("records") + "\nrecords 0\n".len();
    let (head, records) = all.split_at(at);
    let mut lines: Vec<String> = Vec::new();
    for line in records.lines() {
        // What an entry has beside its event belongs to it.
        match lines.last_mut().filter(|last| is_open(last)) {
            Some(open) => *open += &format!(" \n{line}"),
            None => lines.push(line.into()),
        }
    }
    (head.into(), lines)
}

/// Whether the event of an entry is still to come.
fn is_open(line: &str) -> bool {
    let last = line.lines().last().unwrap_or_default();
    last.starts_with("@ missing ") || last.starts_with("@ ceiling ")
}

/// What may be done to line `at`: it is left out, doubled, exchanged with the next (`true`), or one
/// of its numbers is one more or less (`false`).
fn tampered(lines: &[String], at: usize) -> Vec<(bool, Vec<String>)> {
    let line = &lines[at];
    let rest = &lines[at + 1..];
    let put = |first: &[String], rest: &[String]| [&lines[..at], first, rest].concat();
    let doubled = [line.clone(), line.clone()];
    let mut all = vec![(true, put(&[], rest)), (true, put(&doubled, rest))];
    if let Some((next, rest)) = rest.split_first() {
        all.push((true, put(&[next.clone(), line.clone()], rest)));
    }
    let words: Vec<&str> = line.split(' ').collect();
    for (place, word) in words.iter().enumerate() {
        let Ok(number) = word.parse::<u64>() else {
            continue;
        };
        for other in [number.checked_sub(1), number.checked_add(1)] {
            let Some(other) = other.map(|other| other.to_string()) else {
                continue;
            };
            let mut words = words.clone();
            words[place] = &other;
            all.push((false, put(&[words.join(" ")], rest)));
        }
    }
    all
}

/// Counts of tampered logs by the part that notices.
#[derive(Default, Debug)]
struct Noticed {
    reader: u32,
    check: u32,
    replay_alone: u32,
    nobody: u32,
    structure_unnoticed: u32,
}

/// Tampers with each line that is `wanted`, in all ways.
fn tamper(log: &Log, wanted: impl Fn(&str) -> bool, noticed: &mut Noticed) {
    assert!(check(log).is_empty());
    let (head, lines) = lines(log);
    for at in (0..lines.len()).filter(|&at| wanted(&lines[at])) {
        for (structural, bad) in tampered(&lines, at) {
            let whole = format!("{head}{}\n", bad.join("\n"));
            let Ok(bad) = text::read(&mut whole.as_bytes()) else {
                noticed.reader += 1;
                continue;
            };
            if bad == *log {
                continue;
            }
            if !check(&bad).is_empty() {
                noticed.check += 1;
            } else if replay(&bad, AnyPolicy::new).is_err() {
                noticed.replay_alone += 1;
            } else {
                noticed.nobody += 1;
                noticed.structure_unnoticed += u32::from(structural);
            }
        }
    }
}

fn logs() -> [Log; 4] {
    [
        told(FIXED),
        told(EDF),
        simulate(&rich(FIXED), 12, 1, missing(300, 5)),
        simulate(&composed(), 30, 1, missing(300, 7)),
    ]
}

#[test]
fn what_the_core_did_and_decided_is_never_changed_unnoticed() {
    let noticed = logs().map(|log| {
        let mut noticed = Noticed::default();
        let own = |line: &str| line.starts_with("+ ") || line.starts_with("= ");
        tamper(&log, own, &mut noticed);
        noticed
    });
    assert!(noticed.iter().all(|n| n.nobody == 0), "{noticed:?}");
    // The rules alone leave open what comes earlier than it must, and the order within an entry: of
    // so many of so many. The reader refuses the others, threads without a place among them.
    let alone = noticed.map(|n| (n.replay_alone, n.check + n.replay_alone));
    assert_eq!(alone, [(120, 652), (116, 656), (48, 469), (121, 886)]);
}

/// A run that was told something else of which nothing follows (an instant at which nobody's time
/// is accounted for, a wake-up of who is awake) is another run, and as lawful.
#[test]
fn what_it_was_told_cannot_be_left_out_added_or_moved_and_a_change_of_it_has_no_consequence() {
    let mut noticed = Noticed::default();
    for log in logs() {
        tamper(&log, |line| line.starts_with("@ "), &mut noticed);
    }
    assert_eq!(noticed.structure_unnoticed, 0, "{noticed:?}");
    assert!(noticed.check > 2 * noticed.nobody, "{noticed:?}");
}
