/* The control loop of the examples, whose first job goes on until it is late. */
#include <punctual.h>

static punctual_status held_up(punctual_job *job)
{
    punctual_status status = punctual_current_job(job);
    uint64_t now_ns = 0;
    while (status == PUNCTUAL_OK && job->index == 0 && now_ns <= job->deadline_ns)
        status = punctual_now(&now_ns);
    return status;
}

#define punctual_current_job held_up
#include "../../../../../examples/c/control.c"
