/* A kernel thread that takes time from a run is in the report, with the name of its program. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "is.h"

#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const long long MS = 1000000;
static volatile int over;
static volatile long long executed;

static long long clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* On the CPU of the run, as it asks for. */
static void *never_rests(void *argument)
{
    SURE(pthread_setname_np(pthread_self(), "hog") == 0);
    while (!over)
        executed = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return argument;
}

/* Computes beside it until it has taken half a second. */
static void *first(void *argument)
{
    pthread_t hog;
    pthread_attr_t attributes;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(0, &here);
    SURE(pthread_attr_init(&attributes) == 0);
    SURE(pthread_attr_setaffinity_np(&attributes, sizeof here, &here) == 0);
    SURE(pthread_create(&hog, &attributes, never_rests, NULL) == 0);
    while (executed < 500 * MS)
        SURE(punctual_checkpoint() == PUNCTUAL_OK);
    over = 1;
    SURE(pthread_join(hog, NULL) == 0);
    return argument;
}

static int is_named(void)
{
    static char text[20000];
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    options.best_effort = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    executed = over = 0;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_report(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    int in_text = strstr(text, "`hog of program` took ") != NULL;
    IS(punctual_report(PUNCTUAL_JSON, text, sizeof text, NULL), PUNCTUAL_OK);
    SURE(in_text == (strstr(text, "{\"name\":\"hog of program\",\"taken_ns\":") != NULL));
    return in_text;
}

int main(void)
{
    /* On a busy machine four others may have taken more. */
    long long begin = clock_ns(CLOCK_MONOTONIC);
    while (!is_named())
        SURE(clock_ns(CLOCK_MONOTONIC) < begin + 120000 * MS);
    puts("the hog is named");
    return 0;
}
