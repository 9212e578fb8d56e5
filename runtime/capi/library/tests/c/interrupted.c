/* Ctrl-C during a run: with an argument the program has a handler for it, and ends by itself. */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "is.h"

static volatile sig_atomic_t asked;

static void ask(int signal)
{
    asked = signal;
}

static void *first(void *argument)
{
    puts("running");
    fflush(stdout);
    while (!asked)
        IS(punctual_sleep(1000000), PUNCTUAL_OK);
    return argument;
}

/* A line of what the kernel says of this process. */
static int has(const char *line)
{
    char text[256];
    int found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(text, sizeof text, status))
        found |= strncmp(text, line, strlen(line)) == 0;
    if (status)
        fclose(status);
    return found;
}

int main(int count, char **arguments)
{
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    (void)arguments;
    if (count > 1) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = ask;
        sigaction(SIGINT, &action, NULL);
    }
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_OK);
    if (sched_getscheduler(0) != SCHED_OTHER || !has("VmLck:\t       0 kB"))
        return 2;
    puts("ended by itself, as it was before");
    return 0;
}
