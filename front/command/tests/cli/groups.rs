//! Planned groups through the command: the plan, its certificate, and what cannot be done with one.

use serde_json::{Value, json};

use crate::common::{Folder, assert_obeys, code, example, json, output, stderr, stdout};

/// A table that is moved by one process at a time, on two CPUs, and a task beside the groups.
fn file(deadline: &str) -> String {
    format!(
        "[system]\ncpus = [\"a\", \"b\", \"c\"]\n[cpu.a]\npolicy = \"planned\"\n[cpu.b]\n\
         policy = \"planned\"\n[cpu.c]\npolicy = \"fixed-priority\"\n[resource.table]\n\
         protocol = \"planned\"\n[group.move]\nrequest = \"periodic\"\nperiod = \"100ms\"\n\
         deadline = \"{deadline}\"\nsegments = [\n\
         {{ name = \"compute\", wcet = \"15ms\" }},\n\
         {{ name = \"move\", wcet = \"30ms\", uses = [{{ resource = \"table\" }}] }},\n]\n\
         [group.look]\nrequest = \"periodic\"\nperiod = \"50ms\"\n\
         segments = [{{ name = \"look\", wcet = \"10ms\", uses = [{{ resource = \"table\", mode = \"shared\" }}] }}]\n\
         [group.once]\nrequest = \"once\"\nat = \"20ms\"\ndeadline = \"100ms\"\n\
         segments = [{{ name = \"<once>\", wcet = \"5ms\" }}]\n\
         [task.beside]\nclass = \"periodic\"\non = \"cpu.c\"\nperiod = \"10ms\"\nwcet = \"2ms\"\n\
         priority = 1\n[run]\nfor = \"1s\"\n"
    )
    .replace("<once>", "only")
}

#[test]
fn a_plan_is_printed_as_text_as_json_and_as_a_timeline() {
    let folder = Folder::new("groups-plan");
    let path = folder.write("groups.toml", &file("80ms"));
    let checked = output(&["check", &path, "--json"]);
    assert_eq!(code(&checked), 0);
    let verdict = json(&checked);
    assert_obeys(&verdict, "check");
    let planning = &verdict["planning"];
    assert_eq!(planning["plan"]["nodes"], json!(["cpu.a", "cpu.b"]));
    assert_eq!(planning["plan"]["period_ns"], 100_000_000);
    assert_eq!(planning["plan"]["repeats_from_ns"], 200_000_000);
    let groups = planning["groups"].as_array().expect("three groups");
    assert_eq!(groups.len(), 3);
    assert_eq!(groups[0]["ends_ns"], 45_000_000);
    assert_eq!(groups[0]["slack"][1]["segment"], "move");
    let text = stdout(&output(&["check", &path]));
    for line in [
        "1 task and 3 groups of 4 segments on 3 CPUs, every deadline holds",
        "why: move: ends 45ms after its arrival at the latest, of 80ms",
        "repeats every 100ms from 200ms on",
        "move.move #2",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let page = folder.path("page.html");
    assert_eq!(code(&output(&["report", &path, "--report", &page])), 0);
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(
        page.contains("<svg class=\"plan\"") && page.contains("look.look from"),
        "{page}"
    );
}

#[test]
fn a_certificate_holds_the_plan_and_one_start_moved_is_refused_and_named() {
    let folder = Folder::new("groups-certificate");
    let path = folder.write("groups.toml", &file("80ms"));
    let certificate = folder.path("plan.json");
    let written = output(&["check", &path, "--quiet", "--certificate", &certificate]);
    assert_eq!(code(&written), 0, "{}", stderr(&written));
    let valid = output(&["verify", &certificate, &path]);
    assert_eq!(code(&valid), 0, "{}", stdout(&valid));
    assert!(
        stdout(&valid).contains("nobody waits; the rest is admitted"),
        "{}",
        stdout(&valid)
    );

    let text = std::fs::read_to_string(&certificate).expect("written");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let count = whole["places"].as_array().expect("places").len();
    let mut named = 0;
    for place in 0..count {
        // Far enough to meet somebody, or to be late.
        let mut moved = whole.clone();
        let start = moved["places"][place]["start"].as_u64().expect("a start");
        moved["places"][place]["start"] = (start + 100_000_000).into();
        let moved = folder.write("moved.json", &moved.to_string());
        let refused = output(&["verify", &moved]);
        assert_eq!(code(&refused), 1);
        let said = stdout(&refused);
        assert!(said.starts_with("not valid: places["), "{said}");
        named += u32::from(said.contains(&format!("places[{place}].start")));
    }
    assert!(
        named > 0,
        "the moved start itself is named where nobody else is late for it"
    );
    // Of another file, and with a resource left out.
    let other = folder.write("other.toml", &file("81ms"));
    let elsewhere = output(&["verify", &certificate, &other, "--json"]);
    assert_eq!(code(&elsewhere), 1);
    assert!(
        stdout(&elsewhere).contains("segment `move.compute #0`"),
        "{}",
        stdout(&elsewhere)
    );
    // And without the proof of the task beside the groups, or of what repeats.
    let mut strange = whole.clone();
    strange["format"] = json!(2);
    let unread = output(&[
        "verify",
        &folder.write("strange.json", &strange.to_string()),
    ]);
    assert_eq!(code(&unread), 2);
    let said = stderr(&unread);
    assert!(
        said.contains("its format is 2, this checker reads 1"),
        "{said}"
    );
    let forgeries: [fn(&mut Value); 3] = [
        |plan| plan["segments"][0]["uses"] = json!([]),
        |plan| plan["rest"] = Value::Null,
        |plan| plan["repeats_from"] = json!(1_000_000_000_000_u64),
    ];
    for (number, forge) in forgeries.into_iter().enumerate() {
        let mut forged = whole.clone();
        forge(&mut forged);
        let forged = folder.write("forged.json", &forged.to_string());
        let refused = output(&["verify", &forged, &path]);
        assert_eq!(code(&refused), 1, "{number}: {}", stdout(&refused));
    }
}

#[test]
fn a_refusal_has_a_fix_that_admits_and_no_certificate() {
    let folder = Folder::new("groups-refused");
    let path = folder.write("groups.toml", &file("44ms"));
    let refused = output(&["check", &path, "--json"]);
    assert_eq!(code(&refused), 1);
    let verdict = json(&refused);
    assert_obeys(&verdict, "check");
    assert_eq!(verdict["planning"]["plan"], Value::Null);
    assert_eq!(verdict["planning"]["groups"][0]["exactness"], "exact");
    let fix = &verdict["refusals"][0]["fix"];
    assert_eq!(fix["parameter"], "group.move.deadline");
    let to = fix["to"].as_str().expect("a value");
    let mended = folder.write("mended.toml", &file(to));
    assert_eq!(code(&output(&["check", &mended])), 0);
    let certificate = folder.path("none.json");
    let none = output(&["check", &path, "--certificate", &certificate]);
    assert_eq!(code(&none), 3);
    assert!(
        stderr(&none).contains("a plan is the proof of a yes"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn examples_are_admitted_certified_and_execute_in_virtual_time_alone() {
    let folder = Folder::new("groups-examples");
    for name in [
        "linear-table",
        "three-processors",
        "planned-beside-edf",
        "vehicle",
        "less-and-less",
    ] {
        let path = example(&format!("{name}.toml"));
        let certificate = folder.path(&format!("{name}.json"));
        let written = output(&["check", &path, "--certificate", &certificate]);
        assert_eq!(code(&written), 0, "{name}: {}", stderr(&written));
        let verified = output(&["verify", &certificate, &path]);
        assert_eq!(code(&verified), 0, "{name}: {}", stdout(&verified));
        let log = folder.path(&format!("{name}.log"));
        let executed = output(&["sim", &path, "--record", &log, "--json"]);
        assert_eq!(code(&executed), 0, "{name}: {}", stderr(&executed));
        let groups = json(&executed)["groups"].as_array().cloned();
        for group in groups.unwrap_or_default() {
            let [asked, kept, late] =
                ["requests", "guaranteed", "late"].map(|key| group[key].as_u64());
            assert!(asked > Some(0) && late == Some(0), "{name}: {group}");
            assert!(
                group["off_line"] == false || asked == kept,
                "{name}: {group}"
            );
        }
        let replayed = output(&["replay", &log]);
        assert!(stdout(&replayed).starts_with("identical"), "{name}");
        let live = output(&["run", &path, "--quiet"]);
        assert_eq!(code(&live), 2, "{name}");
        assert!(stderr(&live).contains("in virtual time only"), "{name}");
    }
}
