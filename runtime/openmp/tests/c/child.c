// Children of a fork: one before any region, and one in a region of one member.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int members(void) {
    int count = 0;
    #pragma omp parallel num_threads(4) reduction(+ : count)
    count++;
    return count;
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
    return 0;
}
