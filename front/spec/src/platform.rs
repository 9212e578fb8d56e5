//! Platform files: the costs of scheduling on a machine, apart from the systems that run on it.
//!
//! Two sections: `[machine]`, as in a system file, and `[measured]`, free texts that say where,
//! when and how its terms were found. `punctual doctor --measure --platform FILE` writes one, and
//! `check` and `run` add its terms to those of a system.

use std::path::Path;

use punctual_model::{Cpu, Machine, ModelError, PolicyKind, System};
use toml::de::DeTable;

use crate::diagnostic::Diagnostic;
use crate::file::read_sections;
use crate::load::{LoadError, text_of};
use crate::lower::lower_machine;
use crate::places::Places;
use crate::read::in_order;
use crate::report::{Report, quote};
use crate::source::Source;
use crate::syntax;

/// The content of a platform file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Platform {
    /// The terms.
    pub machine: Machine,
    /// Where, when and how they were measured, as (name, value), in the order of the file.
    pub measured: Vec<(String, String)>,
}

/// Reads the text of a platform file; `origin` names it in messages. Never panics.
///
/// # Errors
/// All mistakes found, in the order of the file.
pub fn parse_platform(text: &str, origin: &str) -> Result<Platform, Vec<Diagnostic>> {
    let source = Source::new(text, origin);
    let mut report = Report::new(&source);
    let Some(root) = syntax::parse(&source, &mut report) else {
        return Err(report.finish());
    };
    let measured = read_measured(&root, &mut report);
    if !root.contains_key("machine") {
        report.add(&(0..0), "the file has no [machine] section", || {
            "let `punctual doctor --measure --platform FILE` write one".into()
        });
    }
    if !report.is_empty() {
        return Err(report.finish());
    }
    let terms = DeTable::from_iter(
        root.into_iter()
            .filter(|(name, _)| name.get_ref() == "machine"),
    );
    let mut places = Places {
        machine: read_sections(&terms, &mut report).take("machine"),
        ..Places::default()
    };
    let machine = lower_machine(&mut places);
    for error in validate(&machine).err().unwrap_or_default() {
        if !places.is_broken(&error.fault) {
            let ModelError {
                fault,
                message,
                help,
            } = error;
            report.add(&places.of(&fault), message, || help);
        }
    }
    if report.is_empty() {
        Ok(Platform { machine, measured })
    } else {
        Err(report.finish())
    }
}

/// The texts of `[measured]`; any section beside it and `[machine]` is a mistake.
fn read_measured(root: &DeTable<'_>, report: &mut Report<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in in_order(root) {
        match (name.get_ref().as_ref(), value.get_ref().as_table()) {
            ("machine", _) => {}
            ("measured", Some(table)) => {
                for (key, value) in in_order(table) {
                    match value.get_ref().as_str() {
                        Some(text) => found.push((key.get_ref().to_string(), text.to_owned())),
                        None => report.add(&value.span(), "this is no text", || {
                            "everything in [measured] is a text in quotes".into()
                        }),
                    }
                }
            }
            (other, _) => {
                let message = format!("{} has no place in a platform file", quote(other));
                report.add(&name.span(), message, || {
                    "keep `[machine]` and `[measured]`; a system has a file of its own".into()
                });
            }
        }
    }
    found
}

/// Whether the terms mean something for a system without tasks.
fn validate(machine: &Machine) -> Result<(), Vec<ModelError>> {
    let cpu = Cpu {
        name: "0".into(),
        host: Some(0),
        policy: PolicyKind::FixedPriority { preemptive: true },
    };
    let system = System {
        cpus: vec![cpu],
        machine: machine.clone(),
        ..System::default()
    };
    system.validate()
}

/// Reads a platform file.
///
/// # Errors
/// As for [`crate::load()`].
pub fn load_platform(path: impl AsRef<Path>) -> Result<Platform, LoadError> {
    let path = path.as_ref();
    let text = text_of(path)?;
    let origin = path.display().to_string();
    parse_platform(&text, &origin).map_err(LoadError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_platform;
    use punctual_model::{Reserve, Span, Work};

    #[test]
    fn what_is_written_is_read_again() {
        let machine = Machine {
            switch: Work::from_ns(180),
            preemption: Work::from_us(7),
            missing_time: Some(Reserve {
                name: "missing-time".into(),
                budget: Work::from_us(400),
                period: Span::from_ms(10),
            }),
            reserves: vec![Reserve {
                name: "fair-server-slices".into(),
                budget: Work::from_us(612),
                period: Span::from_ms(10),
            }],
            ..Machine::default()
        };
        let measured = vec![
            ("processor".to_owned(), "a \"quoted\" one\\".to_owned()),
            ("cpu".to_owned(), "1".to_owned()),
        ];
        let platform = Platform { machine, measured };
        let text = write_platform(&platform);
        assert_eq!(parse_platform(&text, "here.toml"), Ok(platform));
        let nothing = write_platform(&Platform::default());
        assert_eq!(
            parse_platform(&nothing, "here.toml"),
            Ok(Platform::default())
        );
    }

    #[test]
    fn a_file_of_something_else_is_refused_where_it_is() {
        let refused = |text: &str| {
            let mistakes = parse_platform(text, "here.toml").expect_err("a mistake");
            mistakes[0].to_string()
        };
        let system = refused("[machine]\nswitch = \"1us\"\n[system]\ncpus = [0]\n");
        assert!(system.contains("`system` has no place in a platform file"));
        assert!(system.contains("here.toml:3"), "{system}");
        assert!(refused("").contains("no [machine] section"));
        let number = refused("[measured]\ncpu = 1\n[machine]\n");
        assert!(number.contains("this is no text") && number.contains("here.toml:2"));
        assert!(refused("[machine]\nswich = \"1us\"\n").contains("did you mean `switch`?"));
        let reserve = "reserve = [{ name = \"r\", budget = \"2ms\", period = \"1ms\" }]";
        assert!(refused(&format!("[machine]\n{reserve}\n")).contains("here.toml:2"));
    }
}
