//! One record as its line of a log.

use super::write;
use crate::encode;
use crate::record::Record;

/// The line of `record` in a log, without its end. For messages about single records.
pub fn line(record: &Record) -> String {
    let mut text = String::new();
    encode::record(record, |words| write::put(&mut text, words));
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_kern::Event;
    use punctual_model::{Instant, ThreadId};

    #[test]
    fn a_record_is_shown_as_the_log_writes_it() {
        let record = Record::Event {
            now: Instant::from_ticks(17),
            event: Event::Wake(ThreadId::new(3, 2)),
        };
        assert_eq!(line(&record), "@ wake 17 3:2");
    }
}
