/* Each thread finds its own stack where it asks the C library for it. */
#define _GNU_SOURCE
#include <pthread.h>

#include "is.h"

static char *lowest[3];

static void *looks(void *argument)
{
    pthread_attr_t attributes;
    void *begin = NULL;
    size_t bytes = 0, guard = 0;
    char here = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &begin, &bytes) != 0 ||
        pthread_attr_getguardsize(&attributes, &guard) != 0)
        exit(2);
    pthread_attr_destroy(&attributes);
    if (&here < (char *)begin || &here >= (char *)begin + bytes)
        exit(3);
    /* The kernel has the guard of the first one. */
    if (guard == 0 && argument != &lowest[0])
        exit(5);
    *(char **)argument = begin;
    return argument;
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(1);
    looks(&lowest[1]);
    IS(punctual_thread_create(&thread, "looks", &asks, looks, &lowest[2]), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    looks(&lowest[0]);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    if (lowest[0] == lowest[1] || lowest[1] == lowest[2] || lowest[0] == lowest[2])
        exit(4);
    puts("three stacks");
    return 0;
}
