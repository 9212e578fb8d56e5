/* Work that any CPU may begin: offered on one, done on several. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "is.h"

enum { PIECES = 200, ROOM = 64 };
static punctual_spin spin;
static unsigned long sum;

struct piece {
    unsigned long number, square;
};

static void add(void *argument)
{
    const struct piece *piece = argument;
    sum += piece->square;
}

static void *work(void *argument)
{
    struct piece *piece = argument;
    punctual_thread me;
    IS(punctual_thread_self(&me), PUNCTUAL_NOTHING);
    IS(punctual_burn(20000), PUNCTUAL_OK);
    piece->square = piece->number * piece->number;
    IS(punctual_spin_with(spin, add, piece), PUNCTUAL_OK);
    return piece;
}

static void *fails(void *argument)
{
    IS(punctual_fail("a broken piece"), PUNCTUAL_OK);
    return argument;
}

static void *waits(void *argument)
{
    punctual_semaphore *go_on = argument;
    IS(punctual_semaphore_take(*go_on, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    return argument;
}

static void edges(void)
{
    char text[64];
    punctual_semaphore go_on;
    punctual_offered offered, many[ROOM + 3];
    int accepted = 0;
    IS(punctual_offer(&offered, NULL, NULL), PUNCTUAL_INVALID);
    IS(punctual_offer(&offered, fails, NULL), PUNCTUAL_OK);
    IS(punctual_offered_join(offered, PUNCTUAL_FOREVER, NULL), PUNCTUAL_FAILED);
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (strcmp(text, "a broken piece") != 0)
        exit(2);
    IS(punctual_offered_join(offered, 0, NULL), PUNCTUAL_STALE);
    IS(punctual_offered_detach(offered), PUNCTUAL_STALE);

    /* One waits in the worker of each CPU; the queue holds as many as it has room for. */
    IS(punctual_semaphore_create_cross_cpu(&go_on, 0), PUNCTUAL_OK);
    punctual_status status = PUNCTUAL_OK;
    while (accepted < ROOM + 3) {
        status = punctual_offer(&many[accepted], waits, &go_on);
        if (status != PUNCTUAL_OK)
            break;
        accepted++;
    }
    IS(status, PUNCTUAL_FULL);
    IS(punctual_offered_join(many[0], 0, NULL), PUNCTUAL_TIMED_OUT);
    for (int i = 0; i < accepted; i++)
        IS(punctual_semaphore_give(go_on), PUNCTUAL_OK);
    for (int i = 0; i < accepted; i++)
        IS(punctual_offered_join(many[i], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(punctual_semaphore_destroy(go_on), PUNCTUAL_OK);
    if (accepted < ROOM)
        exit(3);
}

static void *first(void *argument)
{
    static struct piece pieces[PIECES];
    static punctual_offered offered[PIECES];
    edges();
    for (unsigned long number = 0; number < PIECES; number++) {
        void *done = NULL;
        pieces[number].number = number;
        /* As many at a time as there is room for. */
        while (punctual_offer(&offered[number], work, &pieces[number]) == PUNCTUAL_FULL)
            IS(punctual_sleep(1000000), PUNCTUAL_OK);
        if (number % 2 == 0)
            continue;
        IS(punctual_offered_join(offered[number], PUNCTUAL_FOREVER, &done), PUNCTUAL_OK);
        if (done != &pieces[number])
            exit(4);
    }
    for (unsigned long number = 0; number < PIECES; number += 2)
        IS(punctual_offered_join(offered[number], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    if (sum != (PIECES - 1ul) * PIECES * (2 * PIECES - 1) / 6)
        exit(5);
    return argument;
}

static void *without(void *argument)
{
    char text[128];
    IS(punctual_offer(NULL, work, NULL), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    return argument;
}

static void *beside(void *argument)
{
    return argument;
}

int main(void)
{
    char text[4096];
    int cpus[2] = {0}, found = 0;
    cpu_set_t may;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 1;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &may))
            cpus[found++] = cpu;
    punctual_cpu here = punctual_cpu_with((uint32_t)cpus[0], PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_cpu there = punctual_cpu_with((uint32_t)cpus[1], PUNCTUAL_FIXED_PRIORITY, beside, NULL);
    punctual_options options = punctual_defaults();
    punctual_spread spread = punctual_spread_with(PUNCTUAL_EVERY_QUEUE, 1, ROOM), wrong = spread;
    IS(punctual_spin_create(&spin), PUNCTUAL_OK);
    IS(punctual_offer(NULL, work, NULL), PUNCTUAL_NO_RUN);
    IS(punctual_offered_join((punctual_offered){0}, 0, NULL), PUNCTUAL_NO_RUN);
    options.beside = &there;
    options.beside_count = found == 2 ? 1 : 0;
    options.spread = &wrong;
    wrong.size = 1;
    IS(punctual_run(&here, &options, NULL), PUNCTUAL_INVALID);
    wrong = spread;
    wrong.choice = 2;
    IS(punctual_run(&here, &options, NULL), PUNCTUAL_INVALID);
    wrong = spread;
    wrong.workers = 0;
    IS(punctual_run(&here, &options, NULL), PUNCTUAL_INVALID);
    options.spread = &spread;
    IS(punctual_run(&here, &options, NULL), PUNCTUAL_OK);
    IS(punctual_report(PUNCTUAL_JSON, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!strstr(text, "\"taken\":"))
        exit(6);
    here.first = without;
    IS(punctual_run(&here, NULL, NULL), PUNCTUAL_OK);
    puts("every piece is done once");
    return 0;
}
