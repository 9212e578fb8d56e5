// Members are threads to the C library, whatever kernel thread carries them.
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int private_number;
#pragma omp threadprivate(private_number)

static void *twice(void *argument) {
    int *value = argument;
    *value *= 2;
    return NULL;
}

// A region with what only threads of the C library can do.
static int region(int members) {
    int right = 0;
    pthread_mutex_t recursive;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_t self[64];
    #pragma omp parallel num_threads(members) reduction(+ : right)
    {
        int me = omp_get_thread_num();
        self[me] = pthread_self();
        errno = 100 + me;
        private_number = 7 * me;
        #pragma omp barrier
        for (int other = 0; other < me; other++) right -= pthread_equal(self[me], self[other]) != 0;
        for (int i = 0; i < 20; i++) {
            pthread_mutex_lock(&recursive);
            pthread_mutex_lock(&recursive);
            pthread_mutex_unlock(&recursive);
            pthread_mutex_unlock(&recursive);
            #pragma omp barrier
        }
        int value = me;
        pthread_t thread;
        if (!pthread_create(&thread, NULL, twice, &value)) pthread_join(thread, NULL);
        right += value == 2 * me && errno == 100 + me && pthread_equal(self[me], pthread_self());
    }
    #pragma omp parallel num_threads(members) reduction(+ : right)
    right += private_number == 7 * omp_get_thread_num() && pthread_equal(self[omp_get_thread_num()], pthread_self());
    return right == 2 * members;
}

static void *caller(void *argument) {
    int *right = argument;
    for (int i = 0; i < 20; i++) *right += region(4);
    return NULL;
}

int main(void) {
    int right = 0;
    for (int members = 1; members <= 8; members++) right += region(members);
    printf("%d of 8 alone\n", right);
    // Several threads of the program have regions at a time, and end; others come after them.
    int all = 0;
    for (int round = 0; round < 5; round++) {
        pthread_t threads[4];
        int each[4] = {0};
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, caller, &each[i]);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 4; i++) all += each[i];
    }
    printf("%d of 400 from four threads\n", all);
    // A child of a fork has regions of its own.
    int children = 0;
    for (int i = 0; i < 10; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) _exit(region(4) ? 0 : 1);
        int status = 1;
        waitpid(child, &status, 0);
        children += status == 0;
    }
    printf("%d of 10 children\n", children);
    return 0;
}
