//! Random histories of random trees: the checker accuses nobody, and the log runs again.

use crate::random::{history, swapping_history, ticks};
use punctual_kern::{Event, Grant, NodeId, Refusal, TraceEvent};
use punctual_model::{Instant, PolicyKind, Priority, ServerKind, Work};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_trace::{Log, Record, Records, replay, text};

#[test]
fn whatever_is_asked_of_a_tree_the_checker_finds_nothing_wrong_with_the_core() {
    for seed in 0..600 {
        let log = history(seed, 0);
        let found = check(&log);
        assert!(found.is_empty(), "seed {seed}: {}", found[0]);
    }
}

#[test]
fn late_entries_are_no_reason_to_accuse_the_core() {
    for (late, seeds) in [(9, 600), (100, 400), (2_000, 200)] {
        for seed in 0..seeds {
            let found = check(&history(seed, late));
            let first = found.first();
            assert!(first.is_none(), "{late} late, seed {seed}: {}", found[0]);
        }
    }
}

/// So many histories as `HISTORIES` says; 4,000 take a minute and a half beside nothing else.
#[test]
fn of_as_many_histories_as_are_asked_for_none_is_accused() {
    let asked = std::env::var("HISTORIES").ok().and_then(|n| n.parse().ok());
    let accused = |late: u64| {
        let seeds =
            (0..asked.unwrap_or(40)).filter(|&seed| !check(&history(seed, late)).is_empty());
        seeds.collect::<Vec<u64>>()
    };
    let all = [0, 9, 100, 2_000].map(accused);
    let none: [Vec<u64>; 4] = Default::default();
    assert_eq!(all, none);
}

#[test]
fn every_history_is_written_read_and_run_again() {
    for seed in 0..60 {
        let log = history(seed, 5);
        let mut bytes = Vec::new();
        text::write(&log, &mut bytes).expect("memory takes it");
        let again =
            text::read(&mut bytes.as_slice()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(again, log, "seed {seed}");
        let stats = replay(&again, AnyPolicy::new).unwrap_or_else(|d| panic!("seed {seed}: {d}"));
        assert!(stats.decisions > 300, "seed {seed}: {stats:?}");
    }
}

/// Order is judged by the policy in force; jobs, budgets, locks and supply go on.
#[test]
fn policies_are_replaced_all_the_time_and_nobody_is_accused() {
    let (mut replaced, mut fallen) = (0, 0);
    for (late, seeds) in [(0, 600), (9, 300)] {
        for seed in 0..seeds {
            let log = swapping_history(seed, late);
            let found = check(&log);
            assert!(found.is_empty(), "{late} late, seed {seed}: {}", found[0]);
            let is_new = |record: &Record| {
                matches!(record, Record::Trace(TraceEvent::PolicyReplaced { .. }))
            };
            replaced += records(&log).iter().filter(|record| is_new(record)).count();
            let fell =
                |record: &&Record| matches!(record, Record::Trace(TraceEvent::FellBack { .. }));
            fallen += records(&log).iter().filter(fell).count();
        }
    }
    assert!(replaced > 5_000, "only {replaced} policies were replaced");
    assert!(fallen > 100, "only {fallen} fell back");
}

#[test]
fn a_policy_that_nobody_asked_for_is_found() {
    let mut changed = 0;
    for seed in 0..40 {
        let mut log = swapping_history(seed, 0);
        let mut all = records(&log);
        let other = all.iter_mut().find_map(|record| match record {
            Record::Trace(TraceEvent::PolicyReplaced { policy, .. }) => Some(policy),
            _ => None,
        });
        let Some(policy) = other else { continue };
        *policy = match *policy {
            PolicyKind::Fifo => PolicyKind::EarliestDeadlineFirst,
            _ => PolicyKind::Fifo,
        };
        log.cpus[0].records = all.into_iter().collect();
        let found = check(&log);
        let named = found.iter().any(|v| v.rule == Rule::PowerRespected);
        assert!(named, "seed {seed}: {found:?}");
        changed += 1;
    }
    assert!(changed > 20, "only {changed} changed");
}

#[test]
fn policies_that_were_replaced_are_replaced_again_by_a_replay() {
    for seed in 0..200 {
        let log = swapping_history(seed, 5);
        let mut bytes = Vec::new();
        text::write(&log, &mut bytes).expect("memory takes it");
        let again = text::read(&mut bytes.as_slice()).expect("what was written");
        assert_eq!(again, log, "seed {seed}");
        let same = replay(&again, AnyPolicy::new);
        assert!(same.is_ok(), "seed {seed}: {same:?}");
    }
}

fn records(log: &Log) -> Vec<Record> {
    log.cpus[0].records.iter().map(|(_, r)| r).collect()
}

/// Applies `change` to histories until it has changed ten; each must be rejected under `rule`.
/// `change` gets the event before each record, and says whether it has changed something.
fn rejected(rule: Rule, change: impl Fn(&Event, &mut Vec<Record>, usize) -> bool) {
    rejected_in(rule, |_, event, all, at| change(event, all, at));
}

/// The same; `change` gets the log, too.
fn rejected_in(rule: Rule, change: impl Fn(&Log, &Event, &mut Vec<Record>, usize) -> bool) {
    let mut changed = 0;
    for seed in 0..200 {
        let mut log = history(seed, 0);
        let mut all = records(&log);
        let mut event = Event::Tick;
        for at in 0..all.len() {
            if let Record::Entry(entry) = all[at] {
                event = entry.event;
            }
            if change(&log, &event, &mut all, at) {
                log.cpus[0].records = Records::from_iter(all);
                let found = check(&log);
                let first = found
                    .first()
                    .unwrap_or_else(|| panic!("seed {seed}: not noticed"));
                assert_eq!(first.rule, rule, "seed {seed}: {first}");
                changed += 1;
                break;
            }
        }
        if changed == 10 {
            return;
        }
    }
    panic!("only {changed} histories could be changed");
}

#[test]
fn an_unlawful_answer_that_is_believed_or_a_lawful_one_that_is_not() {
    rejected(Rule::ChildAnswersChecked, |event, all, at| {
        let Record::Decision(decision) = &mut all[at] else {
            return false;
        };
        let unlawful = matches!(
            decision.refused,
            Some(Refusal::NotItsOwn(_) | Refusal::NotReady(_) | Refusal::NotDeciding(_))
        );
        let believed = matches!(event, Event::ChildPicked(_)) && unlawful;
        if believed {
            decision.refused = None;
        }
        believed
    });
    rejected(Rule::ChildAnswersChecked, |event, all, at| {
        let (Event::ChildPicked(pick), Record::Decision(decision)) = (event, &mut all[at]) else {
            return false;
        };
        let (Some(thread), None) = (pick.thread, decision.refused) else {
            return false;
        };
        decision.refused = Some(Refusal::NotItsOwn(thread));
        true
    });
}

#[test]
fn a_child_that_is_not_charged_for_deciding() {
    let charged =
        |record: &Record| matches!(record, Record::Trace(TraceEvent::ChildCharged { .. }));
    rejected(Rule::SupplyRespected, |_, all, at| {
        let found = charged(&all[at]);
        if found {
            let _ = all.remove(at);
        }
        found
    });
    rejected(Rule::SupplyRespected, |_, all, at| {
        if let Record::Trace(TraceEvent::ChildCharged { work, .. }) = &mut all[at] {
            *work = Work::from_ticks(work.ticks() + 1);
            return true;
        }
        false
    });
}

#[test]
fn power_over_what_is_not_ones_own() {
    rejected(Rule::PowerRespected, |event, all, at| {
        let Record::Decision(decision) = &mut all[at] else {
            return false;
        };
        let unlawful = matches!(
            decision.refused,
            Some(
                Refusal::NotItsOwn(_)
                    | Refusal::NotItsChild(_)
                    | Refusal::OnlyRootCreates(_)
                    | Refusal::BlockedByTrusted(_)
            )
        );
        let done = matches!(event, Event::Manage { .. }) && unlawful;
        if done {
            decision.refused = None;
        }
        done
    });
    // A thread changes hands though nobody asked for it.
    rejected(Rule::PowerRespected, |event, all, at| {
        let Record::Trace(TraceEvent::Switched {
            to: Some(thread), ..
        }) = all[at]
        else {
            return false;
        };
        let quiet = matches!(event, Event::Tick | Event::Complete);
        if quiet {
            let home = NodeId::ROOT;
            all.insert(at, Record::Trace(TraceEvent::Moved { thread, home }));
        }
        quiet
    });
}

/// Whether an entry without the record at `at` has one that is `wanted`.
fn entry_has(all: &[Record], at: usize, wanted: impl Fn(&Record) -> bool) -> bool {
    let is_event = |r: &&Record| matches!(r, Record::Entry(_));
    let is_end = |r: &&Record| matches!(r, Record::Decision(_));
    let before = all[..at].iter().rev().take_while(|r| !is_event(r));
    let after = all[at + 1..].iter().take_while(|r| !is_end(r));
    before.chain(after).any(wanted)
}

/// A mistake that the core had (doc/soak.md).
#[test]
fn a_scheduler_that_is_lowered_while_a_thread_of_it_holds_what_others_share() {
    rejected(Rule::PolicyOrder, |_, all, at| {
        if let Record::Trace(TraceEvent::Queued {
            release, priority, ..
        }) = &mut all[at]
            && *release == Instant::ZERO
            && priority.number() > 0
        {
            *priority = Priority::new(priority.number() - 1);
            return true;
        }
        false
    });
}

/// A mistake that the core had (doc/soak.md).
#[test]
fn a_server_that_counts_from_before_it_has_a_budget_again() {
    rejected_in(Rule::SupplyRespected, |log, event, all, at| {
        let Record::Trace(TraceEvent::Queued { node, .. }) = all[at] else {
            return false;
        };
        let row = node.index().checked_sub(1);
        let row = row.and_then(|at| log.tables.cpus[0].nodes.get(at));
        let in_periods = row.is_some_and(|row| match row.terms.supply {
            Grant::Server(server) => {
                use ServerKind::{ConstantBandwidth, Sporadic};
                !matches!(server.kind, ConstantBandwidth | Sporadic)
            }
            Grant::Shared | Grant::Slots => false,
        });
        // It ran out, with something ready, and nothing but time has passed since.
        let quiet = |r: &&Record| match r {
            Record::Entry(entry) => entry.event == Event::Tick && entry.is_plain(),
            Record::Trace(TraceEvent::Switched { .. } | TraceEvent::ServerReplenished { .. })
            | Record::Decision(_) => true,
            Record::Trace(_) => false,
        };
        let told = all[..at].iter().rposition(|r| !quiet(&r)).unwrap_or(0);
        let preempted = |r: &Record| {
            matches!(
                r,
                Record::Trace(TraceEvent::Switched {
                    preempted: true,
                    ..
                })
            )
        };
        let budget = Some(Work::ZERO);
        let unqueued = Record::Trace(TraceEvent::Unqueued { node, budget });
        let ran_out = all[told] == unqueued && preempted(&all[told + 1]);
        if let Record::Trace(TraceEvent::Queued { release, .. }) = &mut all[at]
            && in_periods
            && ran_out
            && *event == Event::Tick
        {
            *release = release.saturating_sub(ticks(1));
            return true;
        }
        false
    });
}

/// A mistake that the core had (doc/soak.md).
#[test]
fn a_thread_that_waits_or_holds_without_a_job() {
    rejected(Rule::OnlyReadyRuns, |event, all, at| {
        let Record::Trace(TraceEvent::Completed { thread, job, .. }) = all[at] else {
            return false;
        };
        let starts = |r: &Record| match r {
            Record::Trace(TraceEvent::Started { thread: of, .. }) => *of == thread,
            Record::Trace(TraceEvent::Ended { .. } | TraceEvent::Unlocked { .. }) => true,
            _ => false,
        };
        let lasts = *event != Event::Complete || entry_has(all, at, starts);
        if !lasts {
            let for_predecessors = false;
            let blocked = TraceEvent::Blocked {
                thread,
                job,
                for_predecessors,
            };
            all.insert(at + 1, Record::Trace(blocked));
        }
        !lasts
    });
}
