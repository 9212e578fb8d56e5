//! `punctual study` on the CPUs of this machine.
//!
//! Members spin on both of them: this program runs alone.

#[allow(dead_code)] // Each of its users needs another part of it.
#[path = "../../../front/command/tests/cli/common.rs"]
mod common;
#[allow(dead_code)] // Those in virtual time need another part of it.
mod studied;

use common::{Folder, code};
use studied::{answered, program, rows, schema, study};

#[test]
fn two_cpus_of_this_machine_are_studied() {
    let folder = Folder::new("study-live");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        let ended = study(&folder, &["clocks", "--out", &folder.path("one.jsonl")]);
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            code(&ended) == 3 && message.contains("one CPU only"),
            "{message}"
        );
        eprintln!("not studied: this machine has one CPU");
        return;
    }
    let (summary, drawing) = answered(&folder, "clocks", &["clocks", "--rounds", "5"]);
    let all = rows(&summary);
    assert!(
        all.iter().all(|(_, _, values)| values.len() == 5),
        "{all:?}"
    );
    assert!(drawing.contains("Linux: a machine of tests"));

    let arguments = ["gang-admission", "--on", "linux", "--rounds", "3"];
    let (summary, _) = answered(&folder, "admission", &arguments);
    for (name, at, values) in rows(&summary) {
        assert_eq!((at[0], values.len()), (2, 3), "{name}");
        assert!(
            values[0] <= values[1] && values[1] <= values[2],
            "{name} {values:?}"
        );
    }

    let arguments = ["skew", "--on", "linux", "--events", "50"];
    let (summary, _) = answered(&folder, "skew", &arguments);
    let ours = rows(&summary)
        .into_iter()
        .find(|(name, ..)| name == "ours, alone");
    assert!(ours.expect("a row").2.len() > 10);

    let arguments = [
        "bsp",
        "--on",
        "linux",
        "--grains",
        "1",
        "--periods-us",
        "0,10000",
        "--rivals",
    ];
    let (summary, _) = answered(&folder, "bsp", &arguments);
    let all = rows(&summary);
    let row = all
        .iter()
        .find(|(name, at, _)| name == "barriers, tree" && at[2] == 10_000);
    assert!(row.expect("a row").2.iter().any(|ps| *ps > 0), "{all:?}");
    // Plain threads have a time for each slice, or the kernel's reason.
    for (name, way) in [
        ("cpu.max, no barriers", "cpu.max refused: "),
        ("SCHED_DEADLINE, no barriers", "SCHED_DEADLINE refused: "),
    ] {
        let of = |wanted: &dyn Fn(&str) -> bool| {
            let mut found = all
                .iter()
                .filter(|(name, at, _)| wanted(name) && at[2] == 10_000);
            found.next().map(|(_, _, values)| values.clone())
        };
        let times = of(&|row| row == name).expect("a row");
        let refused = of(&|row| row.starts_with(way));
        assert_eq!(times.len(), 9);
        match refused {
            Some(refused) => eprintln!("{way}{refused:?}"),
            None => assert!(times.iter().any(|ps| *ps > 0), "{name}: {times:?}"),
        }
    }
}
