/* Any code in place of a thread: it waits in the kernel and starts kernel threads of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "is.h"

static const uint64_t MS = 1000000;
static punctual_backed group, fails_later;
static int here, helped, told;

static void kernel_sleep(long ms)
{
    struct timespec wait = {0, ms * 1000000};
    nanosleep(&wait, NULL);
}

static void *helper(void *argument)
{
    IS(punctual_backed_leave(), PUNCTUAL_NOT_HELD);
    IS(punctual_backed_join(group), PUNCTUAL_OK);
    IS(punctual_backed_join(group), PUNCTUAL_ALREADY_HELD);
    kernel_sleep(2);
    IS(punctual_checkpoint(), PUNCTUAL_OK);
    IS(punctual_backed_leave(), PUNCTUAL_OK);
    return argument;
}

static void *has_a_helper(void *argument)
{
    pthread_t thread;
    IS(punctual_yield(), PUNCTUAL_NO_RUN); /* this is a kernel thread */
    IS(punctual_backed_destroy(group), PUNCTUAL_BUSY);
    IS(punctual_checkpoint(), PUNCTUAL_OK);
    if (pthread_create(&thread, NULL, helper, argument) != 0)
        exit(2);
    kernel_sleep(2);
    if (pthread_join(thread, NULL) != 0)
        exit(3);
    helped++;
    return argument;
}

static void *waits_to_be_told(void *argument)
{
    while (punctual_checkpoint() == PUNCTUAL_OK)
        kernel_sleep(1);
    told++;
    return argument;
}

static void *fails(void *argument)
{
    IS(punctual_fail("the library is not there"), PUNCTUAL_OK);
    return argument;
}

static void *never(void *argument)
{
    exit(4);
    return argument;
}

static void *runs(void *argument)
{
    punctual_backed *what = argument;
    void *result = NULL;
    IS(punctual_backed_run(*what, &result), PUNCTUAL_OK);
    IS(punctual_backed_run(*what, &result), PUNCTUAL_STALE);
    return result;
}

static void *first(void *argument)
{
    char text[64] = "";
    void *result = NULL;
    punctual_backed *to_tell = argument, none;
    punctual_thread thread;
    /* Less urgent than this thread, which is to be able to cancel. */
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_backed_create(&none, "no", never, NULL), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_backed_join(group), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_backed_run(group, &result), PUNCTUAL_OK);
    if (result != &here || helped != 1)
        exit(5);
    IS(punctual_thread_create(&thread, "runs", &asks, runs, to_tell), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, 20 * MS, NULL), PUNCTUAL_TIMED_OUT);
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, &result), PUNCTUAL_OK);
    if (result != &here || told != 1)
        exit(6);
    IS(punctual_backed_run(fails_later, NULL), PUNCTUAL_FAILED);
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (strcmp(text, "the library is not there") != 0)
        exit(7);
    return argument;
}

int main(void)
{
    punctual_backed to_tell, unused;
    punctual_options options = punctual_defaults();
    punctual_constraint main_asks = punctual_aperiodic(5);
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, &to_tell);
    options.first_asks = &main_asks;
    IS(punctual_backed_create(NULL, "no", never, NULL), PUNCTUAL_INVALID);
    IS(punctual_backed_create(&unused, NULL, never, NULL), PUNCTUAL_INVALID);
    IS(punctual_backed_create(&unused, "no", NULL, NULL), PUNCTUAL_INVALID);
    IS(punctual_backed_create(&unused, "unused", never, NULL), PUNCTUAL_OK);
    IS(punctual_backed_run(unused, NULL), PUNCTUAL_NO_RUN);
    IS(punctual_backed_join(unused), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_backed_destroy(unused), PUNCTUAL_OK);
    IS(punctual_backed_destroy(unused), PUNCTUAL_STALE);
    IS(punctual_backed_create(&group, "helped", has_a_helper, &here), PUNCTUAL_OK);
    IS(punctual_backed_create(&to_tell, "waits", waits_to_be_told, &here), PUNCTUAL_OK);
    IS(punctual_backed_create(&fails_later, "fails", fails, NULL), PUNCTUAL_OK);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    puts("kernel threads in place of light ones");
    return 0;
}
