/* Applications that decide between slots and pass over a firing that a slot interrupted. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000, FRAME = 10000000;
enum { COUNT, CHECK, ACTORS };
enum { TILE = 2 };
enum { OVERTAKEN = 3 };
static const char SAID[] = "firings are passed over, by turns, by an own order and by owners\n";

/* The slot of the first thread, and that of the application. */
static const punctual_slot OWN = {500000, 2500000}, VIDEO = {4000000, 4000000};

struct stream {
    punctual_application made;
    uint64_t next, overtaken, decisions, began[ACTORS], ended[ACTORS];
    /* A firing of `check` that answers 1; no firing of `count` that ends. */
    uint64_t fails, endless;
    punctual_status status;
    char why[200];
};

/* The number of the last slot that has begun. */
static uint64_t slot(void)
{
    uint64_t now;
    IS(punctual_now(&now), PUNCTUAL_OK);
    return (now + FRAME - VIDEO.at_ns) / FRAME;
}

/* Two numbers, and every second time no end before the slot is over. */
static int count(const punctual_firing *firing)
{
    struct stream *stream = firing->parameter;
    uint64_t here = slot(), others = stream->ended[CHECK];
    const uint64_t numbers[2] = {2 * firing->number, 2 * firing->number + 1};
    stream->began[COUNT]++;
    HOLDS(punctual_write_fifo(0, numbers, 2) == PUNCTUAL_OK);
    while (firing->number % 2 == 1 && (slot() == here || stream->endless))
        ;
    if (stream->ended[CHECK] > others)
        stream->overtaken++;
    stream->ended[COUNT]++;
    return 0;
}

static int check(const punctual_firing *firing)
{
    struct stream *stream = firing->parameter;
    uint64_t number;
    stream->began[CHECK]++;
    HOLDS(punctual_read_fifo(0, &number, 1) == PUNCTUAL_OK && number == stream->next++);
    stream->ended[CHECK]++;
    return stream->next == stream->fails;
}

/* Another task than the last one, if it may fire. */
static int another(void *parameter)
{
    struct stream *stream = parameter;
    uint32_t last = punctual_get_task_id() == CHECK ? CHECK : COUNT;
    stream->decisions++;
    if (punctual_check_firing_rules(ACTORS - 1 - last))
        return (int)(ACTORS - 1 - last);
    return punctual_check_firing_rules(last) ? (int)last : PUNCTUAL_IDLE_TASK;
}

static punctual_status make(struct stream *stream, punctual_task_scheduler order)
{
    const punctual_actor actors[ACTORS] = {
        punctual_actor_with("count", TILE, 9 * MS, count, stream),
        punctual_actor_with("check", TILE, MS, check, stream),
    };
    punctual_fifo fifo = punctual_fifo_between("numbers", COUNT, CHECK, sizeof(uint64_t), 8);
    punctual_graph graph = punctual_graph_of("stream", actors, ACTORS, &fifo, 1);
    fifo.produce = 2;
    graph.schedulers = &order;
    graph.scheduler_count = 1;
    return punctual_application_create(&stream->made, &graph);
}

static void *tile(void *argument)
{
    struct stream *stream = argument;
    stream->status = punctual_tile_run(stream->made, TILE);
    punctual_why(PUNCTUAL_TEXT, stream->why, sizeof stream->why, NULL);
    if (stream->status == PUNCTUAL_FAILED && strstr(stream->why, "WRFSBASE")) {
        fprintf(stderr, "NOT TESTED: %s\n", stream->why);
        printf("%s", SAID);
        exit(0);
    }
    return argument;
}

/* The branch of the application: of the first thread of a run. */
static punctual_scheduler branch(void)
{
    punctual_scheduler root, video;
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "video", &video), PUNCTUAL_OK);
    return video;
}

static punctual_thread execute(punctual_scheduler video, struct stream *stream)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_scheduler_create(video, &thread, "stream", &asks, PUNCTUAL_END_THREAD, tile, stream),
       PUNCTUAL_OK);
    return thread;
}

static void *stops(void *argument)
{
    struct stream *stream = argument;
    punctual_scheduler video = branch();
    punctual_thread thread = execute(video, stream);
    for (int looks = 0; looks < 20000 && stream->overtaken < OVERTAKEN; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    HOLDS(stream->overtaken >= OVERTAKEN);
    IS(punctual_application_stop(stream->made), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(stream->status, PUNCTUAL_OK);
    /* Firings that were under way have come to their ends; nobody fires again. */
    for (int actor = 0; actor < ACTORS; actor++)
        HOLDS(stream->began[actor] == stream->ended[actor]);
    thread = execute(video, stream);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(stream->status, PUNCTUAL_OK);
    HOLDS(stream->next == stream->ended[CHECK]);
    return argument;
}

static void *fails(void *argument)
{
    struct stream *stream = argument;
    punctual_scheduler video = branch();
    punctual_thread thread = execute(video, stream);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(stream->status, PUNCTUAL_FAILED);
    HOLDS(strstr(stream->why, "`check` panicked: its function returned 1"));
    return argument;
}

/* A thread that is to end, and a run that ends in the midst of a firing. */
static void *ends(void *argument)
{
    struct stream *stream = argument;
    punctual_scheduler video = branch();
    punctual_thread thread = execute(video, &stream[0]);
    for (int looks = 0; looks < 20000 && !stream[0].ended[CHECK]; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(punctual_application_destroy(stream[0].made), PUNCTUAL_OK);
    execute(video, &stream[1]);
    for (int looks = 0; looks < 20000 && stream[1].began[COUNT] < 2; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    static const uint32_t owners[] = {COUNT, CHECK}, absent[] = {CHECK};
    static struct stream all[6];
    punctual_branch branches[] = {
        {"own", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&OWN, 1)},
        {"video", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_in_slots(&VIDEO, 1)},
    };
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_TIME_DIVISION, stops, all);
    punctual_options options = punctual_defaults();
    punctual_task_scheduler own = punctual_scheduled_passing_over(TILE, another, &all[1]);
    punctual_task_scheduler turns = punctual_scheduled_passing_over(TILE, NULL, NULL);
    punctual_task_scheduler by_owners = turns;
    cpu.timeslice_ns = FRAME;
    options.without_terms = 1;
    options.schedulers = branches;
    options.scheduler_count = 2;
    options.scheduling_ns = MS / 2;
    by_owners.firings = absent;
    by_owners.firing_count = 1;
    IS(make(&all[2], by_owners), PUNCTUAL_INVALID);
    by_owners.firings = owners;
    by_owners.firing_count = 2;
    IS(make(&all[0], turns), PUNCTUAL_OK);
    IS(make(&all[1], own), PUNCTUAL_OK);
    IS(make(&all[2], by_owners), PUNCTUAL_OK);
    for (int one = 0; one < 3; one++) {
        cpu.argument = &all[one];
        IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
        IS(punctual_application_destroy(all[one].made), PUNCTUAL_OK);
    }
    HOLDS(all[1].decisions > all[1].began[CHECK]);
    all[3].fails = 3;
    IS(make(&all[3], turns), PUNCTUAL_OK);
    cpu.first = fails;
    cpu.argument = &all[3];
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    all[5].endless = 1;
    IS(make(&all[4], turns), PUNCTUAL_OK);
    IS(make(&all[5], turns), PUNCTUAL_OK);
    cpu.first = ends;
    cpu.argument = &all[4];
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    printf("%s", SAID);
    return 0;
}
