/* As much as there may be, and no more: refused with a code and with words, before anything is made. */
#include <string.h>
#include <unistd.h>

#include "is.h"

static const uint64_t MS = 1000000;
static size_t resident;

/* MiB of this process that are in memory. */
static size_t resident_mib(void)
{
    unsigned long pages = 0, in_memory = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &pages, &in_memory) != 2)
        exit(2);
    fclose(file);
    return in_memory * (size_t)sysconf(_SC_PAGESIZE) >> 20;
}

static void *uses_its_stack(void *argument)
{
    volatile char far_away[1 << 20];
    memset((char *)far_away, 1, sizeof far_away);
    return far_away[17] == 1 ? argument : NULL;
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(1);
    void *result = NULL;
    resident = resident_mib();
    IS(punctual_thread_create(&thread, "deep", &asks, uses_its_stack, argument), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, &result), PUNCTUAL_OK);
    IS(punctual_sleep(MS), PUNCTUAL_OK);
    return result;
}

static punctual_status run(size_t threads, size_t stack_bytes)
{
    int here = 0;
    void *result = NULL;
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    options.threads = threads;
    options.stack_bytes = stack_bytes;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, &here);
    punctual_status status = punctual_run(&cpu, &options, &result);
    if (status == PUNCTUAL_OK && result != &here)
        exit(3);
    return status;
}

static void is_refused(size_t threads, size_t stack_bytes, const char *words)
{
    char text[300] = "";
    IS(run(threads, stack_bytes), PUNCTUAL_CANNOT_RUN);
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!strstr(text, words)) {
        fprintf(stderr, "not \"%s\": %s\n", words, text);
        exit(4);
    }
}

int main(void)
{
    size_t before = resident_mib();
    is_refused((size_t)1 << 40, 0, "threads of a CPU: 1099511627777 are asked for, and 1048576");
    is_refused((size_t)-1, 0, "threads of a CPU");
    is_refused(64, (size_t)1 << 40, "bytes of a stack: 1099511627776 are asked for, and 1073741824");
    is_refused(100000, (size_t)1 << 30, "bytes of address space");
    is_refused(1000000, 0, "most here");
    if (resident_mib() > before + 20)
        exit(5);
    /* Stacks are reserved: what is used of them is in memory. */
    IS(run(64, (size_t)1 << 30), PUNCTUAL_OK);
    if (resident > before + 100) {
        fprintf(stderr, "64 stacks of 1 GiB: %zu MiB, %zu before\n", resident, before);
        exit(6);
    }
    IS(run(1000, (size_t)8 << 20), PUNCTUAL_OK);
    if (resident > before + 300) {
        fprintf(stderr, "1,000 stacks of 8 MiB: %zu MiB, %zu before\n", resident, before);
        exit(7);
    }
    puts("what is too much is a code, and what is reserved is not in memory");
    return 0;
}
