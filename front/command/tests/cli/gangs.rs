//! Gangs through the command: one verdict for all members, skews, and barriers that time replaces.

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, stdout};

/// A gang on every CPU of `names`, and a task beside it on the last one.
fn file(names: &[String], wcet: &str, beside: &str) -> String {
    let list = names.iter().map(|name| format!("\"{name}\""));
    let mut text = format!(
        "[system]\ncpus = [{}]\n",
        list.collect::<Vec<_>>().join(", ")
    );
    for name in names {
        text += &format!("[cpu.{name}]\npolicy = \"fixed-priority\"\n");
    }
    let on = names.iter().map(|name| format!("\"cpu.{name}\""));
    let on = on.collect::<Vec<_>>().join(", ");
    let last = &names[names.len() - 1];
    text += &format!(
        "[gang.step]\non = [{on}]\nclass = \"periodic\"\nperiod = \"1ms\"\nwcet = \"{wcet}\"\n\
         priority = 1\n[task.beside]\nclass = \"reservation\"\non = \"cpu.{last}\"\n\
         period = \"10ms\"\nslice = \"{beside}\"\npriority = 2\n[run]\nfor = \"20ms\"\n"
    );
    text
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|cpu| format!("c{cpu}")).collect()
}

fn gang(verdict: &Value) -> &Value {
    &verdict["gangs"][0]
}

#[test]
fn a_gang_is_refused_on_all_cpus_for_one_and_its_fix_admits_it_everywhere() {
    let folder = Folder::new("gang-refused");
    let path = folder.write("gang.toml", &file(&names(3), "800us", "300us"));
    let refused = output(&["check", &path, "--json"]);
    assert_eq!(code(&refused), 1);
    let verdict = json(&refused);
    assert_obeys(&verdict, "check");
    assert_eq!(gang(&verdict)["refused_on"], serde_json::json!(["c2"]));
    let refusal = &verdict["refusals"][0];
    assert_eq!(refusal["subject"], "step.c2");
    assert_eq!(refusal["witness"]["kind"], "response");
    assert_eq!(refusal["fix"]["parameter"], "gang.step.wcet");
    let to = refusal["fix"]["to"].as_str().expect("a value");
    let path = folder.write("mended.toml", &file(&names(3), to, "300us"));
    assert_eq!(code(&output(&["check", &path])), 0);
    let text = stdout(&output(&[
        "check",
        &folder.write("again.toml", &file(&names(3), "800us", "300us")),
    ]));
    assert!(
        text.contains("refused on CPU c2: no member of it on 3 CPUs is admitted"),
        "{text}"
    );
}

#[test]
fn a_gang_on_256_cpus_is_admitted_and_executes_in_virtual_time() {
    let folder = Folder::new("gang-256");
    let path = folder.write("gang.toml", &file(&names(256), "300us", "200us"));
    let checked = output(&["check", &path, "--json"]);
    assert_eq!(code(&checked), 0);
    let verdict = json(&checked);
    let superstep = &gang(&verdict)["supersteps"][0];
    assert_eq!(superstep["members"].as_array().map(Vec::len), Some(256));
    assert_eq!(superstep["skew_bound_ns"], 200_000);
    let report = output(&["sim", &path, "--json"]);
    assert_eq!(code(&report), 0);
    assert_eq!(json(&report)["tasks"].as_array().map(Vec::len), Some(257));
}

#[test]
fn one_barrier_goes_and_one_stays_with_its_reason() {
    let checked = output(&["check", &example("bsp.toml"), "--json"]);
    assert_eq!(code(&checked), 0);
    let verdict = json(&checked);
    assert_obeys(&verdict, "check");
    let left_out = |gang: usize| {
        let barriers = verdict["gangs"][gang]["barriers"]
            .as_array()
            .expect("a list");
        let all = barriers.iter().map(|barrier| barrier["left_out"].clone());
        all.collect::<Vec<_>>()
    };
    assert_eq!(
        (left_out(0), left_out(1)),
        (
            vec![Value::from(true), Value::from(true)],
            vec![Value::from(false), Value::from(true)],
        )
    );
    let reason = verdict["gangs"][1]["barriers"][0]["reason"]
        .as_str()
        .expect("text");
    assert!(reason.ends_with("1.502ms too early"), "{reason}");
    assert_eq!(code(&output(&["sim", &example("bsp.toml")])), 0);
}
