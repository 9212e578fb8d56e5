//! The page: self-contained, safe, small, and about this run.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use crate::common::{FIXED, composed, missing, periodic, rich, simulate, two_tasks};
use punctual_model::System;
use punctual_trace::{Log, Mode, html};

fn page_of(log: &Log) -> String {
    html::page(log, &punctual::judge(log))
}

/// Every element that is opened is closed, in order.
fn assert_well_formed(page: &str) {
    let mut open = vec!["html"];
    let body = page.split_once("</head>").unwrap().1;
    for rest in body.split('<').skip(1) {
        let tag = rest.split_once('>').unwrap().0;
        let name = tag.trim_start_matches('/').split([' ', '/']).next();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), name, "{tag}");
        } else if !tag.ends_with('/') {
            open.extend(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_loads_nothing_and_executes_its_one_script() {
    let page = page_of(&simulate(&rich(FIXED), 400, 1, missing(2_000, 23)));
    // The name of the vocabulary of drawings is no address that anything asks.
    let rest = page.replace("\"http://www.w3.org/2000/svg\"", "");
    for foreign in [
        "http://",
        "https://",
        "url(",
        "@import",
        "onload",
        "src=",
        "fetch",
        "XMLHttp",
        "import",
        "innerHTML",
        "eval(",
        "document.write",
        "cookie",
        "Storage",
    ] {
        assert!(!rest.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn names_cannot_break_out_of_their_places() {
    let mut log = simulate(&two_tasks(), 100, 1, missing(9_000, 30));
    let evil = "</td><script>alert(1)</script><b a=\"'&";
    log.tasks[0].name = evil.into();
    log.cpus[0].name = evil.into();
    log.cpus[0].counters.missing_method = evil.into();
    log.cpus[0].counters.others = vec![(evil.into(), 1)];
    log.header.source = evil.into();
    log.header.platform = evil.into();
    log.header.tool = evil.into();
    log.header.mode = Mode::BestEffort;
    log.header.stopped = Some(evil.into());
    log.header.lost = vec![evil.into()];
    log.header.faults = vec![evil.into()];
    log.header.machine = vec![(evil.into(), evil.into())];
    let page = page_of(&log);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(!page.contains("</td><b"));
    assert_well_formed(&page);
}

#[test]
fn figures_of_the_run_are_on_the_page() {
    let log = simulate(&two_tasks(), 10_000, 1, missing(9_000, 300));
    let page = page_of(&log);
    for part in [
        "1,500",
        "N 1,000 in 10s",
        "excused",
        "bound 7ms",
        "missing time",
        "worst",
    ] {
        let expected = part != "worst";
        assert_eq!(page.contains(part), expected, "{part}");
    }
    assert_well_formed(&page);
}

fn many_tasks(count: u32) -> System {
    let mut system = two_tasks();
    system.tasks = (0..count)
        .map(|n| {
            periodic(
                &format!("{}-{n}", "long-name".repeat(12)),
                0,
                50,
                90,
                count - n,
            )
        })
        .collect();
    system
}

#[test]
fn the_page_stays_below_a_megabyte() {
    let mut log: Log = simulate(&many_tasks(600), 2_000, 1, missing(900, 5));
    log.header.machine = (0..2_000)
        .map(|n| (n.to_string(), "x".repeat(2_000)))
        .collect();
    log.header.lost = vec!["y".repeat(10_000); 1_000];
    let page = page_of(&log);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("more tasks") && page.contains("more misses"));
}

#[test]
fn a_log_without_jobs_has_a_page_too() {
    let mut log = simulate(&two_tasks(), 10, 1, missing(1, 5));
    log.cpus[0].records = Default::default();
    assert_well_formed(&page_of(&log));
    log.cpus.clear();
    assert_well_formed(&page_of(&log));
}

#[test]
fn slots_budgets_and_locks_are_drawn_and_counted() {
    let mut log = simulate(&composed(), 400, 1, missing(100, 37));
    let page = page_of(&log);
    assert_well_formed(&page);
    for what in [
        "class=\"slot\"",
        "class=\"starved\"",
        "class=\"hold\"",
        "class=\"waits\"",
        "holds bus",
        "rationed has no budget",
        "hungry on rationed",
        "deferrable 1.5ms in 10ms",
        "<h2>Schedulers</h2>",
        "<h2>Resources</h2>",
    ] {
        assert!(page.contains(what), "{what}");
    }
    log.schedulers[2] = "</title><script>".into();
    log.resources[0] = "</title><script>".into();
    let page = page_of(&log);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert_well_formed(&page);
}

/// The numbers behind `before` up to the next quotation mark.
fn numbers(page: &str, before: &str) -> Vec<usize> {
    let parts = page.split(before).skip(1);
    let numbers = parts.map(|part| part.split('"').next().unwrap().parse().unwrap());
    numbers.collect()
}

#[test]
fn each_link_of_a_miss_leads_to_one_place_in_the_timeline() {
    let page = page_of(&simulate(&two_tasks(), 10_000, 1, missing(200_000, 3_000)));
    let links = numbers(&page, "href=\"#miss-");
    let mut places = numbers(&page, "id=\"miss-");
    places.sort_unstable();
    assert!(links.len() > 20, "{}", links.len());
    assert_eq!(links, places);
}

#[test]
fn the_bars_of_the_causes_add_up_to_the_misses() {
    let log = simulate(&two_tasks(), 10_000, 1, missing(200_000, 3_000));
    let page = page_of(&log);
    let causes = page.split_once("<dl class=\"causes\">").unwrap().1;
    let causes = causes.split_once("</dl>").unwrap().0;
    let counts = causes.split("</dd><dd>").skip(1).map(|count| {
        let digits: String = count
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == ',')
            .filter(|c| *c != ',')
            .collect();
        digits.parse::<u64>().unwrap()
    });
    let misses = punctual::judge(&log)
        .tasks
        .iter()
        .map(|t| t.misses)
        .sum::<u64>();
    assert_eq!(counts.sum::<u64>(), misses);
}

#[test]
fn a_short_run_is_drawn_whole_and_a_long_one_says_what_is_left_out() {
    let short = page_of(&simulate(&two_tasks(), 2_000, 1, missing(1, 5_000)));
    assert!(short.contains("The whole run is drawn") && !short.contains("not drawn\""));
    let long = simulate(&two_tasks(), 100_000, 1, missing(100_000, 7_000));
    let (page, twice) = (page_of(&long), page_of(&long));
    assert!(page.contains("s this page draws") && page.contains("not drawn\""));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert_eq!(page, twice, "equal logs give equal bytes");
}

#[test]
fn the_admission_says_why_each_bound_is_as_it_is() {
    let mut log = simulate(&two_tasks(), 200, 1, missing(1, 50));
    let machine = punctual_trace::Bound {
        ns: 7_100_000,
        exactness: "exact".into(),
        explanation: "7.1ms = 7ms (own) + 100us (<switches>)".into(),
    };
    log.tasks[0].machine_bound = Some(machine);
    let page = page_of(&log);
    for part in [
        "<h2>Admission</h2>",
        "7ms = 5ms (own) + 2ms (another)<details><summary>with this machine's terms</summary>\
         7.1ms = 7ms (own) + 100us (&lt;switches&gt;)</details>",
        "35.0 %",
        "35.2 %",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_well_formed(&page);
    for task in &mut log.tasks {
        (task.bound, task.machine_bound) = (None, None);
    }
    assert!(
        !page_of(&log).contains("<h2>Admission</h2>"),
        "nothing was promised"
    );
}

#[test]
fn a_cpu_that_executes_just_what_was_admitted_is_not_drawn_as_over_it() {
    let system = System {
        tasks: vec![periodic("planner", 0, 15, 12_000, 1)],
        ..two_tasks()
    };
    let log = simulate(&system, 13_200, 1, punctual_sim::Faults::default());
    let page = |log: &Log, admitted| {
        let mut log = log.clone();
        if let Some(bound) = &mut log.tasks[0].bound {
            bound.ns = 12_000_000;
        }
        log.cpus[0].utilization_ppm = Some(admitted);
        log.cpus[0].machine_utilization_ppm = Some(admitted);
        page_of(&log)
    };
    let over = "<svg class=\"bar over\"";
    assert!(page(&log, 800_000).contains("80.0 %"));
    assert!(!page(&log, 800_000).contains(over));
    assert!(page(&log, 790_000).contains(over));
}

#[test]
fn lost_and_skipped_jobs_and_the_origin_stand_at_the_top() {
    let mut log = simulate(&two_tasks(), 3_000, 1, missing(900_000, 1_000));
    log.header.machine = [
        ("command", "punctual run a.toml"),
        ("date", "2026-01-02T03:04:05Z"),
        ("host", "a&b"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let lost: u64 = punctual::judge(&log).tasks.iter().map(|t| t.lost).sum();
    assert!(lost > 0);
    let page = page_of(&log);
    let head = page.split_once("</header>").unwrap().0;
    for part in [
        format!("<dt>lost</dt><dd>{lost}</dd>"),
        "<dt>date</dt><dd>2026-01-02T03:04:05Z</dd>".into(),
        "<dt>host</dt><dd>a&amp;b</dd>".into(),
    ] {
        assert!(head.contains(&part), "{part}");
    }
    assert!(page.contains("<dt>command</dt><dd>punctual run a.toml</dd>"));
}
