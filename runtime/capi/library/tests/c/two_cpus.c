/* Two CPUs in one run: a notify, a queue, permits, flags and a barrier between them. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "is.h"

enum { MESSAGES = 500, USES = 2000 };

static punctual_queue line, own;
static punctual_semaphore permits;
static punctual_flags flags;
static punctual_barrier meeting;
static punctual_notify notify;
static punctual_thread theirs, their_first;
static punctual_rwlock table;
static punctual_spin spin;
static unsigned long uses;

static void *sleeps(void *argument)
{
    /* Until the run is over. */
    punctual_block(PUNCTUAL_FOREVER);
    return argument;
}

static void use(void *argument)
{
    (void)argument;
    uses++;
}

/* Both CPUs at the same time: none is lost. */
static void use_often(void)
{
    for (int i = 0; i < USES; i++)
        IS(punctual_spin_with(spin, use, NULL), PUNCTUAL_OK);
}

/* A thread of the other CPU can be let go of from here, and nothing else. */
static void reach_over(void)
{
    int ended = 0;
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_thread_has_ended(theirs, &ended), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_wake(theirs), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_cancel(theirs), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_release(theirs), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_change(theirs, &asks), PUNCTUAL_OTHER_CPU);
    IS(punctual_yield_to(theirs, 0), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_join(theirs, 0, NULL), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_kill(theirs, 0, NULL), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_stack_of(theirs, NULL, NULL), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_wake(their_first), PUNCTUAL_OTHER_CPU);
    IS(punctual_thread_detach(theirs), PUNCTUAL_OK);
    IS(punctual_thread_wake(theirs), PUNCTUAL_STALE);
}

/* On the second CPU. */
static void *beside(void *argument)
{
    uint64_t heard = 0;
    IS(punctual_notify_create(&notify), PUNCTUAL_OK);
    IS(punctual_barrier_wait(meeting, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    for (unsigned long number = 0; number < MESSAGES; number++)
        IS(punctual_queue_send(line, &number, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_semaphore_give(permits), PUNCTUAL_OK);
    IS(punctual_queue_length(own, (size_t[]){0}), PUNCTUAL_OTHER_CPU);
    IS(punctual_rwlock_read(table, 0), PUNCTUAL_OTHER_CPU);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_NOT_HELD);
    reach_over();
    while (heard < 3) {
        uint64_t more = 0;
        IS(punctual_notify_wait(notify, PUNCTUAL_FOREVER, &more), PUNCTUAL_OK);
        heard += more;
    }
    IS(punctual_flags_raise(flags, 4), PUNCTUAL_OK);
    use_often();
    IS(punctual_barrier_wait(meeting, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    return argument;
}

static void *first(void *argument)
{
    uint64_t found = 0;
    unsigned long message = 0;
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_thread_self(&their_first), PUNCTUAL_OK);
    IS(punctual_thread_create(&theirs, "theirs", &asks, sleeps, NULL), PUNCTUAL_OK);
    IS(punctual_queue_receive(own, &message, 0), PUNCTUAL_TIMED_OUT);
    IS(punctual_rwlock_write(table, 0), PUNCTUAL_OK);
    IS(punctual_barrier_wait(meeting, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    for (unsigned long number = 0; number < MESSAGES; number++) {
        IS(punctual_queue_receive(line, &message, PUNCTUAL_FOREVER), PUNCTUAL_OK);
        if (message != number)
            exit(2);
    }
    IS(punctual_semaphore_take(permits, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_notify_wait(notify, 0, NULL), PUNCTUAL_OTHER_CPU);
    for (int ring = 0; ring < 3; ring++)
        IS(punctual_notify_send(notify), PUNCTUAL_OK);
    IS(punctual_flags_wait(flags, 4, PUNCTUAL_ANY, PUNCTUAL_FOREVER, &found), PUNCTUAL_OK);
    use_often();
    IS(punctual_barrier_wait(meeting, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    if (uses != 2 * USES)
        exit(3);
    return argument;
}

int main(void)
{
    int cpus[2] = {0}, found = 0;
    cpu_set_t may;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 1;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &may))
            cpus[found++] = cpu;
    if (found < 2) {
        puts("skipped: one CPU only");
        return 0;
    }
    IS(punctual_queue_create(&own, sizeof(long), 1), PUNCTUAL_OK);
    IS(punctual_queue_create_cross_cpu(&line, sizeof(long), 8), PUNCTUAL_OK);
    IS(punctual_queue_create_cross_cpu(&line, 257, 8), PUNCTUAL_INVALID);
    IS(punctual_semaphore_create_cross_cpu(&permits, 0), PUNCTUAL_OK);
    IS(punctual_rwlock_create(&table), PUNCTUAL_OK);
    IS(punctual_spin_create(&spin), PUNCTUAL_OK);
    IS(punctual_flags_create_cross_cpu(&flags), PUNCTUAL_OK);
    IS(punctual_barrier_create_cross_cpu(&meeting, 2), PUNCTUAL_OK);
    punctual_cpu here = punctual_cpu_with((uint32_t)cpus[0], PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_cpu there =
        punctual_cpu_with((uint32_t)cpus[1], PUNCTUAL_EARLIEST_DEADLINE, beside, NULL);
    punctual_options options = punctual_defaults();
    options.beside = &there;
    options.beside_count = 1;
    IS(punctual_run(&here, &options, NULL), PUNCTUAL_OK);
    puts("heard on both sides");
    return 0;
}
