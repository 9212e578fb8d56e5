// Members that spin for each other, without a scheduling point: each needs a kernel thread.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 4;
    for (int round = 0; round < 5; round++) {
        volatile int here[64] = {0};
        #pragma omp parallel num_threads(members)
        {
            int me = omp_get_thread_num();
            here[me] = 1;
            for (int other = 0; other < members; other++)
                while (!here[other]) {}
            // The same while they sleep.
            usleep(1000);
            here[me] = 2;
            for (int other = 0; other < members; other++)
                while (here[other] < 2) usleep(100);
        }
    }
    printf("all met\n");
    return 0;
}
