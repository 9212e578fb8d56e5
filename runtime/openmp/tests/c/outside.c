// Threads of the program wait for locks outside every active region, and go on where they were.
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 6, THREADS = 3 };

static omp_lock_t lock;
static omp_nest_lock_t nest;
static long inside[3], right;

static void hold(int which) {
    inside[which]++;
    usleep(3000);
    int is_alone = inside[which]-- == 1;
    #pragma omp atomic
    right += is_alone;
}

static void every_lock(void) {
    omp_set_lock(&lock);
    hold(0);
    omp_unset_lock(&lock);
    omp_set_nest_lock(&nest);
    hold(1);
    omp_unset_nest_lock(&nest);
    #pragma omp critical
    hold(2);
}

static void *caller(void *argument) {
    int began_on = gettid();
    for (int round = 0; round < ROUNDS; round++) {
        every_lock();
        #pragma omp parallel num_threads(1)
        every_lock();
        #pragma omp taskyield
    }
    *(int *)argument = began_on == gettid();
    return NULL;
}

static void all(void) {
    pthread_t threads[THREADS];
    int stayed[THREADS] = {0}, count = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, caller, &stayed[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) count += stayed[i];
    printf("%d of %d stayed, %ld of %d alone\n", count, THREADS, right, 6 * ROUNDS * THREADS);
    right = 0;
}

int main(void) {
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    all();
    // Now there are carriers that could take one of them away.
    int members = 0;
    #pragma omp parallel num_threads(3) reduction(+ : members)
    members++;
    printf("%d members\n", members);
    all();
    return 0;
}
