/* A tree that a run starts with, from a file, and what can be wrong with one. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "is.h"

static const uint64_t MS = 1000000;
/* Of a file in memory, which nothing leaves behind. */
static char path[32];

static const char *const GOOD =
    "[system]\ncpus = [\"c\"]\n[cpu.c]\npolicy = \"fixed-priority\"\n"
    "[scheduler.net]\non = \"cpu.c\"\npolicy = \"edf\"\npriority = 3\n"
    "server = { kind = \"deferrable\", budget = \"6ms\", period = \"20ms\" }\n"
    "delegate = [{ to = \"scheduler.guest\", slice = \"2ms\", every = \"20ms\" }]\n"
    "[scheduler.guest]\non = \"cpu.c\"\npolicy = \"fixed-priority\"\npriority = 2\n";

static void write_file(const char *text, const char *more)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fputs(more, file) < 0 || fclose(file) != 0)
        exit(2);
}

static void *periods(void *argument)
{
    while (punctual_wait_next_period(NULL) == PUNCTUAL_OK)
        __atomic_fetch_add((int *)argument, 1, __ATOMIC_RELAXED);
    return argument;
}

static void *first(void *argument)
{
    punctual_scheduler root, net, guest;
    punctual_slice slice;
    punctual_thread threads[2];
    int jobs[2] = {0, 0};
    punctual_constraint asks = punctual_periodic(60 * MS, MS);
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "none", &net), PUNCTUAL_STALE);
    IS(punctual_scheduler_find(root, "net", &net), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "guest", &guest), PUNCTUAL_OK);
    IS(punctual_scheduler_find_slice(root, "net:guest", &slice), PUNCTUAL_OK);
    IS(punctual_scheduler_create(net, &threads[0], "in net", &asks, PUNCTUAL_END_THREAD, periods,
                                 &jobs[0]),
       PUNCTUAL_OK);
    IS(punctual_scheduler_create(guest, &threads[1], "on its slice", &asks, PUNCTUAL_END_THREAD,
                                 periods, &jobs[1]),
       PUNCTUAL_OK);
    for (int tries = 0;; tries++) {
        punctual_status bound = punctual_scheduler_bind(guest, threads[1], slice);
        if (bound == PUNCTUAL_OK)
            break;
        if (bound != PUNCTUAL_HAS_JOB || tries > 20000)
            exit(3);
        IS(punctual_sleep(MS / 4), PUNCTUAL_OK);
    }
    for (int turns = 0; turns < 20000; turns++) {
        if (__atomic_load_n(&jobs[0], __ATOMIC_RELAXED) > 3 &&
            __atomic_load_n(&jobs[1], __ATOMIC_RELAXED) > 3)
            return argument;
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    }
    exit(4);
}

static void is_refused(const punctual_cpu *cpu, const punctual_options *options, const char *part)
{
    char why[2000];
    IS(punctual_run(cpu, options, NULL), PUNCTUAL_INVALID);
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    if (!strstr(why, part)) {
        fprintf(stderr, "%s, not %s\n", why, part);
        exit(5);
    }
}

int main(void)
{
    int file = memfd_create("tree.toml", 0);
    if (file < 0)
        exit(2);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    options.tree_file = path;
    write_file(GOOD, "");
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    /* One tree, from one place. */
    punctual_branch branch = {"own", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_shared(0)};
    options.schedulers = &branch;
    options.scheduler_count = 1;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    options.scheduler_count = 0;
    cpu.policy = PUNCTUAL_EARLIEST_DEADLINE;
    is_refused(&cpu, &options, "cpu.c is ordered by");
    cpu.policy = PUNCTUAL_FIXED_PRIORITY;
    write_file(GOOD, "[task.a]\nclass = \"periodic\"\non = \"scheduler.net\"\nperiod = \"20ms\"\n"
                     "wcet = \"1ms\"\n");
    is_refused(&cpu, &options, "it has tasks");
    write_file(GOOD, "prority = 2\n");
    is_refused(&cpu, &options, "prority");
    write_file(GOOD, "trust = \"own-time\"\ncode = { library = \"none.so\", symbol = \"mine\" }\n"
                     "server = { kind = \"deferrable\", budget = \"2ms\", period = \"20ms\" }\n");
    is_refused(&cpu, &options, "scheduler `guest`");
    /* No such file any more. */
    if (close(file) != 0)
        exit(6);
    is_refused(&cpu, &options, path);
    printf("a tree from a file\n");
    return 0;
}
