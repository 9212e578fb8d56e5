//! `punctual study`: small versions of every study, in virtual time.

#[allow(dead_code)] // Each of its users needs another part of it.
#[path = "../../../front/command/tests/cli/common.rs"]
mod common;
#[allow(dead_code)] // Those on Linux need another part of it.
mod studied;

use common::{Folder, code, output, stdout};
use studied::{COSTS, answered, program, rows, schema, study};

#[test]
fn an_admission_is_dearer_for_more_members_and_says_that_it_is_virtual_time() {
    let folder = Folder::new("study-admission");
    let arguments = ["gang-admission", "--members", "2,16,255", "--rounds", "2"];
    let (summary, drawing) = answered(&folder, "admission", &arguments);
    let greatest = |name: &str, members: u64| {
        let all = rows(&summary);
        let row = all
            .iter()
            .find(|(of, at, _)| of == name && at[0] == members);
        row.expect("a row").2[2]
    };
    let linear = |members| greatest("whole, linear, alone", members);
    let tree = |members| greatest("whole, tree, alone", members);
    assert!(linear(255) > linear(16) && linear(16) > linear(2));
    assert!(tree(255) < linear(255));
    // A local admission is the least of it, and constant.
    assert!(greatest("local change, tree, alone", 255) <= 31_000);
    assert!(tree(2) >= 20_000);
    assert_eq!(
        drawing
            .matches("Virtual time, with prices of: a machine of tests")
            .count(),
        7
    );
}

#[test]
fn skews_are_within_their_bounds() {
    let folder = Folder::new("study-skew");
    let arguments = ["skew", "--members", "2,8", "--events", "20"];
    let (summary, drawing) = answered(&folder, "skew", &arguments);
    let all = rows(&summary);
    assert_eq!(all.len(), 2 * 3 * 2);
    for (name, at, values) in &all {
        assert_eq!(values.len(), 21, "{name} {at:?}");
        assert!(
            values[0] > 0 && values[1..].iter().all(|skew| *skew <= values[0]),
            "{name} {at:?}"
        );
    }
    assert!(drawing.contains("8 members, alone (as Fig. 11)") && drawing.contains("as Fig. 12"));
}

#[test]
fn work_is_proportional_to_its_time_and_shards_merge_to_the_bytes_of_one_run() {
    let folder = Folder::new("study-bsp");
    let arguments = [
        "bsp",
        "--members",
        "2,4",
        "--grains",
        "1,128",
        "--periods-us",
        "0,2000,5000",
    ];
    let (summary, drawing) = answered(&folder, "bsp", &arguments);
    let all = rows(&summary);
    let values = |name: &str, at: [u64; 3]| {
        let row = all.iter().find(|(of, place, _)| of == name && *place == at);
        row.expect("a row").2.clone()
    };
    for members in [2, 4] {
        let free = values("barriers, tree", [members, 128, 0])[0];
        for period in [2_000, 5_000] {
            let taken = values("barriers, tree", [members, 128, period]);
            for (tenths, ps) in (1..).zip(&taken) {
                let share = 1_000 * free / ps;
                assert!(
                    share <= 100 * tenths && share + 3 * tenths >= 100 * tenths,
                    "{tenths} {share}"
                );
            }
        }
    }
    assert!(
        ["as Fig. 13", "as Fig. 14", "as Fig. 15", "as Fig. 16"]
            .iter()
            .all(|f| drawing.contains(f))
    );
    let mut parts = vec!["study", "merge"]
        .into_iter()
        .map(String::from)
        .collect::<Vec<_>>();
    for shard in ["1/2", "2/2"] {
        let part = folder.path(&format!("{}.jsonl", shard.replace('/', "-")));
        let mut all = arguments.to_vec();
        all.extend([
            "--out",
            &part,
            "--shard",
            shard,
            "--quiet",
            "--threads",
            "1",
        ]);
        assert_eq!(code(&study(&folder, &all)), 0);
        parts.push(part);
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let merged = output(&parts);
    let whole = std::fs::read(folder.path("bsp.jsonl")).expect("a file of results");
    assert_eq!((code(&merged), merged.stdout), (0, whole));
}

#[test]
fn a_run_goes_on_with_the_prices_that_its_file_began_with() {
    let folder = Folder::new("study-resume");
    let out = folder.path("r.jsonl");
    let arguments = [
        "gang-admission",
        "--members",
        "2,3,4",
        "--rounds",
        "1",
        "--out",
        &out,
        "--quiet",
    ];
    assert_eq!(code(&study(&folder, &arguments)), 0);
    let whole = std::fs::read(&out).expect("results");
    std::fs::write(&out, &whole[..whole.len() * 2 / 3]).expect("written");
    let mut again = vec!["study"];
    again.extend(arguments);
    assert_eq!(code(&output(&again)), 0, "without --costs");
    assert_eq!(std::fs::read(&out).expect("results"), whole);
}

#[test]
fn a_question_that_makes_no_sense_is_told_before_anything_is_measured() {
    let folder = Folder::new("study-wrong");
    for (arguments, said) in [
        (&["skew", "--members", "256"][..], "256 is none of 1 to 255"),
        (
            &["skew", "--members", "3", "--on", "linux"],
            "on Linux a study has 2 of them",
        ),
        (
            &["clocks", "--on", "sim"],
            "virtual time has the clocks that it is told",
        ),
        (&["bsp", "--grains", "0"], "grains"),
        (&["bsp", "--rivals"], "virtual time has none"),
        (&["gang-admission", "--rounds", "0"], "rounds"),
        (&["plan-success", "--sets", "0"], "sets"),
        (&["plan-homes", "--runs", "4"], "too few for an interval"),
        (
            &["plan-times", "--on", "linux"],
            "this study is of virtual time",
        ),
        (
            &["plan-switches", "--probabilities", "1001"],
            "probabilities",
        ),
    ] {
        let ended = study(&folder, arguments);
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(code(&ended), 2, "{message}");
        assert!(message.contains(said), "{message}");
    }
    let free = folder.write(
        "free.toml",
        &COSTS.replace("line-ps = 90000", "line-ps = 0"),
    );
    let ended = output(&["study", "skew", "--costs", &free]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("cost something"));
}

#[test]
fn studies_without_prices_are_the_same_bytes_from_shards_and_say_which_figure_they_are() {
    let folder = Folder::new("study-plans");
    for (arguments, rows_of, drawn) in [
        (
            &["plan-success", "--sets", "3"][..],
            6 * 16,
            "over the window",
        ),
        (
            &["slots", "--lengths", "10000,40000"],
            2 * 2 * 3,
            "as CompOSe, Fig. 9",
        ),
        (
            &[
                "plan-switches",
                "--probabilities",
                "0,900",
                "--runs",
                "5",
                "--seconds",
                "20",
            ],
            2 * 2,
            "as Spring, Fig. 13",
        ),
        (
            &[
                "plan-homes",
                "--multipliers",
                "150,300",
                "--runs",
                "5",
                "--seconds",
                "20",
            ],
            2 * 2 * 2,
            "load 2.5 (as Spring, Fig. 15)",
        ),
        (
            &[
                "plan-times",
                "--sizes",
                "10,100",
                "--allowed-us",
                "10,1000",
                "--sets",
                "2",
            ],
            2 * 2,
            "as Spring, Fig. 11 and 12",
        ),
    ] {
        let (summary, drawing) = answered(&folder, arguments[0], arguments);
        assert_eq!(rows(&summary).len(), rows_of, "{arguments:?}");
        assert!(drawing.contains(drawn), "{arguments:?}");
        let mut parts = vec!["study".to_owned(), "merge".to_owned()];
        for shard in ["1/2", "2/2"] {
            let part = folder.path(&format!("{}-{}.jsonl", arguments[0], &shard[..1]));
            let mut all = arguments.to_vec();
            all.extend(["--out", &part, "--shard", shard, "--quiet"]);
            assert_eq!(code(&study(&folder, &all)), 0);
            parts.push(part);
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let merged = output(&parts);
        let whole = std::fs::read(folder.path(&format!("{}.jsonl", arguments[0])));
        assert_eq!((code(&merged), merged.stdout), (0, whole.expect("results")));
    }
}

#[test]
fn its_help_has_examples_under_the_name_that_users_type() {
    let help = output(&["study", "--help"]);
    assert_eq!(code(&help), 0);
    let text = stdout(&help);
    assert!(
        text.contains("Examples:") && text.contains("punctual study "),
        "{text}"
    );
}
