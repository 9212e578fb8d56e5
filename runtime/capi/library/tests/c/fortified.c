/* Calls that wait stop their light thread alone, also where the compiler checks the room of what they
 * are given (-D_FORTIFY_SOURCE), and more than there is room for ends the process. */
#define _GNU_SOURCE 1 /* ppoll */

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "is.h"

enum { WAYS = 5, AT_LAST = 10 };

static char room[16];
static struct pollfd entries[2];
/* The compiler is not to know what these are. */
static volatile size_t one = 1, too_much = sizeof room + 1;
static int ends[2];
static volatile int begun;

static char waits(int way)
{
    struct timespec minute = {60, 0};
    ssize_t got = 1;
    entries[0].fd = ends[0];
    entries[0].events = POLLIN;
    if (way == 0)
        got = read(ends[0], room, one);
    else if (way == 1)
        got = recv(ends[0], room, one, 0);
    else if (way == 2)
        got = recvfrom(ends[0], room, one, 0, NULL, NULL);
    else if (way == 3)
        got = poll(entries, one, 60000);
    else
        got = ppoll(entries, one, &minute, NULL);
    if (got == 1 && way >= 3)
        got = read(ends[0], room, one);
    return got == 1 ? room[0] : '-';
}

static void *receives(void *argument)
{
    int *way = argument;
    begun = 1;
    *way = waits(*way);
    return argument;
}

static void *sends(void *argument)
{
    while (!begun)
        IS(punctual_sleep(100000), PUNCTUAL_OK);
    IS(punctual_sleep(1000000), PUNCTUAL_OK);
    if (write(ends[1], "s", 1) != 1)
        exit(2);
    return argument;
}

static void *first(void *argument)
{
    punctual_constraint receiver = punctual_aperiodic(9), sender = punctual_aperiodic(5);
    for (int way = 0; way < WAYS; way++) {
        punctual_thread threads[2];
        int what = way;
        begun = 0;
        IS(punctual_thread_create(&threads[0], "receives", &receiver, receives, &what), PUNCTUAL_OK);
        IS(punctual_thread_create(&threads[1], "sends", &sender, sends, NULL), PUNCTUAL_OK);
        for (int i = 0; i < 2; i++)
            IS(punctual_thread_join(threads[i], PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
        if (what != 's') {
            fprintf(stderr, "way %d got %c: the CPU was stopped\n", way, what);
            exit(3);
        }
    }
    return argument;
}

/* If a call stops the CPU, so that nobody on it sends. */
static void *sends_at_last(void *argument)
{
    for (sleep(AT_LAST); write(ends[1], "l", 1) == 1; sleep(1))
        ;
    return argument;
}

/* Signal that ends a process which asks for more than there is room for. */
static int asks_too_much(int way)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        if (way == 0)
            _exit(read(ends[0], room, too_much) == 0);
        else if (way == 1)
            _exit(recv(ends[0], room, too_much, 0) == 0);
        else
            _exit(poll(entries, too_much, 0) == 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        exit(4);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(void)
{
    pthread_t last;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_options options = punctual_defaults();
    options.threads = 2;
    options.best_effort = 1;
    options.without_terms = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 5;
    for (int way = 0; way < 3; way++) {
        if (asks_too_much(way) != SIGABRT)
            return 6;
    }
    if (pthread_create(&last, NULL, sends_at_last, NULL) != 0)
        return 7;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    printf("checked calls wait like others\n");
    return 0;
}
