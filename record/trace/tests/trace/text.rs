//! The written form: what is written is read, and nothing that is read panics.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use crate::any_record::Random;
use crate::common::{FIXED, composed, missing, overrunning, required, rich, simulate, two_tasks};
use punctual_kern::{Edge, Source, UseTerms};
use punctual_model::{CpuId, Instant, Mode, OnOverrun, Priority, TaskId, ThreadId, Work};
use punctual_sim::Faults;
use punctual_tables::CpuTables;
use punctual_trace::{Log, Oracle, Record, TakingThread, text};

fn written(log: &Log) -> Vec<u8> {
    let mut bytes = Vec::new();
    text::write(log, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_record_survives_memory_and_file() {
    let mut random = Random(7);
    let mut log = simulate(&rich(FIXED), 20, 1, missing(100, 7));
    let mut records = Vec::new();
    for _ in 0..20_000 {
        // No run lasts longer.
        let now = Instant::from_ticks(random.instant().ticks() >> 8);
        records.push(match random.below(3) {
            0 => Record::Entry(random.entry(now, &log)),
            1 => Record::Trace(random.change()),
            _ => Record::Decision(random.decision()),
        });
    }
    log.cpus[0].records = records.iter().copied().collect();
    let kept: Vec<Record> = log.cpus[0].records.iter().map(|(_, r)| r).collect();
    for (kept, record) in kept.iter().zip(&records) {
        assert_eq!(kept, record);
    }
    assert_eq!(
        kept.len(),
        records.len(),
        "{:?}",
        records[kept.len()..].first()
    );
    let again = text::read(&mut written(&log).as_slice()).unwrap();
    assert_eq!(again, log);
}

#[test]
fn a_log_read_again_is_the_log_that_was_written() {
    let (system, faults) = overrunning(&rich(FIXED), "first", OnOverrun::Demote);
    let mut log = simulate(&system, 300, 5, faults);
    log.header.lost = vec![
        "no SCHED_FIFO: \"EPERM\"\nsecond line \\n".into(),
        String::new(),
    ];
    log.header.machine = vec![("cpu\tmodel".replace('\t', " "), "EPYC µ".into())];
    log.header.stopped = Some(String::new());
    log.header.faults = vec!["a task said: \r\n".into()];
    log.oracle = Some(Oracle {
        steps: 10,
        mismatches: 1,
    });
    log.cpus[0].host = Some(3);
    log.cpus[0].lost_from = Some(Instant::from_ticks(12));
    log.cpus[0].counters.takers = vec![TakingThread {
        at: Instant::from_ticks(7),
        ns: 12,
        name: "a b\\\n".into(),
    }];
    log.cpus[0].counters.programs = vec![(TaskId(0), 12_345)];
    log.cpus[0].counters.others = vec![("given back".into(), 3), (String::new(), 0)];
    let bytes = written(&log);
    let again = text::read(&mut bytes.as_slice()).unwrap();
    assert_eq!(again, log);
    assert_eq!(written(&again), bytes);
}

/// Reads `bytes` with a few random changes; what can be read is used in every way that this crate
/// has.
fn damage(bytes: &[u8], random: &mut Random) -> bool {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(damaged.len());
        match random.below(4) {
            0 => damaged[at] = u8::try_from(random.below(256)).unwrap(),
            1 => damaged.truncate(at.max(1)),
            2 => drop(damaged.drain(at..(at + random.below(30)).min(damaged.len()))),
            _ => damaged.insert(at, random.pick(b"0129- \n:@+=x")),
        }
        if damaged.is_empty() {
            damaged.push(b'x');
        }
    }
    match text::read(&mut damaged.as_slice()) {
        Err(error) => {
            assert!(error.line >= 1 && !error.message.is_empty());
            true
        }
        // Damage can make another meaningful log; using it must not panic either.
        Ok(log) => {
            drop(punctual_trace::RunReport::new(&log).to_string());
            drop(punctual_rules::check(&log));
            drop(punctual_trace::html::page(&log, &punctual::judge(&log)));
            false
        }
    }
}

#[test]
fn no_damage_to_a_log_makes_the_reader_panic() {
    let logs = [
        simulate(&two_tasks(), 40, 1, missing(500, 7)),
        simulate(&composed(), 60, 1, missing(500, 7)),
    ];
    let mut random = Random(3);
    for log in &logs {
        let bytes = written(log);
        let refused = (0..4_000).filter(|_| damage(&bytes, &mut random)).count();
        assert!(refused > 1_000, "only {refused} damaged logs were refused");
    }
}

#[test]
fn requirements_are_part_of_the_written_form() {
    let log = simulate(&required(), 40, 1, Faults::default());
    let bytes = written(&log);
    assert_eq!(
        text::read(&mut &bytes[..]).unwrap().requirements,
        log.requirements
    );
    assert_eq!(log.requirements.len(), 3);
    let good = String::from_utf8(bytes).unwrap();
    for (right, wrong) in [
        ("require response 8000000 1", "require response 8000000"),
        ("require response 8000000 1", "require response 8000000 1 0"),
        ("require response 8000000 1", "require wish 8000000 1"),
        ("require jitter 5000000 0", "require jitter 5000000 7"),
        ("require chain 30000000 0 1", "require chain 30000000 0"),
    ] {
        assert!(good.contains(right), "{good}");
        let bad = good.replace(right, wrong);
        assert!(text::read(&mut bad.as_bytes()).is_err(), "{wrong}");
    }
}

/// What is changed into what, the line that is told, and a part of the message.
type Mistake<'a> = (&'a str, &'a str, usize, &'a str);

fn refuses(good: &str, mistakes: &[Mistake<'_>]) {
    for (from, to, line, message) in mistakes {
        let error = text::read(&mut good.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(error.line, *line, "{from} -> {to}: {error}");
        assert!(error.message.contains(message), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_slot_lies_within_its_frame_and_a_clock_is_not_infinitely_far_off() {
    let bytes = written(&simulate(&composed(), 40, 1, Faults::default()));
    let good = String::from_utf8(bytes).unwrap();
    let slot = good.lines().find(|line| line.starts_with("slot ")).unwrap();
    let mut words: Vec<&str> = slot.split(' ').collect();
    words[3] = "72057594037927900";
    let bad = good.replacen(slot, &words.join(" "), 1);
    let error = text::read(&mut bad.as_bytes()).unwrap_err();
    assert!(error.message.contains("within its frame"), "{error}");

    let host = good.lines().find(|line| line.starts_with("plan ")).unwrap();
    for (offset, is_read) in [("-5", true), ("-9223372036854775808", false)] {
        let clock = good.replacen(host, &format!("clock {offset} 0\n{host}"), 1);
        let read = text::read(&mut clock.as_bytes());
        assert_eq!(read.is_ok(), is_read, "{offset}: {read:?}");
    }
}

/// A log, and the number of its first line that begins so.
fn good() -> (String, impl Fn(&str) -> usize) {
    let good = String::from_utf8(written(&simulate(&two_tasks(), 20, 1, missing(1, 5)))).unwrap();
    let lines = good.clone();
    (good, move |what: &str| {
        1 + lines.lines().position(|l| l.starts_with(what)).unwrap()
    })
}

#[test]
fn mistakes_have_their_line_and_a_reason() {
    let (good, line_of) = good();
    let mistakes = [
        ("punctual-log 5", "punctual-log 9", 1, "another version"),
        (
            "punctual-log 5",
            "punctual-log 3",
            1,
            "record the run again",
        ),
        ("punctual-log 5", "diary", 1, "this is no log"),
        ("mode virtual", "mode dreamt", line_of("mode"), "is no mode"),
        ("seed 1", "seed 01", line_of("seed"), "not a number"),
        (
            "ended ",
            "@ ceiling - -\nended ",
            1 + line_of("ended"),
            "has no event",
        ),
        ("cpu 0", "gpu 0", line_of("cpu"), "unknown here"),
        (
            "records 0",
            "records 1",
            line_of("records"),
            "no CPU number 1",
        ),
        (
            "counted 0",
            "counted 1",
            line_of("counted"),
            "no CPU number 1",
        ),
        ("mode virtual\n", "", good.lines().count() - 1, "no `mode`"),
        (
            "ended ",
            "end-of-log\nended ",
            line_of("ended"),
            "no `ended`",
        ),
    ];
    refuses(&good, &mistakes);
}

#[test]
fn mistakes_in_records_have_their_line_and_a_reason() {
    let (good, line_of) = good();
    let mistakes = [
        ("= run 0", "= run -", line_of("= run 0"), "cannot be absent"),
        (
            "+ released 0 0 ",
            "+ released 0 ",
            line_of("+ released 0"),
            "has 4 fields",
        ),
        (
            "+ released 0 0 ",
            "+ relaxed 0 0 ",
            line_of("+ released 0"),
            "no record",
        ),
        (
            "@ tick",
            "@ missing 1 0\n+ ended 0\n@ tick",
            1 + line_of("@ tick"),
            "has no event",
        ),
        (
            "@ tick",
            "@ missing 1 0\n@ missing 2 0\n@ tick",
            1 + line_of("@ tick"),
            "at most one each of `@ missing`",
        ),
        (
            "@ tick",
            "@ missing 1 0\n@ ceiling - -\n@ ceiling - -\n@ tick",
            2 + line_of("@ tick"),
            "at most one each of `@ missing`",
        ),
        (
            "@ tick",
            "@ ceiling - -\n@ missing 1 0\n@ tick",
            1 + line_of("@ tick"),
            "at most one each of `@ missing`",
        ),
        (
            "+ completed 1 ",
            "+ completed 83522607 ",
            line_of("+ completed 1"),
            "on a CPU with room for 2",
        ),
        (
            "\ncapacity 2 ",
            "\ncapacity 1 ",
            line_of("records"),
            "2 threads, and room for 1",
        ),
        (
            "\nrecords ",
            "\nafter 4294967295 0\nrecords ",
            1 + line_of("records"),
            "thread 4294967295 has no line of its own",
        ),
        (
            "\nrecords ",
            "\nafter 0 7\nrecords ",
            1 + line_of("records"),
            "thread 7 has no line of its own",
        ),
    ];
    refuses(&good, &mistakes);
}

/// A replay allocates the room that a log claims, and goes through the time.
#[test]
fn a_log_may_not_claim_more_room_or_time_than_a_run_can_have() {
    let (good, line_of) = good();
    let capacity = good
        .lines()
        .find(|line| line.starts_with("capacity "))
        .unwrap();
    let with = |at: usize, number: &str| {
        let mut words: Vec<&str> = capacity.split(' ').collect();
        words[at] = number;
        words.join(" ")
    };
    let claims = [
        (with(1, "1048576"), "threads"),
        (with(2, "4294967295"), "waiting jobs"),
        (format!("{capacity} 65535"), "places in queues"),
    ];
    let last = good.lines().count();
    for (claim, what) in &claims {
        refuses(&good, &[(capacity, claim, last, what)]);
    }
    for (what, late) in [
        ("@ ", "@ tick 18446744073709551615"),
        ("ended ", "ended 72057594037927937"),
        ("duration ", "duration 72057594037927937"),
    ] {
        let line = good.lines().find(|line| line.starts_with(what)).unwrap();
        let mistake = (line, late, line_of(what), "later than a run may last");
        refuses(&good, &[mistake]);
    }
}

#[test]
fn tables_name_no_thread_and_no_resource_that_has_no_line() {
    let log = simulate(&two_tasks(), 20, 1, Faults::default());
    let used = |resource| UseTerms {
        resource,
        mode: Mode::Exclusive,
        length: Work::from_ticks(1),
        priority: Priority::default(),
    };
    let local = |thread| Edge {
        from: Source::Local(ThreadId::new(thread, 0)),
        strict: false,
    };
    type Change<'a> = &'a dyn Fn(&mut CpuTables);
    let mistakes: [(&str, Change<'_>); 6] = [
        ("2 threads, and room for 1", &|cpu| cpu.capacity.threads = 1),
        ("thread 2 has no line of its own", &|cpu| {
            cpu.uses.push((2, used(0)));
        }),
        ("thread 3 has no line of its own", &|cpu| {
            cpu.notifications.push((3, CpuId(0), 0));
        }),
        ("thread 4 has no line of its own", &|cpu| {
            cpu.edges.push((4, local(0)));
        }),
        ("thread 5 has no line of its own", &|cpu| {
            cpu.edges.push((0, local(5)));
        }),
        ("resource 0 has no line", &|cpu| cpu.uses.push((1, used(0)))),
    ];
    for (why, mistake) in mistakes {
        let mut wrong = log.clone();
        mistake(&mut wrong.tables.cpus[0]);
        let error = text::read(&mut written(&wrong).as_slice()).unwrap_err();
        assert_eq!(error.message, why);
    }
}
