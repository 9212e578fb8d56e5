/* Threads that cannot go on, and one that never looks whether it is to end. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
static volatile unsigned long rounds;
static punctual_mutex lock;

static void *cannot_go_on(void *argument)
{
    IS(punctual_mutex_lock(lock, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_fail(NULL), PUNCTUAL_INVALID);
    IS(punctual_fail("the sensor is silent"), PUNCTUAL_OK);
    IS(punctual_fail("and more"), PUNCTUAL_OK);
    /* It ends without unlocking. */
    return argument;
}

static void *ends(void *argument)
{
    while (punctual_checkpoint() == PUNCTUAL_OK)
        punctual_sleep(MS); /* says the same */
    return argument;
}

static void *never_looks(void *argument)
{
    for (;;)
        rounds++;
    return argument;
}

static void *wakes(void *argument)
{
    punctual_thread *whom = argument;
    IS(punctual_thread_wake(*whom), PUNCTUAL_OK);
    return argument;
}

static punctual_thread begin(const char *name, uint32_t priority, punctual_body body, void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(priority);
    IS(punctual_thread_create(&thread, name, &asks, body, argument), PUNCTUAL_OK);
    return thread;
}

static void why_is(const char *words)
{
    char text[128] = "";
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!strstr(text, words)) {
        fprintf(stderr, "not \"%s\": %s\n", words, text);
        exit(2);
    }
}

static void failures(void)
{
    punctual_constraint asks = punctual_aperiodic(5);
    punctual_thread thread = begin("fails", 5, cannot_go_on, NULL);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_FAILED);
    why_is("the sensor is silent");
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_STALE);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_OK);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_OK);
    IS(punctual_thread_create_with(NULL, "w", &asks, 2, cannot_go_on, NULL), PUNCTUAL_INVALID);
}

static void kills(void)
{
    int here = 0;
    size_t used = 0, bytes = 0;
    void *result = NULL;
    punctual_thread thread = begin("ends", 1, ends, &here);
    IS(punctual_thread_stack_of(thread, &used, &bytes), PUNCTUAL_OK);
    IS(punctual_thread_kill(thread, PUNCTUAL_FOREVER, &result), PUNCTUAL_OK);
    IS(punctual_thread_kill(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_STALE);
    if (bytes == 0 || used > bytes || result != &here)
        exit(3);
    thread = begin("never looks", 1, never_looks, NULL);
    while (rounds == 0)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, MS, NULL), PUNCTUAL_TIMED_OUT);
    IS(punctual_thread_kill(thread, 2 * MS, NULL), PUNCTUAL_ABANDONED);
    IS(punctual_thread_kill(thread, 0, NULL), PUNCTUAL_STALE);
    unsigned long last = rounds;
    IS(punctual_sleep(20 * MS), PUNCTUAL_OK);
    if (rounds != last)
        exit(4);
}

/* The first thread has a handle, by which others wake it. */
static void itself(void)
{
    punctual_thread me, other;
    punctual_constraint asks = punctual_aperiodic(1);
    int ended = 0;
    IS(punctual_thread_self(&me), PUNCTUAL_OK);
    IS(punctual_thread_join(me, 0, NULL), PUNCTUAL_NOT_ALLOWED);
    why_is("first thread");
    IS(punctual_thread_kill(me, 0, NULL), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_thread_detach(me), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_thread_cancel(me), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_thread_change(me, &asks), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_thread_has_ended(me, &ended), PUNCTUAL_NOT_ALLOWED);
    other = begin("wakes", 0, wakes, &me);
    IS(punctual_block(PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_thread_join(other, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    other = begin("wakes", 0, wakes, &me);
    IS(punctual_yield_to(other, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_thread_join(other, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
}

static void *first(void *argument)
{
    IS(punctual_mutex_create(&lock), PUNCTUAL_OK);
    failures();
    kills();
    itself();
    return argument;
}

/* Ends its run by the failure of a thread. */
static void *is_ended(void *argument)
{
    punctual_constraint asks = punctual_aperiodic(5);
    punctual_thread thread;
    IS(punctual_thread_create_with(&thread, "sensor", &asks, PUNCTUAL_END_RUN, cannot_go_on, NULL),
       PUNCTUAL_OK);
    punctual_block(PUNCTUAL_FOREVER);
    fprintf(stderr, "the run goes on\n");
    exit(1);
    return argument;
}

static void *fails_itself(void *argument)
{
    IS(punctual_fail("no more"), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    char text[4096] = "";
    punctual_options options = punctual_defaults();
    /* What a loop that never looks has taken must not be asked for again. */
    punctual_constraint main_asks = punctual_aperiodic(3);
    options.first_asks = &main_asks;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    IS(punctual_fail("outside"), PUNCTUAL_NO_RUN);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_report(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!strstr(text, "`fails` failed: the sensor is silent"))
        exit(5);
    IS(punctual_report(PUNCTUAL_JSON, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!strstr(text, "\"said\":\"the sensor is silent\""))
        exit(6);
    IS(punctual_mutex_destroy(lock), PUNCTUAL_OK);

    IS(punctual_mutex_create(&lock), PUNCTUAL_OK);
    cpu.first = is_ended;
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_OVER);
    why_is("`sensor` failed: the sensor is silent");
    cpu.first = fails_itself;
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_OVER);
    why_is("failed: no more");
    puts("failures are said, rules are followed, and loops come to their end");
    return 0;
}
