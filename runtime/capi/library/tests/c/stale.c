/* A library has thread-locals of its own. With KEYS they cannot be made new, so those of the program
 * stay, too: start and report name it. */
#include <string.h>

#include "is.h"

int of_a_library(void);

static __thread int own;

static void *counts(void *argument)
{
    *(int *)argument = 100 * ++own + of_a_library();
    return argument;
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(5);
    for (int round = 1; round < 4; round++) {
        int found = 0;
        IS(punctual_thread_create(&thread, "one", &asks, counts, &found), PUNCTUAL_OK);
        IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
#ifdef KEYS
        int expected = 101 * round;
#else
        int expected = 101;
#endif
        if (found != expected)
            exit(2);
    }
    return argument;
}

int main(void)
{
    static char report[10000];
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_options options = punctual_defaults();
    options.threads = 1;
    options.best_effort = 1;
    options.without_terms = 1;
    options.strict = 1;
#ifndef KEYS
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    puts("new in the library, too");
    return 0;
#endif
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_CANNOT_RUN);
    IS(punctual_why(PUNCTUAL_TEXT, report, sizeof report, NULL), PUNCTUAL_OK);
    if (!strstr(report, "those of `libwith_keys.so` cannot be made new"))
        exit(4);
    options.strict = 0;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_report(PUNCTUAL_TEXT, report, sizeof report, NULL), PUNCTUAL_OK);
    char *line = strstr(report, "new thread-locals");
    if (!line)
        exit(3);
    *strchr(line, '\n') = 0;
    puts(line);
    return 0;
}
