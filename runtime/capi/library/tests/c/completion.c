/* Tasks that run to completion: FIFOs block them, others go on meanwhile, and all come to an end. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
enum { SOURCE, DOUBLE, SINK, TASKS };
enum { NUMBERS = 2000, TILE = 0 };

struct line {
    punctual_application made;
    uint64_t most, sum;
    punctual_status ended, last[TASKS];
    int decisions, ends;
};

static void source(void *parameter)
{
    struct line *line = parameter;
    for (uint64_t number = 0; number < line->most; number++)
        if ((line->last[SOURCE] = punctual_write_fifo(0, &number, 1)) != PUNCTUAL_OK)
            break;
    __atomic_fetch_add(&line->ends, 1, __ATOMIC_RELAXED);
}

/* Two at a time, which no declared rate says. */
static void twice(void *parameter)
{
    struct line *line = parameter;
    uint64_t numbers[8];
    IS(punctual_read_fifo(0, numbers, 8), PUNCTUAL_INVALID);
    IS(punctual_read_fifo(1, numbers, 1), PUNCTUAL_INVALID);
    IS(punctual_read_fifo(0, NULL, 1), PUNCTUAL_INVALID);
    IS(punctual_consume(0, 1), PUNCTUAL_NOT_ALLOWED);
    for (uint64_t done = 0; done < line->most; done += 2) {
        if ((line->last[DOUBLE] = punctual_read_fifo(0, numbers, 2)) != PUNCTUAL_OK)
            break;
        numbers[0] *= 2;
        numbers[1] *= 2;
        if ((line->last[DOUBLE] = punctual_write_fifo(0, numbers, 2)) != PUNCTUAL_OK)
            break;
    }
    __atomic_fetch_add(&line->ends, 1, __ATOMIC_RELAXED);
}

static void sink(void *parameter)
{
    struct line *line = parameter;
    uint64_t number, next = 0;
    for (; next < line->most; next++) {
        if ((line->last[SINK] = punctual_read_fifo(0, &number, 1)) != PUNCTUAL_OK)
            break;
        HOLDS(number == 2 * next);
        __atomic_fetch_add(&line->sum, number, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&line->ends, 1, __ATOMIC_RELAXED);
}

static void crashes(void *parameter)
{
    uint64_t number;
    IS(punctual_read_fifo(0, &number, 1), PUNCTUAL_OK);
    *(volatile int *)((char *)parameter - (uintptr_t)parameter) = 1;
}

/* Asked where a FIFO blocks a task, and where one ends. */
static int downstream(void *parameter)
{
    struct line *line = parameter;
    line->decisions++;
    for (uint32_t task = punctual_task_count(); task-- > 0;)
        if (punctual_check_firing_rules(task))
            return (int)task;
    return PUNCTUAL_IDLE_TASK;
}

static int never(const punctual_firing *firing)
{
    return firing->phase > 1;
}

static punctual_status make(struct line *line, punctual_complete middle, punctual_fire fire)
{
    punctual_actor tasks[TASKS] = {
        punctual_task_with("source", TILE, MS, source, line),
        punctual_task_with("twice", TILE, MS, middle, line),
        punctual_task_with("sink", TILE, MS, sink, line),
    };
    const punctual_fifo fifos[] = {
        punctual_fifo_between("numbers", SOURCE, DOUBLE, sizeof(uint64_t), 3),
        punctual_fifo_between("doubles", DOUBLE, SINK, sizeof(uint64_t), 5),
    };
    const punctual_task_scheduler own = punctual_scheduled_by(TILE, downstream, line);
    punctual_graph graph = punctual_graph_of("line", tasks, TASKS, fifos, 2);
    tasks[SOURCE].fire = fire;
    graph.schedulers = &own;
    graph.scheduler_count = 1;
    return punctual_application_create(&line->made, &graph);
}

static void *tile(void *argument)
{
    struct line *line = argument;
    char why[200] = "";
    line->ended = punctual_tile_run(line->made, TILE);
    punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL);
    if (line->ended == PUNCTUAL_FAILED && strstr(why, "WRFSBASE")) {
        fprintf(stderr, "NOT TESTED: %s\n", why);
        printf("tasks come to their ends, or are told to\n");
        exit(0);
    }
    return argument;
}

static punctual_thread execute(struct line *line)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(1);
    IS(punctual_thread_create(&thread, "line", &asks, tile, line), PUNCTUAL_OK);
    return thread;
}

static void *first(void *argument)
{
    struct line *all = argument;
    punctual_thread thread = execute(&all[0]);
    IS(punctual_tile_fire(all[1].made, TILE), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(all[0].ended, PUNCTUAL_OK);
    /* One without an end is told to stop, at a call that would not even wait. */
    thread = execute(&all[1]);
    for (int looks = 0; looks < 60000 && !__atomic_load_n(&all[1].sum, __ATOMIC_RELAXED); looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    IS(punctual_application_destroy(all[1].made), PUNCTUAL_BUSY);
    IS(punctual_application_stop(all[1].made), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(all[1].ended, PUNCTUAL_OK);
    /* One that crashes ends the others of its tile. */
    thread = execute(&all[2]);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(all[2].ended, PUNCTUAL_FAILED);
    /* A thread that is to end tells its tasks. */
    thread = execute(&all[3]);
    for (int looks = 0; looks < 60000 && !__atomic_load_n(&all[3].sum, __ATOMIC_RELAXED); looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(all[3].ended, PUNCTUAL_CANCELLED);
    /* The run may end in their midst. */
    execute(&all[4]);
    for (int looks = 0; looks < 60000 && !__atomic_load_n(&all[4].sum, __ATOMIC_RELAXED); looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    struct line all[5];
    char report[4000];
    memset(all, 0, sizeof all);
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_EARLIEST_DEADLINE, first, all);
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    all[0].most = NUMBERS;
    all[1].most = all[2].most = all[3].most = all[4].most = UINT64_MAX;
    IS(make(&all[0], NULL, NULL), PUNCTUAL_INVALID);
    IS(make(&all[0], twice, never), PUNCTUAL_INVALID);
    for (int one = 0; one < 5; one++)
        IS(make(&all[one], one == 2 ? crashes : twice, NULL), PUNCTUAL_OK);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    HOLDS(all[0].sum == (uint64_t)NUMBERS * (NUMBERS - 1) && all[0].ends == TASKS);
    HOLDS(all[0].decisions > NUMBERS / 3);
    HOLDS(all[1].ends == TASKS && all[1].last[SOURCE] == PUNCTUAL_CANCELLED);
    HOLDS(all[1].last[DOUBLE] == PUNCTUAL_CANCELLED && all[1].last[SINK] == PUNCTUAL_CANCELLED);
    HOLDS(all[2].last[SOURCE] == PUNCTUAL_CANCELLED && all[2].last[SINK] == PUNCTUAL_CANCELLED);
    IS(punctual_report(PUNCTUAL_JSON, report, sizeof report, NULL), PUNCTUAL_OK);
    HOLDS(strstr(report, "`twice` panicked: it made an invalid access"));
    IS(punctual_application_destroy(all[0].made), PUNCTUAL_OK);
    printf("tasks come to their ends, or are told to\n");
    return 0;
}
