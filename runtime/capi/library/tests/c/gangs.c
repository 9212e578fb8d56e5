/* A gang of two threads of one CPU: its operations, and every way in which they end. */
#include <string.h>

#include "is.h"

static punctual_gang gang, other;
static punctual_thread threads[2];

static void hears(const char *what)
{
    char why[1024] = "";
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    if (strstr(why, what) == NULL) {
        fprintf(stderr, "%s, not: %s\n", why, what);
        exit(1);
    }
}

static void count(void *argument, uint64_t iteration, uint64_t phase)
{
    uint64_t *calls = argument;
    if (iteration * 3 + phase != *calls)
        exit(4);
    *calls += 1;
}

static void agree(uint32_t place)
{
    uint32_t order = 9, elected = 9;
    uint64_t result = 0, delay = 0, calls = 0;
    punctual_kept kept;
    IS(punctual_gang_barrier(gang, &order), PUNCTUAL_OK);
    if (order > 1)
        exit(5);
    IS(punctual_gang_elect(gang, place * 10, &elected), PUNCTUAL_OK);
    if (elected != 1)
        exit(6);
    const uint64_t want[5] = {12, 5, 7, 5, 7};
    for (uint32_t with = PUNCTUAL_SUM; with <= PUNCTUAL_OR; with++) {
        IS(punctual_gang_reduce(gang, with, place == 0 ? 7 : 5, &result), PUNCTUAL_OK);
        if (result != want[with])
            exit(7);
    }
    IS(punctual_gang_reduce(gang, 5, 1, &result), PUNCTUAL_INVALID);
    IS(punctual_gang_broadcast(gang, 1, 40 + place, &result), PUNCTUAL_OK);
    if (result != 41)
        exit(8);
    IS(punctual_gang_departure_delay(gang, 2, &delay), PUNCTUAL_OK);
    IS(punctual_gang_supersteps(gang, PUNCTUAL_BARRIERS, 2, 3, count, &calls, &kept), PUNCTUAL_OK);
    if (calls != 6 || kept.late_ends != 0 || kept.forced != 0 || kept.barriers_from != 0 ||
        kept.clocks_apart != UINT64_MAX)
        exit(9);
    IS(punctual_gang_supersteps(gang, 4, 2, 3, count, &calls, &kept), PUNCTUAL_INVALID);
    IS(punctual_gang_supersteps(gang, 0, 2, 0, count, &calls, &kept), PUNCTUAL_INVALID);
    IS(punctual_gang_supersteps(gang, 0, 2, 1, NULL, &calls, &kept), PUNCTUAL_INVALID);
}

static void be_admitted(uint32_t place)
{
    /* Two halves and a bit do not fit on one CPU: nobody is admitted. */
    punctual_constraint much = punctual_periodic(40000000, 24000000);
    punctual_constraint less = punctual_periodic(40000000, 4000000);
    much.priority = less.priority = 60;
    uint64_t arrival = 0, calls = 0;
    IS(punctual_gang_admit(gang, &much, PUNCTUAL_AGREED, 1000000, NULL), PUNCTUAL_REFUSED);
    hears("is overloaded");
    IS(punctual_gang_supersteps(gang, PUNCTUAL_BY_TIME, 1, 3, count, &calls, NULL),
       PUNCTUAL_REFUSED);
    hears("nothing bounds the end of a phase");
    IS(punctual_gang_admit(gang, &less, 3, 1000000, &arrival), PUNCTUAL_INVALID);
    IS(punctual_gang_admit(gang, &less, PUNCTUAL_AGREED, 20000000, &arrival), PUNCTUAL_OK);
    uint64_t first = 0;
    IS(punctual_gang_reduce(gang, PUNCTUAL_LEAST, arrival, &first), PUNCTUAL_OK);
    if (first != arrival)
        exit(10);
    IS(punctual_gang_supersteps(gang, PUNCTUAL_FORCED, 1, 3, count, &calls, NULL), PUNCTUAL_OK);
    if (place == 1)
        IS(punctual_gang_give_back(gang), PUNCTUAL_OK);
}

static void *member(void *argument)
{
    uint32_t place = 9;
    IS(punctual_gang_barrier(gang, NULL), PUNCTUAL_NOT_HELD);
    /* It is joined by its name, and is the same gang. */
    punctual_gang named = {0};
    IS(punctual_gang_named(&named, "two"), PUNCTUAL_OK);
    if (named.id != gang.id)
        exit(11);
    IS(punctual_gang_join(named, &place), PUNCTUAL_OK);
    IS(punctual_gang_join(gang, &place), PUNCTUAL_ALREADY_HELD);
    agree(place);
    be_admitted(place);
    if (place == 0)
        return argument; /* Who ends leaves. */
    IS(punctual_gang_barrier(gang, NULL), PUNCTUAL_BROKEN);
    hears("member 0 has left");
    IS(punctual_gang_leave(gang), PUNCTUAL_OK);
    IS(punctual_gang_leave(gang), PUNCTUAL_NOT_HELD);
    IS(punctual_gang_join(gang, NULL), PUNCTUAL_BROKEN);
    return argument;
}

static void *first(void *argument)
{
    punctual_constraint asks = punctual_aperiodic(1);
    for (int at = 0; at < 2; at++)
        IS(punctual_thread_create(&threads[at], "member", &asks, member, NULL), PUNCTUAL_OK);
    for (int at = 0; at < 2; at++)
        IS(punctual_thread_join(threads[at], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    punctual_gang_options options = punctual_gang_of(2), wrong = punctual_gang_of(0);
    options.sleep_ns = 50000;
    options.limit_ns = 10000000000;
    IS(punctual_gang_create(NULL, "two", &options), PUNCTUAL_INVALID);
    IS(punctual_gang_create(&gang, NULL, &options), PUNCTUAL_INVALID);
    IS(punctual_gang_create(&gang, "two", NULL), PUNCTUAL_INVALID);
    IS(punctual_gang_create(&gang, "two", &wrong), PUNCTUAL_INVALID);
    wrong = options;
    wrong.tree = 2;
    IS(punctual_gang_create(&gang, "two", &wrong), PUNCTUAL_INVALID);
    IS(punctual_gang_named(&other, "two"), PUNCTUAL_UNKNOWN);
    IS(punctual_gang_create(&gang, "two", &options), PUNCTUAL_OK);
    IS(punctual_gang_create(&other, "two", &options), PUNCTUAL_BUSY);
    IS(punctual_gang_named(NULL, "two"), PUNCTUAL_INVALID);
    IS(punctual_gang_named(&other, NULL), PUNCTUAL_INVALID);
    IS(punctual_gang_named(&other, "three"), PUNCTUAL_UNKNOWN);
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_options run = punctual_defaults();
    run.without_terms = 1;
    IS(punctual_run(&cpu, &run, NULL), PUNCTUAL_OK);
    /* Broken, its name is free, and means the next one. */
    punctual_gang named = {0};
    IS(punctual_gang_named(&named, "two"), PUNCTUAL_UNKNOWN);
    IS(punctual_gang_create(&other, "two", &options), PUNCTUAL_OK);
    IS(punctual_gang_named(&named, "two"), PUNCTUAL_OK);
    if (named.id != other.id)
        exit(12);
    IS(punctual_gang_destroy(other), PUNCTUAL_OK);
    IS(punctual_gang_named(&named, "two"), PUNCTUAL_UNKNOWN);
    IS(punctual_gang_destroy(gang), PUNCTUAL_OK);
    IS(punctual_gang_destroy(gang), PUNCTUAL_STALE);
    puts("all agree, and who is missing is named");
    return 0;
}
