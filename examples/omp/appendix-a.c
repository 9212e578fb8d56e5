// Appendix A of the Slite paper: a program whose items end in one turn of the work, or in two, by
// what the runtime begins while an item waits. Compile it with `gcc -O2 -fopenmp`.
//
//   appendix-a [RUNS] [MILLISECONDS] [forced | natural] [untied] [times] [record=FILE]
//
// Three members. A creates B and waits for it; C is created when B has been begun by another member
// (`natural`: at once), so that the member of A could begin C meanwhile. Each of B, C and the creator
// sleeps for the turn. It prints how many runs took 1.5 turns or more, and in how many of these a
// part began half a turn later than it could: the rest is the machine's, whose sleeps took long.
// With `times`, it prints when the parts of the slowest run began and ended, in turns. With
// `record=FILE`, it writes when its parts ran in the last run, as `punctual omp --draw` reads it: so
// the timeline of any library can be drawn.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double turn = 0.030;
static int forced = 1;
static volatile int b_has_begun, c_exists;
static double began[3], ended[3], start;

// What the members did, in the order of time: the number of a part, or -1 when it ended or waits.
static struct { int member, part; double time; } stamps[64];
static int stamped;

static void stamp(int part) {
    int at;
    #pragma omp atomic capture
    at = stamped++;
    stamps[at].member = omp_get_thread_num();
    stamps[at].part = part;
    stamps[at].time = omp_get_wtime();
}

static void work(int part) {
    stamp(part);
    began[part] = omp_get_wtime() - start;
    time_t seconds = (time_t)turn;
    struct timespec time = {seconds, (long)((turn - (double)seconds) * 1e9)};
    nanosleep(&time, NULL);
    ended[part] = omp_get_wtime() - start;
    stamp(-1);
}

static int write_record(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return 0;
    fprintf(file, "punctual-openmp record 1\nclock 1 cycles 1 ns\n");
    fprintf(file, "function 1 creator\nfunction 2 B\nfunction 3 C\nfunction 4 A\n");
    for (int member = 0; member < 3; member++) {
        fprintf(file, "carrier %d program lost 0\n", member);
        for (int i = 0; i < stamped; i++) {
            if (stamps[i].member != member) continue;
            int part = stamps[i].part, order = i + 1;
            double time = (stamps[i].time - stamps[0].time) * 1e9;
            fprintf(file, "%s %d %d %.0f %d %d %d\n", part < 0 ? "Asleep" : "Runs", member, order,
                    time, part + 1, part + 1, part < 0 ? 0 : member);
        }
    }
    return fclose(file) == 0;
}

static void wait_for(volatile int *word) {
    while (!*word) {
        struct timespec moment = {0, 50000};
        nanosleep(&moment, NULL);
    }
}

static void item_a(void) {
    stamp(3);
    #pragma omp task
    {
        b_has_begun = 1;
        work(1);
    }
    // Another member begins B, so that this one waits without it.
    if (forced) wait_for(&b_has_begun);
    stamp(-1);
    #pragma omp taskwait
}

static void item_a_untied(void) {
    stamp(3);
    #pragma omp task untied
    {
        b_has_begun = 1;
        work(1);
    }
    if (forced) wait_for(&b_has_begun);
    stamp(-1);
    #pragma omp taskwait
}

static void run(int untied) {
    b_has_begun = c_exists = stamped = 0;
    start = omp_get_wtime();
    #pragma omp parallel num_threads(3)
    {
        #pragma omp single
        {
            if (untied) {
                #pragma omp task untied
                item_a_untied();
            } else {
                #pragma omp task
                item_a();
            }
            if (forced) {
                wait_for(&b_has_begun);
                // A stands at its `taskwait` by now.
                struct timespec moment = {0, 200000};
                nanosleep(&moment, NULL);
                start = omp_get_wtime();
            }
            if (untied) {
                #pragma omp task untied
                work(2);
            } else {
                #pragma omp task
                work(2);
            }
            work(0);
            #pragma omp taskwait
        }
    }
}

int main(int count, char **words) {
    int runs = 100, untied = 0, times = 0;
    int numbers = 0;
    const char *record = NULL;
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "natural")) forced = 0;
        else if (!strcmp(words[i], "forced")) forced = 1;
        else if (!strcmp(words[i], "untied")) untied = 1;
        else if (!strcmp(words[i], "times")) times = 1;
        else if (!strncmp(words[i], "record=", 7)) record = words[i] + 7;
        else if (numbers++ == 0) runs = atoi(words[i]);
        else turn = atof(words[i]) / 1000;
    }
    int slow = 0, late = 0;
    double worst = 0, slowest[6] = {0};
    for (int i = 0; i < runs; i++) {
        run(untied);
        double span = (omp_get_wtime() - start) / turn;
        double last = began[1] > began[2] ? began[1] : began[2];
        slow += span >= 1.5;
        late += span >= 1.5 && last >= 0.5 * turn;
        if (span > worst) {
            worst = span;
            for (int part = 0; part < 3; part++) {
                slowest[2 * part] = began[part] / turn;
                slowest[2 * part + 1] = ended[part] / turn;
            }
        }
    }
    printf("%d of %d runs took 1.5 turns or more\n", slow, runs);
    printf("%d of %d runs were late\n", late, runs);
    if (record && !write_record(record)) perror(record);
    if (times) {
        printf("the slowest took %.2f turns\n", worst);
        const char *names[] = {"the creator", "B", "C"};
        for (int part = 0; part < 3; part++)
            printf("  %-12s from %5.2f to %5.2f\n", names[part], slowest[2 * part],
                   slowest[2 * part + 1]);
    }
    return 0;
}
