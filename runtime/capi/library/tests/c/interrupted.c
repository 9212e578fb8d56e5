/* Ctrl-C during a run: with an argument the program has a handler for it, and ends by itself. */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

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

/* How much of its memory the kernel keeps for this process, as it says it itself. */
static void locked(char line[256])
{
    FILE *status = fopen("/proc/self/status", "r");
    line[0] = 0;
    while (status && fgets(line, 256, status) && strncmp(line, "VmLck:", 6) != 0)
        line[0] = 0;
    if (status)
        fclose(status);
}

int main(int count, char **arguments)
{
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    char before[256], after[256];
    int scheduler = sched_getscheduler(0);
    struct sigaction action;
    (void)arguments;
    /* Whoever started it may ignore the signal; and nobody waits for good. */
    memset(&action, 0, sizeof action);
    action.sa_handler = count > 1 ? ask : SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    alarm(120);
    locked(before);
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_OK);
    locked(after);
    if (sched_getscheduler(0) != scheduler || strcmp(before, after) != 0)
        return 2;
    puts("ended by itself, as it was before");
    return 0;
}
