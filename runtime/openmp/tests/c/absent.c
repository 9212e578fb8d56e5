// Calls a function of libgomp that is not here yet.
#include <stdio.h>

int main(void) {
    printf("before\n");
    fflush(stdout);
    #pragma omp teams num_teams(2)
    printf("inside\n");
    return 0;
}
