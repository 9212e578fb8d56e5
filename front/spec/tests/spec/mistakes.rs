//! Every mistake has a file, and a golden rendering beside it.
//!
//! `UPDATE_EXPECT=1 cargo test -p punctual-spec --test spec mistakes` writes the renderings again:
//! read the difference before you keep it.

use std::path::Path;

/// Compares the rendering of all mistakes of `mistakes/NAME.toml` with `mistakes/NAME.txt`, and
/// checks what holds for every diagnostic.
pub(crate) fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let file = format!("{name}.toml");
    let text = std::fs::read_to_string(folder.join(&file)).expect("the file");
    let found = punctual_spec::parse(&text, &file).expect_err("mistakes");
    assert!(!found.is_empty());
    for diagnostic in &found {
        let line = text.lines().nth(diagnostic.line - 1).unwrap_or("");
        assert!(line.contains(&diagnostic.text), "{diagnostic:?}");
        let column = line.chars().skip(diagnostic.column - 1).collect::<String>();
        assert!(column.starts_with(&diagnostic.text), "{diagnostic:?}");
        assert!(!diagnostic.help.is_empty(), "{diagnostic:?}");
    }
    let rendered: Vec<String> = found.iter().map(ToString::to_string).collect();
    let rendered = rendered.join("\n\n") + "\n";
    let golden = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&golden, rendered).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(rendered, expected, "{name}: see the head of this file");
}

#[test]
fn unknown_key() {
    check("unknown-key");
}

#[test]
fn unknown_section() {
    check("unknown-section");
}

#[test]
fn section_of_later() {
    check("section-of-later");
}

#[test]
fn key_outside_its_section() {
    check("key-outside-its-section");
}

#[test]
fn duplicate_key() {
    check("duplicate-key");
}

#[test]
fn duplicate_task() {
    check("duplicate-task");
}

#[test]
fn duplicate_cpu() {
    check("duplicate-cpu");
}

#[test]
fn cpu_that_is_not_there() {
    check("cpu-that-is-not-there");
}

#[test]
fn on_something_else() {
    check("on-something-else");
}

#[test]
fn cpu_without_section() {
    check("cpu-without-section");
}

#[test]
fn cpu_not_listed() {
    check("cpu-not-listed");
}

#[test]
fn predecessor_that_is_not_there() {
    check("predecessor-that-is-not-there");
}

#[test]
fn requirement_of_nothing() {
    check("requirement-of-nothing");
}

#[test]
fn cycle() {
    check("cycle");
}

#[test]
fn period_zero() {
    check("period-zero");
}

#[test]
fn wcet_over_deadline() {
    check("wcet-over-deadline");
}

#[test]
fn slice_over_period() {
    check("slice-over-period");
}

#[test]
fn size_over_deadline() {
    check("size-over-deadline");
}

#[test]
fn missing_unit() {
    check("missing-unit");
}

#[test]
fn unknown_unit() {
    check("unknown-unit");
}

#[test]
fn overflow() {
    check("overflow");
}

#[test]
fn finer_than_a_nanosecond() {
    check("finer-than-a-nanosecond");
}

#[test]
fn number_out_of_range() {
    check("number-out-of-range");
}

#[test]
fn wrong_type() {
    check("wrong-type");
}

#[test]
fn key_of_another_class() {
    check("key-of-another-class");
}

#[test]
fn key_of_another_policy() {
    check("key-of-another-policy");
}

#[test]
fn missing_key() {
    check("missing-key");
}

#[test]
fn missing_class() {
    check("missing-class");
}

#[test]
fn missing_priority() {
    check("missing-priority");
}

#[test]
fn missing_section() {
    check("missing-section");
}

#[test]
fn sporadic_on_another_cpu() {
    check("sporadic-on-another-cpu");
}

#[test]
fn precedence_of_an_endless_body() {
    check("precedence-of-an-endless-body");
}

#[test]
fn host_twice() {
    check("host-twice");
}

#[test]
fn no_cpus() {
    check("no-cpus");
}

#[test]
fn unknown_word() {
    check("unknown-word");
}

#[test]
fn unknown_policy() {
    check("unknown-policy");
}

#[test]
fn value_without_quotes() {
    check("value-without-quotes");
}

#[test]
fn unfinished_text() {
    check("unfinished-text");
}

#[test]
fn header_without_end() {
    check("header-without-end");
}

#[test]
fn percentage() {
    check("percentage");
}

#[test]
fn percentage_as_number() {
    check("percentage-as-number");
}

#[test]
fn work_of_no_kind() {
    check("work-of-no-kind");
}

#[test]
fn work_of_two_kinds() {
    check("work-of-two-kinds");
}

#[test]
fn call_without_library() {
    check("call-without-library");
}

#[test]
fn task_without_name() {
    check("task-without-name");
}

#[test]
fn list_of_tasks() {
    check("list-of-tasks");
}

#[test]
fn name_with_a_space() {
    check("name-with-a-space");
}

#[test]
fn backlog_of_skipped() {
    check("backlog-of-skipped");
}

#[test]
fn suspensions_of_no_length() {
    check("suspensions-of-no-length");
}

#[test]
fn arrivals_back_in_time() {
    check("arrivals-back-in-time");
}

#[test]
fn nested_too_deeply() {
    check("nested-too-deeply");
}

#[test]
fn scheduler_that_is_not_there() {
    check("scheduler-that-is-not-there");
}

#[test]
fn parent_that_is_not_there() {
    check("parent-that-is-not-there");
}

#[test]
fn schedulers_in_a_circle() {
    check("schedulers-in-a-circle");
}

#[test]
fn schedulers_too_deep() {
    check("schedulers-too-deep");
}

#[test]
fn duplicate_scheduler() {
    check("duplicate-scheduler");
}

#[test]
fn scheduler_without_priority() {
    check("scheduler-without-priority");
}

#[test]
fn scheduler_with_a_host() {
    check("scheduler-with-a-host");
}

#[test]
fn server_over_period() {
    check("server-over-period");
}

#[test]
fn server_of_nothing() {
    check("server-of-nothing");
}

#[test]
fn server_without_budget() {
    check("server-without-budget");
}

#[test]
fn server_of_unknown_kind() {
    check("server-of-unknown-kind");
}

#[test]
fn server_and_slots() {
    check("server-and-slots");
}

#[test]
fn server_below_tdm() {
    check("server-below-tdm");
}

#[test]
fn no_slots() {
    check("no-slots");
}

#[test]
fn slots_below_edf() {
    check("slots-below-edf");
}

#[test]
fn no_server_below_edf() {
    check("no-server-below-edf");
}

#[test]
fn children_of_own_time() {
    check("children-of-own-time");
}

#[test]
fn quota_too_small() {
    check("quota-too-small");
}

#[test]
fn frame_missing() {
    check("frame-missing");
}

#[test]
fn frame_of_nothing() {
    check("frame-of-nothing");
}

#[test]
fn frame_of_another_policy() {
    check("frame-of-another-policy");
}

#[test]
fn slot_outside_its_frame() {
    check("slot-outside-its-frame");
}

#[test]
fn slots_overlap() {
    check("slots-overlap");
}

#[test]
fn slots_too_close() {
    check("slots-too-close");
}

#[test]
fn slots_too_close_around_the_end() {
    check("slots-too-close-around-the-end");
}

#[test]
fn slot_without_length() {
    check("slot-without-length");
}

#[test]
fn resource_that_is_not_there() {
    check("resource-that-is-not-there");
}

#[test]
fn resources_of_an_endless_body() {
    check("resources-of-an-endless-body");
}

#[test]
fn section_of_nothing() {
    check("section-of-nothing");
}

#[test]
fn section_without_length() {
    check("section-without-length");
}

#[test]
fn sections_over_wcet() {
    check("sections-over-wcet");
}

#[test]
fn inner_section_over_outer() {
    check("inner-section-over-outer");
}

#[test]
fn inside_of_what_is_over() {
    check("inside-of-what-is-over");
}

#[test]
fn locked_twice() {
    check("locked-twice");
}

#[test]
fn deadlock() {
    check("deadlock");
}

#[test]
fn deadlock_of_three() {
    check("deadlock-of-three");
}

#[test]
fn resource_across_cpus() {
    check("resource-across-cpus");
}

#[test]
fn resource_across_schedulers() {
    check("resource-across-schedulers");
}

#[test]
fn resource_across_slots() {
    check("resource-across-slots");
}

#[test]
fn ceiling_under_edf() {
    check("ceiling-under-edf");
}

#[test]
fn ceiling_through_edf() {
    check("ceiling-through-edf");
}

#[test]
fn srp_under_fifo() {
    check("srp-under-fifo");
}

#[test]
fn section_that_never_fits() {
    check("section-that-never-fits");
}

#[test]
fn unknown_protocol() {
    check("unknown-protocol");
}

#[test]
fn chain_of_one() {
    check("chain-of-one");
}

#[test]
fn chain_of_the_wrong_tasks() {
    check("chain-of-the-wrong-tasks");
}

#[test]
fn jitter_of_an_endless_body() {
    check("jitter-of-an-endless-body");
}

#[test]
fn below_a_mistake() {
    check("below-a-mistake");
}

#[test]
fn spin_across_schedulers() {
    check("spin-across-schedulers");
}

#[test]
fn many_at_once() {
    check("many-at-once");
}

#[test]
fn own_time_without_supply() {
    check("own-time-without-supply");
}

#[test]
fn change_that_names_what_is_not_there() {
    check("change-that-names-what-is-not-there");
}

#[test]
fn changes_at_one_instant() {
    check("changes-at-one-instant");
}

#[test]
fn slices_that_cannot_be() {
    check("slices-that-cannot-be");
    check("slices-that-do-not-fit");
}

#[test]
fn slices_that_change() {
    check("slices-that-are-not-there");
    check("slices-that-change");
    check("slices-that-cannot-change");
    check("slices-that-come-too-soon");
}

#[test]
fn changes_that_cannot_be() {
    for name in [
        "change-into-what-means-nothing",
        "change-of-a-server-below-which-is-a-slice",
        "change-of-what-arrives-once",
        "change-of-what-is-tied",
        "change-that-starts-what-is-there",
        "change-that-leaves-a-task-behind",
        "change-of-a-policy-by-priority",
        "change-of-a-policy-that-stays",
        "transfer-that-cannot-be",
        "transfer-of-what-is-not-there",
    ] {
        check(name);
    }
}

#[test]
fn mistakes_from_which_no_second_one_follows() {
    for name in [
        "numbers-that-are-none",
        "task-without-a-system",
        "period-of-zero",
        "json",
        "json-list",
    ] {
        check(name);
    }
}
