// A million items, a thousand deep: none is lost, and stacks grow by nesting alone.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static long count;

// Each level waits for its children: one goes deeper, the others are leaves.
static void level(int depth, int leaves) {
    for (int i = 0; i < leaves; i++) {
        #pragma omp task
        {
            #pragma omp atomic
            count++;
        }
    }
    if (depth > 1) {
        #pragma omp task
        level(depth - 1, leaves);
    }
    #pragma omp taskwait
    #pragma omp atomic
    count++;
}

int main(int words, char **word) {
    int members = words > 1 ? atoi(word[1]) : 2;
    #pragma omp parallel num_threads(members)
    #pragma omp single
    level(1000, 999);
    printf("%ld\n", count);
    return 0;
}
