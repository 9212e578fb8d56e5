/* Schedulers in slots of a frame: who gets which time, and what a program can do wrong with them. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
enum { OWN, LEFT, RIGHT, BRANCHES };
static const uint64_t FRAME = 10000000;

/* The slots, in the order of the branches. */
static const punctual_slot SLOTS[BRANCHES] = {
    {500000, 1500000}, {2500000, 3000000}, {6000000, 3500000}};

/* A thread that never waits: how often it saw its own slots, and how often another time. */
struct looks {
    const punctual_slot *slot;
    unsigned long inside, outside;
    int ends;
};

static void *looks(void *argument)
{
    struct looks *own = argument;
    while (!__atomic_load_n(&own->ends, __ATOMIC_RELAXED)) {
        uint64_t now;
        IS(punctual_now(&now), PUNCTUAL_OK);
        now %= FRAME;
        int is_inside = now >= own->slot->at_ns && now < own->slot->at_ns + own->slot->length_ns;
        __atomic_fetch_add(is_inside ? &own->inside : &own->outside, 1, __ATOMIC_RELAXED);
    }
    return argument;
}

static punctual_thread begin(punctual_scheduler home, struct looks *own)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_scheduler_create(home, &thread, "looks", &asks, PUNCTUAL_END_THREAD, looks, own),
       PUNCTUAL_OK);
    return thread;
}

/* The machine may be away at any instant: a look across the end of a slot is one of very many. */
static int is_in_its_slots(const struct looks *own)
{
    unsigned long inside = __atomic_load_n(&own->inside, __ATOMIC_RELAXED);
    unsigned long outside = __atomic_load_n(&own->outside, __ATOMIC_RELAXED);
    return inside / 10 > outside;
}

static void waits_for(struct looks *own)
{
    unsigned long before = __atomic_load_n(&own->inside, __ATOMIC_RELAXED);
    for (int turns = 0; turns < 30000; turns++) {
        if (__atomic_load_n(&own->inside, __ATOMIC_RELAXED) > before + 10000)
            return;
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    }
    exit(3);
}

static void *periods(void *argument)
{
    while (punctual_wait_next_period(NULL) == PUNCTUAL_OK)
        ++*(int *)argument;
    return argument;
}

/* The table is constant, and has no time for those that it does not know. */
static void mistakes(punctual_scheduler root, punctual_scheduler left)
{
    punctual_scheduler more;
    punctual_constraint asks = punctual_aperiodic(1);
    punctual_terms terms = punctual_in_slots(SLOTS, 1);
    int jobs = 0;
    IS(punctual_scheduler_create(root, NULL, "none", &asks, PUNCTUAL_END_THREAD, periods, &jobs),
       PUNCTUAL_INVALID);
    asks = punctual_periodic(20 * MS, MS);
    IS(punctual_scheduler_create(root, NULL, "none", &asks, PUNCTUAL_END_THREAD, periods, &jobs),
       PUNCTUAL_INVALID);
    IS(punctual_scheduler_promote(root, "more", &terms, &more), PUNCTUAL_INVALID);
    terms = punctual_shared(1);
    IS(punctual_scheduler_promote(root, "more", &terms, &more), PUNCTUAL_INVALID);
    terms = punctual_served(PUNCTUAL_POLLING, MS, 20 * MS, 1);
    IS(punctual_scheduler_promote(root, "more", &terms, &more), PUNCTUAL_INVALID);
    IS(punctual_scheduler_demote(root, left), PUNCTUAL_INVALID);
    IS(punctual_scheduler_replace(root, PUNCTUAL_EARLIEST_DEADLINE, 0),
       PUNCTUAL_NOT_REPLACEABLE);
    IS(punctual_scheduler_replace(left, PUNCTUAL_TIME_DIVISION, 10 * MS),
       PUNCTUAL_NOT_REPLACEABLE);
    /* A server stands one level further down. */
    IS(punctual_scheduler_promote(left, "more", &terms, &more), PUNCTUAL_OK);
    IS(punctual_scheduler_demote(root, more), PUNCTUAL_OK);
    if (jobs)
        exit(4);
}

/* 3 ms of 10 ms carry 1 ms in 20 ms, and not 4 ms. */
static void admits(punctual_scheduler root, punctual_scheduler left)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_periodic(20 * MS, MS);
    int jobs = 0, none = 0;
    IS(punctual_scheduler_create(left, &thread, "some", &asks, PUNCTUAL_END_THREAD, periods, &jobs),
       PUNCTUAL_OK);
    asks = punctual_periodic(10 * MS, 4 * MS);
    IS(punctual_scheduler_create(left, NULL, "much", &asks, PUNCTUAL_END_THREAD, periods, &none),
       PUNCTUAL_REFUSED);
    IS(punctual_scheduler_revoke(root, thread), PUNCTUAL_INVALID);
    for (int looks = 0; looks < 30000 && __atomic_load_n(&jobs, __ATOMIC_RELAXED) < 3; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    if (jobs < 3 || none)
        exit(5);
}

static void *first(void *argument)
{
    punctual_scheduler root, left, right;
    struct looks own[2] = {{&SLOTS[LEFT], 0, 0, 0}, {&SLOTS[RIGHT], 0, 0, 0}};
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "left", &left), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "right", &right), PUNCTUAL_OK);
    mistakes(root, left);
    admits(root, left);
    punctual_thread threads[2] = {begin(left, &own[0]), begin(right, &own[1])};
    waits_for(&own[0]);
    waits_for(&own[1]);
    __atomic_store_n(&own[1].ends, 1, __ATOMIC_RELAXED);
    IS(punctual_thread_join(threads[1], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    /* What the right one leaves idle is nobody's. */
    waits_for(&own[0]);
    __atomic_store_n(&own[0].ends, 1, __ATOMIC_RELAXED);
    IS(punctual_thread_join(threads[0], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    if (!is_in_its_slots(&own[0]) || !is_in_its_slots(&own[1])) {
        fprintf(stderr, "%lu %lu, %lu %lu\n", own[0].inside, own[0].outside, own[1].inside,
                own[1].outside);
        exit(6);
    }
    return argument;
}

static void refused(const punctual_cpu *cpu, const punctual_options *options, const char *words)
{
    char why[2000] = "";
    IS(punctual_run(cpu, options, NULL), PUNCTUAL_INVALID);
    if (!words)
        return;
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    if (!strstr(why, words)) {
        fprintf(stderr, "not `%s`: %s\n", words, why);
        exit(1);
    }
}

int main(void)
{
    punctual_branch branches[BRANCHES] = {
        {"own", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&SLOTS[OWN], 1)},
        {"left", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&SLOTS[LEFT], 1)},
        {"right", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&SLOTS[RIGHT], 1)},
    };
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_TIME_DIVISION, first, NULL);
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    options.schedulers = branches;
    options.scheduler_count = BRANCHES;
    options.promotions = 1;
    options.scheduling_ns = MS / 2;
    refused(&cpu, &options, NULL);
    cpu.timeslice_ns = FRAME;
    options.scheduler_count = 0;
    refused(&cpu, &options, "none is for its first thread");
    options.scheduler_count = BRANCHES;
    options.scheduling_ns = MS;
    refused(&cpu, &options, "deciding takes 1ms");
    options.scheduling_ns = MS / 2;
    branches[RIGHT].terms.slots = &SLOTS[LEFT];
    refused(&cpu, &options, "overlaps");
    branches[RIGHT].terms.slot_count = 0;
    refused(&cpu, &options, "it has no slots");
    branches[RIGHT].terms = punctual_shared(1);
    refused(&cpu, &options, "it has no slots");
    branches[RIGHT].terms.slots = &SLOTS[RIGHT];
    refused(&cpu, &options, NULL);
    branches[RIGHT].terms = punctual_in_slots(&SLOTS[RIGHT], 1);
    branches[RIGHT].terms.budget_ns = MS;
    refused(&cpu, &options, NULL);
    branches[RIGHT].terms.budget_ns = 0;
    cpu.policy = PUNCTUAL_FIXED_PRIORITY;
    cpu.timeslice_ns = 0;
    refused(&cpu, &options, "slots are granted by a parent");
    cpu.policy = PUNCTUAL_TIME_DIVISION;
    cpu.timeslice_ns = FRAME;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    /* Also where admission counts what the machine takes. */
    options.without_terms = 0;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    printf("each in its own slots, and every mistake is a code\n");
    return 0;
}
