//! Deliberately broken policies, one per file: each is caught under the right name.
//!
//! Every file says what is wrong in its first line, and differs from a right policy in that alone.

mod alternates;
mod answers_for_now;
mod applies_blocks_late;
mod begins_anew_on_update;
mod counts_entries;
mod drops_those_behind;
mod forgets_new_budgets;
mod forgets_new_deadlines;
mod forgets_the_first_to_come;
mod gives_budget_on_waking;
mod hashes;
mod keeps_old_generations;
mod keeps_who_is_not_first;
mod latest_of_equals;
mod least_urgent_first;
mod names_the_last_as_next;
mod never_ends_turns;

mod preempts_after_all;
mod queues_twice;
mod rests;
mod runs_for_a_turn_in_one_step;
mod runs_out_of_room;
mod takes_wakes_late;

use punctual_conform::{Broken, Claims, Level, Options, Property, check};
use punctual_kern::Policy;

/// Checks a policy that must break, and gives what was found.
fn find<P: Policy + 'static>(claims: &Claims, make: impl Fn(usize) -> P) -> Broken {
    match check(claims, make, &Options::default()) {
        Ok(report) => panic!("not caught: {report}"),
        Err(broken) => broken,
    }
}

/// Asserts under which name a policy is caught, by at most so many steps. Several seeds: the name
/// must not depend on which history finds it.
fn assert_caught<P: Policy + 'static>(
    claims: &Claims,
    make: impl Fn(usize) -> P,
    property: Property,
    steps: usize,
) {
    for seed in [1, 1_000_000, 77_777_777] {
        let options = Options {
            seed,
            ..Options::default()
        };
        let Err(broken) = check(claims, &make, &options) else {
            panic!("seed {seed}: not caught");
        };
        assert_eq!(broken.property, property, "{broken}");
        assert!(
            broken.shortest <= steps,
            "{} steps: {broken}",
            broken.shortest
        );
    }
}

#[test]
fn a_finding_is_found_again_by_its_seed() {
    let make = least_urgent_first::LeastUrgentFirst::new;
    let broken = find(&Claims::FIXED_PRIORITY, make);
    assert_eq!(broken.level, Level::Seam);
    let options = Options {
        seed: broken.seed,
        histories: 1,
        ..Options::default()
    };
    let again = check(&Claims::FIXED_PRIORITY, make, &options);
    assert_eq!(again, Err(broken));
}

#[test]
fn a_finding_reads_as_a_list_of_steps_that_ends_in_what_is_wrong() {
    let broken = find(
        &Claims::FIXED_PRIORITY,
        least_urgent_first::LeastUrgentFirst::new,
    );
    let text = broken.to_string();
    let first = text.lines().next().expect("a line");
    assert_eq!(
        first,
        "broken: priority-order: nobody runs while somebody more urgent is ready"
    );
    assert!(text.contains("is more urgent"), "{text}");
    assert!(text.contains("wake `"), "{text}");
}

#[test]
fn what_a_policy_does_not_claim_is_not_held_against_it() {
    let report = check(
        &Claims::ANY_ORDER,
        least_urgent_first::LeastUrgentFirst::new,
        &Options::default(),
    );
    assert!(report.is_ok(), "{report:?}");
}
