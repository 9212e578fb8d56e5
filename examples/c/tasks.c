/* Three tasks in C: a water tank, its controller, and a supervisor.
 *
 *     cc -std=c11 -O2 -Wall -Wextra -shared -fPIC -o examples/c/libtasks.so examples/c/tasks.c
 *
 * A task's function has this form:
 *
 *     int name(uint64_t job, uint64_t arrival_ns);
 *
 * It is called once per job, from the task's own thread. `job` counts from 0; `arrival_ns` is the
 * arrival of the job, in nanoseconds since the start of the run (not the time of the call). Return
 * 0: other values are reserved.
 *
 * The functions share plain variables without a lock. That is right here because the file keeps
 * them apart: `after` and `follows` order every pair of jobs that touch the same variable, on any
 * number of CPUs and under any delay. A job that never waits needs no lock; a job that does would
 * have to declare `max-suspension`.
 */
#include <stdint.h>

static const double DT = 0.01;      /* seconds: the period of plant and control */
static const double TARGET = 1.0;   /* metres of water */
static const double FULL = 2.0;     /* metres: the tank runs over above */

static double level = 0.2;          /* metres; written by plant_step */
static double inflow;               /* 0 (closed) to 1 (open); written by control_step */
static double integral;             /* of control_step alone */
static double highest;              /* metres; written by supervise_step */
static uint64_t overflows;          /* looks that found it running over */

/* The tank: an open valve raises the level by 0.5 m/s, the drain takes 0.2 m/s per metre. */
int plant_step(uint64_t job, uint64_t arrival_ns)
{
    (void)job;
    (void)arrival_ns;
    level += DT * (0.5 * inflow - 0.2 * level);
    return 0;
}

/* A proportional-integral controller whose integral stops when the valve cannot open further. */
int control_step(uint64_t job, uint64_t arrival_ns)
{
    (void)job;
    (void)arrival_ns;
    double error = TARGET - level;
    double command = 2.0 * error + integral;
    if (command > 1.0) {
        command = 1.0;
    } else if (command < 0.0) {
        command = 0.0;
    } else {
        integral += DT * 0.8 * error;
    }
    inflow = command;
    return 0;
}

/* Once in 100 ms: has the tank run over? */
int supervise_step(uint64_t job, uint64_t arrival_ns)
{
    (void)job;
    (void)arrival_ns;
    if (level > highest) {
        highest = level;
    }
    if (level > FULL) {
        overflows += 1;
    }
    return 0;
}

/* For a debugger, or a program that loads the library: what the tank looks like now. */
double tank_level(void)
{
    return level;
}
