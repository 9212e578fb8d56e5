/* Applications that decide between the slots of a branch: one firing begins in a slot, at most. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000, FRAME = 10000000;
enum { COUNT, CHECK, ACTORS };
enum { TILE = 5 };

/* The slot of the first thread, and that of the application. */
static const punctual_slot OWN = {500000, 2500000}, VIDEO = {4000000, 4000000};

/* Of one application: the last slots in which it decided and in which a firing began. */
struct stream {
    punctual_application made;
    uint64_t decided, began, decisions, next;
    int fires, asks;
    punctual_status ended;
};

/* The number of the last slot that has begun. */
static uint64_t slot(void)
{
    uint64_t now;
    IS(punctual_now(&now), PUNCTUAL_OK);
    return (now + FRAME - VIDEO.at_ns) / FRAME;
}

static void begins(struct stream *stream)
{
    uint64_t here = slot();
    HOLDS(!stream->fires && here > stream->began);
    stream->fires = 1;
    stream->began = here;
}

/* A number, and every tenth time no end before the slot is over. */
static int count(const punctual_firing *firing)
{
    struct stream *stream = firing->parameter;
    begins(stream);
    HOLDS(punctual_write_fifo(0, &firing->number, 1) == PUNCTUAL_OK);
    while (firing->number % 10 == 0 && slot() == stream->began)
        ;
    stream->fires = 0;
    return 0;
}

static int check(const punctual_firing *firing)
{
    struct stream *stream = firing->parameter;
    uint64_t number;
    begins(stream);
    HOLDS(punctual_read_fifo(0, &number, 1) == PUNCTUAL_OK && number == stream->next++);
    stream->fires = 0;
    return 0;
}

static int downstream(void *parameter)
{
    struct stream *stream = parameter;
    uint64_t here = slot();
    HOLDS(!stream->fires && here > stream->decided);
    stream->decided = here;
    stream->decisions++;
    for (uint32_t task = punctual_task_count(); task-- > 0;)
        if (punctual_check_firing_rules(task))
            return (int)task;
    return PUNCTUAL_IDLE_TASK;
}

static punctual_status make(struct stream *stream, uint32_t when, uint32_t tile)
{
    const punctual_actor actors[ACTORS] = {
        punctual_actor_with("count", TILE, 9 * MS, count, stream),
        punctual_actor_with("check", TILE, MS, check, stream),
    };
    const punctual_fifo fifo = punctual_fifo_between("numbers", COUNT, CHECK, sizeof(uint64_t), 2);
    punctual_task_scheduler own = punctual_scheduled_between_slots(
        tile, stream->asks ? downstream : NULL, stream);
    punctual_graph graph = punctual_graph_of("stream", actors, ACTORS, &fifo, 1);
    own.when = when;
    graph.schedulers = &own;
    graph.scheduler_count = 1;
    return punctual_application_create(&stream->made, &graph);
}

static void *tile(void *argument)
{
    struct stream *stream = argument;
    stream->ended = punctual_tile_run(stream->made, TILE);
    return argument;
}

static void execute(const char *home, struct stream *stream, punctual_thread *thread)
{
    punctual_scheduler root, video;
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, home, &video), PUNCTUAL_OK);
    IS(punctual_scheduler_create(video, thread, "stream", &asks, PUNCTUAL_END_THREAD, tile, stream),
       PUNCTUAL_OK);
}

/* Fires until much is checked, however long the machine is away. */
static void *fires(void *argument)
{
    struct stream *stream = argument;
    punctual_thread thread;
    uint64_t checked = 0;
    IS(punctual_tile_fire(stream->made, TILE), PUNCTUAL_NOT_ALLOWED);
    stream->began = stream->decided = 0;
    execute("video", stream, &thread);
    uint64_t enough = stream->next + 15;
    for (int looks = 0; looks < 60000 && checked < enough; looks++) {
        IS(punctual_sleep(MS), PUNCTUAL_OK);
        IS(punctual_actor_firings(stream->made, CHECK, &checked), PUNCTUAL_OK);
    }
    HOLDS(checked >= enough);
    IS(punctual_application_stop(stream->made), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(stream->ended, PUNCTUAL_OK);
    return argument;
}

/* A tile that has no slots, or no time between them, is told so. */
static void *is_refused(void *argument)
{
    struct stream *stream = argument;
    punctual_thread thread;
    execute("video", stream, &thread);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(stream->ended, PUNCTUAL_INVALID);
    return argument;
}

int main(void)
{
    struct stream turns, own, wrong;
    memset(&turns, 0, sizeof turns);
    own = wrong = turns;
    own.asks = 1;
    punctual_branch branches[] = {
        {"own", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&OWN, 1)},
        {"video", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&VIDEO, 1)},
    };
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_TIME_DIVISION, fires, &turns);
    punctual_options options = punctual_defaults();
    cpu.timeslice_ns = FRAME;
    options.without_terms = 1;
    options.schedulers = branches;
    options.scheduler_count = 2;
    options.scheduling_ns = MS / 2;
    IS(make(&wrong, 7, TILE), PUNCTUAL_INVALID);
    IS(make(&wrong, PUNCTUAL_OWN_TIME, TILE), PUNCTUAL_INVALID);
    IS(make(&wrong, PUNCTUAL_BETWEEN_SLOTS, TILE + 1), PUNCTUAL_INVALID);
    IS(make(&turns, PUNCTUAL_BETWEEN_SLOTS, TILE), PUNCTUAL_OK);
    IS(make(&own, PUNCTUAL_BETWEEN_SLOTS, TILE), PUNCTUAL_OK);
    IS(make(&wrong, PUNCTUAL_BETWEEN_SLOTS, TILE), PUNCTUAL_OK);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    cpu.argument = &own;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    HOLDS(own.decisions >= 2 * own.next && turns.next > 0);
    cpu.argument = &wrong;
    cpu.first = is_refused;
    options.scheduling_ns = 0;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    cpu.policy = PUNCTUAL_FIXED_PRIORITY;
    cpu.timeslice_ns = 0;
    branches[0].terms = branches[1].terms = punctual_shared(1);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_application_destroy(wrong.made), PUNCTUAL_OK);
    printf("one firing in a slot, by turns and by an own order\n");
    return 0;
}
