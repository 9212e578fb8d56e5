/* Budgets near what an entry of the scheduler costs, and what the report says of budgets that were used up. */
#include <inttypes.h>
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
/* Far beyond what any of this takes, also beside others. */
static const uint64_t LONG = 60000000000;

static volatile unsigned long in_between;
static volatile int is_over, first_job_done;

/* Executes only while the greedy thread has no budget. */
static void *goes_on_in_between(void *argument)
{
    while (!is_over) {
        ++in_between;
        if (punctual_yield() != PUNCTUAL_OK)
            break;
    }
    return argument;
}

/* Its first job uses up three budgets, the later ones go on until it is told to end. */
static void *is_greedy(void *argument)
{
    punctual_job job;
    job.size = sizeof job;
    for (int budget = 0; budget < 3; ++budget)
        for (unsigned long before = in_between; before == in_between;)
            ;
    first_job_done = 1;
    while (punctual_wait_next_period(&job) == PUNCTUAL_OK)
        while (punctual_yield() == PUNCTUAL_OK)
            ;
    return argument;
}

/* The number behind a word of a report. */
static uint64_t number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    uint64_t number = 0;
    if (!at || sscanf(at + strlen(word), "%" SCNu64, &number) != 1) {
        fprintf(stderr, "no number behind \"%s\" in %s\n", word, text);
        exit(2);
    }
    return number;
}

static void *nothing(void *argument)
{
    punctual_job job;
    job.size = sizeof job;
    while (punctual_wait_next_period(&job) == PUNCTUAL_OK)
        ;
    return argument;
}

/* A microsecond is refused; ten times what is said to mend it is executed and ended. */
static void is_refused_and_mended(punctual_constraint (*asks)(uint64_t, uint64_t))
{
    static char why[8000];
    punctual_thread thread;
    punctual_constraint small = asks(MS, 1000);
    IS(punctual_thread_create(&thread, "small", &small, nothing, NULL), PUNCTUAL_REFUSED);
    IS(punctual_why(PUNCTUAL_JSON, why, sizeof why, NULL), PUNCTUAL_OK);
    uint64_t supply = number_behind(why, "\"supply_ns\":");
    uint64_t demand = number_behind(why, "\"demand_ns\":");
    uint64_t least = number_behind(why, "\"to_ns\":");
    if (supply != 1000 || demand != least || least <= 1000 || !strstr(why, "two entries take")) {
        fprintf(stderr, "%s\n", why);
        exit(3);
    }
    punctual_constraint enough = asks(10 * least + 20 * MS, 10 * least);
    IS(punctual_thread_create(&thread, "enough", &enough, nothing, NULL), PUNCTUAL_OK);
    IS(punctual_sleep(30 * MS), PUNCTUAL_OK);
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, LONG, NULL), PUNCTUAL_OK);
}

static void *first(void *argument)
{
    punctual_thread greedy, other;
    punctual_constraint asks = punctual_periodic(20 * MS, 2 * MS);
    punctual_constraint background = punctual_aperiodic(1);
    is_refused_and_mended(punctual_periodic);
    is_refused_and_mended(punctual_reservation);
    IS(punctual_thread_create(&other, "other", &background, goes_on_in_between, NULL), PUNCTUAL_OK);
    IS(punctual_thread_create(&greedy, "greedy", &asks, is_greedy, NULL), PUNCTUAL_OK);
    for (int tick = 0; tick < 6000 && !first_job_done; ++tick)
        IS(punctual_sleep(10 * MS), PUNCTUAL_OK);
    IS(punctual_thread_cancel(greedy), PUNCTUAL_OK);
    IS(punctual_thread_join(greedy, LONG, NULL), PUNCTUAL_OK);
    is_over = 1;
    IS(punctual_thread_join(other, LONG, NULL), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    static char report[8000];
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_report(PUNCTUAL_JSON, report, sizeof report, NULL), PUNCTUAL_OK);
    const char *rows = strstr(report, "\"threads\":[");
    /* The keys of a row are in the order of the alphabet, so its numbers stand around its name. */
    const char *row = rows ? strstr(rows, "\"name\":\"greedy\"") : NULL;
    if (!row) {
        fprintf(stderr, "nothing of the greedy thread: %s\n", report);
        return 4;
    }
    while (*row != '{')
        --row;
    if (number_behind(row, "\"jobs\":") < 1 || number_behind(row, "\"misses\":") < 1 ||
        number_behind(row, "\"overruns\":") < 1 || number_behind(row, "\"throttles\":") < 3) {
        fprintf(stderr, "%s\n", row);
        return 5;
    }
    IS(punctual_report(PUNCTUAL_TEXT, report, sizeof report, NULL), PUNCTUAL_OK);
    if (!strstr(report, "`greedy`: ") || !strstr(report, " throttles")) {
        fprintf(stderr, "%s\n", report);
        return 6;
    }
    puts("refused below the floor, ended above it, and used-up budgets are in the report");
    return 0;
}
