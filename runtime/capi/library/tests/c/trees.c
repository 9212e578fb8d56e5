/* Schedulers of a program: what they do, and what a program can do wrong with them. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
static const punctual_scheduler NONE;
static volatile unsigned long steps;
static int jobs;

static void *loops(void *argument)
{
    while (punctual_sleep(MS) == PUNCTUAL_OK)
        steps++;
    return argument;
}

static void *periods(void *argument)
{
    while (punctual_wait_next_period(NULL) == PUNCTUAL_OK)
        jobs++;
    return argument;
}

static punctual_thread begin(punctual_scheduler home, const char *name, punctual_constraint asks,
                             punctual_body body)
{
    punctual_thread thread;
    IS(punctual_scheduler_create(home, &thread, name, &asks, PUNCTUAL_END_THREAD, body, NULL),
       PUNCTUAL_OK);
    return thread;
}

static void end(punctual_thread thread)
{
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
}

/* Asks again while a thread is in the middle of a job, or has nothing to run. */
#define SOON(call, again)                                                                          \
    do {                                                                                           \
        int tries = 0;                                                                             \
        while ((call) == (again) && ++tries < 100000)                                               \
            IS(punctual_sleep(MS / 5), PUNCTUAL_OK);                                               \
        if (tries == 100000)                                                                        \
            exit(3);                                                                               \
    } while (0)

static int stands_still(void)
{
    IS(punctual_sleep(5 * MS), PUNCTUAL_OK);
    unsigned long before = steps;
    IS(punctual_sleep(40 * MS), PUNCTUAL_OK);
    return steps == before;
}

/* Whether it comes to another step, however long the machine is away. */
static int moves_on(void)
{
    unsigned long before = steps;
    for (int looks = 0; looks < 30000 && steps == before; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    return steps != before;
}

static void outside(void)
{
    punctual_scheduler scheduler;
    punctual_terms terms = punctual_shared(1);
    IS(punctual_scheduler_root(NULL), PUNCTUAL_INVALID);
    IS(punctual_scheduler_root(&scheduler), PUNCTUAL_NO_RUN);
    IS(punctual_scheduler_promote(NONE, "x", &terms, &scheduler), PUNCTUAL_NO_RUN);
    IS(punctual_scheduler_demote(NONE, NONE), PUNCTUAL_NO_RUN);
}

/* Handles cannot be counted to, mixed up, or used when they are over. */
static void handles(punctual_scheduler root, punctual_scheduler a, punctual_scheduler b)
{
    punctual_scheduler found, second, wrong = a;
    punctual_recipient to_b;
    punctual_terms terms = punctual_shared(1), odd = terms;
    IS(punctual_scheduler_root(&found), PUNCTUAL_NOT_YOURS);
    IS(punctual_scheduler_find(root, "b", &found), PUNCTUAL_OK);
    if (memcmp(&found, &b, sizeof b) != 0)
        exit(4);
    IS(punctual_scheduler_find(a, "b", &found), PUNCTUAL_STALE);
    IS(punctual_scheduler_recipient(b, &to_b), PUNCTUAL_OK);
    /* The number is right, the key is that of another, or of lending only. */
    wrong.key = b.key;
    IS(punctual_scheduler_demote(root, wrong), PUNCTUAL_STALE);
    wrong.id = to_b.id;
    wrong.key = to_b.key;
    IS(punctual_scheduler_demote(root, wrong), PUNCTUAL_STALE);
    wrong.key = b.key + 1;
    IS(punctual_scheduler_demote(root, wrong), PUNCTUAL_STALE);
    IS(punctual_scheduler_demote(a, b), PUNCTUAL_NOT_YOURS);
    IS(punctual_scheduler_demote(a, root), PUNCTUAL_NOT_YOURS);
    IS(punctual_scheduler_promote(root, NULL, &terms, &found), PUNCTUAL_INVALID);
    IS(punctual_scheduler_promote(root, "c", &terms, NULL), PUNCTUAL_INVALID);
    odd.size--;
    IS(punctual_scheduler_promote(root, "c", &odd, &found), PUNCTUAL_INVALID);
    odd = punctual_served(9, MS, 10 * MS, 1);
    IS(punctual_scheduler_promote(root, "c", &odd, &found), PUNCTUAL_INVALID);
    odd = punctual_served(PUNCTUAL_POLLING, 0, 10 * MS, 1);
    IS(punctual_scheduler_promote(root, "c", &odd, &found), PUNCTUAL_INVALID);
    odd = punctual_served(PUNCTUAL_POLLING, 9 * MS, 10 * MS, 1);
    IS(punctual_scheduler_promote(root, "c", &odd, &found), PUNCTUAL_REFUSED);
    IS(punctual_scheduler_promote(root, "c", &terms, &found), PUNCTUAL_OK);
    IS(punctual_scheduler_promote(root, "d", &terms, &second), PUNCTUAL_OK);
    IS(punctual_scheduler_promote(root, "e", &terms, &wrong), PUNCTUAL_NO_SCHEDULER_LEFT);
    IS(punctual_scheduler_demote(root, second), PUNCTUAL_OK);
    IS(punctual_scheduler_demote(root, found), PUNCTUAL_OK);
    IS(punctual_scheduler_demote(root, found), PUNCTUAL_STALE);
    IS(punctual_scheduler_create(found, NULL, "x", NULL, 0, loops, NULL), PUNCTUAL_STALE);
}

static void moves(punctual_scheduler root, punctual_scheduler a, punctual_scheduler b)
{
    punctual_constraint every = punctual_periodic(40 * MS, MS);
    punctual_thread thread = begin(root, "moved", every, periods);
    IS(punctual_scheduler_grant(a, thread, b), PUNCTUAL_NOT_YOURS);
    SOON(punctual_scheduler_grant(root, thread, a), PUNCTUAL_HAS_JOB);
    IS(punctual_scheduler_revoke(a, thread), PUNCTUAL_NOT_YOURS);
    SOON(punctual_scheduler_revoke(root, thread), PUNCTUAL_HAS_JOB);
    IS(punctual_scheduler_revoke(root, thread), PUNCTUAL_NOT_YOURS);
    /* Only as long as it declares. */
    IS(punctual_scheduler_block(root, thread, MS, 0), PUNCTUAL_REFUSED);
    end(thread);
    /* A quota, and supply that does not carry it. */
    thread = begin(a, "one", every, periods);
    IS(punctual_scheduler_create(a, NULL, "two", &every, 0, periods, NULL), PUNCTUAL_QUOTA);
    every = punctual_periodic(10 * MS, 5 * MS);
    IS(punctual_scheduler_create(b, NULL, "big", &every, 0, periods, NULL), PUNCTUAL_REFUSED);
    end(thread);
}

static void blocks(punctual_scheduler root, punctual_scheduler a)
{
    punctual_thread thread = begin(a, "loops", punctual_aperiodic(1), loops);
    IS(punctual_scheduler_block(a, thread, MS, 2), PUNCTUAL_INVALID);
    SOON(punctual_scheduler_block(root, thread, PUNCTUAL_FOREVER, 1), PUNCTUAL_NOT_READY);
    if (!stands_still())
        exit(5);
    IS(punctual_scheduler_wake(a, thread), PUNCTUAL_BLOCKED);
    IS(punctual_scheduler_wake(root, thread), PUNCTUAL_OK);
    if (!moves_on())
        exit(6);
    end(thread);
    IS(punctual_scheduler_wake(root, thread), PUNCTUAL_STALE);
}

static void lends(punctual_scheduler root, punctual_scheduler a, punctual_scheduler b)
{
    punctual_recipient to_b, to_root;
    IS(punctual_scheduler_recipient(b, &to_b), PUNCTUAL_OK);
    IS(punctual_scheduler_recipient(root, &to_root), PUNCTUAL_OK);
    IS(punctual_scheduler_lend(a, to_root, MS), PUNCTUAL_NOT_YOURS);
    IS(punctual_scheduler_lend(a, to_b, 9 * MS), PUNCTUAL_NO_BUDGET);
    IS(punctual_scheduler_lend(a, to_b, MS), PUNCTUAL_OK);
    to_b.key++;
    IS(punctual_scheduler_lend(a, to_b, MS), PUNCTUAL_STALE);
}

/* Orders change places, and what means nothing or does not fit changes nothing. */
static void replaces(punctual_scheduler root, punctual_scheduler a)
{
    punctual_thread thread = begin(a, "loops", punctual_aperiodic(1), loops);
    for (int times = 0; times < 20; times++) {
        SOON(punctual_scheduler_replace(a, PUNCTUAL_EARLIEST_DEADLINE, 0), PUNCTUAL_HAS_JOB);
        SOON(punctual_scheduler_replace(a, PUNCTUAL_ROUND_ROBIN, MS), PUNCTUAL_HAS_JOB);
        SOON(punctual_scheduler_replace(root, PUNCTUAL_FIXED_PRIORITY_UNPREEMPTED, 0),
             PUNCTUAL_HAS_JOB);
        SOON(punctual_scheduler_replace(root, PUNCTUAL_FIXED_PRIORITY, 0), PUNCTUAL_HAS_JOB);
    }
    IS(punctual_scheduler_replace(a, PUNCTUAL_FIXED_PRIORITY, 0), PUNCTUAL_OK);
    IS(punctual_scheduler_replace(a, 9, 0), PUNCTUAL_INVALID);
    IS(punctual_scheduler_replace(a, PUNCTUAL_FIXED_PRIORITY, MS), PUNCTUAL_INVALID);
    IS(punctual_scheduler_replace(NONE, PUNCTUAL_FIXED_PRIORITY, 0), PUNCTUAL_STALE);
    if (!moves_on())
        exit(7);
    end(thread);
    /* One that must not wait for the other. */
    punctual_constraint tight = punctual_periodic(20 * MS, MS), large = punctual_periodic(80 * MS, 5 * MS);
    tight.deadline_ns = 3 * MS;
    tight.priority = 9;
    thread = begin(root, "tight", tight, periods);
    punctual_thread other = begin(root, "large", large, periods);
    IS(punctual_scheduler_replace(root, PUNCTUAL_FIXED_PRIORITY_UNPREEMPTED, 0), PUNCTUAL_REFUSED);
    end(thread);
    end(other);
}

static volatile unsigned long spins;

static void *spin(void *argument)
{
    while (punctual_checkpoint() == PUNCTUAL_OK)
        spins++;
    return argument;
}

/* Part of one scheduler's supply in the hands of another: for its own threads, and to hand on. */
static void slices(punctual_scheduler root, punctual_scheduler a, punctual_scheduler b)
{
    punctual_slice slice, part, wrong;
    punctual_recipient to_b, to_slice;
    punctual_thread thread;
    punctual_terms terms = punctual_served(PUNCTUAL_DEFERRABLE, MS, 60 * MS, 5), odd = terms;
    IS(punctual_scheduler_recipient(b, &to_b), PUNCTUAL_OK);
    IS(punctual_scheduler_delegate(a, to_b, NULL, &slice), PUNCTUAL_INVALID);
    IS(punctual_scheduler_delegate(a, to_b, &terms, NULL), PUNCTUAL_INVALID);
    odd = punctual_shared(1);
    IS(punctual_scheduler_delegate(a, to_b, &odd, &slice), PUNCTUAL_INVALID);
    odd = punctual_served(PUNCTUAL_DEFERRABLE, 5 * MS, 20 * MS, 5);
    if (punctual_scheduler_delegate(a, to_b, &odd, &slice) == PUNCTUAL_OK)
        exit(8);
    SOON(punctual_scheduler_delegate(a, to_b, &terms, &slice), PUNCTUAL_NO_BUDGET);
    wrong = slice;
    wrong.key++;
    IS(punctual_scheduler_take_back(a, wrong), PUNCTUAL_STALE);
    IS(punctual_scheduler_take_back(b, slice), PUNCTUAL_NOT_YOURS);
    IS(punctual_scheduler_find_slice(root, "slice", &part), PUNCTUAL_OK);
    if (memcmp(&part, &slice, sizeof slice) != 0)
        exit(9);
    IS(punctual_scheduler_find_slice(b, "slice", &part), PUNCTUAL_STALE);
    thread = begin(b, "spin", punctual_aperiodic(1), spin);
    IS(punctual_scheduler_bind(a, thread, slice), PUNCTUAL_NOT_YOURS);
    IS(punctual_scheduler_bind(b, thread, wrong), PUNCTUAL_STALE);
    IS(punctual_scheduler_bind(b, thread, slice), PUNCTUAL_OK);
    for (int looks = 0; looks < 30000 && spins == 0; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    if (spins == 0)
        exit(10);
    /* Handed on: a part to the root, which has its own time, and the rest by transfer. */
    punctual_recipient to_root;
    IS(punctual_scheduler_recipient(root, &to_root), PUNCTUAL_OK);
    odd = punctual_served(PUNCTUAL_DEFERRABLE, MS / 10, 300 * MS, 1);
    IS(punctual_slice_delegate(slice, to_root, &odd, &part), PUNCTUAL_OK);
    IS(punctual_slice_recipient(part, &to_slice), PUNCTUAL_OK);
    IS(punctual_slice_transfer(slice, to_slice, MS / 10), PUNCTUAL_NOT_YOURS);
    IS(punctual_slice_transfer(wrong, to_slice, MS / 10), PUNCTUAL_STALE);
    IS(punctual_slice_take_back(part, slice), PUNCTUAL_NOT_YOURS);
    IS(punctual_slice_take_back(slice, part), PUNCTUAL_OK);
    IS(punctual_slice_take_back(slice, part), PUNCTUAL_STALE);
    IS(punctual_slice_recipient(part, &to_slice), PUNCTUAL_STALE);
    /* What was delegated from it ends with it, and its thread goes on where it was. */
    SOON(punctual_slice_delegate(slice, to_root, &odd, &part), PUNCTUAL_NO_BUDGET);
    IS(punctual_scheduler_take_back(a, slice), PUNCTUAL_OK);
    IS(punctual_slice_recipient(part, &to_slice), PUNCTUAL_STALE);
    IS(punctual_scheduler_bind(b, thread, slice), PUNCTUAL_STALE);
    unsigned long before = spins;
    for (int looks = 0; looks < 30000 && spins == before; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    if (spins == before)
        exit(11);
    end(thread);
}

static void *first(void *argument)
{
    punctual_scheduler root, a, b;
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "a", &a), PUNCTUAL_OK);
    punctual_terms terms = punctual_served(PUNCTUAL_POLLING, 2 * MS, 20 * MS, 2);
    IS(punctual_scheduler_promote(root, "b", &terms, &b), PUNCTUAL_OK);
    handles(root, a, b);
    moves(root, a, b);
    blocks(root, a);
    replaces(root, a);
    slices(root, a, b);
    lends(root, a, b);
    return argument;
}

/* Room for 64 schedulers, chosen at the start: one more is refused, and one that ends makes room. */
static void *fills(void *argument)
{
    punctual_scheduler root, all[64], more;
    punctual_terms terms = punctual_shared(1);
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    for (int one = 0; one < 64; one++)
        IS(punctual_scheduler_promote(root, "one", &terms, &all[one]), PUNCTUAL_OK);
    IS(punctual_scheduler_promote(root, "more", &terms, &more), PUNCTUAL_NO_SCHEDULER_LEFT);
    IS(punctual_scheduler_demote(root, all[10]), PUNCTUAL_OK);
    IS(punctual_scheduler_promote(root, "more", &terms, &more), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    punctual_branch branch = {"a", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_shared(0)};
    branch.terms = punctual_served(PUNCTUAL_DEFERRABLE, 4 * MS, 20 * MS, 3);
    branch.terms.quota = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_constraint asks = punctual_aperiodic(50);
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    options.first_asks = &asks;
    options.schedulers = &branch;
    outside();
    options.scheduler_count = 1;
    branch.parent = 2;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    branch.parent = 0;
    options.promotions = 70000;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    options.promotions = 3;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    cpu.first = fills;
    options.scheduler_count = 0;
    options.promotions = 64;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    printf("schedulers do what they say, and every mistake is a code\n");
    return 0;
}
