/* Two threads on two CPUs, kept in step by barriers, then by time alone. All compute on their own
 * elements, then write into those of the next one in a ring; every value is compared, bit by bit,
 * with those of a sequential program.
 *
 *     cc -D_GNU_SOURCE -o gang gang.c $(pkg-config --cflags --libs punctual) && ./gang
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <punctual.h>

enum { P = 2, NE = 16, NC = 4, NW = 16, N = 20 };

static const uint64_t PERIOD = 20000000, WORK = 5000000, MARGIN = 20000000;

struct program {
    double elements[P][NE];
    punctual_kept kept;
    uint64_t arrival[P];
    int by_time;
};

struct member {
    struct program *program;
    uint32_t place;
    double outgoing[NE];
};

/* What cannot fail in a program that is right ends this one if it does. */
static void must(punctual_status status, const char *what)
{
    if (status != PUNCTUAL_OK) {
        char why[512] = "";
        punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL);
        fprintf(stderr, "%s: %s %s\n", what, punctual_strerror(status), why);
        exit(1);
    }
}

/* A chaotic map: a phase out of step changes all later values. */
static double computed(double value)
{
    for (int time = 0; time < NC; time++)
        value = 3.9375 * value * (1.0 - value);
    return value;
}

static void phase(double *own, double *next, double *outgoing, uint64_t number)
{
    if (number == 0)
        for (int j = 0; j < NE; j++)
            outgoing[j] = 1.0 - (own[j] = computed(own[j]));
    else
        memcpy(next, outgoing, NW * sizeof *next);
}

static void work(void *argument, uint64_t iteration, uint64_t number)
{
    struct member *me = argument;
    double(*all)[NE] = me->program->elements;
    (void)iteration;
    phase(all[me->place], all[(me->place + 1) % P], me->outgoing, number);
}

static void *member(void *argument)
{
    struct member me = {argument, 0, {0}};
    struct program *program = me.program;
    punctual_gang gang;
    must(punctual_gang_named(&gang, "ring"), "find");
    must(punctual_gang_join(gang, &me.place), "join");
    uint32_t how = PUNCTUAL_BARRIERS;
    if (program->by_time) {
        /* Every phase is one job; all begin at one instant. */
        punctual_constraint asks = punctual_periodic(PERIOD, WORK);
        asks.priority = 60;
        must(punctual_gang_admit(gang, &asks, PUNCTUAL_AGREED, MARGIN,
                                 &program->arrival[me.place]),
             "admit");
        how = PUNCTUAL_BY_TIME;
    }
    punctual_kept kept;
    must(punctual_gang_supersteps(gang, how, N, 2, work, &me, &kept), "supersteps");
    if (me.place == 0)
        program->kept = kept;
    must(punctual_gang_barrier(gang, NULL), "barrier");
    return NULL;
}

/* The first thread of each CPU: a thread of the pool is the member. */
static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(1);
    must(punctual_thread_create(&thread, "member", &asks, member, argument), "create");
    must(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), "thread");
    return NULL;
}

static void begin(double elements[P][NE])
{
    for (int place = 0; place < P; place++)
        for (int j = 0; j < NE; j++)
            elements[place][j] = (1.0 + (place * 31 + j * 7) % 61) / 64.0;
}

static int is_as_sequential(double found[P][NE])
{
    static double all[P][NE], outgoing[P][NE];
    begin(all);
    for (int iteration = 0; iteration < N; iteration++)
        for (uint64_t number = 0; number < 2; number++)
            for (int place = 0; place < P; place++)
                phase(all[place], all[(place + 1) % P], outgoing[place], number);
    return memcmp(all, found, sizeof all) == 0;
}

static void fly(const uint32_t cpus[P], int by_time)
{
    static struct program program;
    program.by_time = by_time;
    begin(program.elements);
    punctual_gang ring;
    punctual_gang_options gang = punctual_gang_of(P);
    gang.sleep_ns = 50000;
    gang.limit_ns = 10000000000;
    must(punctual_gang_create(&ring, "ring", &gang), "gang");
    punctual_cpu here = punctual_cpu_with(cpus[0], PUNCTUAL_FIXED_PRIORITY, first, &program);
    punctual_cpu there = punctual_cpu_with(cpus[1], PUNCTUAL_FIXED_PRIORITY, first, &program);
    punctual_options options = punctual_defaults();
    options.beside = &there;
    options.beside_count = 1;
    options.without_terms = 1;
    must(punctual_run(&here, &options, NULL), "run");
    must(punctual_gang_destroy(ring), "destroy");
    int same = is_as_sequential(program.elements);
    int in_step = program.kept.late_ends == 0 && program.kept.clocks_apart == UINT64_MAX;
    printf("%s: %s, values %s\n", by_time ? "by time" : "by barriers",
           in_step ? "kept in step" : "not kept in step",
           same ? "as computed one by one" : "differ");
    if (in_step && !same)
        exit(2);
}

int main(void)
{
    uint32_t cpus[P], found = 0;
    cpu_set_t may;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 1;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE && found < P; cpu++)
        if (CPU_ISSET(cpu, &may))
            cpus[found++] = cpu;
    if (found < P) {
        puts("skipped: one CPU only");
        return 0;
    }
    fly(cpus, 0);
    fly(cpus, 1);
    return 0;
}
