// Calls functions of libgomp that are not here yet, a process for each: their names and, where that
// is not the default, their versions come from the standard input, one a line. With an argument: calls
// what has to end with a mistake of the library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void GOMP_parallel_end(void);

int main(int count, char **words) {
    (void)words;
    if (count > 1) GOMP_parallel_end();
    char line[100], name[100], version[100];
    int ended = omp_get_level();
    while (fgets(line, sizeof line, stdin)) {
        int parts = sscanf(line, "%99s %99s", name, version);
        void *found = parts == 2 ? dlvsym(RTLD_DEFAULT, name, version) : dlsym(RTLD_DEFAULT, name);
        pid_t child = fork();
        if (child == 0) {
            if (!found) _exit(2);
            ((void (*)(void))found)();
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    printf("%d ended\n", ended);
    return 0;
}
