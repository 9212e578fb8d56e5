//! Reads the sections of a file: which there are, and which have names.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;
use crate::read::{in_order, read_record};
use crate::record::Record;
use crate::report::{Report, quote};
use crate::sections::{self, SECTIONS, Section};

/// A section with a name of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) name_range: Range<usize>,
    pub(crate) record: Record,
}

/// All sections of a file, read.
#[derive(Debug, Default)]
pub(crate) struct File {
    single: BTreeMap<&'static str, Record>,
    named: BTreeMap<&'static str, Vec<Named>>,
}

impl File {
    /// Takes a section; an empty one when the file has none.
    pub(crate) fn take(&mut self, name: &str) -> Record {
        self.single.remove(name).unwrap_or_default()
    }

    /// Takes all sections of a kind, in the order of the file.
    pub(crate) fn take_named(&mut self, name: &str) -> Vec<Named> {
        self.named.remove(name).unwrap_or_default()
    }
}

/// Reads every section of the tree, and says which are not there.
pub(crate) fn read_file(root: &DeTable<'_>, report: &mut Report<'_>) -> File {
    let file = read_sections(root, report);
    for section in SECTIONS.iter().filter(|section| section.needed) {
        if !root.contains_key(section.name) {
            report_absent(section, report);
        }
    }
    file
}

/// Reads the sections that there are.
pub(crate) fn read_sections(root: &DeTable<'_>, report: &mut Report<'_>) -> File {
    let mut file = File::default();
    for (name, value) in in_order(root) {
        let Some(section) = sections::find(name.get_ref()) else {
            unknown_section(name.get_ref(), &name.span(), report);
            continue;
        };
        let DeValue::Table(table) = value.get_ref() else {
            let form = if section.named { ".NAME" } else { "" };
            report.add(
                &name.span(),
                format!("`{}` is a section", section.name),
                || format!("write its keys under a header `[{}{form}]`", section.name),
            );
            continue;
        };
        if section.named {
            let named = read_named(table, section, report);
            file.named.insert(section.name, named);
        } else {
            let place = format!("[{}]", section.name);
            let record = read_record(table, value.span(), section.keys, &place, report);
            file.single.insert(section.name, record);
        }
    }
    file
}

/// A section without which the file means nothing.
pub(crate) fn report_absent(section: &Section, report: &mut Report<'_>) {
    let message = format!("the file has no [{}] section", section.name);
    report.add(&(0..0), message, || {
        let keys = section.keys.list.iter().filter(|key| key.needed != 0);
        let keys = keys.map(|key| format!("`{} = {}`", key.name, key.example));
        let keys = keys.collect::<Vec<_>>().join(", ");
        format!("add `[{}]` with {keys}", section.name)
    });
}

fn read_named(table: &DeTable<'_>, section: &Section, report: &mut Report<'_>) -> Vec<Named> {
    let mut found = Vec::new();
    for (name, value) in in_order(table) {
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!(
                "{} stands outside of a {}",
                quote(name.get_ref()),
                section.name
            );
            report.add(&name.span(), message, || {
                format!(
                    "give every {0} a header of its own, `[{0}.NAME]`",
                    section.name
                )
            });
            continue;
        };
        let place = format!(
            "[{}.{}]",
            section.name,
            quote(name.get_ref()).trim_matches('`')
        );
        let record = read_record(table, value.span(), section.keys, &place, report);
        let name_range = name.span();
        found.push(Named {
            name: name.get_ref().to_string(),
            name_range,
            record,
        });
    }
    found
}

fn unknown_section(name: &str, range: &Range<usize>, report: &mut Report<'_>) {
    report.add(range, format!("unknown section {}", quote(name)), || {
        let home = SECTIONS
            .iter()
            .find(|section| section.keys.find(name).is_some());
        let sections = SECTIONS.iter().map(|section| section.name);
        match (home, nearest(name, sections)) {
            (Some(home), _) if !home.named => format!("this key belongs in [{}]", home.name),
            (Some(home), _) => format!("this key belongs in a [{}.NAME] section", home.name),
            (None, Some(meant)) => format!("did you mean `[{meant}]`?"),
            (None, None) => {
                let known: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
                format!("the sections are {}", known.join(", "))
            }
        }
    });
}
