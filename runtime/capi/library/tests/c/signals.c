/* Signals that a thread of a run sends to itself, and faults that the program handles. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "is.h"

#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const uint64_t MS = 1000000;
static volatile int heard, faults;
static volatile unsigned long beside;
static volatile int over;
static pthread_t heard_by, other;
static sigjmp_buf behind;

static void hears(int signal)
{
    heard_by = pthread_self();
    heard += signal == SIGUSR1;
}

static void mends(int signal, siginfo_t *about, void *context)
{
    (void)context;
    faults += signal == SIGSEGV && about->si_addr == (void *)16;
    siglongjmp(behind, 1);
}

static void *every_ms(void *argument)
{
    other = pthread_self();
    while (!over && punctual_sleep(MS) == PUNCTUAL_OK)
        beside++;
    return argument;
}

static void to_itself(void)
{
    for (int round = 1; round <= 100; round++) {
        SURE(raise(SIGUSR1) == 0 && heard == 2 * round - 1);
        SURE(pthread_kill(pthread_self(), SIGUSR1) == 0 && heard == 2 * round);
        SURE(pthread_equal(heard_by, pthread_self()));
    }
    SURE(raise(1000) == -1 && errno == EINVAL);
    SURE(pthread_kill(pthread_self(), 1000) == EINVAL);
    SURE(pthread_kill(pthread_self(), 0) == 0);
    /* The program blocks this one: it waits until it is asked for. */
    sigset_t set;
    int got = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    SURE(raise(SIGUSR2) == 0);
    SURE(sigwait(&set, &got) == 0 && got == SIGUSR2);
    struct signalfd_siginfo about;
    int file = signalfd(-1, &set, 0);
    SURE(file >= 0 && raise(SIGUSR2) == 0);
    SURE(read(file, &about, sizeof about) == sizeof about && about.ssi_signo == SIGUSR2);
    close(file);
}

static void faulty(void)
{
    static int *volatile nowhere = (int *)16;
    for (volatile int round = 1; round <= 100; round++) {
        if (sigsetjmp(behind, 1) == 0)
            *nowhere = 7;
        SURE(faults == round);
    }
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(9);
    IS(punctual_thread_create(&thread, "beside", &asks, every_ms, NULL), PUNCTUAL_OK);
    while (beside == 0)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    to_itself();
    /* Another one's are not delivered, and that is said. */
    SURE(pthread_kill(other, SIGUSR1) == ESRCH);
    faulty();
    /* It is preempted as before. */
    for (unsigned long before = beside; beside < before + 5;)
        ;
    over = 1;
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    signal(SIGFPE, hears);
    return argument;
}

static void *ends_the_process(void *argument)
{
    raise(SIGTERM);
    return argument;
}

static void run(punctual_body body)
{
    punctual_options options = punctual_defaults();
    punctual_constraint asks = punctual_aperiodic(1);
    options.without_terms = 1;
    options.first_asks = &asks;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, body, NULL);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
}

int main(void)
{
    int status = 0;
    sigset_t set;
    struct sigaction action, found;
    memset(&action, 0, sizeof action);
    action.sa_handler = hears;
    SURE(sigaction(SIGUSR1, &action, NULL) == 0);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = mends;
    SURE(sigaction(SIGSEGV, &action, NULL) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    SURE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    alarm(60);
    run(first);
    SURE(sigaction(SIGSEGV, NULL, &found) == 0 && found.sa_sigaction == mends);
    SURE(sigaction(SIGFPE, NULL, &found) == 0 && found.sa_handler == hears);
    pid_t child = fork();
    if (child == 0) {
        run(ends_the_process);
        _exit(0);
    }
    SURE(child > 0 && waitpid(child, &status, 0) == child);
    SURE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    puts("signals come to the thread that sends them, and faults to their handler");
    return 0;
}
