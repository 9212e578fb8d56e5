//! What is drawn means something, has what it says, and is mixed.

use punctual_model::{Ns, Server, ServerKind, Supply, Task};

use super::*;

fn draws(mix: &Mix, count: u64) -> Vec<Drawn> {
    (0..count)
        .map(|seed| mix.draw(&mut Random::new(seed)))
        .collect()
}

#[test]
fn every_system_means_something_and_few_draws_are_lost() {
    let drawn = draws(&Mix::of(&Feature::ALL), 3_000);
    assert!(drawn.iter().all(|d| d.system.validate().is_ok()));
    let lost: u32 = drawn.iter().map(|d| d.discarded).sum();
    assert!(lost < 3_000, "{lost} draws meant nothing");
}

#[test]
fn more_than_a_tenth_of_all_trees_delegate_a_slice() {
    let drawn = draws(&Mix::of(&Feature::ALL), 3_000);
    let trees = drawn.iter().filter(|d| !d.system.schedulers.is_empty());
    let (with, without): (Vec<_>, Vec<_>) = trees.partition(|d| {
        let mut schedulers = d.system.schedulers.iter();
        schedulers.any(|s| s.receiver.is_some())
    });
    let (with, all) = (with.len(), with.len() + without.len());
    assert!(10 * with > all, "{with} of {all}");
}

#[test]
fn servers_of_every_kind_have_tasks_that_lock_apart_and_inside_and_across() {
    let drawn = draws(&Mix::of(&Feature::ALL), 3_000);
    let systems: Vec<&System> = drawn
        .iter()
        .filter(|d| d.features.contains(&Feature::ServerLocks))
        .map(|d| &d.system)
        .collect();
    let home = |system: &System, task: &Task| -> Option<Server<Ns>> {
        let id = task.scheduler.filter(|_| !task.uses.is_empty())?;
        match system.schedulers[id.index()].supply {
            Supply::Server(server) => Some(server),
            _ => None,
        }
    };
    let count = |has: &dyn Fn(&System, &Task) -> bool| {
        let with = systems.iter().filter(|s| s.tasks.iter().any(|t| has(s, t)));
        with.count()
    };
    for kind in ServerKind::ALL {
        let found = count(&|s, t| home(s, t).is_some_and(|server| server.kind == kind));
        assert!(found > 30, "{}: {found}", kind.name());
    }
    let inside = |t: &Task| t.uses.iter().any(|u| u.inside.is_some());
    let nested = count(&|s, t| home(s, t).is_some() && inside(t));
    let across = count(&|s, t| {
        let shares = |o: &Task| {
            let mut theirs = o.uses.iter();
            theirs.any(|u| t.uses.iter().any(|own| own.resource == u.resource))
        };
        let mut apart = s.tasks.iter().filter(|o| o.scheduler != t.scheduler);
        home(s, t).is_some() && apart.any(shares)
    });
    assert!(
        nested > 30 && across > 10,
        "{nested} nested, {across} across"
    );
}

#[test]
fn every_feature_occurs_alone_and_in_company() {
    let drawn = draws(&Mix::of(&Feature::ALL), 3_000);
    for feature in Feature::ALL {
        let with = drawn
            .iter()
            .filter(|d| d.features.contains(&feature))
            .count();
        assert!(with > 50, "{} occurs {with} times", feature.name());
    }
    let plain = drawn.iter().filter(|d| d.features.is_empty()).count();
    assert!((500..1_000).contains(&plain), "{plain} plain systems");
    assert!(drawn.iter().any(|d| d.features.len() > 6));
}

#[test]
fn features_that_are_not_listed_do_not_occur() {
    let flat: Vec<Feature> = Feature::ALL
        .into_iter()
        .filter(|f| !f.is_hierarchy() && *f != Feature::Resources)
        .collect();
    for drawn in draws(&Mix::of(&flat), 1_000) {
        assert!(drawn.system.schedulers.is_empty() && drawn.system.resources.is_empty());
    }
}

#[test]
fn equal_streams_draw_equal_systems() {
    let mix = Mix::of(&Feature::ALL);
    assert_eq!(draws(&mix, 200), draws(&mix, 200));
}
