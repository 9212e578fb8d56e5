/* A program that gives a part of the processor to a scheduler of its own, and takes it back.
 *
 *     cc -o tree tree.c $(pkg-config --cflags --libs punctual) && ./tree
 */
#include <stdio.h>

#include <punctual.h>

enum { CPU = 0 };
static const uint64_t MS = 1000000;

/* What a component gets to know: its own scheduler, and nothing else. */
struct component {
    punctual_scheduler own;
    int jobs;
    punctual_status more;
};

static void *receive(void *argument)
{
    struct component *net = argument;
    /* Until somebody cancels it: PUNCTUAL_CANCELLED. */
    do
        net->jobs++;
    while (punctual_wait_next_period(NULL) == PUNCTUAL_OK);
    return argument;
}

/* The component's first thread, on the component's supply: 2 ms in every 10 ms. */
static void *component(void *argument)
{
    struct component *net = argument;
    punctual_thread receiver;
    punctual_constraint asks = punctual_periodic(40 * MS, MS);
    punctual_status status = punctual_scheduler_create(net->own, &receiver, "receive", &asks,
                                                       PUNCTUAL_END_THREAD, receive, net);
    if (status != PUNCTUAL_OK)
        return NULL;
    /* The processor is idle, but the component has no more than this. */
    asks = punctual_periodic(10 * MS, 3 * MS);
    net->more = punctual_scheduler_create(net->own, NULL, "greedy", &asks, PUNCTUAL_END_THREAD,
                                          receive, net);
    punctual_sleep(200 * MS);
    if (punctual_thread_cancel(receiver) != PUNCTUAL_OK ||
        punctual_thread_join(receiver, PUNCTUAL_FOREVER, NULL) != PUNCTUAL_OK)
        return NULL;
    return argument;
}

static void *first(void *argument)
{
    struct component *net = argument;
    punctual_scheduler root;
    punctual_thread thread;
    void *done = NULL;
    punctual_terms terms = punctual_served(PUNCTUAL_POLLING, 2 * MS, 10 * MS, 3);
    punctual_constraint asks = punctual_aperiodic(1);
    terms.quota = 4;
    if (punctual_scheduler_root(&root) != PUNCTUAL_OK ||
        punctual_scheduler_promote(root, "net", &terms, &net->own) != PUNCTUAL_OK ||
        punctual_scheduler_create(net->own, &thread, "component", &asks, PUNCTUAL_END_THREAD,
                                  component, net) != PUNCTUAL_OK ||
        punctual_thread_join(thread, PUNCTUAL_FOREVER, &done) != PUNCTUAL_OK)
        return NULL;
    if (punctual_scheduler_demote(root, net->own) != PUNCTUAL_OK)
        return NULL;
    return done;
}

int main(void)
{
    struct component net = {{0, 0}, 0, PUNCTUAL_OK};
    punctual_cpu cpu = punctual_cpu_with(CPU, PUNCTUAL_FIXED_PRIORITY, first, &net);
    punctual_options options = punctual_defaults();
    options.promotions = 1;
    void *done = NULL;
    punctual_status status = punctual_run(&cpu, &options, &done);
    if (status != PUNCTUAL_OK || !done) {
        fprintf(stderr, "%s\n", punctual_strerror(status));
        return 1;
    }
    printf("%d jobs on 2 ms in 10 ms; more: %s\n", net.jobs, punctual_strerror(net.more));
    return 0;
}
