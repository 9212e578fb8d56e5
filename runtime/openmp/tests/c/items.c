// Items whose creators are slower than those that begin them, so that carriers look, sleep and wake.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void rest(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

static void spin(int rounds) {
    for (int i = 0; i < rounds; i++) __asm__ volatile("" ::: "memory");
}

static long below(int depth) {
    long a = 0, b = 0;
    if (depth == 0) {
        spin(200);
        return 1;
    }
    #pragma omp task shared(a)
    a = below(depth - 1);
    #pragma omp task shared(b)
    b = below(depth - 1);
    #pragma omp taskwait
    return a + b;
}

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 3;
    long sum = 0, loose = 0;
    #pragma omp parallel num_threads(members)
    #pragma omp single
    {
        for (int round = 0; round < 4; round++) {
            sum += below(6);
            // All others sleep by then.
            rest(2000);
            for (int i = 0; i < 5; i++) {
                #pragma omp task shared(loose)
                {
                    spin(2000);
                    #pragma omp atomic
                    loose++;
                }
                rest(300);
            }
            #pragma omp taskwait
        }
    }
    printf("%ld and %ld\n", sum, loose);
    return 0;
}
