//! The queue against a sorted list, under any operations.

use super::*;

const CAPACITY: u32 = 40;

fn change_front(
    queue: &mut ReadyQueue<(u64, u32)>,
    list: &mut Vec<((u64, u32), ThreadId)>,
    what: u64,
    (key, number, thread): ((u64, u32), u32, ThreadId),
) -> bool {
    let (least, head) = list.first().copied().unwrap_or((key, thread));
    let is_done = match what {
        4 => queue.insert_first(thread, key),
        5 => queue
            .remove_first(head)
            .is_some_and(|next| next == list[1].1),
        6 => queue.inherit_first(head, least, thread),
        _ => queue.hand_first(head, (key.0, number), thread, least),
    };
    match what {
        _ if !is_done => {}
        4 => {
            assert!(key < least || list.is_empty());
            list.push((key, thread));
        }
        5 => drop(list.remove(0)),
        6 => {
            list.retain(|e| e.1 != thread);
            list[0].1 = thread;
        }
        _ => {
            list[0].0 = (key.0, number);
            list.push((least, thread));
        }
    }
    is_done
}

/// A seeded mix of all operations, checked against a sorted list. Keys that grow with time
/// alternate with any keys, so that entries are in the run, in the heap, and go from one to the
/// other.
#[test]
fn a_ready_queue_agrees_with_a_sorted_list_under_any_operations() {
    let mut queue = ReadyQueue::new(CAPACITY as usize);
    let room = queue.run.links.capacity();
    let mut list: Vec<((u64, u32), ThreadId)> = Vec::new();
    let (mut in_run, mut in_heap, mut counts) = (0, 0, [0; 3]);
    let mut x = 1_u64;
    // An interpreter (`cargo xtask miri`) takes a thousand times as long.
    let rounds = if cfg!(miri) { 500 } else { 50_000 };
    for round in 0..rounds {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let index = u32::try_from((x >> 33) % u64::from(CAPACITY)).expect("below it");
        let thread = ThreadId::new(index, 7);
        let ahead = if round % 200 < 100 { round } else { 0 };
        // A key may go from one thread to another, so it does not end in the index.
        let number = u32::try_from(round).expect("small");
        let key = (ahead + (x >> 40) % 97, number);
        match (x >> 20) % 8 {
            what @ 4..8 if matches!(what, 5 | 6) || !queue.contains(thread) => {
                let done = change_front(&mut queue, &mut list, what, (key, number, thread));
                counts[usize::from(what == 6) + 2 * usize::from(what == 7)] += u64::from(done);
            }
            0 => {
                queue.remove(thread);
                list.retain(|e| e.1 != thread);
            }
            1 if x >> 63 == 0 => {
                queue.defer(thread, |old: (u64, u32)| (old.0.max(key.0), old.1));
                if let Some(it) = list.iter_mut().find(|e| e.1 == thread) {
                    it.0.0 = it.0.0.max(key.0);
                }
            }
            1 if !list.is_empty() => {
                let (old, first) = list.remove(0);
                let key = (key.0.max(old.0), number);
                queue.defer_first(key);
                list.push((key, first));
            }
            _ => {
                queue.insert(thread, key);
                list.retain(|e| e.1 != thread);
                list.push((key, thread));
            }
        }
        list.sort_unstable();
        let first = list.first().map(|&(key, thread)| (thread, key));
        assert_eq!(queue.first(), first);
        assert_eq!(queue.len(), list.len());
        assert_eq!(queue.contains(thread), list.iter().any(|e| e.1 == thread));
        in_run += queue.run.len;
        in_heap += queue.heap.len();
    }
    let enough = 2 * usize::try_from(rounds).expect("small");
    assert!(in_run > enough && in_heap > enough, "{in_run} {in_heap}");
    let [ahead_of_all, lent, handed] = counts;
    assert!(ahead_of_all > rounds / 100, "{ahead_of_all}");
    assert!(lent.min(handed) > rounds / 500, "{lent} {handed}");
    assert_eq!(queue.run.links.capacity(), room, "it never grows");
}

#[test]
fn who_goes_to_the_end_again_and_again_stays_out_of_the_heap() {
    let mut queue = ReadyQueue::new(3);
    for index in [2, 0, 1] {
        queue.insert(ThreadId::new(index, 0), (index, 0));
    }
    for turn in 10..40 {
        queue.defer_first((turn, 0));
    }
    assert_eq!((queue.run.len, queue.heap.len()), (3, 0));
}
