/* Orders that a graph declares: a static one, and threads of the core that take turns. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
enum { COUNT, CHECK, SLOW, ACTORS };
enum { TILE = 3, PERMITS = 40 };

struct stream {
    punctual_application made;
    char order[64];
    uint64_t next, checks, meanwhile, slow;
};

static void note(struct stream *stream, char actor)
{
    size_t length = strlen(stream->order);
    if (length + 1 < sizeof stream->order)
        stream->order[length] = actor;
}

/* Two numbers. */
static int count(const punctual_firing *firing)
{
    const uint64_t numbers[2] = {2 * firing->number, 2 * firing->number + 1};
    note(firing->parameter, 'n');
    return punctual_write_fifo(0, numbers, 2) == PUNCTUAL_OK ? 0 : 1;
}

static int check(const punctual_firing *firing)
{
    struct stream *stream = firing->parameter;
    uint64_t number;
    note(stream, 'c');
    stream->checks++;
    return punctual_read_fifo(0, &number, 1) == PUNCTUAL_OK && number == stream->next++ ? 0 : 1;
}

/* It waits in a call of the scheduler, and counts the firings of others meanwhile. */
static int slow(const punctual_firing *firing)
{
    struct stream *stream = firing->parameter;
    uint64_t before = stream->checks;
    IS(punctual_sleep(MS), PUNCTUAL_OK);
    stream->meanwhile += stream->checks - before;
    stream->slow++;
    return 0;
}

static punctual_status make(struct stream *stream, uint32_t actor_count,
                            const punctual_task_scheduler *order)
{
    const punctual_actor actors[ACTORS] = {
        punctual_actor_with("count", TILE, MS, count, stream),
        punctual_actor_with("check", TILE, MS, check, stream),
        punctual_actor_with("slow", TILE, MS, slow, stream),
    };
    punctual_fifo fifos[] = {
        punctual_fifo_between("numbers", COUNT, CHECK, sizeof(uint64_t), 12),
        punctual_fifo_between("permits", SLOW, COUNT, 0, 3 * PERMITS),
    };
    fifos[0].produce = 2;
    fifos[1].produce = PERMITS;
    punctual_graph graph = punctual_graph_of("stream", actors, actor_count, fifos, actor_count - 1);
    memset(stream, 0, sizeof *stream);
    graph.schedulers = order;
    graph.scheduler_count = 1;
    return punctual_application_create(&stream->made, &graph);
}

static int never(void *parameter)
{
    return parameter == NULL;
}

static void is_said(const char *words)
{
    char why[400] = "";
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    HOLDS(strstr(why, words));
}

/* Of one iteration, and of no other. */
static void fixed(void)
{
    static const uint32_t iteration[] = {COUNT, CHECK, CHECK}, half[] = {COUNT, CHECK};
    static const uint32_t late[] = {CHECK, CHECK, COUNT}, strange[] = {COUNT, CHECK, 7};
    struct stream stream;
    punctual_task_scheduler order = punctual_scheduled_in_order(TILE, iteration, 3);
    IS(make(&stream, 2, &order), PUNCTUAL_OK);
    for (int firing = 0; firing < 9; firing++)
        IS(punctual_tile_fire(stream.made, TILE), PUNCTUAL_OK);
    HOLDS(!strcmp(stream.order, "nccnccncc"));
    IS(punctual_application_destroy(stream.made), PUNCTUAL_OK);
    order = punctual_scheduled_in_order(TILE, late, 3);
    IS(make(&stream, 2, &order), PUNCTUAL_REFUSED);
    order = punctual_scheduled_in_order(TILE, half, 2);
    HOLDS(make(&stream, 2, &order) != PUNCTUAL_OK);
    order = punctual_scheduled_in_order(TILE, strange, 3);
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
    is_said("actor number 7");
    order = punctual_scheduled_in_order(TILE, NULL, 3);
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
    order = punctual_scheduled_in_order(TILE, iteration, 3);
    order.decide = never;
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
    is_said("another order beside it");
    order.decide = NULL;
    order.when = PUNCTUAL_INLINE;
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
    order.when = PUNCTUAL_BETWEEN_SLOTS;
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
    order.when = 9;
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
    order = punctual_scheduled_inline(TILE);
    order.decide = never;
    IS(make(&stream, 2, &order), PUNCTUAL_INVALID);
}

static void *tile(void *argument)
{
    struct stream *stream = argument;
    return punctual_tile_run(stream->made, TILE) == PUNCTUAL_OK ? argument : NULL;
}

/* A thread for each actor: while one waits, the others fire. */
static void *threads(void *argument)
{
    struct stream *stream = argument;
    punctual_thread actors[ACTORS];
    punctual_constraint asks = punctual_aperiodic(1);
    void *done;
    IS(punctual_tile_fire(stream->made, TILE), PUNCTUAL_NOT_ALLOWED);
    for (int actor = 0; actor < ACTORS; actor++)
        IS(punctual_thread_create(&actors[actor], "actor", &asks, tile, stream), PUNCTUAL_OK);
    for (int looks = 0; looks < 60000 && (stream->slow < 20 || stream->meanwhile < 20); looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    HOLDS(stream->slow >= 20 && stream->meanwhile >= 20);
    IS(punctual_tile_run(stream->made, TILE), PUNCTUAL_BUSY);
    IS(punctual_application_destroy(stream->made), PUNCTUAL_BUSY);
    IS(punctual_application_stop(stream->made), PUNCTUAL_OK);
    for (int actor = 0; actor < ACTORS; actor++) {
        IS(punctual_thread_join(actors[actor], PUNCTUAL_FOREVER, &done), PUNCTUAL_OK);
        HOLDS(done == argument);
    }
    return argument;
}

int main(void)
{
    struct stream stream;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_EARLIEST_DEADLINE, threads, &stream);
    punctual_options options = punctual_defaults();
    punctual_task_scheduler inlined = punctual_scheduled_inline(TILE);
    options.without_terms = 1;
    fixed();
    IS(make(&stream, ACTORS, &inlined), PUNCTUAL_OK);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_application_destroy(stream.made), PUNCTUAL_OK);
    printf("static orders are kept, and threads of the core take turns\n");
    return 0;
}
