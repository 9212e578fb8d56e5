/* Policies that a program brings for its schedulers: they decide, and harm nobody else. */
#include <string.h>

#include "is.h"

enum { THREADS = 80 };
static const uint64_t MS = 1000000;

/* The least important thread first, which no other policy does; or the most important one. */
struct upside_down {
    uint32_t threads;
    int known[THREADS];
    uint32_t priority[THREADS];
    unsigned long picks;
    unsigned long most;
    int upright;
};
static struct upside_down its_own, next;
static int destroyed;

static void wake(void *parameter, uint32_t thread, const punctual_attributes *attributes)
{
    struct upside_down *own = parameter;
    own->known[thread] = 1;
    own->priority[thread] = attributes->priority;
}

static void block(void *parameter, uint32_t thread)
{
    struct upside_down *own = parameter;
    own->known[thread] = 0;
}

static punctual_pick pick(void *parameter, uint64_t now_ns)
{
    struct upside_down *own = parameter;
    punctual_pick best = {-1, UINT64_MAX};
    (void)now_ns;
    if (++own->picks == own->most)
        *(volatile int *)NULL = 1;
    for (uint32_t thread = 0; thread < own->threads; thread++)
        if (own->known[thread] &&
            (best.thread < 0 ||
             (own->upright ? own->priority[thread] > own->priority[best.thread]
                           : own->priority[thread] < own->priority[best.thread])))
            best.thread = thread;
    return best;
}

static void destroy(void *parameter)
{
    (void)parameter;
    destroyed++;
}

static int make(uint32_t threads, punctual_policy *policy)
{
    if (threads > THREADS)
        return 1;
    its_own.threads = threads;
    policy->size = sizeof *policy;
    policy->parameter = &its_own;
    policy->wake = wake;
    policy->block = block;
    policy->pick = pick;
    policy->destroy = destroy;
    return 0;
}

static int make_upright(uint32_t threads, punctual_policy *policy)
{
    int answer = make(threads, policy);
    memset(&next, 0, sizeof next);
    next.threads = threads;
    next.upright = 1;
    policy->parameter = &next;
    return answer;
}

static int makes_none(uint32_t threads, punctual_policy *policy)
{
    (void)threads;
    (void)policy;
    return 7;
}

static char order[4];
static uint64_t together;

static void *goes(void *argument)
{
    IS(punctual_sleep_until(together), PUNCTUAL_OK);
    strcat(order, argument);
    return argument;
}

/* Two threads become ready together: their order is that of the policy. */
static void rounds(punctual_scheduler own, const char *argument)
{
    punctual_thread threads[2];
    int round = 0;
    for (int tries = 0; round < 5 && tries < 100; round++, tries++) {
        uint64_t made = 0;
        IS(punctual_now(&together), PUNCTUAL_OK);
        together += 60 * MS;
        order[0] = 0;
        for (int one = 0; one < 2; one++) {
            punctual_constraint asks = punctual_aperiodic(one ? 2 : 8);
            IS(punctual_scheduler_create(own, &threads[one], "goes", &asks, PUNCTUAL_END_THREAD,
                                         goes, one ? "b" : "a"),
               PUNCTUAL_OK);
        }
        IS(punctual_now(&made), PUNCTUAL_OK);
        for (int one = 0; one < 2; one++)
            IS(punctual_thread_join(threads[one], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
        if (made >= together) {
            /* The machine was away: the first may have gone before there was a second. */
            round--;
            continue;
        }
        if (strcmp(order, argument) != 0) {
            fprintf(stderr, "round %d: %s, not %s\n", round, order, argument);
            exit(2);
        }
    }
    if (round < 5)
        exit(6); /* never undisturbed */
}

static void *first(void *argument)
{
    punctual_scheduler root, own;
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "own", &own), PUNCTUAL_OK);
    rounds(own, argument);
    return argument;
}

/* One policy of its own after another, and one of the library's; what is refused changes nothing. */
static void *swaps(void *argument)
{
    punctual_scheduler root, own;
    IS(punctual_scheduler_root(&root), PUNCTUAL_OK);
    IS(punctual_scheduler_find(root, "own", &own), PUNCTUAL_OK);
    rounds(own, "ba");
    IS(punctual_scheduler_replace_with(own, 99, 0, make_upright), PUNCTUAL_INVALID);
    IS(punctual_scheduler_replace_with(own, PUNCTUAL_FIXED_PRIORITY, 0, NULL), PUNCTUAL_INVALID);
    IS(punctual_scheduler_replace_with(own, PUNCTUAL_FIXED_PRIORITY, 0, makes_none),
       PUNCTUAL_INVALID);
    IS(punctual_scheduler_replace_with(root, PUNCTUAL_FIXED_PRIORITY, 0, make_upright),
       PUNCTUAL_NOT_REPLACEABLE);
    rounds(own, "ba");
    if (next.picks || destroyed != 1)
        exit(7);
    IS(punctual_scheduler_replace_with(own, PUNCTUAL_FIXED_PRIORITY, 0, make_upright), PUNCTUAL_OK);
    rounds(own, "ab");
    if (next.picks < 10)
        exit(8);
    IS(punctual_scheduler_replace_with(own, PUNCTUAL_FIXED_PRIORITY, 0, make), PUNCTUAL_OK);
    rounds(own, "ba");
    IS(punctual_scheduler_replace(own, PUNCTUAL_FIXED_PRIORITY, 0), PUNCTUAL_OK);
    rounds(own, "ab");
    return argument;
}

int main(void)
{
    punctual_branch branch = {"own", 0, 0, PUNCTUAL_FIXED_PRIORITY, 0, punctual_shared(0)};
    branch.terms = punctual_served(PUNCTUAL_DEFERRABLE, 8 * MS, 20 * MS, 3);
    punctual_own_policy own = {1, 0, 0, 0, makes_none};
    punctual_constraint asks = punctual_aperiodic(50);
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, "ba");
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    options.first_asks = &asks;
    options.schedulers = &branch;
    options.scheduler_count = 1;
    options.policy_count = 1;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    options.policies = &own;
    char why[200];
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_CANNOT_RUN);
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    if (!strstr(why, "`own`") || !strstr(why, "answered 7")) {
        fprintf(stderr, "%s\n", why);
        exit(3);
    }
    own.make = NULL;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    own.make = make;
    own.branch = 2;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    own.branch = 1;
    own.fallback = PUNCTUAL_FIFO;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    own.fallback = 0;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    if (its_own.picks < 10 || destroyed != 1)
        exit(4);
    destroyed = 0;
    cpu.first = swaps;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    if (destroyed != 4) /* and that of the run */
        exit(9);
    cpu.first = first;
    /* It crashes when it is to choose for the first time: its threads go on by priority. */
    memset(&its_own, 0, sizeof its_own);
    its_own.most = 1;
    own.fallback_after = 2;
    own.fallback = PUNCTUAL_FIXED_PRIORITY;
    cpu.argument = "ab";
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    if (its_own.picks != 1)
        exit(5);
    printf("its own order, then that of the fallback\n");
    return 0;
}
