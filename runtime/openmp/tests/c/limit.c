// Inner regions that all run at a time: the limit of threads is for all of them together.
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { OUTER = 3, INNER = 4, ROUNDS = 10 };

static int begun, members;

static void wait_for_others(int until) {
    int now = 0;
    while (now < until) {
        usleep(50);
        #pragma omp atomic read
        now = begun;
    }
}

int main(void) {
    omp_set_max_active_levels(2);
    for (int round = 1; round <= ROUNDS; round++) {
        #pragma omp parallel num_threads(OUTER)
        {
            #pragma omp parallel num_threads(INNER)
            {
                #pragma omp atomic
                members++;
                #pragma omp masked
                {
                    #pragma omp atomic
                    begun++;
                    wait_for_others(OUTER * round);
                }
            }
        }
    }
    printf("%d members of inner regions in %d rounds\n", members, ROUNDS);
    return 0;
}
