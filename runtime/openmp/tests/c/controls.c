// What a program can ask about its control variables: who may change them, and whose they are.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

static void say(const char *where) {
    omp_sched_t kind;
    int chunk;
    omp_get_schedule(&kind, &chunk);
    printf("%s: %d members, dynamic %d, %d levels, schedule %x of %d\n", where, omp_get_max_threads(), omp_get_dynamic(),
           omp_get_max_active_levels(), (unsigned)kind, chunk);
}

static void change(int members) {
    omp_set_num_threads(members);
    omp_set_dynamic(0);
    omp_set_max_active_levels(members % 5);
    omp_set_schedule(omp_sched_guided, members);
}

static void *first(void *argument) {
    change(7);
    say("first thread");
    return argument;
}

static void *second(void *argument) {
    say("second thread");
    return argument;
}

static void process(void) {
    printf("limit %d, priority %d, cancellation %d\n", omp_get_thread_limit(), omp_get_max_task_priority(), omp_get_cancellation());
    printf("devices %d %d %d, places %d %d %d\n", omp_get_default_device(), omp_get_initial_device(), omp_get_device_num(),
           omp_get_num_places(), omp_get_place_num(), omp_get_partition_num_places());
}

static void schedules(void) {
    for (int kind = 0; kind < 6; kind++)
        for (int chunk = -1; chunk < 4; chunk += 2) {
            omp_set_schedule(omp_sched_dynamic, 6);
            omp_set_schedule((omp_sched_t)kind, chunk);
            say("set");
        }
    // With `auto` every member has one part, whatever chunk was set before.
    int parts = 0;
    omp_set_schedule(omp_sched_dynamic, 1);
    omp_set_schedule(omp_sched_auto, 1);
    #pragma omp parallel num_threads(2) reduction(+ : parts)
    {
        int before = -2;
        #pragma omp for schedule(runtime)
        for (int i = 0; i < 100; i++) {
            parts += before != i - 1;
            before = i;
        }
    }
    printf("%d parts\n", parts);
}

static void items(void) {
    change(3);
    int strange = 0, outer = 0;
    #pragma omp parallel num_threads(2) shared(strange, outer)
    #pragma omp single
    {
        omp_set_num_threads(5);
        for (int i = 0; i < 100; i++) {
            #pragma omp task shared(strange)
            {
                int is_strange = omp_get_max_threads() != 5;
                omp_set_num_threads(9);
                #pragma omp taskyield
                is_strange |= omp_get_max_threads() != 9;
                #pragma omp atomic
                strange += is_strange;
            }
        }
        #pragma omp task if (0)
        omp_set_num_threads(11);
        #pragma omp taskwait
        outer = omp_get_max_threads();
    }
    printf("%d strange items, %d in the single, %d outside\n", strange, outer, omp_get_max_threads());
}

static void cancel(void) {
    int sum = 0;
    #pragma omp parallel num_threads(2) reduction(+ : sum)
    {
        #pragma omp for
        for (int i = 0; i < 100; i++) {
            sum++;
            #pragma omp cancel for if (i == 3)
            #pragma omp cancellation point for
        }
        #pragma omp sections
        {
            #pragma omp section
            sum++;
            #pragma omp section
            {
                #pragma omp cancel sections
                sum++;
            }
        }
        #pragma omp barrier
        #pragma omp cancel parallel
        sum++;
    }
    printf("%d all the same\n", sum);
}

// The numbers that each item of a loop begins with.
static void grains(void) {
    #pragma omp parallel num_threads(2)
    #pragma omp single
    {
        int is_new = 1;
        #pragma omp taskloop grainsize(strict : 4) if (0) firstprivate(is_new)
        for (int i = 0; i < 10; i++) {
            if (is_new) printf("strict grain at %d\n", i);
            is_new = 0;
        }
        #pragma omp taskloop num_tasks(strict : 4) if (0) firstprivate(is_new)
        for (int i = 0; i < 10; i++) {
            if (is_new) printf("strict item at %d\n", i);
            is_new = 0;
        }
        #pragma omp taskloop grainsize(4) if (0) firstprivate(is_new)
        for (int i = 0; i < 10; i++) {
            if (is_new) printf("grain at %d\n", i);
            is_new = 0;
        }
    }
}

int main(void) {
    say("at first");
    process();
    pthread_t thread;
    pthread_create(&thread, NULL, first, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, second, NULL);
    pthread_join(thread, NULL);
    say("main");
    schedules();
    items();
    cancel();
    grains();
    return 0;
}
