// An item holds a mutex of the C library while it waits for its child, and another item of its member
// wants that mutex. Without the task scheduling constraint the member sleeps for good.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int child_has_begun, other_wants, is_strict;

static void wait_for(volatile int *word) {
    while (!*word) {
        struct timespec moment = {0, 50000};
        nanosleep(&moment, NULL);
    }
}

static void holder(void) {
    pthread_mutex_lock(&mutex);
    #pragma omp task
    {
        child_has_begun = 1;
        if (!is_strict) wait_for(&other_wants);
    }
    wait_for(&child_has_begun);
    #pragma omp taskwait
    pthread_mutex_unlock(&mutex);
}

static void other(void) {
    other_wants = 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

int main(int count, char **words) {
    is_strict = count > 1 && !strcmp(words[1], "strict");
    #pragma omp parallel num_threads(3)
    #pragma omp single
    {
        #pragma omp task
        holder();
        // One member has the holder, another the child; this one leaves the rest to the holder's.
        wait_for(&child_has_begun);
        #pragma omp task
        other();
        if (!is_strict) wait_for(&other_wants);
    }
    printf("both had it\n");
    return 0;
}
