// Exceptions belong to the item that threw them, also when other items run while it waits.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fenv.h>
#include <omp.h>

static int wrong;

static void check(bool right) {
    if (right) return;
    #pragma omp atomic
    wrong++;
}

// Waits inside a `catch`, while children and items of others throw exceptions of their own.
static void item(int number, int depth) {
    // It may have begun on top of another.
    int before = fegetround();
    fesetround(number % 2 ? FE_UPWARD : FE_TONEAREST);
    try {
        throw number;
    } catch (int caught) {
        check(caught == number);
        if (depth > 0) {
            for (int child = 0; child < 3; child++) {
                #pragma omp task
                item(number * 3 + child + 1, depth - 1);
            }
            #pragma omp taskwait
        }
        if (number % 5 == 0) {
            #pragma omp critical
            {
                #pragma omp task
                item(number + 1, 0);
                #pragma omp taskwait
            }
        }
        check(std::uncaught_exceptions() == 0);
        check(fegetround() == (number % 2 ? FE_UPWARD : FE_TONEAREST));
        try {
            throw;
        } catch (int again) {
            check(again == number);
        }
    }
    fesetround(before);
}

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 2;
    for (int round = 0; round < 20; round++) {
        #pragma omp parallel num_threads(members)
        {
            #pragma omp single nowait
            for (int number = 0; number < 8; number++) {
                #pragma omp task
                item(number, 4);
            }
            try {
                throw 1000 + omp_get_thread_num();
            } catch (int caught) {
                #pragma omp barrier
                check(caught == 1000 + omp_get_thread_num());
            }
        }
    }
    std::printf("%d wrong\n", wrong);
    return 0;
}
