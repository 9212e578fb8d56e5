//! Spreading work over CPUs, and priorities from periods: facts of pure functions.

use punctual_model::{Class, CpuId, Span, Task, Work};
use punctual_policy::{deadline_monotonic, every_queue_once, rate_monotonic, two_random_choices};

fn draws() -> impl Iterator<Item = [u64; 2]> {
    (0..40).flat_map(|a| (0..40).map(move |b| [a * 7_919, b * 104_729]))
}

#[test]
fn two_choices_take_the_longer_of_two_different_others() {
    let queues = [5, 1, 0, 4];
    for me in 0..queues.len() {
        let mut seen = [false; 4];
        for draw in draws() {
            if let Some(from) = two_random_choices(&queues, me, draw) {
                assert_ne!(from, me);
                assert!(queues[from] > 0);
                seen[from] = true;
            }
        }
        // The emptiest of the others can win against nobody.
        let others: Vec<usize> = (0..4).filter(|&cpu| cpu != me).collect();
        let least = others.iter().copied().min_by_key(|&cpu| queues[cpu]);
        for cpu in others {
            assert_eq!(seen[cpu], Some(cpu) != least, "{cpu} for {me}");
        }
    }
}

#[test]
fn two_choices_may_miss_a_queue_and_every_queue_does_not() {
    let queues = [0, 0, 0, 9];
    let missed = draws().filter(|draw| two_random_choices(&queues, 0, *draw).is_none());
    assert!(missed.count() > 0);
    assert!(draws().all(|[draw, _]| every_queue_once(&queues, 0, draw) == Some(3)));
}

#[test]
fn every_queue_goes_around_once_from_a_random_one_on() {
    assert_eq!(every_queue_once(&[1, 0, 0, 1], 1, 2), Some(3));
    assert_eq!(every_queue_once(&[1, 0, 0, 0], 1, 7), Some(0));
    assert_eq!(every_queue_once(&[0, 7, 0, 0], 1, 1), None, "never its own");
    assert_eq!(every_queue_once(&[], 0, 5), None);
    assert_eq!(every_queue_once(&[3], 0, 5), None);
}

#[test]
fn a_lone_cpu_and_a_pair_have_fewer_than_two_choices() {
    assert_eq!(two_random_choices(&[], 0, [1, 2]), None);
    assert_eq!(two_random_choices(&[9], 0, [1, 2]), None);
    assert_eq!(two_random_choices(&[9, 0], 1, [5, 6]), Some(0));
    assert_eq!(two_random_choices(&[0, 9], 1, [5, 6]), None);
}

fn periodic(period: u64, deadline: u64) -> Task {
    let class = Class::Periodic {
        period: Span::from_ms(period),
        wcet: Work::from_us(1),
        relative_deadline: Span::from_ms(deadline),
    };
    Task::new("", CpuId(0), class)
}

fn priorities(tasks: &[Task]) -> Vec<u32> {
    tasks.iter().map(|task| task.priority.number()).collect()
}

#[test]
fn shorter_periods_or_shorter_deadlines_are_more_urgent() {
    let aperiodic = Task::new("", CpuId(0), Class::Aperiodic);
    let mut tasks = vec![
        aperiodic,
        periodic(10, 9),
        periodic(5, 5),
        periodic(20, 3),
        periodic(10, 9),
    ];
    rate_monotonic(&mut tasks);
    assert_eq!(priorities(&tasks), [1, 4, 5, 2, 3]);
    deadline_monotonic(&mut tasks);
    assert_eq!(priorities(&tasks), [1, 3, 4, 5, 2]);
}
