/* A periodic control loop: read, compute, write, every 10 ms, under a guarantee.
 *
 *     cc -o control control.c $(pkg-config --cflags --libs punctual) && ./control
 */
#include <inttypes.h>
#include <stdio.h>

#include <punctual.h>

enum { CPU = 0, JOBS = 100 };
static const uint64_t PERIOD_NS = 10000000, WORK_NS = 500000;

/* A tank that leaks, and the valve that the loop sets. */
struct tank {
    double level, valve;
    unsigned jobs, late;
    uint64_t latest_ns;
};

static void *control(void *argument)
{
    struct tank *tank = argument;
    punctual_job job;
    /* By the size the library tells which version of the structure this was compiled with. */
    job.size = sizeof job;
    for (;;) {
        uint64_t now_ns = 0;
        if (punctual_current_job(&job) != PUNCTUAL_OK || punctual_now(&now_ns) != PUNCTUAL_OK)
            break;
        if (now_ns - job.arrival_ns > tank->latest_ns)
            tank->latest_ns = now_ns - job.arrival_ns;
        tank->level += tank->valve - 0.01 * tank->level;
        tank->valve += 0.001 * (50.0 - tank->level) - 0.05 * (tank->valve - 0.5);
        if (punctual_now(&now_ns) != PUNCTUAL_OK)
            break;
        tank->late += now_ns > job.deadline_ns;
        if (++tank->jobs == JOBS)
            return tank;
        /* The rest of the period is for others. */
        if (punctual_wait_next_period(&job) != PUNCTUAL_OK)
            break;
    }
    /* Whoever joins hears it, by PUNCTUAL_FAILED. That it can fail itself changes nothing here. */
    (void)punctual_fail("the control loop was interrupted");
    return NULL;
}

/* Says what went wrong, and what the library knows about why. */
static void complain(const char *what, punctual_status status)
{
    char why[512] = "";
    if (punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL) == PUNCTUAL_NOTHING)
        fprintf(stderr, "%s: %s\n", what, punctual_strerror(status));
    else
        fprintf(stderr, "%s: %s: %s\n", what, punctual_strerror(status), why);
}

/* The first thread of the run: the run is over when it returns. */
static void *first(void *argument)
{
    punctual_thread loop;
    punctual_constraint every = punctual_periodic(PERIOD_NS, WORK_NS);
    punctual_status status = punctual_thread_create(&loop, "control", &every, control, argument);
    if (status == PUNCTUAL_OK) {
        void *done = NULL;
        status = punctual_thread_join(loop, PUNCTUAL_FOREVER, &done);
        if (status == PUNCTUAL_OK)
            return done;
    }
    complain("control", status);
    return NULL;
}

int main(void)
{
    struct tank tank = {0.0, 0.0, 0, 0, 0};
    punctual_cpu cpu = punctual_cpu_with(CPU, PUNCTUAL_EARLIEST_DEADLINE, first, &tank);
    punctual_options options = punctual_defaults();
    /* Every machine answers the same. Leave it out to have the costs of yours counted. */
    options.without_terms = 1;
    void *done = NULL;
    punctual_status status = punctual_run(&cpu, &options, &done);
    if (status != PUNCTUAL_OK) {
        complain("run", status);
        return 3;
    }
    /* Without real-time priority the loop was still scheduled by its constraint, but the kernel
     * could take the CPU away from all of the program: the figures are observations then. */
    int real_time = 0;
    status = punctual_was_real_time(&real_time);
    if (status != PUNCTUAL_OK) {
        complain("report", status);
        return 3;
    }
    printf("%u jobs, %u late, level %.1f, latest start %" PRIu64 " ns after its release%s\n",
           tank.jobs, tank.late, tank.level, tank.latest_ns,
           real_time ? "" : " (not in real time)");
    /* The exit codes of the command: 1 for what was late, 3 for a run that failed. */
    return done != &tank ? 3 : tank.late > 0;
}
