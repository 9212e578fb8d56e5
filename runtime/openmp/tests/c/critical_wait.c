// The deadlock of Slite §II: an item that holds a `critical` waits for its child, and the runtime
// begins another item on the same member that wants that `critical`.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 2;
    int entered = 0;
    #pragma omp parallel num_threads(members)
    #pragma omp single
    for (int i = 0; i < 200; i++) {
        #pragma omp task
        {
            #pragma omp critical
            {
                entered++;
                #pragma omp task
                {
                    for (volatile int spin = 0; spin < 2000; spin++) {}
                }
                #pragma omp taskwait
            }
        }
    }
    printf("%d of 200\n", entered);
    return 0;
}
