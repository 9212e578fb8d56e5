// A region with fewer members than the one before: its items know no others.
#include <omp.h>
#include <stdio.h>

enum { ROUNDS = 2000 };

static void pass(void) {
    for (volatile int spin = 0; spin < 20; spin++) continue;
}

int main(void) {
    long strange = 0;
    for (int round = 0; round < ROUNDS; round++) {
        #pragma omp parallel num_threads(6)
        {
            #pragma omp task
            pass();
        }
        #pragma omp parallel num_threads(2)
        for (int i = 0; i < 3; i++) {
            #pragma omp task
            {
                int is_strange = omp_get_thread_num() >= 2 || omp_get_num_threads() != 2;
                #pragma omp atomic
                strange += is_strange;
                pass();
            }
        }
    }
    printf("%ld strange items\n", strange);
    return 0;
}
