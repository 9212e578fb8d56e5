// Every construct, for teams of 1 to 8 members, alone and nested; prints what does not depend on who
// does what.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 1000

static int private_copy;
#pragma omp threadprivate(private_copy)

static void fail(const char *what, int members, long got, long wanted) {
    if (got != wanted) printf("%s of %d: %ld instead of %ld\n", what, members, got, wanted);
}

// The loops: each iteration once, whatever the schedule.
#define LOOP(name, type, clause)                                                                  \
    static void name(int n) {                                                                     \
        unsigned char hit[N];                                                                     \
        memset(hit, 0, sizeof hit);                                                               \
        long sum = 0;                                                                             \
        _Pragma("omp parallel num_threads(n)")                                                    \
        {                                                                                         \
            for (int round = 0; round < 3; round++) {                                             \
                clause for (type i = 0; i < N; i++) {                                             \
                    sum += i;                                                                     \
                    hit[i]++;                                                                     \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
        long hits = 0;                                                                            \
        for (int i = 0; i < N; i++) hits += hit[i] == 3;                                          \
        fail(#name " sum", n, sum, 3L * N * (N - 1) / 2);                                         \
        fail(#name " hits", n, hits, N);                                                          \
    }
LOOP(static_loop, int, _Pragma("omp for schedule(static) reduction(+ : sum)"))
LOOP(static_chunks, int, _Pragma("omp for schedule(static, 7) reduction(+ : sum)"))
LOOP(dynamic_loop, int, _Pragma("omp for schedule(dynamic) reduction(+ : sum)"))
LOOP(dynamic_chunks, long, _Pragma("omp for schedule(dynamic, 7) reduction(+ : sum)"))
LOOP(guided_loop, int, _Pragma("omp for schedule(guided) reduction(+ : sum)"))
LOOP(guided_chunks, unsigned long long, _Pragma("omp for schedule(guided, 5) reduction(+ : sum)"))
LOOP(runtime_loop, int, _Pragma("omp for schedule(runtime) reduction(+ : sum)"))
LOOP(monotonic_loop, int, _Pragma("omp for schedule(monotonic : dynamic, 3) reduction(+ : sum)"))
LOOP(unsigned_loop, unsigned long long, _Pragma("omp for schedule(dynamic, 3) reduction(+ : sum)"))
LOOP(unsigned_runtime, unsigned long long, _Pragma("omp for schedule(runtime) reduction(+ : sum)"))

static void combined_loops(int n) {
    long sum = 0;
    #pragma omp parallel for num_threads(n) schedule(dynamic, 3) reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += i;
    #pragma omp parallel for num_threads(n) schedule(guided) reduction(+ : sum)
    for (int i = N; i > 0; i -= 2) sum += i;
    #pragma omp parallel for num_threads(n) schedule(runtime) reduction(+ : sum)
    for (long i = -N; i < N; i += 3) sum += i;
    long wanted = N * (N - 1) / 2;
    for (int i = N; i > 0; i -= 2) wanted += i;
    for (long i = -N; i < N; i += 3) wanted += i;
    fail("combined loops", n, sum, wanted);
}

static void nowait_loops(int n) {
    long sum = 0;
    #pragma omp parallel num_threads(n) reduction(+ : sum)
    for (int round = 0; round < 40; round++) {
        #pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 10; i++) sum += i;
    }
    fail("nowait loops", n, sum, 40 * 45);
}

static void ordered(int n) {
    int order[200];
    int next = 0;
    #pragma omp parallel num_threads(n)
    {
        #pragma omp for ordered schedule(dynamic, 3)
        for (int i = 0; i < 100; i++) {
            #pragma omp ordered
            order[next++] = i;
        }
        #pragma omp for ordered schedule(static, 2)
        for (int i = 100; i < 150; i++) {
            #pragma omp ordered
            order[next++] = i;
        }
        #pragma omp for ordered schedule(guided)
        for (unsigned long long i = 150; i < 200; i++) {
            #pragma omp ordered
            order[next++] = (int)i;
        }
        // Some iterations have no ordered part.
        #pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < 30; i++) {
            if (i % 3 == 0) {
                #pragma omp ordered
                order[i] += 0;
            }
        }
    }
    long right = 0;
    for (int i = 0; i < 200; i++) right += order[i] == i;
    fail("ordered", n, right, 200);
}

static void sections(int n) {
    int seen[5] = {0};
    #pragma omp parallel num_threads(n)
    {
        #pragma omp sections
        {
            #pragma omp section
            seen[0]++;
            #pragma omp section
            seen[1]++;
            #pragma omp section
            seen[2]++;
        }
    }
    #pragma omp parallel sections num_threads(n)
    {
        #pragma omp section
        seen[3]++;
        #pragma omp section
        seen[4]++;
    }
    for (int i = 0; i < 5; i++) fail("sections", n, seen[i], 1);
}

static void singles(int n) {
    int done = 0, masters = 0;
    long copies = 0;
    #pragma omp parallel num_threads(n)
    {
        for (int round = 0; round < 50; round++) {
            #pragma omp single nowait
            {
                #pragma omp atomic
                done++;
            }
        }
        #pragma omp barrier
        int value;
        #pragma omp single copyprivate(value)
        value = 42;
        #pragma omp atomic
        copies += value;
        #pragma omp master
        masters++;
    }
    fail("single", n, done, 50);
    fail("copyprivate", n, copies, 42L * n);
    fail("master", n, masters, 1);
}

static void barriers(int n) {
    int stage[8];
    int wrong = 0;
    memset(stage, 0, sizeof stage);
    #pragma omp parallel num_threads(n) reduction(+ : wrong)
    {
        int me = omp_get_thread_num();
        for (int round = 1; round <= 30; round++) {
            stage[me] = round;
            #pragma omp barrier
            for (int other = 0; other < n; other++) wrong += stage[other] != round;
            #pragma omp barrier
        }
    }
    fail("barrier", n, wrong, 0);
}

static void locks(int n) {
    long plain = 0, nested = 0, named = 0, unnamed = 0;
    double real = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    #pragma omp parallel num_threads(n)
    for (int i = 0; i < 200; i++) {
        omp_set_lock(&lock);
        plain++;
        omp_unset_lock(&lock);
        while (!omp_test_lock(&lock)) {
            #pragma omp taskyield
        }
        plain++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        nested++;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        #pragma omp critical(name)
        named++;
        #pragma omp critical
        unnamed++;
        #pragma omp atomic
        real += 1;
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    fail("lock", n, plain, 400L * n);
    fail("nested lock", n, nested, 200L * n);
    fail("critical with a name", n, named, 200L * n);
    fail("critical", n, unnamed, 200L * n);
    fail("atomic", n, (long)real, 200L * n);
}

static int fib(int n, int untied) {
    int a, b;
    if (n < 2) return n;
    if (untied) {
        #pragma omp task untied shared(a)
        a = fib(n - 1, untied);
        #pragma omp task untied shared(b)
        b = fib(n - 2, untied);
        #pragma omp taskwait
    } else {
        #pragma omp task shared(a) final(n < 5)
        a = fib(n - 1, untied);
        #pragma omp task shared(b) if (n > 3) mergeable
        b = fib(n - 2, untied);
        #pragma omp taskwait
    }
    return a + b;
}

static void items(int n) {
    int value[2] = {0};
    long below = 0, loop = 0;
    #pragma omp parallel num_threads(n)
    {
        #pragma omp single nowait
        {
            value[0] = fib(15, 0);
            value[1] = fib(15, 1);
            #pragma omp taskgroup
            {
                for (int i = 0; i < 100; i++) {
                    #pragma omp task priority(i % 3)
                    {
                        #pragma omp task
                        {
                            #pragma omp atomic
                            below++;
                        }
                    }
                }
            }
            fail("taskgroup", n, below, 100);
            #pragma omp taskloop grainsize(7) shared(loop)
            for (int i = 0; i < 500; i++) {
                #pragma omp atomic
                loop += i;
            }
            fail("taskloop", n, loop, 500 * 499 / 2);
            #pragma omp taskloop num_tasks(5) nogroup shared(loop)
            for (unsigned long long i = 0; i < 10; i++) {
                #pragma omp atomic
                loop += i;
            }
        }
    }
    fail("items", n, value[0], 610);
    fail("untied items", n, value[1], 610);
    fail("taskloop nogroup", n, loop, 500 * 499 / 2 + 45);
}

static void items_at_barriers(int n) {
    long count = 0, seen = 0;
    #pragma omp parallel num_threads(n)
    {
        for (int i = 0; i < 100; i++) {
            #pragma omp task
            {
                #pragma omp task
                {
                    #pragma omp atomic
                    count++;
                }
            }
        }
        #pragma omp barrier
        #pragma omp atomic
        seen += count;
    }
    fail("items before a barrier", n, seen, 100L * n * n);
}

static void dependences(int n) {
    int wrong = 0, chain = 0, x = 0, y = 0;
    #pragma omp parallel num_threads(n)
    #pragma omp single
    {
        for (int i = 0; i < 200; i++) {
            #pragma omp task depend(inout : chain) firstprivate(i)
            {
                if (chain != i) {
                    #pragma omp atomic
                    wrong++;
                }
                chain = i + 1;
            }
        }
        for (int i = 1; i <= 20; i++) {
            #pragma omp task depend(out : x) firstprivate(i)
            x = i;
            for (int reader = 0; reader < 3; reader++) {
                #pragma omp task depend(in : x) firstprivate(i)
                if (x != i) {
                    #pragma omp atomic
                    wrong++;
                }
            }
        }
        #pragma omp task depend(out : y)
        y = 1;
        #pragma omp task depend(in : y) if (0)
        if (y != 1) wrong++;
        #pragma omp task depend(out : y)
        y = 2;
        #pragma omp taskwait depend(in : y)
        if (y != 2) wrong++;
    }
    fail("depend", n, wrong, 0);
    fail("a chain", n, chain, 200);
}

static void numbers(int n) {
    int sum = 0, level = 0;
    #pragma omp parallel num_threads(n) reduction(+ : sum, level)
    {
        sum += omp_get_thread_num() + 100 * omp_get_num_threads();
        level += omp_get_level() + omp_get_team_size(1) + omp_get_ancestor_thread_num(0);
        private_copy = omp_get_thread_num() + 7;
    }
    fail("numbers", n, sum, n * (n - 1) / 2 + 100L * n * n);
    fail("levels", n, level, n * (1 + n));
    int kept = 0;
    #pragma omp parallel num_threads(n) reduction(+ : kept)
    kept += private_copy == omp_get_thread_num() + 7;
    fail("threadprivate", n, kept, n);
}

static void nested(int n) {
    long sum = 0, inner = 0;
    #pragma omp parallel num_threads(n) reduction(+ : sum, inner)
    {
        #pragma omp parallel num_threads(3) reduction(+ : sum, inner)
        {
            #pragma omp for schedule(dynamic)
            for (int i = 0; i < 100; i++) sum += i;
            inner += omp_get_level() == 2 && omp_get_num_threads() == 3;
            #pragma omp barrier
            #pragma omp task
            {
                #pragma omp atomic
                inner += 0;
            }
        }
        #pragma omp parallel if (0) reduction(+ : sum)
        sum += omp_get_num_threads();
    }
    fail("nested", n, sum, n * 4950L + n);
    fail("nested members", n, inner, 3L * n);
}

// All that may stand in a region as well as outside: they keep their results on the caller's stack.
static void anywhere(int n) {
    static_loop(n), static_chunks(n), dynamic_loop(n), dynamic_chunks(n);
    guided_loop(n), guided_chunks(n), runtime_loop(n), monotonic_loop(n);
    unsigned_loop(n), unsigned_runtime(n), combined_loops(n), nowait_loops(n);
    ordered(n), sections(n), singles(n), barriers(n), locks(n);
    items(n), items_at_barriers(n), dependences(n);
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 3;
    omp_set_max_active_levels(3);
    for (int round = 0; round < rounds; round++)
        for (int n = 1; n <= 8; n++) anywhere(n), numbers(n), nested(n);
    // Every construct in a region of a member, two such regions beside each other.
    for (int n = 1; n <= 8; n++) {
        #pragma omp parallel num_threads(2)
        anywhere(n);
    }
    // And in an item that waits below others.
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int n = 1; n <= 8; n++) {
        #pragma omp task
        anywhere(n);
    }
    printf("all constructs, teams of 1 to 8\n");
    return 0;
}
