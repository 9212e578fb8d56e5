// Items of one member have a region each at a time, and every member of each does its part.
#include <omp.h>
#include <stdio.h>

enum { ROUNDS = 40, ITEMS = 20 };

static long done;
static volatile int is_there, is_inside, is_over;

static void region(int number) {
    int both = 2 * number;
    #pragma omp parallel num_threads(2) firstprivate(both)
    {
        #pragma omp taskyield
        #pragma omp atomic
        done += both == 2 * number && omp_get_num_threads() == 2;
        #pragma omp critical
        both++;
        #pragma omp barrier
    }
}

// The other member spins outside the library, so one member begins both items: the second while the
// first has not begun its region, and the first goes on while the second is in its own.
static void forced(void) {
    is_there = is_inside = is_over = 0;
    #pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
            is_there = 1;
            while (!is_over) continue;
        } else {
            while (!is_there) continue;
            #pragma omp task
            {
                #pragma omp parallel num_threads(2)
                #pragma omp masked
                {
                    is_inside = 1;
                    #pragma omp taskyield
                    #pragma omp atomic
                    done += 2;
                }
            }
            #pragma omp task
            {
                while (!is_inside) {
                    #pragma omp taskyield
                }
                region(1);
            }
            #pragma omp taskwait
            is_over = 1;
        }
    }
}

static void many(int kind) {
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int i = 0; i < ITEMS; i++) {
        #pragma omp task
        {
            if (kind == 0) {
                #pragma omp taskyield
            } else {
                #pragma omp critical(outside)
                for (volatile int spin = 0; spin < 2000; spin++) continue;
            }
            region(i);
        }
    }
}

int main(void) {
    omp_set_max_active_levels(2);
    for (int round = 0; round < ROUNDS; round++) forced();
    printf("%ld of %d\n", done, 4 * ROUNDS);
    done = 0;
    for (int round = 0; round < ROUNDS; round++) many(round % 2);
    printf("%ld of %d\n", done, 2 * ITEMS * ROUNDS);
    return 0;
}
