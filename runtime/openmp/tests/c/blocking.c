// Items that wait at every scheduling point: each finds a lock held, yields, has children and a group,
// and depends on one before it. What waits keeps no other item from being done.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 60, STEPS = 7 };
static omp_lock_t lock;
static omp_nest_lock_t nest;
static long steps, chain, in_order;

static void step(void) {
    #pragma omp atomic
    steps++;
}

static void item(int depth) {
    #pragma omp critical(held_over_a_wait)
    {
        #pragma omp task
        step();
        #pragma omp taskwait
    }
    omp_set_lock(&lock);
    #pragma omp taskyield
    step();
    omp_unset_lock(&lock);
    omp_set_nest_lock(&nest);
    #pragma omp taskgroup
    {
        #pragma omp task
        step();
    }
    omp_unset_nest_lock(&nest);
    #pragma omp task if (0)
    step();
    #pragma omp taskloop num_tasks(2)
    for (int i = 0; i < 2; i++) step();
    #pragma omp taskyield
    if (depth > 0) {
        #pragma omp task untied
        item(depth - 1);
        #pragma omp taskwait
    }
    step();
}

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 2;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    #pragma omp parallel num_threads(members)
    {
        #pragma omp single nowait
        for (int i = 0; i < ITEMS; i++) {
            #pragma omp task firstprivate(i) depend(inout : chain)
            {
                item(i % 3);
                in_order += chain++ == i;
            }
            #pragma omp task
            item(1);
        }
        // A barrier is one, too: members do items there.
        #pragma omp barrier
        #pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < members; i++) {
            #pragma omp ordered
            {
                #pragma omp task
                step();
                #pragma omp taskwait
            }
        }
    }
    long wanted = 0;
    for (int i = 0; i < ITEMS; i++) wanted += STEPS * (i % 3 + 1) + STEPS * 2;
    printf("%s, %ld in order\n", steps == wanted + members ? "all done" : "not all", in_order);
    if (steps != wanted + members) printf("%ld of %ld\n", steps, wanted + members);
    return 0;
}
