//! One record as its line of a log.

use super::write;
use crate::encode;
use crate::record::Record;

/// The line of `record` in a log, without its end. For messages about single records.
pub fn line(record: &Record) -> String {
    let mut text = String::new();
    encode::record(record, |words| write::put(&mut text, words));
    text.trim_end().replace('\n', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordedEntry;
    use punctual_kern::{Event, Taker};
    use punctual_model::{Instant, Span, ThreadId};

    #[test]
    fn a_record_is_shown_as_the_log_writes_it() {
        let wake = Event::Wake(ThreadId::new(3, 2));
        let mut entry = RecordedEntry::at(Instant::from_ticks(17), wake);
        assert_eq!(line(&Record::Entry(entry)), "@ wake 17 3:2");
        entry.missing.given_back = Span::from_ticks(4);
        entry.ceiling = Some(None);
        let text = line(&Record::Entry(entry));
        assert_eq!(text, "@ missing 0 4, @ ceiling - -, @ wake 17 3:2");
        entry.missing.stolen = Span::from_ticks(5);
        entry.missing.taker = Taker::Kernel;
        entry.ceiling = None;
        let text = line(&Record::Entry(entry));
        assert_eq!(text, "@ missing 5 4, @ taken-by kernel, @ wake 17 3:2");
    }
}
