// What the library costs a program that does nothing with it: threads before the first region, and
// processor time behind one.
#include <dirent.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count - 2;
}

static double processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int count, char **words) {
    int members = count > 1 ? atoi(words[1]) : 2;
    int sum = omp_get_max_threads() > 0;
    #pragma omp parallel num_threads(1)
    sum++;
    #pragma omp critical
    sum++;
    printf("%d threads after %d\n", threads(), sum);
    double idle[15];
    for (int round = 0; round < 15; round++) {
        #pragma omp parallel num_threads(members)
        {
            #pragma omp atomic
            sum++;
        }
        double before = processor_time();
        struct timespec rest = {0, 30000000};
        nanosleep(&rest, NULL);
        idle[round] = processor_time() - before;
    }
    qsort(idle, 15, sizeof *idle, ascending);
    printf("%s, %d items\n", idle[7] <= 1 ? "quiet" : "not quiet", sum - 3);
    if (idle[7] > 1) printf("%f ms\n", idle[7]);
    return 0;
}
