/* A streaming application: three actors in a row, and the order in which its author lets them fire.
 *
 *     cc -o graph graph.c $(pkg-config --cflags --libs punctual) && ./graph
 *
 * doc/guide/write-a-task-scheduler.md explains it.
 */
#include <stdio.h>

#include <punctual.h>

enum { CPU = 0, TILE = 0 };
enum { COUNT, DOUBLE, CHECK, ACTORS };
static const uint64_t MS = 1000000;

/* Two numbers per firing, from where the last firing ended. */
static int count(const punctual_firing *firing)
{
    const uint8_t *state = firing->input[0].data;
    uint8_t *next = firing->output[0].data;
    uint8_t *numbers = firing->output[1].data;
    numbers[0] = *state;
    numbers[1] = (uint8_t)(*state + 1);
    *next = (uint8_t)(*state + 2);
    return 0;
}

static int twice(const punctual_firing *firing)
{
    uint8_t number;
    if (punctual_read_fifo(0, &number, 1) != PUNCTUAL_OK)
        return 1;
    number = (uint8_t)(number * 2);
    return punctual_write_fifo(0, &number, 1) == PUNCTUAL_OK && firing->phase == 0 ? 0 : 1;
}

/* A number that is out of its order ends the application. */
static int check(const punctual_firing *firing)
{
    const uint8_t *number = firing->input[0].data;
    return *number == (uint8_t)(firing->number * 2) ? 0 : 1;
}

/* The last actor of the row that may fire: tokens leave as soon as they can. */
static int downstream(void *parameter)
{
    uint64_t *decisions = parameter;
    (*decisions)++;
    for (uint32_t task = punctual_task_count(); task-- > 0;)
        if (punctual_check_firing_rules(task))
            return (int)task;
    return PUNCTUAL_IDLE_TASK;
}

static punctual_status make(punctual_application *stream, uint64_t *decisions)
{
    const punctual_actor actors[ACTORS] = {
        punctual_actor_with("count", TILE, MS / 5, count, NULL),
        punctual_actor_with("double", TILE, MS / 5, twice, NULL),
        punctual_actor_with("check", TILE, MS / 5, check, NULL),
    };
    punctual_fifo fifos[] = {
        punctual_fifo_between("next", COUNT, COUNT, 1, 2),
        punctual_fifo_between("numbers", COUNT, DOUBLE, 1, 4),
        punctual_fifo_between("doubles", DOUBLE, CHECK, 1, 4),
    };
    const punctual_task_scheduler own = punctual_scheduled_by(TILE, downstream, decisions);
    fifos[0].initial = 1;
    fifos[1].produce = 2;
    punctual_graph graph = punctual_graph_of("stream", actors, ACTORS, fifos, 3);
    graph.schedulers = &own;
    graph.scheduler_count = 1;
    return punctual_application_create(stream, &graph);
}

/* What the tile has of the processor is what this thread has. */
static void *tile(void *argument)
{
    punctual_application *stream = argument;
    return punctual_tile_run(*stream, TILE) == PUNCTUAL_OK ? argument : NULL;
}

static void *first(void *argument)
{
    punctual_application *stream = argument;
    punctual_thread thread;
    punctual_constraint asks = punctual_reservation(10 * MS, 2 * MS);
    uint64_t checked = 0;
    void *done = NULL;
    if (punctual_thread_create(&thread, "stream", &asks, tile, stream) != PUNCTUAL_OK)
        return NULL;
    while (checked < 1000 && punctual_sleep(MS) == PUNCTUAL_OK)
        if (punctual_actor_firings(*stream, CHECK, &checked) != PUNCTUAL_OK)
            return NULL;
    if (punctual_application_stop(*stream) != PUNCTUAL_OK ||
        punctual_thread_join(thread, PUNCTUAL_FOREVER, &done) != PUNCTUAL_OK)
        return NULL;
    return done;
}

int main(void)
{
    punctual_application stream;
    uint64_t decisions = 0, counted = 0, checked = 0;
    void *done = NULL;
    punctual_cpu cpu = punctual_cpu_with(CPU, PUNCTUAL_EARLIEST_DEADLINE, first, &stream);
    punctual_status status = make(&stream, &decisions);
    if (status == PUNCTUAL_OK)
        status = punctual_run(&cpu, NULL, &done);
    if (status != PUNCTUAL_OK || !done) {
        char why[400] = "";
        punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL);
        fprintf(stderr, "%s\n%s\n", punctual_strerror(status), why);
        return 1;
    }
    punctual_actor_firings(stream, COUNT, &counted);
    punctual_actor_firings(stream, CHECK, &checked);
    /* Every number left before two more were counted. */
    printf("%s: %llu numbers in order\n",
           checked / 2 + 1 >= counted && decisions > checked ? "downstream" : "in some order",
           (unsigned long long)(checked - checked % 1000));
    return punctual_application_destroy(stream) == PUNCTUAL_OK ? 0 : 1;
}
