/* Kernel threads and programs that a thread of a run starts: they are what the program's are. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#include <future>
#include <thread>
#endif

#include "is.h"

#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

extern char **environ;
/* `by_shell`: shells unblock all signals. */
static int others, several, by_shell;
static volatile int started;

/* As the program was before its run: its class, its signals, its other CPUs. */
static int is_ordinary(void)
{
    sigset_t blocked;
    cpu_set_t allowed;
    if (pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0 ||
        sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 1;
    if (sched_getscheduler(0) != SCHED_OTHER)
        return 2;
    if (sigismember(&blocked, SIGUSR1) == by_shell || sigismember(&blocked, SIGTERM))
        return 3;
    if (CPU_COUNT(&allowed) != others || (several && CPU_ISSET(0, &allowed)))
        return 4;
    return 0;
}

static void *tells(void *argument)
{
    *(int *)argument = is_ordinary();
    started = 1;
    return NULL;
}

/* Asked for itself: they stay so. */
static void *tells_its_own(void *argument)
{
    sigset_t blocked;
    cpu_set_t allowed;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    sched_getaffinity(0, sizeof allowed, &allowed);
    *(int *)argument = CPU_COUNT(&allowed) != 1 || !CPU_ISSET(0, &allowed) ||
                       !sigismember(&blocked, SIGUSR2) || sigismember(&blocked, SIGUSR1);
    return NULL;
}

static void kernel_threads(void)
{
    int found = -1;
    pthread_t thread;
    SURE(pthread_create(&thread, NULL, tells, &found) == 0);
    /* It is on another CPU: it begins while this one is busy. */
    struct timespec now, begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (several && !started && now.tv_sec < begin.tv_sec + 20);
    SURE(started || !several);
    SURE(pthread_join(thread, NULL) == 0);
    SURE(found == 0);

    pthread_attr_t attributes;
    sigset_t mask;
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    SURE(pthread_attr_init(&attributes) == 0);
    SURE(pthread_attr_setsigmask_np(&attributes, &mask) == 0);
    SURE(pthread_attr_setaffinity_np(&attributes, sizeof first, &first) == 0);
    SURE(pthread_create(&thread, &attributes, tells_its_own, &found) == 0);
    SURE(pthread_attr_destroy(&attributes) == 0);
    SURE(pthread_join(thread, NULL) == 0);
    SURE(found == 0);
#ifdef __cplusplus
    std::thread([&] { found = is_ordinary(); }).join();
    SURE(found == 0);
    SURE(std::async(std::launch::async, is_ordinary).get() == 0);
#endif
}

static void programs(void)
{
    char self[] = "/proc/self/exe", asked[20], command[100], line[20] = "";
    char *words[] = {self, asked, NULL};
    int status = -1;
    pid_t child = -1;
    snprintf(asked, sizeof asked, "%d", 2 * others + several);
    SURE(posix_spawn(&child, self, NULL, NULL, words, environ) == 0);
    SURE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    SURE(WEXITSTATUS(status) == 0);
    SURE(posix_spawnp(&child, self, NULL, NULL, words, environ) == 0);
    SURE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    SURE(WEXITSTATUS(status) == 0);
    SURE(posix_spawn(&child, "/no such program", NULL, NULL, words, environ) == ENOENT);
    snprintf(command, sizeof command, "/proc/%d/exe %d shell", getpid(), 2 * others + several);
    SURE(system(command) == 0);
    SURE(system("exit 7") == 7 << 8);
    SURE(system(NULL) != 0);
    snprintf(command, sizeof command, "/proc/%d/exe %d shell && echo so", getpid(), 2 * others + several);
    FILE *lines = popen(command, "r");
    SURE(lines != NULL && fgets(line, sizeof line, lines) != NULL);
    SURE(strcmp(line, "so\n") == 0 && pclose(lines) == 0);
    errno = 0;
    SURE(popen(command, "no mode") == NULL && errno == EINVAL);
}

static void *first(void *argument)
{
    kernel_threads();
    programs();
    return argument;
}

int main(int count, char **arguments)
{
    sigset_t blocked;
    cpu_set_t allowed;
    if (count > 1) {
        others = atoi(arguments[1]) / 2;
        several = atoi(arguments[1]) % 2;
        by_shell = count > 2;
        return is_ordinary();
    }
    SURE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    several = CPU_COUNT(&allowed) > 1;
    others = several ? CPU_COUNT(&allowed) - 1 : 1;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    puts("what a thread starts is what the program's are");
    return 0;
}
