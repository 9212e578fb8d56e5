//! Graphs through the command: the reference table, refusals, certificates, other tools' files.

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, stderr, stdout};

/// The reference decoder with these capacities and without requirements.
fn decoder(capacities: Option<[u32; 3]>) -> String {
    let text = std::fs::read_to_string(example("graph-h263.toml")).expect("the example");
    let end = text.find("[require]").expect("its requirements");
    let mut text = text[..end].to_string();
    for (place, old) in [1_188, 2, 1_188].into_iter().enumerate() {
        let old = format!("capacity = {old}, ");
        let new = capacities.map_or(String::new(), |all| format!("capacity = @{}, ", all[place]));
        assert!(text.contains(&old));
        text = text.replacen(&old, &new, 1);
    }
    text.replace('@', "")
}

fn verdict(folder: &Folder, text: &str) -> Value {
    let file = folder.write("graph.toml", text);
    let answer = output(&["check", &file, "--json"]);
    let found = json(&answer);
    assert_obeys(&found, "check");
    assert_eq!(code(&answer), i32::from(found["verdict"] == "refused"));
    found
}

#[test]
fn the_reference_graph_has_its_table() {
    let folder = Folder::new("graph-table");
    for (capacities, period, output) in [
        (None, 332_046, 369_508),
        (Some([594, 1, 594]), 646_262, 657_706),
        (Some([594, 2, 594]), 358_064, 369_508),
        (Some([1_188, 2, 594]), 342_858, 369_508),
        (Some([1_188, 2, 1_188]), 332_046, 369_508),
    ] {
        let found = verdict(&folder, &decoder(capacities));
        assert_eq!(found["verdict"], "admitted", "{capacities:?}");
        let graph = &found["graphs"][0];
        assert_eq!(graph["period_ns"], period, "{capacities:?}");
        assert_eq!(graph["first_output_ns"], output, "{capacities:?}");
        assert_eq!(
            (&graph["confirmed"], &graph["exactness"]),
            (&true.into(), &"exact".into())
        );
        let firings: Vec<u64> = graph["actors"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|actor| actor["firings"].as_u64())
            .collect();
        assert_eq!(firings, [1, 594, 594, 1]);
    }
    let found = verdict(&folder, &decoder(Some([593, 1, 594])));
    assert_eq!(found["verdict"], "refused");
    let graph = &found["graphs"][0];
    assert!(graph["period_ns"].is_null(), "{graph}");
    let fix = &graph["fix"];
    assert_eq!(fix["parameter"], "graph.h263.fifos[0].capacity");
    assert_eq!((&fix["from"], &fix["to"]), (&"593".into(), &"594".into()));
    let strict = decoder(Some([593, 1, 594]))
        + "[require]\nthroughput = [{ graph = \"h263\", every = \"340us\" }]\n";
    let strict = verdict(&folder, &strict);
    let advice = strict["refusals"][0]["advice"].as_str().expect("a text");
    let words =
        "graph.h263.fifos[0].capacity = 594 instead of 593 lets it go on, but not as required";
    assert!(advice.starts_with(words), "{advice}");
    let several = [
        "capacity = 627 instead of 593",
        "capacity = 8 instead of 1: together they",
    ];
    assert!(several.iter().all(|part| advice.contains(part)), "{advice}");
    let reason = found["refusals"][0]["reason"].as_str().expect("a text");
    let words = "`vld` lacks space for 1 token in `blocks`, which `iq` would free";
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn a_graph_is_refused_with_the_firings_that_are_too_slow_and_one_fix() {
    let folder = Folder::new("graph-fix");
    let text = std::fs::read_to_string(example("graph-slots.toml")).expect("the example");
    let found = verdict(&folder, &text);
    assert_eq!(found["verdict"], "admitted");
    assert_eq!(found["tasks"][0]["name"], "beside");
    let less = text.replace("capacity = 10", "capacity = 9");
    assert_ne!(less, text);
    let found = verdict(&folder, &less);
    assert_eq!(found["verdict"], "refused");
    assert_eq!(found["graphs"][0]["fix"]["to"], "10");
    assert_eq!(found["graphs"][0]["circle"]["iterations"], 1);
    let people = stdout(&output(&["check", &folder.path("graph.toml")]));
    let words = "fix: graph.decoder.fifos[0].capacity = 10 instead of 9";
    assert!(people.contains(words), "{people}");
    let file = folder.write("text.toml", &text);
    let suggested = output(&["check", &file, "--suggest", "buffers", "--json"]);
    assert_eq!(code(&suggested), 0);
    let suggested = json(&suggested);
    assert_obeys(&suggested, "suggest");
    assert_eq!(
        suggested["changes"].as_array().map(Vec::len),
        Some(0),
        "{suggested}"
    );
    let ground = suggested["ground"].as_str().expect("a text");
    assert!(
        ground.contains("10, 5, none: size 1600, period 4.25ms"),
        "{ground}"
    );
}

#[test]
fn jobs_of_a_hyperperiod_are_not_counted_for_graphs() {
    let file = example("graph-h263.toml");
    let refused = output(&["check", &file, "--simulate"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("graph"), "{}", stderr(&refused));
}

/// A simulation of this file, recorded; the report and the log.
fn simulated(folder: &Folder, text: &str, duration: &str) -> (Value, String) {
    let (file, log) = (folder.write("graph.toml", text), folder.path("graph.log"));
    let answer = output(&["sim", &file, "--for", duration, "--json", "--record", &log]);
    let found = json(&answer);
    assert_obeys(&found, "run");
    let fails = found["faults"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    let expected = match (found["verdict"] == "missed", fails) {
        (true, _) => 1,
        (false, true) => 3,
        (false, false) => 0,
    };
    assert_eq!(code(&answer), expected);
    (found, log)
}

#[test]
fn the_reference_graph_executes_as_its_table_says() {
    let folder = Folder::new("graph-sim");
    for (capacities, period, output) in [
        (None, 332_046, 369_508),
        (Some([594, 1, 594]), 646_262, 657_706),
        (Some([594, 2, 594]), 358_064, 369_508),
        (Some([1_188, 2, 594]), 342_858, 369_508),
        (Some([1_188, 2, 1_188]), 332_046, 369_508),
    ] {
        let (found, _) = simulated(&folder, &decoder(capacities), "6ms");
        assert_eq!(found["verdict"], "met", "{capacities:?}");
        let graph = &found["graphs"][0];
        let both = |what: &str, bound: &str| (graph[what].clone(), graph[bound].clone());
        let is = |ns: u64| (Value::from(ns), Value::from(ns));
        assert_eq!(both("period_ns", "period_bound_ns"), is(period));
        assert_eq!(both("first_output_ns", "first_output_bound_ns"), is(output));
        let longest = graph["actors"].as_array().expect("a list");
        assert!(
            longest
                .iter()
                .all(|actor| actor["longest_ns"] == actor["wcet_ns"])
        );
    }
    let stops = decoder(Some([593, 1, 594]));
    let (found, _) = simulated(&folder, &stops, "2ms");
    assert_eq!(found["graphs"][0]["iterations"], 0);
    let never = "graph h263: none of its actors has ever fired; \
                 none has tokens and space for its first firing";
    assert_eq!(found["faults"], serde_json::json!([never]));
    let required = stops + "[require]\nthroughput = [{ graph = \"h263\", every = \"340us\" }]\n";
    let (found, _) = simulated(&folder, &required, "2ms");
    assert_eq!(found["verdict"], "missed");
}

/// A silent task scheduler is no wrong answer, but its graph has never fired: exit code 3.
#[test]
fn tasks_that_run_to_completion_are_told_and_a_deadlock_is_named() {
    let folder = Folder::new("graph-plain");
    let text = std::fs::read_to_string(example("graph-plain.toml")).expect("the example");
    let checked = verdict(&folder, &text);
    assert_eq!(checked["verdict"], "admitted");
    let why = checked["graphs"][0]["explanation"]
        .as_str()
        .expect("a text");
    assert!(why.ends_with("nothing is promised of it"), "{why}");
    assert!(checked["graphs"][0]["period_ns"].is_null());
    let (found, log) = simulated(&folder, &text, "1s");
    let batch = &found["graphs"][0];
    assert_eq!(batch["real_time"], false);
    let rounds = |at: usize| batch["actors"][at]["firings"].clone();
    assert_eq!([0, 1, 2, 3].map(rounds), [400, 400, 1_000, 250]);
    assert_eq!(batch["actors"][3]["state"], "FINISHED");
    let replayed = json(&output(&["replay", &log, "--json"]));
    assert_eq!(replayed["graphs"], found["graphs"]);
    let (circle, _) = simulated(&folder, &text.replace("initial = 1, ", ""), "1s");
    let named = circle["faults"][0].as_str().expect("a fault");
    assert!(
        named.starts_with("graph batch stops for ever: `ask` waits for 1 token"),
        "{named}"
    );
    assert_eq!(circle["graphs"][0]["actors"][2]["state"], "FINISHED");
    assert_eq!(
        circle["graphs"][0]["actors"][0]["waits_for"],
        "tokens in answers"
    );
    assert_eq!(
        circle["graphs"][1], found["graphs"][1],
        "its neighbour sees nothing"
    );
    let file = folder.write("plain.toml", &text);
    let silent = output(&[
        "sim",
        &file,
        "--for",
        "9ms",
        "--fault",
        "child-silent=stream",
    ]);
    assert_eq!(code(&silent), 1, "it misses what is required");
    let required = "throughput = [{ graph = \"stream\", every = \"2ms\" }]";
    assert!(text.contains(required));
    let free = folder.write("free.toml", &text.replace(required, ""));
    let silent = output(&[
        "sim",
        &free,
        "--for",
        "9ms",
        "--fault",
        "child-silent=stream",
    ]);
    assert_eq!(code(&silent), 3, "{}", stdout(&silent));
    let said = stdout(&silent);
    let fault = "none of its actors has ever fired; the task scheduler never chose read on stream";
    assert!(said.contains(fault), "{said}");
    let exported = output(&["export", &file, "--graph", "batch"]);
    assert_eq!(code(&exported), 2);
    assert!(stderr(&exported).contains("is not real-time"));
    let certified = output(&["check", &file, "--certificate", &folder.path("c.json")]);
    let said = stderr(&certified);
    assert!(
        said.contains("nothing is promised of graph `batch`"),
        "{said}"
    );
}

#[test]
fn the_log_of_a_graph_on_slots_has_every_transition_and_replays() {
    let folder = Folder::new("graph-slots");
    let text = std::fs::read_to_string(example("graph-slots.toml")).expect("the example");
    let (found, log) = simulated(&folder, &text, "50ms");
    assert_eq!(found["verdict"], "met");
    let lines = std::fs::read_to_string(&log).expect("a log");
    for state in ["CLAIM", "COMPUTE", "RELEASE", "RESET", "IDLE"] {
        let ends = [format!(" {state}\n"), format!(" PREEMPT_{state}\n")];
        assert!(lines.contains(&ends[0]), "{state}");
        // Claims, releases and resets take no time here.
        let interrupted = matches!(state, "COMPUTE" | "IDLE");
        assert_eq!(lines.contains(&ends[1]), interrupted, "{state}");
    }
    let replayed = output(&["replay", &log, "--json"]);
    assert_eq!(code(&replayed), 0, "{}", stderr(&replayed));
    let replayed = json(&replayed);
    assert_eq!(replayed["replay"]["identical"], true);
    assert_eq!(replayed["graphs"], found["graphs"]);
    let page = folder.path("graph.html");
    let reported = output(&["report", &log, "--report", &page, "--quiet"]);
    assert_eq!(code(&reported), 0, "{}", stderr(&reported));
    let page = std::fs::read_to_string(&page).expect("a page");
    let table = &page[page.find("<h2>Graphs</h2>").expect("a section")..];
    for shown in [">decoder<", ">filter<", ">4.25ms<", ">90us<"] {
        assert!(table.contains(shown), "{shown}");
    }
    let (again, second) = simulated(&folder, &text, "50ms");
    assert_eq!(again["graphs"], found["graphs"]);
    assert_eq!(
        std::fs::read_to_string(&second).expect("a log").len(),
        lines.len()
    );
}

/// Starts of the decoder's `parse`: beside no missing time, and beside some.
fn starts_of_parse(found: &Value) -> [Value; 2] {
    let starts = &found["graphs"][0]["actors"][0]["starts"];
    ["delay_ns", "beside_missing_ns"].map(|part| starts[part].clone())
}

#[test]
fn firings_start_when_they_are_due_in_virtual_time_and_a_late_one_is_told_by_how_much() {
    let folder = Folder::new("graph-starts");
    let (mut examples, mut starts) = (0, 0);
    for name in ["slots", "between", "two-decoders", "h263"] {
        let file = example(&format!("graph-{name}.toml"));
        let found = json(&output(&["sim", &file, "--for", "20ms", "--json"]));
        let graphs = found["graphs"].as_array().expect("graphs");
        for actor in graphs
            .iter()
            .flat_map(|graph| graph["actors"].as_array().expect("some"))
        {
            let seen = &actor["starts"]["delay_ns"];
            assert_eq!(seen["max"], 0, "{name}: {actor}");
            assert_eq!(actor["starts"]["beside_missing_ns"]["n"], 0);
            starts += seen["n"].as_u64().expect("a number");
        }
        examples += 1;
    }
    assert!(examples == 4 && starts > 10_000, "{starts}");

    let text = std::fs::read_to_string(example("graph-slots.toml")).expect("the example");
    let (found, log) = simulated(&folder, &text, "20ms");
    let [on_time, _] = starts_of_parse(&found);
    let lines = std::fs::read_to_string(&log).expect("a log");
    // The second body of `parse` starts 7 us later than it did.
    let mut firings = lines.lines().filter(|line| line.ends_with(" 0 0 3 CLAIM"));
    let instant = firings
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .expect("it fires");
    let later = instant.parse::<u64>().expect("an instant") + 7_000;
    let late = ["CLAIM", "COMPUTE"]
        .into_iter()
        .fold(lines.clone(), |lines, state| {
            let moved = |at: &str| format!("\nmoved {at} 0 0 3 {state}\n");
            lines.replace(&moved(instant), &moved(&later.to_string()))
        });
    assert_ne!(late, lines);
    let reported = output(&["report", &folder.write("late.log", &late), "--json"]);
    let [delay, beside] = starts_of_parse(&json(&reported));
    let figures = ["p50", "p99", "max"].map(|key| delay[key].as_u64());
    assert_eq!(figures, [Some(0), Some(7_000), Some(7_000)]);
    assert_eq!((&delay["n"], &beside["n"]), (&on_time["n"], &0.into()));
    let said = stdout(&output(&[
        "sim",
        &example("graph-slots.toml"),
        "--for",
        "20ms",
    ]));
    assert!(
        said.contains("late by") && !said.contains("beside missing time"),
        "{said}"
    );
}

#[test]
fn starts_beside_missing_time_are_counted_apart() {
    let file = example("graph-slots.toml");
    let flags = [
        "sim",
        &file,
        "--for",
        "50ms",
        "--fault",
        "missing-time=200us/3ms",
    ];
    let [clean, beside] = starts_of_parse(&json(&output(&[&flags[..], &["--json"]].concat())));
    let [clean, beside] = [&clean["n"], &beside["n"]].map(|n| n.as_u64().expect("a number"));
    assert!(clean > 20 && beside > 2, "{clean} {beside}");
    let said = stdout(&output(&flags));
    assert!(said.contains("  beside missing time:       p50"), "{said}");
}

#[test]
fn copies_of_the_example_go_on_between_slots_and_are_certified() {
    let folder = Folder::new("graph-copies");
    let text = std::fs::read_to_string(example("graph-copies.toml")).expect("the example");
    let (found, log) = simulated(&folder, &text, "50ms");
    assert_eq!(found["verdict"], "met");
    let graph = &found["graphs"][0];
    let figures = ["period_ns", "period_bound_ns"].map(|key| graph[key].as_u64());
    // The claim of a frame, 98 us, shared memory that is read and written, 12.24 + 2.32 us, and
    // both firings of `cpu.right`: 400 + 150 us.
    assert_eq!(figures[0], Some(662_560));
    assert_eq!(figures[1], Some(856_000));
    let lines = std::fs::read_to_string(&log).expect("a log");
    for line in ["\ncopies 2000 200\n", "\nshm 2048 64\n", " PREEMPT_CLAIM\n"] {
        assert!(lines.contains(line), "{line}");
    }
    let replayed = output(&["replay", &log, "--json"]);
    assert_eq!(json(&replayed)["replay"]["identical"], true);
    let (file, certificate) = (
        example("graph-copies.toml"),
        folder.path("certificate.json"),
    );
    let made = output(&["check", &file, "--quiet", "--certificate", &certificate]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    assert_eq!(code(&output(&["verify", &certificate, &file])), 0);
    let text = std::fs::read_to_string(&certificate).expect("written");
    for (is, said, named) in [
        ("\"latency\":2000,", "\"latency\":1999,", "grab"),
        ("[2048,64]", "[2047,64]", "smooth"),
    ] {
        let wrong = text.replace(is, said);
        assert_ne!(wrong, text);
        let wrong = output(&["verify", &folder.write("wrong.json", &wrong)]);
        assert_eq!(code(&wrong), 1);
        let said = stdout(&wrong);
        assert!(
            said.contains(&format!("the responses of {named} is")),
            "{said}"
        );
    }
}

#[test]
fn the_certificate_of_a_graph_is_a_schedule() {
    let folder = Folder::new("graph-certificate");
    let (file, certificate) = (example("graph-h263.toml"), folder.path("certificate.json"));
    let made = output(&["check", &file, "--quiet", "--certificate", &certificate]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let found = output(&["verify", &certificate, &file, "--json"]);
    assert_eq!(code(&found), 0);
    assert_obeys(&json(&found), "verify");
    let text = std::fs::read_to_string(&certificate).expect("written");
    let wrong = text.replace("\"numerator\":333000", "\"numerator\":332045");
    assert_ne!(wrong, text);
    let wrong = folder.write("wrong.json", &wrong);
    assert_eq!(code(&output(&["verify", &wrong])), 1);
    let other = folder.write("other.toml", &decoder(None));
    assert_eq!(code(&output(&["verify", &certificate, &other])), 1);
    let task = "[task.beside]\nclass = \"aperiodic\"\npriority = 1\non = \"cpu.more\"\n";
    let text = std::fs::read_to_string(&file).expect("the example");
    let text = text.replacen("cpus = [", "cpus = [\"more\", ", 1)
        + "[cpu.more]\npolicy = \"fifo\"\n"
        + task;
    let beside = folder.write("beside.toml", &text);
    let answer = output(&["verify", &certificate, &beside]);
    assert_eq!(code(&answer), 1, "{}", stderr(&answer));
    let said = stdout(&answer);
    assert!(
        said.contains("nothing of the tasks beside the graphs"),
        "{said}"
    );
}

#[test]
fn a_graph_goes_out_to_sdf3_and_comes_in_again() {
    let folder = Folder::new("graph-sdf3");
    let exported = output(&["export", &example("graph-h263.toml")]);
    assert_eq!(code(&exported), 0);
    let xml = folder.write("decoder.xml", &stdout(&exported));
    let imported = output(&["import", &xml]);
    assert_eq!(code(&imported), 0);
    let found = verdict(&folder, &stdout(&imported));
    assert_eq!(found["graphs"][0]["period_ns"], 332_046);
    assert_eq!(found["graphs"][0]["first_output_ns"], 369_508);
    let broken = folder.write("broken.xml", "<sdf3><sdf name='g'><actor/>");
    let refused = output(&["import", &broken]);
    assert_eq!(code(&refused), 2);
    assert!(
        stderr(&refused).contains("<actor> needs the attribute `name`"),
        "{}",
        stderr(&refused)
    );
    let none = output(&["export", &example("two-tasks.toml")]);
    assert_eq!(code(&none), 2);
    let unknown = output(&["export", &example("graph-h263.toml"), "--graph", "other"]);
    assert_eq!(code(&unknown), 2);
}

#[test]
fn the_guide_shows_what_check_prints() {
    let page = include_str!("../../../../doc/guide/15-graphs.md");
    let block = |language: &str| {
        let begin = page
            .split(&format!("```{language}\n"))
            .nth(1)
            .expect("a block");
        begin.split("```").next().expect("its end").to_string()
    };
    let folder = Folder::new("graph-guide");
    let file = folder.write("pipeline.toml", &block("toml"));
    let answer = output(&["check", &file]);
    assert_eq!(code(&answer), 1);
    assert!(
        stdout(&answer).contains(&block("text")),
        "{}",
        stdout(&answer)
    );
}

#[test]
fn firings_can_be_made_shorter_and_longer_by_name() {
    let folder = Folder::new("graph-faults");
    let file = example("graph-slots.toml");
    let with = |fault: &str| {
        let log = folder.path("fault.log");
        let flags = ["sim", &*file, "--for", "50ms", "--json", "--record", &log];
        output(&[&flags[..], &["--fault", fault]].concat())
    };
    let longest = |answer: &std::process::Output, actor: usize| {
        let found = &json(answer)["graphs"][0]["actors"][actor];
        (found["longest_ns"].clone(), found["wcet_ns"].clone())
    };
    let short = with("short-firings");
    assert_eq!(code(&short), 0, "{}", stderr(&short));
    let (seen, wcet) = longest(&short, 2);
    assert!(seen.as_u64() <= wcet.as_u64(), "{seen}");
    let first =
        |answer: &std::process::Output| json(answer)["graphs"][0]["first_output_ns"].as_u64();
    let whole = with("jitter");
    assert!(
        first(&short) < first(&whole),
        "{:?} {:?}",
        first(&short),
        first(&whole)
    );
    let long = with("overrun=decoder.show:1.5");
    assert_eq!(longest(&long, 2), (135_000.into(), 90_000.into()));
    assert_eq!(longest(&long, 1).0, 60_000);
    let long = json(&long);
    assert_obeys(&long, "sim");
    let [filter, show] = [1, 2].map(|at| &long["graphs"][0]["actors"][at]);
    assert_eq!(
        (&filter["longer"], &show["longer"]),
        (&0.into(), &show["firings"])
    );
    let one = serde_json::json!({"firing": 4, "executed_ns": 135_000, "wcet_ns": 90_000});
    assert_eq!(
        (&show["longer_firings"][4], &show["longer_firings"][5]),
        (&one, &serde_json::Value::Null)
    );
    let flags = [
        "sim",
        &*file,
        "--for",
        "50ms",
        "--fault",
        "overrun=decoder.show:1.5",
    ];
    let words = stdout(&output(&flags));
    let named = "  firing 4 of show executed 135us, longer than its wcet 90us\n  ... and ";
    assert!(words.contains(named), "{words}");
    let none = with("overrun=decoder.nobody:2");
    assert_eq!(code(&none), 2);
    assert!(
        stderr(&none).contains("parse, filter, show"),
        "{}",
        stderr(&none)
    );
    let no_graph = output(&[
        "sim",
        &example("two-tasks.toml"),
        "--fault",
        "short-firings",
    ]);
    assert_eq!(code(&no_graph), 2);
}

#[test]
fn the_page_of_a_verdict_has_graphs_with_their_critical_circles() {
    let folder = Folder::new("graph-page");
    let page = folder.path("page.html");
    let answer = output(&["report", &example("graph-slots.toml"), "--report", &page]);
    assert_eq!(code(&answer), 0, "{}", stderr(&answer));
    let text = std::fs::read_to_string(&page).expect("a page");
    let graphs = &text[text.find("<h2>Graphs</h2>").expect("a section")..];
    let shown = [
        ">4.25ms<",
        ">4.5ms<",
        "Critical circle: ",
        "firings of",
        ">filter<",
        "tokens of",
    ];
    for shown in shown {
        assert!(graphs.contains(shown), "{shown}");
    }
    let refused = folder.write("refused.toml", &decoder(Some([593, 1, 594])));
    assert_eq!(code(&output(&["report", &refused, "--report", &page])), 1);
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("it stops for ever after") && text.contains("= 594 instead of 593"));
    let task = output(&["report", &example("two-tasks.toml"), "--report", &page]);
    assert_eq!(code(&task), 0);
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(!text.contains("<h2>Graphs</h2>"));
}
