//! Fixes of graphs that are a little too slow: each is written into the file and checked again.

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, stdout};

/// The text with a fix in it: `SECTION.LIST[PLACE].KEY`.
fn applied(text: &str, fix: &Value) -> String {
    let [parameter, to] = ["parameter", "to"].map(|key| fix[key].as_str().expect("text"));
    let (entry, key) = parameter.rsplit_once('.').expect("a key");
    let (list, place) = entry
        .trim_end_matches(']')
        .rsplit_once('[')
        .expect("a place");
    let (section, list) = list.rsplit_once('.').expect("a list");
    let begin = text.find(&format!("[{section}]")).expect("a section");
    let begin = begin
        + text[begin..]
            .find(&format!("\n{list} = ["))
            .expect("a list");
    let first_key = if list == "slots" { "{ at" } else { "{ name" };
    let mut entries = text[begin..].match_indices(first_key);
    let place = place.parse().expect("a number");
    let begin = begin + entries.nth(place).expect("an entry").0;
    let end = begin + text[begin..].find('}').expect("its end");
    // The file may write the old value in another unit.
    let value = begin + text[begin..end].find(&format!("{key} = ")).expect("a key");
    let value = value + key.len() + " = ".len();
    let old = &text[value..end];
    let ends = match old.starts_with('[') {
        true => old.find(']').map(|at| at + 1),
        false => old.find(',').or_else(|| old.find(' ')),
    };
    let ends = value + ends.unwrap_or(old.len());
    assert_ne!(&text[value..ends], to, "{parameter}");
    format!("{}{to}{}", &text[..value], &text[ends..])
}

/// An example with other requirements: the period at most a part in a hundred of its bound.
fn tight(name: &str, graph: &str, percent: u64) -> String {
    let text = std::fs::read_to_string(example(&format!("graph-{name}.toml"))).expect("an example");
    let known = json(&output(&[
        "check",
        &example(&format!("graph-{name}.toml")),
        "--json",
    ]));
    let graphs = known["graphs"].as_array().expect("graphs");
    let found = graphs.iter().find(|found| found["name"] == graph);
    let period = found.expect("the graph")["period_ns"]
        .as_u64()
        .expect("it goes on");
    let rest = text.lines().filter(|line| {
        let is_required = line.starts_with("throughput") || line.starts_with("latency");
        !is_required && *line != "[require]"
    });
    let every = period * percent / 100;
    let rest: Vec<&str> = rest.collect();
    format!(
        "{}\n[require]\nthroughput = [{{ graph = \"{graph}\", every = \"{every}ns\" }}]\n",
        rest.join("\n")
    )
}

#[test]
fn every_fix_of_a_graph_mends_it_and_the_kinds_are_found_in_their_order() {
    let folder = Folder::new("graph-fixes");
    let mut kinds = std::collections::BTreeMap::new();
    let graphs = [
        ("slots", "decoder"),
        ("copies", "camera"),
        ("inline", "control"),
        ("plain", "stream"),
        ("two-decoders", "jpeg"),
    ];
    for (name, graph) in graphs {
        for percent in [99, 90, 70] {
            let text = tight(name, graph, percent);
            let file = folder.write("tight.toml", &text);
            let refused = output(&["check", &file, "--json"]);
            assert_eq!(code(&refused), 1, "{name} {percent}");
            let refused = json(&refused);
            assert_obeys(&refused, "check");
            let rows = refused["graphs"].as_array().expect("graphs");
            let row = rows.iter().find(|row| row["name"] == graph).expect("it");
            let together = row["together"].as_array().expect("a list").clone();
            let alone = Some(row["fix"].clone()).filter(|fix| !fix.is_null());
            assert!(alone.is_none() || together.is_empty());
            let kind = match &alone {
                Some(fix) => {
                    let parameter = fix["parameter"].as_str().expect("text");
                    parameter.rsplit('.').next().expect("a key")
                }
                None if together.is_empty() => "none",
                None => "together",
            };
            *kinds.entry(kind.to_string()).or_insert(0) += 1;
            if kind == "none" {
                let advice = refused["refusals"][0]["advice"].as_str().expect("text");
                assert!(
                    advice.starts_with("no capacity, no slot within its frame"),
                    "{advice}"
                );
                continue;
            }
            let fixes = alone.into_iter().chain(together);
            let mended = fixes.fold(text, |text, fix| applied(&text, &fix));
            let checked = output(&["check", &folder.write("mended.toml", &mended), "--quiet"]);
            assert_eq!(code(&checked), 0, "{name} {percent}: {}", stdout(&checked));
        }
    }
    let kinds: Vec<(&str, i32)> = kinds
        .iter()
        .map(|(kind, count)| (&**kind, *count))
        .collect();
    let expected = [
        ("capacity", 1),
        ("length", 6),
        ("none", 5),
        ("together", 1),
        ("wcet", 2),
    ];
    assert_eq!(kinds, expected);
}
