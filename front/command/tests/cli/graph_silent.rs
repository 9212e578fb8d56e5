//! Tiles that never fire although they could, and the starts of those that do, on the page.

use crate::common::{Folder, code, json, output, stdout};

/// `show` is alone on the tile `last`, with slots of its own.
const TEXT: &str = r#"
[system]
cpus = ["a", "b"]
[cpu.a]
policy = "fifo"
[cpu.b]
policy = "tdm"
frame = "1ms"
scheduling-time = "10us"
[scheduler.last]
on = "cpu.b"
policy = "fifo"
slots = [{ at = "0us", length = "400us" }]
[graph.line]
actors = [
  { name = "grab", on = "cpu.a", wcet = "300us" },
  { name = "show", on = "scheduler.last", wcet = "100us" },
]
fifos = [{ name = "frames", from = "grab", to = "show", produce = 2, capacity = 6 }]
"#;

#[test]
fn a_single_tile_that_never_fires_is_a_fault_and_one_that_had_no_time_is_none() {
    let folder = Folder::new("graph-silent");
    let file = folder.write("line.toml", TEXT);
    let simulated = |fault: &str, duration: &str| {
        let arguments = ["sim", &file, "--json", "--for", duration];
        let with: Vec<&str> = match fault {
            "" => arguments.to_vec(),
            fault => arguments.into_iter().chain(["--fault", fault]).collect(),
        };
        let answer = output(&with);
        (code(&answer), json(&answer))
    };
    let (answer, found) = simulated("", "20ms");
    assert_eq!(
        (answer, found["faults"].as_array().map(Vec::len)),
        (0, Some(0))
    );
    let (answer, found) = simulated("child-silent=last", "20ms");
    let said = "graph line: a tile has never fired; the task scheduler never chose show on last";
    assert_eq!((answer, &found["faults"][0]), (3, &said.into()));
    assert_eq!(found["graphs"][0]["silent"], false);
    assert_eq!(found["graphs"][0]["passed_over"][0], "show on last");
    // Its tokens are there for two slots, which says nothing yet.
    let (answer, found) = simulated("child-silent=last", "2500us");
    assert_eq!(
        (answer, found["faults"].as_array().map(Vec::len)),
        (0, Some(0))
    );
}

#[test]
fn the_page_has_the_starts_of_firings() {
    let folder = Folder::new("graph-starts-page");
    let file = folder.write("line.toml", TEXT);
    let page = folder.path("out.html");
    let answer = output(&["sim", &file, "--for", "20ms", "--report", &page]);
    assert_eq!(code(&answer), 0, "{}", stdout(&answer));
    let page = std::fs::read_to_string(&page).expect("a page");
    let (_, starts) = page.split_once("starts of").expect("a table");
    let (starts, _) = starts.split_once("</table>").expect("its end");
    for (actor, next) in [("grab", "show"), ("show", "</tbody")] {
        let (_, row) = starts.split_once(&format!(">{actor}<")).expect("a row");
        let (row, _) = row.split_once(next).expect("what follows");
        // The quantiles and the longest, and no start beside missing time.
        assert_eq!(row.matches(">0s<").count(), 3, "{row}");
        assert_eq!(row.matches(">–<").count(), 3, "{row}");
    }
}
