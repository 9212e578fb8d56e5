/* The first thread is the most urgent one without a guarantee: nobody keeps it from ending the run. */
#include <unistd.h>

#include "is.h"

static const uint64_t MS = 1000000;
static volatile unsigned long rounds;
static volatile int jobs;

static void *never_waits(void *argument)
{
    while (punctual_checkpoint() == PUNCTUAL_OK)
        rounds++;
    return argument;
}

static void *is_guaranteed(void *argument)
{
    while (punctual_wait_next_period(NULL) == PUNCTUAL_OK)
        jobs++;
    return argument;
}

static void *first(void *argument)
{
    punctual_thread spins, works;
    punctual_constraint any = punctual_aperiodic(1000000);
    punctual_constraint asks = punctual_periodic(20 * MS, 2 * MS);
    IS(punctual_thread_create(&spins, "never waits", &any, never_waits, NULL), PUNCTUAL_OK);
    IS(punctual_thread_create(&works, "is guaranteed", &asks, is_guaranteed, NULL), PUNCTUAL_OK);
    while (rounds == 0)
        IS(punctual_sleep(5 * MS), PUNCTUAL_OK);
    /* Those with a guarantee are above it. */
    for (int before = jobs; jobs == before;)
        rounds++;
    IS(punctual_thread_cancel(works), PUNCTUAL_OK);
    IS(punctual_thread_join(works, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(punctual_thread_cancel(spins), PUNCTUAL_OK);
    IS(punctual_thread_join(spins, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    alarm(60);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    puts("the first thread comes to its end");
    return 0;
}
