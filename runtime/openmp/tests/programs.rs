//! Programs in C and C++ that gcc compiled with OpenMP do on this library what they do on libgomp.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output};

mod common;

use common::{Program, compiled, library, printed, text};

#[path = "../../../front/command/src/omp_record.rs"]
#[expect(dead_code, reason = "only the command draws")]
mod omp_record;

/// Runs a program on libgomp.
fn plain(program: &Program, arguments: &[&str]) -> Output {
    let mut command = program.command();
    command.args(arguments).output().expect("it runs")
}

#[test]
fn every_construct_gives_what_libgomp_gives() {
    let Some(program) = compiled("runtime/openmp/tests/c/constructs.c") else {
        return;
    };
    let expected = printed(&plain(&program, &["1"]));
    assert_eq!(expected, "all constructs, teams of 1 to 8\n");
    let environments: [&[(&str, &str)]; 6] = [
        &[],
        &[("OMP_WAIT_POLICY", "passive")],
        &[("PUNCTUAL_OMP_TSC", "strict")],
        &[("OMP_SCHEDULE", "static")],
        &[("OMP_SCHEDULE", "guided,3")],
        &[("OMP_MAX_TASK_PRIORITY", "2")],
    ];
    for environment in environments {
        let told = printed(&program.ours(&["3"], environment));
        assert_eq!(told, expected, "{environment:?}");
    }
}

#[test]
fn every_construct_in_c_plus_plus_gives_what_libgomp_gives_and_destroys_its_objects() {
    let Some(program) = compiled("runtime/openmp/tests/c/constructs.cpp") else {
        return;
    };
    let expected = printed(&plain(&program, &["1"]));
    assert_eq!(expected, "all constructs, teams of 1 to 8\n");
    for policy in ["active", "passive"] {
        let told = printed(&program.ours(&["1"], &[("OMP_WAIT_POLICY", policy)]));
        assert_eq!(told, expected, "{policy}");
    }
}

#[test]
fn the_library_that_is_loaded_first_takes_the_place_of_libgomp() {
    let Some(program) = compiled("runtime/openmp/tests/c/constructs.c") else {
        return;
    };
    let first = library().expect("linked").join("libpunctual-openmp.so");
    let mut command = program.command();
    command
        .arg("1")
        .env("LD_PRELOAD", first)
        .env("PUNCTUAL_OMP_COUNTS", "1");
    let output = command.output().expect("it runs");
    assert_eq!(printed(&output), "all constructs, teams of 1 to 8\n");
    let said = text(&output.stderr);
    assert!(
        said.contains("punctual-openmp: "),
        "it was not this library: {said}"
    );
}

#[test]
fn appendix_a_takes_one_turn() {
    let Some(program) = compiled("examples/omp/appendix-a.c") else {
        return;
    };
    let late = |output: &Output| {
        let told = printed(output);
        let line = told.lines().find(|line| line.ends_with(" runs were late"));
        line.map(str::to_owned).expect("a line about late runs")
    };
    // A part is late if it begins half a turn after it could. Where a machine takes CPUs away for a
    // second, turns have to be long.
    let turns = [("8", "100"), ("4", "500"), ("2", "3000")];
    for kind in ["forced", "untied", "natural"] {
        for policy in ["active", "passive"] {
            let mut told = turns.iter().map(|(runs, turn)| {
                let output = program.ours(&[runs, turn, kind], &[("OMP_WAIT_POLICY", policy)]);
                (late(&output), format!("0 of {runs} runs were late"))
            });
            let in_time = told.any(|(told, expected)| told == expected);
            assert!(in_time, "{kind}, {policy}: late in turns of any length");
        }
    }
    // The same program sees the difference, and writes when its parts ran on any library.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("record");
    let argument = format!("record={}", file.display());
    let told = plain(&program, &["4", "100", &argument]);
    assert_eq!(late(&told), "4 of 4 runs were late");
    let text = std::fs::read_to_string(&file).expect("the record");
    let rows = omp_record::read(&text).expect("a record").spans();
    let parts = rows.iter().flat_map(|(_, spans)| spans);
    let runs = parts.filter(|(_, _, state)| matches!(state, omp_record::State::Runs(..)));
    assert_eq!(
        (rows.len(), runs.count()),
        (3, 4),
        "A, B, C and their creator"
    );
}

/// Runs a program with a record, and holds that against the promise.
fn recorded(program: &Program, arguments: &[&str], mode: &str) -> (String, omp_record::Findings) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("record");
    let path = file.to_str().expect("a path of text");
    let environment = [("PUNCTUAL_OMP_TRACE", path), ("OMP_WAIT_POLICY", mode)];
    let told = printed(&program.ours(arguments, &environment));
    let text = std::fs::read_to_string(&file).expect("the record");
    let record = omp_record::read(&text).expect("a record");
    (told, record.check())
}

#[test]
fn no_carrier_is_idle_while_an_item_waits_unstarted() {
    let Some(program) = compiled("runtime/openmp/tests/c/items.c") else {
        return;
    };
    let (mut looks, mut sleeps) = (0, 0);
    for mode in ["active", "passive"] {
        for members in ["2", "3", "4", "8"] {
            let (told, findings) = recorded(&program, &[members], mode);
            assert_eq!(told, "256 and 20\n");
            assert!(findings.items > 100, "{} items", findings.items);
            let idle = findings.idle;
            assert_eq!(idle, [""; 0], "{mode}, {members} members");
            looks += findings.looks;
            sleeps += findings.sleeps;
        }
    }
    if let Some(program) = compiled("examples/omp/appendix-a.c") {
        let (_, findings) = recorded(&program, &["3", "30", "forced"], "passive");
        assert_eq!((findings.items, findings.idle.len()), (9, 0));
    }
    // Carriers that never looked in vain would say nothing.
    assert!(looks > 10 && sleeps > 2, "{looks} looks, {sleeps} sleeps");
}

#[test]
fn a_member_that_spins_for_another_is_not_alone() {
    let Some(program) = compiled("runtime/openmp/tests/c/spinning.c") else {
        return;
    };
    for members in ["2", "3", "5", "8"] {
        assert_eq!(printed(&program.ours(&[members], &[])), "all met\n");
    }
}

#[test]
fn the_deadlock_of_the_paper_does_not_happen() {
    let Some(program) = compiled("runtime/openmp/tests/c/critical_wait.c") else {
        return;
    };
    for members in ["1", "2", "3", "4"] {
        assert_eq!(printed(&program.ours(&[members], &[])), "200 of 200\n");
    }
}

#[test]
fn items_that_wait_at_every_scheduling_point_are_all_done() {
    let Some(program) = compiled("runtime/openmp/tests/c/blocking.c") else {
        return;
    };
    for members in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        for policy in ["active", "passive"] {
            let told = printed(&program.ours(&[members], &[("OMP_WAIT_POLICY", policy)]));
            assert_eq!(told, "all done, 60 in order\n", "{members}, {policy}");
        }
    }
}

#[test]
fn a_mutex_that_is_held_over_a_wait_is_reported_and_the_strict_mode_avoids_it() {
    let Some(program) = compiled("runtime/openmp/tests/c/mutex_wait.c") else {
        return;
    };
    let strict = program.ours(&["strict"], &[("PUNCTUAL_OMP_TSC", "strict")]);
    assert_eq!(printed(&strict), "both had it\n");
    let mut command = program.command();
    command.env("LD_LIBRARY_PATH", library().expect("linked before"));
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let errors = BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = errors.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("has slept for a second"));
    // It would wait until its time is over: `timeout` hands the signal on.
    let stop = format!("kill {}", child.id());
    let ended = Command::new("sh").args(["-c", &stop]).status();
    assert!(ended.is_ok_and(|ended| ended.success()), "it still waits");
    child.wait().expect("it ends");
    let line = line.expect("a line about the mutex");
    assert!(
        line.contains("program+0x") && line.contains("PUNCTUAL_OMP_TSC=strict"),
        "{line}"
    );
}

#[test]
fn the_shipped_programs_print_what_they_print_on_libgomp() {
    let programs: [(&str, &[&str]); 3] = [
        ("sort", &["200000"]),
        ("strassen", &["256"]),
        ("sparselu", &["12", "20"]),
    ];
    for (name, arguments) in programs {
        let Some(program) = compiled(&format!("examples/omp/{name}.c")) else {
            return;
        };
        let expected = printed(&plain(&program, arguments));
        assert!(expected.contains("checksum"), "{expected}");
        for members in ["1", "2", "5"] {
            for mode in ["active", "passive"] {
                let environment = [("OMP_NUM_THREADS", members), ("OMP_WAIT_POLICY", mode)];
                let told = printed(&program.ours(arguments, &environment));
                assert_eq!(told, expected, "{name}, {members} members, {mode}");
            }
        }
    }
}

#[test]
fn exceptions_and_rounding_belong_to_the_item() {
    let Some(program) = compiled("runtime/openmp/tests/c/exceptions.cpp") else {
        return;
    };
    for members in ["1", "2", "3", "8"] {
        assert_eq!(
            printed(&program.ours(&[members], &[])),
            "0 wrong\n",
            "{members}"
        );
    }
}

#[test]
fn a_million_items_a_thousand_deep_are_all_there() {
    let Some(program) = compiled("runtime/openmp/tests/c/deep.c") else {
        return;
    };
    for members in ["1", "2", "4"] {
        let output = program.ours(&[members], &[("PUNCTUAL_OMP_COUNTS", "1")]);
        assert_eq!(printed(&output), "1000000\n", "{members}");
        let said = text(&output.stderr);
        assert!(
            members == "1" || said.contains(" 0 items on a waiting stack"),
            "{said}"
        );
    }
}

#[test]
fn members_are_threads_to_the_c_library() {
    let Some(program) = compiled("runtime/openmp/tests/c/threads.c") else {
        return;
    };
    let told = printed(&program.ours(&[], &[]));
    assert_eq!(
        told,
        "8 of 8 alone\n400 of 400 from four threads\n10 of 10 children\n"
    );
}

#[test]
fn items_of_one_member_have_a_region_each() {
    let Some(program) = compiled("runtime/openmp/tests/c/inner_regions.c") else {
        return;
    };
    for policy in ["active", "passive"] {
        let told = printed(&program.ours(&[], &[("OMP_WAIT_POLICY", policy)]));
        assert_eq!(told, "160 of 160\n1600 of 1600\n", "{policy}");
    }
}

#[test]
fn a_thread_outside_every_region_waits_for_a_lock_and_goes_on_where_it_was() {
    let Some(program) = compiled("runtime/openmp/tests/c/outside.c") else {
        return;
    };
    let all = "3 of 3 stayed, 108 of 108 alone\n";
    for policy in ["active", "passive"] {
        let told = printed(&program.ours(&[], &[("OMP_WAIT_POLICY", policy)]));
        assert_eq!(told, format!("{all}3 members\n{all}"), "{policy}");
    }
}

#[test]
fn an_item_runs_on_a_member_of_its_region() {
    let Some(program) = compiled("runtime/openmp/tests/c/smaller.c") else {
        return;
    };
    assert_eq!(printed(&program.ours(&[], &[])), "0 strange items\n");
}

#[test]
fn a_taskloop_makes_the_objects_of_its_items_where_they_are_used() {
    let Some(program) = compiled("runtime/openmp/tests/c/loop_objects.cpp") else {
        return;
    };
    for members in ["1", "2", "4"] {
        let told = printed(&program.ours(&[members], &[]));
        assert_eq!(told, "0 wrong, all gone\n", "{members}");
    }
}

#[test]
fn control_variables_are_those_of_libgomp_and_nothing_is_cancelled() {
    let Some(program) = compiled("runtime/openmp/tests/c/controls.c") else {
        return;
    };
    let environments = [
        ("OMP_NUM_THREADS", "3"),
        ("OMP_NUM_THREADS", "4,2"),
        ("OMP_SCHEDULE", "static"),
        ("OMP_SCHEDULE", "auto"),
        ("OMP_SCHEDULE", "nonmonotonic:guided"),
        ("OMP_SCHEDULE", "sideways:guided"),
        ("OMP_DYNAMIC", "1"),
        ("OMP_THREAD_LIMIT", "0"),
        ("OMP_MAX_ACTIVE_LEVELS", "300"),
        ("OMP_MAX_TASK_PRIORITY", "99999999999"),
    ];
    for environment in environments {
        let mut plain = program.command();
        let plain = plain.envs([environment]).output().expect("it runs");
        let ours = program.ours(&[], &[environment]);
        assert_eq!(printed(&ours), printed(&plain), "{environment:?}");
    }
}

#[test]
fn the_child_of_a_fork_has_regions_and_leaves_the_record_to_its_parent() {
    let Some(program) = compiled("runtime/openmp/tests/c/child.c") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("record");
    let path = file.to_str().expect("a path of text");
    let told = printed(&program.ours(&[path], &[("PUNCTUAL_OMP_TRACE", path)]));
    let members = "no record of the child, 4 members\n4 members of one that forked in a critical\n";
    assert_eq!(told, members);
    assert!(file.exists(), "the parent writes it");
}

#[test]
fn the_limit_of_threads_is_for_all_teams_together() {
    let Some(program) = compiled("runtime/openmp/tests/c/limit.c") else {
        return;
    };
    for (limit, members) in [("3", 3), ("5", 5), ("100", 12)] {
        let told = printed(&program.ours(&[], &[("OMP_THREAD_LIMIT", limit)]));
        let expected = format!("{} members of inner regions in 10 rounds\n", 10 * members);
        assert_eq!(told, expected, "{limit}");
    }
}
