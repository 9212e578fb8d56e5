// Children of a fork: one before any region, one in a region of one member, and one of a member in a
// `critical` that others wait for.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int members(void) {
    int count = 0;
    #pragma omp parallel num_threads(4) reduction(+ : count)
    count++;
    return count;
}

static int forked_in_critical(void) {
    int coming = 0, status = 1, turns = 0;
    pid_t own = getpid();
    omp_set_max_active_levels(2);
    #pragma omp parallel num_threads(3)
    {
        int child = 1;
        if (omp_get_thread_num() > 0) {
            #pragma omp atomic
            coming++;
        }
        for (int round = 0; round < 2; round++) {
            #pragma omp critical
            {
                int others = 0;
                turns++;
                // No other member is there in the child.
                if (omp_get_thread_num() > 0 && getpid() != own) _exit(99);
                while (omp_get_thread_num() == 0 && round == 0 && others < 2) {
                    // They have no more to do before they wait.
                    struct timespec moment = {0, 30000000};
                    nanosleep(&moment, NULL);
                    #pragma omp atomic read
                    others = coming;
                }
                if (omp_get_thread_num() == 0 && round == 0) child = fork();
            }
        }
        // The child has left the `critical`, has taken it again, and has a region of its own.
        if (child == 0) {
            int count = members();
            struct timespec for_anybody_else = {0, 50000000};
            nanosleep(&for_anybody_else, NULL);
            _exit(count);
        }
        if (omp_get_thread_num() == 0) waitpid(child, &status, 0);
    }
    return turns == 6 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int count, char **words) {
    if (count < 2) return 2;
    (void)omp_get_max_threads();
    pid_t child = fork();
    if (child == 0) exit(0);
    waitpid(child, NULL, 0);
    int has_record = access(words[1], F_OK) == 0;
    // The team of a region of one member had four before.
    int right = members() == 4, status = 1;
    child = 1;
    #pragma omp parallel num_threads(1)
    child = fork();
    if (child == 0) _exit(members());
    waitpid(child, &status, 0);
    printf("%s of the child, %d members\n", has_record || !right ? "a record" : "no record", WEXITSTATUS(status));
    printf("%d members of one that forked in a critical\n", forked_in_critical());
    return 0;
}
