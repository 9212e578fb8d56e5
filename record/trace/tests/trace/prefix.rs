//! Logs that are written while their run goes on, and those that end before it.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use crate::common::{composed, missing, simulate};
use punctual_model::Instant;
use punctual_trace::{Record, text};

#[test]
fn a_log_that_ends_anywhere_is_read_up_to_its_last_whole_entry_and_says_so() {
    let log = simulate(&composed(), 60, 1, missing(500, 7));
    let bytes = {
        let mut bytes = Vec::new();
        text::write(&log, &mut bytes).unwrap();
        bytes
    };
    let whole: Vec<Record> = log.cpus[0].records.iter().map(|(_, r)| r).collect();
    let first = bytes.windows(9).position(|w| w == b"\nrecords ").unwrap();
    let mut longest = 0;
    for end in (1..bytes.len() - "end-of-log\n".len()).step_by(7) {
        let read = text::read(&mut &bytes[..end]);
        // The line `records` has to be there, with its end.
        if end < first + "\nrecords 0\n".len() {
            assert!(read.is_err(), "at {end}");
            continue;
        }
        let prefix = read.unwrap();
        assert!(prefix.is_prefix() && prefix.is_cut(), "at {end}");
        let records: Vec<Record> = prefix.cpus[0].records.iter().map(|(_, r)| r).collect();
        assert!(whole.starts_with(&records), "at {end}");
        assert!(records.len() >= longest, "at {end}");
        longest = records.len();
        let last = prefix.cpus[0].records.iter().last();
        assert!(matches!(last, None | Some((_, Record::Decision(_)))));
        // Each CPU says from when on it lacks something: after its last entry.
        let after = last.map_or(0, |(now, _)| now.ticks() + 1);
        assert_eq!(prefix.cpus[0].lost_from, Some(Instant::from_ticks(after)));
        if end % 5 == 0 {
            assert!(punctual::replay(&prefix).is_ok(), "at {end}");
            assert_ne!(punctual::judge(&prefix).exit_code(), 0, "at {end}");
        }
    }
    assert_eq!(longest, whole.len());
}

#[test]
fn records_written_while_the_run_goes_on_are_read_as_those_written_after_it() {
    let log = simulate(&composed(), 60, 1, missing(500, 7));
    let mut bytes = Vec::new();
    let mut writer = text::Writer::begin(&log, &mut bytes).unwrap();
    // Each CPU's in turns, a few entries at a time.
    let mut parts: Vec<Vec<Vec<Record>>> = Vec::new();
    for cpu in &log.cpus {
        let mut entries: Vec<Vec<Record>> = Vec::new();
        for (_, record) in &cpu.records {
            if matches!(record, Record::Entry(_)) {
                entries.push(Vec::new());
            }
            entries.last_mut().unwrap().push(record);
        }
        parts.push(entries.chunks(5).map(<[_]>::concat).collect());
    }
    for turn in 0..parts.iter().map(Vec::len).max().unwrap() {
        for (cpu, parts) in parts.iter().enumerate() {
            if let Some(part) = parts.get(turn) {
                let records = part.iter().copied().collect();
                writer.append(cpu, &records).unwrap();
            }
        }
    }
    writer.finish(&log).unwrap();
    assert_eq!(text::read(&mut bytes.as_slice()).unwrap(), log);
}
