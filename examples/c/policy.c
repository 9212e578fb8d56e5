/* A policy in C: the earliest deadline first, as doc/guide/14-a-policy-in-c.md explains it.
 *
 *   cc -shared -fPIC -O2 -I runtime/capi/include -o libpolicy.so examples/c/policy.c
 *   punctual conform --library ./libpolicy.so --symbol earliest_deadline --claims deadline
 */
#include <punctual_policy.h>

#include <stdbool.h>
#include <stdlib.h>

struct entry {
    bool ready;
    punctual_attributes key;
};

struct ready {
    uint32_t threads;
    struct entry all[];
};

static void wake(void *parameter, uint32_t thread, const punctual_attributes *attributes)
{
    struct ready *ready = parameter;
    if (thread < ready->threads) {
        ready->all[thread].ready = true;
        ready->all[thread].key = *attributes;
    }
}

static void block(void *parameter, uint32_t thread)
{
    struct ready *ready = parameter;
    if (thread < ready->threads)
        ready->all[thread].ready = false;
}

/* Earlier deadlines first, then earlier releases, then the order of the file. */
static bool goes_first(const punctual_attributes *a, const punctual_attributes *b)
{
    if (a->deadline_ns != b->deadline_ns)
        return a->deadline_ns < b->deadline_ns;
    if (a->release_ns != b->release_ns)
        return a->release_ns < b->release_ns;
    return a->order < b->order;
}

static punctual_pick pick(void *parameter, uint64_t now_ns)
{
    const struct ready *ready = parameter;
    punctual_pick best = {.thread = -1, .until_ns = UINT64_MAX};
    (void)now_ns;
    for (uint32_t thread = 0; thread < ready->threads; thread++) {
        const struct entry *entry = &ready->all[thread];
        if (!entry->ready)
            continue;
        if (best.thread < 0 || goes_first(&entry->key, &ready->all[best.thread].key))
            best.thread = thread;
    }
    return best;
}

/* The function that the system file names. */
int earliest_deadline(uint32_t threads, punctual_policy *policy)
{
    struct ready *ready = calloc(1, sizeof *ready + threads * sizeof ready->all[0]);
    if (!ready)
        return 1;
    ready->threads = threads;
    policy->size = sizeof *policy;
    policy->parameter = ready;
    policy->wake = wake;
    policy->block = block;
    policy->pick = pick;
    policy->destroy = free;
    return 0;
}
