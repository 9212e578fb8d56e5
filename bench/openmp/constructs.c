// Costs of constructs of OpenMP: the programs of Slite Fig. 8 and 10, and those of its rivals' tests.
// One line each: name, unit, median, 99 of 100, largest, number. Compile with `gcc -O2 -fopenmp`.
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { MOST = 2000, WORK = 500000 };
static double samples[MOST];

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *name, const char *unit, int count) {
    qsort(samples, count, sizeof *samples, ascending);
    printf("%s %s %.6g %.6g %.6g %d\n", name, unit, samples[count / 2], samples[count * 99 / 100],
           samples[count - 1], count);
    fflush(stdout);
}

// Cycles of one execution, after some that do not count.
#define CYCLES(name, count, ...)                                                                  \
    do {                                                                                          \
        for (int i = -100; i < (count); i++) {                                                    \
            unsigned long long start = __rdtsc();                                                 \
            __VA_ARGS__                                                                           \
            if (i >= 0) samples[i] = __rdtsc() - start;                                           \
        }                                                                                         \
        report(name, "cycles", count);                                                            \
    } while (0)

#define SECONDS(name, count, ...)                                                                 \
    do {                                                                                          \
        for (int i = 0; i < (count); i++) {                                                       \
            double start = omp_get_wtime();                                                       \
            __VA_ARGS__                                                                           \
            samples[i] = omp_get_wtime() - start;                                                 \
        }                                                                                         \
        report(name, "seconds", count);                                                           \
    } while (0)

#define NOTHING __asm__ volatile("" ::: "memory")

static void regions(int n) {
    char name[32];
    snprintf(name, sizeof name, "parallel-%d", n);
    CYCLES(name, 1000, {
        _Pragma("omp parallel num_threads(n)") { NOTHING; }
    });
    snprintf(name, sizeof name, "parallel-task-%d", n);
    CYCLES(name, 1000, {
        _Pragma("omp parallel num_threads(n)") {
            _Pragma("omp task") { NOTHING; }
            _Pragma("omp taskwait")
        }
    });
}

static void nested(int outer, int inner) {
    char name[32];
    snprintf(name, sizeof name, "nested-%dx%d", outer, inner);
    CYCLES(name, 300, {
        _Pragma("omp parallel num_threads(outer)") {
            _Pragma("omp parallel num_threads(inner)") { NOTHING; }
        }
    });
}

// Many in one region, measured by its first member.
#define INSIDE(name, count, ...)                                                                  \
    do {                                                                                          \
        _Pragma("omp parallel num_threads(2)") {                                                  \
            for (int i = -100; i < (count); i++) {                                                \
                unsigned long long start = __rdtsc();                                             \
                __VA_ARGS__                                                                       \
                if (i >= 0 && omp_get_thread_num() == 0) samples[i] = __rdtsc() - start;          \
            }                                                                                     \
        }                                                                                         \
        report(name, "cycles", count);                                                            \
    } while (0)

static int fib(int n) {
    int a, b;
    if (n < 2) return n;
    #pragma omp task shared(a)
    a = fib(n - 1);
    #pragma omp task shared(b)
    b = fib(n - 2);
    #pragma omp taskwait
    return a + b;
}

static int place(int n, int row, const char *before) {
    if (row == n) return 1;
    int counts[16] = {0}, sum = 0;
    for (int column = 0; column < n; column++) {
        int fits = 1;
        for (int i = 0; i < row; i++) {
            int distance = column - before[i];
            fits &= distance != 0 && distance != row - i && distance != i - row;
        }
        if (!fits) continue;
        #pragma omp task shared(counts) firstprivate(column)
        {
            char board[16];
            memcpy(board, before, row);
            board[row] = (char)column;
            counts[column] = place(n, row + 1, board);
        }
    }
    #pragma omp taskwait
    for (int column = 0; column < n; column++) sum += counts[column];
    return sum;
}

static void items(int n) {
    char name[32];
    int result = 0;
    snprintf(name, sizeof name, "fib-26-%d", n);
    SECONDS(name, 5, {
        _Pragma("omp parallel num_threads(n)")
        _Pragma("omp single")
        result = fib(26);
    });
    if (result != 121393) exit(1);
    snprintf(name, sizeof name, "nqueens-10-%d", n);
    SECONDS(name, 5, {
        _Pragma("omp parallel num_threads(n)")
        _Pragma("omp single")
        result = place(10, 0, "");
    });
    if (result != 724) exit(1);
}

// Our own programs for Slite Fig. 10, as they are shipped.
#define BENCH
#include "../../examples/omp/sort.c"
#include "../../examples/omp/strassen.c"
#include "../../examples/omp/sparselu.c"

static void programs(int n) {
    char name[32];
    double check = 0;
    omp_set_num_threads(n);
    snprintf(name, sizeof name, "sort-%d", n);
    SECONDS(name, 3, { check = (double)sorted_numbers(1 << 22); });
    if (check < 0) exit(1);
    snprintf(name, sizeof name, "strassen-%d", n);
    SECONDS(name, 3, { check = matrix_product(1024); });
    if (check == -1) exit(1);
    snprintf(name, sizeof name, "sparselu-%d", n);
    SECONDS(name, 3, { check = decomposed(25, 50); });
    if (check <= 0) exit(1);
}

// Starts a process that does nothing but use a CPU, until this one ends or stops it.
static pid_t hog(void) {
    pid_t own = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != own) _exit(0);
    for (;;) NOTHING;
}

// Time enough for a peer to sleep: twice what any library here spins for when it is passive.
enum { ASLEEP = 250000, WAKES = 200 };
static volatile unsigned long long rung;

static void let_sleep(void) {
    unsigned long long start = __rdtsc();
    while (__rdtsc() - start < ASLEEP) NOTHING;
    rung = __rdtsc();
}

// From the last arrival at a barrier to the first instruction of a member that sleeps there.
static void wakes(void) {
    #pragma omp parallel num_threads(2)
    for (int i = -20; i < WAKES; i++) {
        #pragma omp barrier
        if (omp_get_thread_num() == 0) let_sleep();
        #pragma omp barrier
        if (omp_get_thread_num() == 1 && i >= 0) samples[i] = __rdtsc() - rung;
    }
    report("wake", "cycles", WAKES);
}

static int bell;

static void *sleeper(void *unused) {
    for (int i = -20; i < WAKES; i++) {
        while (!__atomic_load_n(&bell, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &bell, 128, 0, NULL);
        if (i >= 0) samples[i] = __rdtsc() - rung;
        __atomic_store_n(&bell, 0, __ATOMIC_RELEASE);
    }
    return unused;
}

// The same with nothing but the kernel's call.
static void bare_wakes(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeper, NULL)) return;
    for (int i = -20; i < WAKES; i++) {
        while (__atomic_load_n(&bell, __ATOMIC_ACQUIRE)) NOTHING;
        let_sleep();
        __atomic_store_n(&bell, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &bell, 129, 1);
    }
    pthread_join(thread, NULL);
    report("wake-bare", "cycles", WAKES);
}

// Two members on one CPU: a barrier is a switch to the other, which is ready. The libraries count
// CPUs when they are loaded.
static int on_one_cpu(const char *word) {
    cpu_set_t one;
    if (strcmp(word, "one-cpu") == 0) {
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        if (sched_setaffinity(0, sizeof one, &one)) return 1;
        execl("/proc/self/exe", "constructs", "loaded", (char *)NULL);
        return 1;
    }
    INSIDE("switch", 1000, { _Pragma("omp barrier") });
    return 0;
}

int main(int count, char **words) {
    // With `start`, only the start of a program is measured, by the one who starts it.
    if (count > 1 && strcmp(words[1], "start") == 0) return omp_get_max_threads() == 0;
    if (count > 1) return on_one_cpu(words[1]);
    omp_set_max_active_levels(2);
    int sum = 0;
    for (int n = 1; n <= 8; n *= 2) regions(n);
    nested(2, 2);
    nested(8, 8);
    INSIDE("barrier", 1000, { _Pragma("omp barrier") });
    INSIDE("for", 1000, {
        _Pragma("omp for schedule(dynamic)")
        for (int k = 0; k < 2; k++) NOTHING;
    });
    INSIDE("single", 1000, { _Pragma("omp single") NOTHING; });
    INSIDE("critical", 1000, { _Pragma("omp critical") sum++; });
    wakes();
    bare_wakes();
    for (int n = 1; n <= 2; n++) items(n);
    for (int n = 1; n <= 2; n++) programs(n);
    // As many as CPUs, and work in between: else all is over before the kernel gives them a turn.
    pid_t others[] = {hog(), hog()};
    INSIDE("barrier-hogs", 300, {
        while (__rdtsc() - start < WORK) NOTHING;
        start = __rdtsc();
        _Pragma("omp barrier")
    });
    for (int i = 0; i < 2; i++) {
        if (others[i] < 0) continue;
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    return sum == 0;
}
