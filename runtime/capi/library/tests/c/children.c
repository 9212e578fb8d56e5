/* Processes that a thread of a run makes: a child has everything but the run. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "is.h"

#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));            \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const uint64_t MS = 1000000;
static int times = 1000, others, several;
static volatile unsigned long jobs;
static volatile int over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int mine = 3;

/* What forks most: a timer of 100 us beside it. */
static void *every_100_us(void *argument)
{
    while (!over && punctual_sleep(100000) == PUNCTUAL_OK)
        jobs++;
    return argument;
}

static void *adds(void *argument)
{
    int *sum = argument;
    pthread_mutex_lock(&lock);
    *sum += mine;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void waits_in_every_way(void)
{
    int ends[2], both[2], queue = epoll_create1(EPOLL_CLOEXEC);
    char letter = 'a';
    SURE(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    SURE(write(ends[1], "x", 1) == 1 && read(ends[0], &letter, 1) == 1 && letter == 'x');
    SURE(send(both[0], "y", 1, 0) == 1 && recv(both[1], &letter, 1, 0) == 1 && letter == 'y');
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    SURE(poll(&one, 1, 1) == 0);
    struct timeval little = {.tv_usec = 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    SURE(select(ends[0] + 1, &set, NULL, NULL, &little) == 0);
    struct epoll_event event = {.events = EPOLLIN};
    SURE(epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &event) == 0);
    SURE(epoll_wait(queue, &event, 1, 1) == 0);
    struct timespec time = {.tv_nsec = 100000};
    SURE(nanosleep(&time, NULL) == 0 && usleep(100) == 0);
    SURE(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0);
    close(ends[0]);
    close(ends[1]);
    close(both[0]);
    close(both[1]);
    close(queue);
}

static void has_the_c_library(void)
{
    int sum = 0, status = 0;
    char *text = malloc(100000), *copy;
    SURE(text != NULL);
    snprintf(text, 100, "%d", getpid());
    SURE((copy = strdup(text)) != NULL);
    free(text);
    free(copy);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        SURE(pthread_create(&threads[i], NULL, adds, &sum) == 0);
    for (int i = 0; i < 3; i++)
        SURE(pthread_join(threads[i], NULL) == 0);
    SURE(sum == 9 && mine == 4);
    pid_t child = fork();
    if (child == 0)
        _exit(5);
    SURE(child > 0 && waitpid(child, &status, 0) == child);
    SURE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    SURE(system("exit 6") == 6 << 8);
}

/* As the program was before its run: its class, its signals, its other CPUs. */
static void is_ordinary(void)
{
    cpu_set_t allowed;
    SURE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    SURE(CPU_COUNT(&allowed) == others && !(several && CPU_ISSET(0, &allowed)));
    sigset_t blocked;
    SURE(sched_getscheduler(0) == SCHED_OTHER);
    SURE(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
    SURE(sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGTERM) == 0);
}

static void is_in_no_run(void)
{
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, adds, NULL);
    char text[200] = "";
    IS(punctual_block(MS), PUNCTUAL_NO_RUN);
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_CANNOT_RUN);
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    SURE(strstr(text, "child of a fork") != NULL);
}

/* Forks once; the child does something and ends with 0. */
static void forks(int round)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        is_ordinary();
        if (round % 4 == 0)
            execl("/bin/true", "true", (char *)NULL);
        if (round % 50 == 1) {
            is_in_no_run();
            waits_in_every_way();
            has_the_c_library();
        }
        if (round % 4 == 2)
            exit(0);
        _exit(0);
    }
    SURE(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "child %d: status %#x\n", round, status);
        exit(2);
    }
}

/* A child that goes on as the thread that it is a copy of: it ends with one line. */
static void *goes_on(void *argument)
{
    int *ends = argument, status = 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        return argument;
    }
    SURE(child > 0 && waitpid(child, &status, 0) == child);
    SURE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    char line[500] = "";
    SURE(read(ends[0], line, sizeof line - 1) > 0);
    SURE(strstr(line, "'goes on'") && strstr(line, "exec") && strchr(line, '\n')[1] == 0);
    return argument;
}

static void *first(void *argument)
{
    int ends[2];
    punctual_thread beside, thread;
    punctual_constraint urgent = punctual_aperiodic(9), any = punctual_aperiodic(1);
    mine = 4;
    SURE(pipe(ends) == 0);
    IS(punctual_thread_create(&beside, "every 100 us", &urgent, every_100_us, NULL), PUNCTUAL_OK);
    for (int round = 0; round < times; round++)
        forks(round);
    over = 1;
    IS(punctual_thread_join(beside, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(punctual_thread_create(&thread, "goes on", &any, goes_on, ends), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    /* The parent has its run. */
    IS(punctual_sleep(MS), PUNCTUAL_OK);
    SURE(jobs > 100);
    return argument;
}

int main(int count, char **arguments)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    cpu_set_t allowed;
    SURE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    several = CPU_COUNT(&allowed) > 1;
    others = several ? CPU_COUNT(&allowed) - 1 : 1;
    if (count > 1)
        times = atoi(arguments[1]);
    punctual_options options = punctual_defaults();
    /* Less urgent than the timer beside it. */
    punctual_constraint asks = punctual_aperiodic(1);
    options.first_asks = &asks;
    options.without_terms = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    puts("a child has everything but the run");
    return 0;
}
