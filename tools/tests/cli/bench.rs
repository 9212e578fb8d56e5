//! `punctual bench`: figures with rivals, one JSON.

use crate::common::{assert_obeys, code, json, output};

#[test]
fn figures_are_told_as_documented() {
    let done = output(&["bench", "kern event, edf, 2 threads", "--json"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "bench");
    let figures = report["figures"].as_array().expect("a list");
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0]["name"], "kern event, edf, 2 threads");
}

#[test]
fn giving_way_between_light_threads_is_measured_beside_the_kernel() {
    let done = output(&["bench", "linux yield", "--json"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "bench");
    let rivals = report["figures"][0]["rivals"].as_array().expect("a list");
    let names: Vec<_> = rivals
        .iter()
        .filter_map(|rival| rival["name"].as_str())
        .collect();
    assert_eq!(names, ["sched_yield", "futex"]);
}

#[test]
fn a_filter_that_fits_nothing_is_bad_input() {
    let told = output(&["bench", "warp drive", "--json"]);
    assert_eq!(code(&told), 2);
    assert_obeys(&json(&told), "error");
}
