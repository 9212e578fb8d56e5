//! Flags of a thread that say whether an entry has to look into it.

use super::*;

#[test]
fn a_thread_that_asked_promised_or_is_to_end_is_looked_at_whenever_it_runs_next() {
    let bench = on_the_fast_path();
    let light = &bench.lights[0];
    let (id, stamp) = (light.id(), light.stamp.get());
    let is_usual = || light.is_usual(light.stamp.get());
    // As in a signal: the entry that follows a promise is not looked at here.
    if !bench.cpu.host.gate.is_closed() {
        bench.cpu.host.gate.close();
    }
    let changes: [fn(&Light); 3] = [
        |light| promise(light, 1_000),
        |light| light.ask(0),
        Light::cancel,
    ];
    for change in changes {
        light.note_usual();
        assert!(is_usual());
        change(light);
        assert!(!is_usual(), "it is looked at");
        light.note_usual();
        assert!(!is_usual(), "and again");
        // Another thread in the same record: no stamp of the one before is its own, and it has
        // asked and promised nothing.
        promise(light, 0);
        light.clear();
        light.set_id(id);
        assert!(!light.is_usual(stamp) && light.stamp.get() == JobStamp::NONE);
        light.stamp.set(stamp);
    }
}

#[test]
fn whatever_an_entry_has_to_look_into_about_its_thread_makes_that_one_less_than_plain() {
    let bench = on_the_fast_path();
    let light = &bench.lights[0];
    let group: &'static ThreadGroup = Box::leak(Box::new(ThreadGroup::new(0, Standing::Idle)));
    let ceiling = Ceiling {
        priority: Priority::new(3),
        absolute_deadline: at(9),
    };
    type Change<'a> = &'a dyn Fn();
    let flags: [(Change<'_>, Change<'_>); 4] = [
        (&|| light.set_group(Some(group)), &|| light.set_group(None)),
        (&|| light.may_end.set(true), &|| light.may_end.set(false)),
        (&|| light.tell(Some(Refusal::NobodyRuns)), &|| {
            light.tell(None);
        }),
        (&|| assert!(!light.set_ceiling(Some(ceiling))), &|| {
            assert_eq!(light.take_ceiling(), Some(Some(ceiling)));
        }),
    ];
    for (at, (set, unset)) in flags.iter().enumerate() {
        assert!(light.is_plain());
        set();
        assert!(!light.is_plain(), "flag {at}");
        unset();
    }
    assert!(light.is_plain() && light.take_ceiling().is_none());
}
