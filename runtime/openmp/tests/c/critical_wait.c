// The deadlock of Slite §II: an item that holds a `critical` waits for its child, and the runtime
// begins another item on the same member that wants that `critical`.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ITEMS = 20, ROUNDS = 10 };
static volatile int child_begun;
static int entered;

// Until another member has begun the child; not for ever, because there may be no other.
static void wait_for_child(void) {
    for (int i = 0; i < 400 && !child_begun; i++) usleep(50);
}

static void holder(void) {
    #pragma omp critical
    {
        entered++;
        #pragma omp task
        {
            child_begun = 1;
            usleep(5000);
        }
        wait_for_child();
        #pragma omp taskwait
    }
}

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 3;
    for (int round = 0; round < ROUNDS; round++) {
        child_begun = 0;
        #pragma omp parallel num_threads(members)
        #pragma omp single
        {
            #pragma omp task
            holder();
            wait_for_child();
            // The member of the holder has nothing else to begin while it waits.
            for (int i = 1; i < ITEMS; i++) {
                #pragma omp task
                {
                    #pragma omp critical
                    entered++;
                }
            }
        }
    }
    printf("%d of %d\n", entered, ITEMS * ROUNDS);
    return 0;
}
