/* Streaming applications: their firings, what they are refused, and who pays for a wrong one. */
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The order of firings, a letter each. */
static char order[4000];
static size_t fired;

static void note(char letter)
{
    if (fired + 1 < sizeof order)
        order[fired++] = letter;
}

static uint64_t number(punctual_tokens tokens, size_t place)
{
    uint64_t value;
    memcpy(&value, (const char *)tokens.data + place * sizeof value, sizeof value);
    return value;
}

/* Three numbers a firing, by its state. */
static int count(const punctual_firing *firing)
{
    uint64_t state = number(firing->input[0], 0), next = state + 3;
    HOLDS(firing->size == sizeof *firing && firing->inputs == 1 && firing->outputs == 2);
    IS(punctual_write_fifo(0, &next, 1), PUNCTUAL_OK);
    IS(punctual_write_fifo(0, &next, 1), PUNCTUAL_NOTHING);
    for (; state < next; state++)
        IS(punctual_write_fifo(1, &state, 1), PUNCTUAL_OK);
    IS(punctual_write_fifo(1, &state, 1), PUNCTUAL_NOTHING);
    IS(punctual_write_fifo(2, &state, 1), PUNCTUAL_INVALID);
    IS(punctual_write_fifo(0, NULL, 1), PUNCTUAL_INVALID);
    IS(punctual_read_fifo(7, &state, 1), PUNCTUAL_INVALID);
    IS(punctual_read_shm(&state, 0, 0, 1), PUNCTUAL_INVALID);
    IS(punctual_consume(0, 1), PUNCTUAL_NOT_ALLOWED);
    HOLDS(!punctual_check_firing_rules(0) && punctual_get_task_id() == PUNCTUAL_IDLE_TASK);
    note('c');
    return 0;
}

/* One number and two in turns, each the one after the last. */
static int check(const punctual_firing *firing)
{
    uint64_t *next = firing->parameter, value;
    uint32_t tokens = (uint32_t)(firing->input[0].bytes / firing->input[0].token_size);
    HOLDS(tokens == (firing->phase ? 2 : 1));
    HOLDS(number(firing->input[0], tokens - 1) == *next + tokens - 1);
    for (; tokens > 0; tokens--, ++*next) {
        IS(punctual_read_fifo(0, &value, 1), PUNCTUAL_OK);
        HOLDS(value == *next);
    }
    IS(punctual_read_fifo(0, &value, 1), PUNCTUAL_NOTHING);
    note('k');
    return 0;
}

static const uint32_t BY_TURNS[] = {1, 2};

/* `count` and `check`, whose scheduler is `next`. */
static punctual_application numbers(const char *name, punctual_fire fire, void *parameter,
                                    punctual_decide next)
{
    punctual_application made;
    punctual_actor actors[] = {
        punctual_actor_with("count", 0, MS, count, NULL),
        punctual_actor_with("check", 0, MS, fire, parameter),
    };
    punctual_fifo fifos[] = {
        punctual_fifo_between("state", 0, 0, sizeof(uint64_t), 0),
        punctual_fifo_between("numbers", 0, 1, sizeof(uint64_t), 12),
    };
    punctual_task_scheduler own = punctual_scheduled_by(0, next, parameter);
    punctual_graph graph = punctual_graph_of(name, actors, 2, fifos, 2);
    fifos[0].initial = 1;
    fifos[1].produce = 3;
    fifos[1].consume_by_phase = BY_TURNS;
    fifos[1].consume_phases = COUNT_OF(BY_TURNS);
    graph.schedulers = &own;
    graph.scheduler_count = next ? 1 : 0;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_OK);
    return made;
}

static uint64_t firings_of(punctual_application application, uint32_t actor)
{
    uint64_t firings;
    IS(punctual_actor_firings(application, actor, &firings), PUNCTUAL_OK);
    return firings;
}

/* The last that may fire, from the end. */
static int downstream(void *parameter)
{
    (void)parameter;
    HOLDS(punctual_task_count() == 2 && !punctual_check_firing_rules(2));
    IS(punctual_produce(0, 1), PUNCTUAL_NOT_ALLOWED);
    for (uint32_t task = 2; task-- > 0;)
        if (punctual_check_firing_rules(task))
            return (int)task;
    return PUNCTUAL_IDLE_TASK;
}

/* Turns, by what the calls say. */
static int by_turns(void *parameter)
{
    (void)parameter;
    uint32_t after = (uint32_t)(punctual_get_task_id() + 1);
    for (uint32_t step = 0; step < 2; step++)
        if (punctual_check_firing_rules((after + step) % 2))
            return (int)((after + step) % 2);
    return PUNCTUAL_IDLE_TASK;
}

/* The order of the first 60 firings of a schedule, for the test to compare. */
static void prints_the_order(punctual_decide next)
{
    uint64_t expected = 0;
    punctual_application made = numbers("numbers", check, &expected, next);
    fired = 0;
    memset(order, 0, sizeof order);
    for (int step = 0; step < 60; step++)
        IS(punctual_tile_fire(made, 0), PUNCTUAL_OK);
    HOLDS(firings_of(made, 0) + firings_of(made, 1) == 59);
    printf("%s\n", order);
    IS(punctual_application_destroy(made), PUNCTUAL_OK);
    IS(punctual_application_destroy(made), PUNCTUAL_STALE);
}

/* Rates that depend on data: 1 to 5 numbers in turns, and a memory that both tiles share. */
struct sender {
    uint32_t rate;
    uint64_t next;
};

static int send(const punctual_firing *firing)
{
    struct sender *sender = firing->parameter;
    uint64_t buffer[5];
    HOLDS(firing->output[0].bytes == sender->rate * sizeof *buffer);
    for (uint32_t place = 0; place < sender->rate; place++)
        buffer[place] = sender->next++;
    IS(punctual_write_fifo(0, buffer, sender->rate), PUNCTUAL_OK);
    IS(punctual_write_shm(1, 3, &sender->next, sizeof sender->next), PUNCTUAL_OK);
    IS(punctual_write_shm(1, 93, &sender->next, sizeof sender->next), PUNCTUAL_INVALID);
    IS(punctual_write_shm(1, 3, &sender->next, SIZE_MAX), PUNCTUAL_INVALID);
    sender->rate = sender->rate % 5 + 1;
    return 0;
}

static void update(void *parameter)
{
    struct sender *sender = parameter;
    IS(punctual_produce(0, sender->rate), PUNCTUAL_OK);
    IS(punctual_produce(1, 1), PUNCTUAL_INVALID);
    IS(punctual_consume(0, 1), PUNCTUAL_INVALID);
    IS(punctual_read_shm(&sender, 1, 0, 1), PUNCTUAL_NOT_ALLOWED);
}

static int take(const punctual_firing *firing)
{
    uint64_t *next = firing->parameter, written;
    HOLDS(number(firing->input[0], 0) == (*next)++);
    IS(punctual_read_shm(&written, 1, 3, sizeof written), PUNCTUAL_OK);
    HOLDS(written >= *next);
    return 0;
}

static void rates_and_memory(void)
{
    struct sender sender = {1, 0};
    uint64_t next = 0;
    punctual_application made;
    punctual_actor actors[] = {
        punctual_actor_with("send", 3, MS, send, &sender),
        punctual_actor_with("take", 7, MS, take, &next),
    };
    punctual_fifo fifo = punctual_fifo_between("numbers", 0, 1, sizeof(uint64_t), 8);
    punctual_graph graph = punctual_graph_of("variable", actors, 2, &fifo, 1);
    const size_t bytes[] = {0, 100};
    fifo.place = PUNCTUAL_MEMORY;
    actors[0].update = update;
    graph.memories = bytes;
    graph.memory_count = 2;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_OK);
    for (int round = 0; round < 100; round++) {
        while (punctual_tile_fire(made, 3) == PUNCTUAL_OK)
            ;
        while (punctual_tile_fire(made, 7) == PUNCTUAL_OK)
            ;
        HOLDS(next == sender.next);
    }
    HOLDS(next > 300 && firings_of(made, 1) == next);
    IS(punctual_tile_fire(made, 0), PUNCTUAL_INVALID);
    IS(punctual_application_destroy(made), PUNCTUAL_OK);
}

static void says_why(const punctual_graph *graph, punctual_status code, const char *words)
{
    punctual_application made;
    char why[400];
    IS(punctual_application_create(&made, graph), code);
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    if (!strstr(why, words)) {
        fprintf(stderr, "no `%s` in: %s\n", words, why);
        exit(1);
    }
}

static void refusals(void)
{
    punctual_application made;
    uint64_t firings;
    punctual_actor actors[] = {
        punctual_actor_with("one", 0, MS, check, NULL),
        punctual_actor_with("two", 0, MS, check, NULL),
    };
    punctual_fifo fifos[] = {
        punctual_fifo_between("there", 0, 1, 8, 0),
        punctual_fifo_between("back", 1, 0, 8, 0),
    };
    punctual_graph graph = punctual_graph_of("circle", actors, 2, fifos, 2);
    IS(punctual_application_create(&made, NULL), PUNCTUAL_INVALID);
    IS(punctual_application_create(NULL, &graph), PUNCTUAL_INVALID);
    graph.size--;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_INVALID);
    graph.size++;
    fifos[1].size++;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_INVALID);
    fifos[1].size--;
    says_why(&graph, PUNCTUAL_REFUSED, "circle");
    fifos[1].initial = 1;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_OK);
    IS(punctual_tile_run(made, 0), PUNCTUAL_NO_RUN);
    IS(punctual_actor_firings(made, 2, &firings), PUNCTUAL_INVALID);
    IS(punctual_actor_firings(made, 0, NULL), PUNCTUAL_INVALID);
    IS(punctual_application_fault(made, 0, NULL, 0, NULL), PUNCTUAL_NOTHING);
    IS(punctual_application_destroy(made), PUNCTUAL_OK);
    IS(punctual_tile_fire(made, 0), PUNCTUAL_STALE);
    fifos[0].to = 2;
    says_why(&graph, PUNCTUAL_INVALID, "actor number 2");
    fifos[0].to = 1;
    fifos[1].name = "there";
    says_why(&graph, PUNCTUAL_INVALID, "there");
    fifos[1].name = NULL;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_INVALID);
    fifos[1].name = "back";
    fifos[1].place = 3;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_INVALID);
    fifos[1].place = PUNCTUAL_CONSUMER;
    actors[0].tile = 256;
    says_why(&graph, PUNCTUAL_INVALID, "256");
    actors[0].tile = 0;
    actors[1].wcet_ns = 0;
    says_why(&graph, PUNCTUAL_INVALID, "two");
    actors[1].wcet_ns = MS;
    fifos[0].produce = 2;
    HOLDS(punctual_application_create(&made, &graph) != PUNCTUAL_OK);
    fifos[0].produce = 1;
    punctual_task_scheduler own = punctual_scheduled_by(1, downstream, NULL);
    graph.schedulers = &own;
    graph.scheduler_count = 1;
    says_why(&graph, PUNCTUAL_INVALID, "tile");
    own.tile = 0;
    own.decide = NULL;
    IS(punctual_application_create(&made, &graph), PUNCTUAL_INVALID);
    own.decide = downstream;
    const punctual_task_scheduler twice[] = {own, own};
    graph.schedulers = twice;
    graph.scheduler_count = 2;
    says_why(&graph, PUNCTUAL_INVALID, "two task schedulers");
    graph.scheduler_count = 0;
    const size_t bytes = SIZE_MAX;
    graph.memories = &bytes;
    graph.memory_count = 1;
    says_why(&graph, PUNCTUAL_NO_MEMORY, "shared bytes");
}

/* Wrong ones: each for the 40th question or firing on. */
static unsigned long asked;

static int answers_nonsense(void *parameter)
{
    static const int nonsense[] = {99, -7, 1, 0, 1 << 30};
    return ++asked < 40 ? by_turns(parameter) : nonsense[asked % 3];
}

static int loops(void *parameter)
{
    while (++asked >= 40)
        ;
    return by_turns(parameter);
}

static int crashes(void *parameter)
{
    if (++asked >= 40)
        *(volatile int *)parameter = 1;
    return by_turns(parameter);
}

static int any(const punctual_firing *firing)
{
    return firing->phase > 1;
}

static int says_seven(const punctual_firing *firing)
{
    return firing->number < 10 ? 0 : 7;
}

static int divides(const punctual_firing *firing)
{
    volatile uint64_t left = firing->number < 10 ? 10 - firing->number : 0;
    volatile uint64_t part = 10 / left;
    return part > 10;
}

static int overflows(const punctual_firing *firing)
{
    volatile char deep[4096];
    deep[0] = (char)firing->number;
    return firing->number < 10 ? 0 : overflows(firing) + deep[0];
}

struct wrong {
    const char *name;
    punctual_fire fire;
    punctual_decide next;
    punctual_status ends;
    const char *words;
};

static const struct wrong WRONG[] = {
    {"liar", any, answers_nonsense, PUNCTUAL_OK, "answers of the task scheduler were no actor"},
    {"endless", any, loops, PUNCTUAL_ABANDONED, "the task scheduler has not returned for"},
    {"careless", any, crashes, PUNCTUAL_FAILED, "the task scheduler panicked: it made an invalid"},
    {"grumpy", says_seven, NULL, PUNCTUAL_FAILED, "`check` panicked: its function returned 7"},
    {"divider", divides, NULL, PUNCTUAL_FAILED, "`check` panicked: it made an arithmetic error"},
    {"deep", overflows, NULL, PUNCTUAL_FAILED, "`check` panicked: it made an invalid access"},
};

struct flight {
    punctual_application application;
    punctual_status ended;
    const char *why;
};

static void *tile(void *argument)
{
    struct flight *flight = argument;
    flight->ended = punctual_tile_run(flight->application, 0);
    if (flight->ended == PUNCTUAL_FAILED) {
        char why[200];
        IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
        HOLDS(strstr(why, flight->why));
        /* Nobody fires there any more. */
        IS(punctual_tile_fire(flight->application, 0), PUNCTUAL_FAILED);
    }
    return argument;
}

/* One that is right beside one that is wrong, each on a reservation of its own. */
static void *first(void *argument)
{
    const struct wrong *wrong = argument;
    uint64_t expected = 0, before;
    struct flight flights[2] = {
        {numbers("neighbour", check, &expected, downstream), PUNCTUAL_OK, ""},
        {numbers(wrong->name, wrong->fire, NULL, wrong->next), PUNCTUAL_OK, wrong->words},
    };
    punctual_thread threads[2];
    char said[300];
    size_t length;
    asked = 0;
    for (int one = 0; one < 2; one++) {
        punctual_constraint asks = punctual_reservation(10 * MS, 2 * MS);
        IS(punctual_thread_create(&threads[one], one ? wrong->name : "neighbour", &asks, tile,
                                  &flights[one]),
           PUNCTUAL_OK);
    }
    for (int wait = 0; wait < 3000; wait++) {
        IS(punctual_sleep(MS), PUNCTUAL_OK);
        if (punctual_application_fault(flights[1].application, 50 * MS, said, sizeof said,
                                       &length) == PUNCTUAL_OK)
            break;
    }
    HOLDS(strstr(said, wrong->words) && strstr(said, wrong->name) && length == strlen(said));
    HOLDS(firings_of(flights[1].application, 0) >= 5);
    /* The neighbour goes on, and nothing is wrong with it. */
    before = firings_of(flights[0].application, 1);
    for (int wait = 0; wait < 3000 && firings_of(flights[0].application, 1) < before + 100; wait++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    HOLDS(firings_of(flights[0].application, 1) >= before + 100);
    IS(punctual_application_fault(flights[0].application, 500 * MS, NULL, 0, NULL),
       PUNCTUAL_NOTHING);
    IS(punctual_application_destroy(flights[0].application), PUNCTUAL_BUSY);
    for (int one = 0; one < 2; one++) {
        IS(punctual_application_stop(flights[one].application), PUNCTUAL_OK);
        if (one && wrong->ends == PUNCTUAL_ABANDONED) {
            /* So long is a report patient. */
            IS(punctual_sleep(150 * MS), PUNCTUAL_OK);
            IS(punctual_thread_kill(threads[one], 20 * MS, NULL), PUNCTUAL_ABANDONED);
            continue;
        }
        IS(punctual_thread_join(threads[one], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
        IS(flights[one].ended, one ? wrong->ends : PUNCTUAL_OK);
    }
    IS(punctual_application_destroy(flights[0].application), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    prints_the_order(NULL);
    prints_the_order(by_turns);
    prints_the_order(downstream);
    rates_and_memory();
    refusals();
    IS(punctual_consume(0, 1), PUNCTUAL_NOT_ALLOWED);
    IS(punctual_read_fifo(0, &asked, 1), PUNCTUAL_NOT_ALLOWED);
    for (size_t one = 0; one < COUNT_OF(WRONG); one++) {
        punctual_options options = punctual_defaults();
        punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_EARLIEST_DEADLINE, first,
                                             (void *)(uintptr_t)&WRONG[one]);
        char report[4000];
        options.without_terms = 1;
        IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
        IS(punctual_report(PUNCTUAL_JSON, report, sizeof report, NULL), PUNCTUAL_OK);
        HOLDS(strstr(report, "\"applications\":[") && strstr(report, WRONG[one].words));
        HOLDS(!strstr(report, "graph `neighbour`"));
    }
    printf("the wrong ones are named, and the others go on\n");
    return 0;
}
