//! Systems written as files: short, readable, and the same when they are read again.

use std::path::Path;

use punctual_model::{
    Class, Cpu, CpuId, IdleTime, PolicyKind, Priority, Span, System, Task, Work, WorkSource,
};
use punctual_spec::{parse, write};

fn read(text: &str) -> System {
    match parse(text, "written.toml") {
        Ok(description) => description.system,
        Err(mistakes) => panic!("{}\n{text}", mistakes[0]),
    }
}

#[test]
fn the_smallest_file_is_written_as_a_person_would() {
    let text = "\
[system]
cpus = [0, \"left\"]

[cpu.0]
policy = \"fixed-priority\"

[cpu.left]
policy = \"tdm\"
frame = \"10ms\"

[scheduler.app]
on = \"cpu.left\"
policy = \"edf\"
slots = [{ at = \"0s\", length = \"2.5ms\" }]

[resource.bus]
protocol = \"srp\"

[task.fast]
class = \"periodic\"
on = \"scheduler.app\"
period = \"10ms\"
wcet = \"2ms\"
uses = [{ resource = \"bus\", for = \"500us\" }]

[require]
response = [{ task = \"fast\", within = \"8ms\" }]

[run]
for = \"10s\"
";
    assert_eq!(write(&read(text)), text);
}

#[test]
fn every_shipped_file_survives_being_written_and_read() {
    let mut files = 0;
    for folder in ["../../examples", "tests/valid"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|ending| ending != "toml") {
                continue;
            }
            let system = punctual_spec::load(&path).expect("valid").system;
            assert_eq!(read(&write(&system)), system, "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 10, "{files}");
}

#[test]
fn texts_that_need_quoting_are_quoted() {
    let class = Class::Periodic {
        period: Span::from_ms(1),
        wcet: Work::from_ns(1),
        relative_deadline: Span::from_ns(u64::MAX),
    };
    let mut task = Task::new("über.wachung:1", CpuId(0), class);
    task.work = Some(WorkSource::Call {
        symbol: "a\"b\\c\u{7f}\n\t".into(),
        library: "ö ]#'.so".into(),
    });
    let mut program = Task::new("program", CpuId(0), Class::Aperiodic);
    program.priority = Priority::new(1);
    program.work = Some(WorkSource::Command(vec!["a \"b\"".into(), String::new()]));
    program.idle = IdleTime::Keep;
    let system = System {
        cpus: vec![Cpu {
            name: "007".into(),
            host: None,
            policy: PolicyKind::Fifo,
        }],
        tasks: vec![task, program],
        ..System::default()
    };
    assert_eq!(read(&write(&system)), system);
}
