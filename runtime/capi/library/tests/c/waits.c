/* Calls that wait in the kernel, beside a timer: none of them ends because of the timer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "is.h"

#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #what, strerror(errno));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
/* It ends so, after its time; the error counts where there is one. */
#define AFTER_ITS_TIME(ended, error)                                                               \
    do {                                                                                           \
        struct timespec begin = in_ns(CLOCK_MONOTONIC, 0);                                         \
        SURE((ended) && ((error) == 0 || errno == (error)));                                       \
        SURE(passed_ns(begin) > WAIT - WAIT / 8);                                                  \
    } while (0)

enum { WAIT = 15000000 };
static const uint64_t MS = 1000000;
static volatile int over;
static volatile unsigned long beside;
static sem_t semaphore;
static int set, queue, held, ends[2], both[2];
/* In the folder where it runs, which is the test's own and goes with it. */
static char path[] = "punctual-waits-XXXXXX";
static struct {
    long kind;
    char text[1024];
} message = {1, ""};

static struct timespec in_ns(clockid_t clock, long ns)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += ns;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static long long passed_ns(struct timespec begin)
{
    struct timespec now = in_ns(CLOCK_MONOTONIC, 0);
    return (now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec;
}

static void *every_ms(void *argument)
{
    while (!over && punctual_sleep(MS) == PUNCTUAL_OK)
        beside++;
    return argument;
}

/* Opens the file a second time, and has it locked for the time. */
static void holds(int (*lock)(int))
{
    struct timespec time = {.tv_nsec = WAIT};
    int file = open(path, O_RDWR);
    SURE(lock(file) == 0);
    __atomic_store_n(&held, 1, __ATOMIC_SEQ_CST);
    nanosleep(&time, NULL);
    close(file);
}

static int locks_file(int file)
{
    return flock(file, LOCK_EX);
}

static int locks_record(int file)
{
    struct flock all = {.l_type = F_WRLCK};
    return fcntl(file, F_OFD_SETLKW, &all);
}

/* A kernel thread does this after the time. */
static void *later(void *argument)
{
    struct timespec time = {.tv_nsec = WAIT};
    struct sembuf one = {0, 1, 0};
    if (*(const char *)argument == 'f')
        return holds(locks_file), NULL;
    if (*(const char *)argument == 'l')
        return holds(locks_record), NULL;
    nanosleep(&time, NULL);
    switch (*(const char *)argument) {
    case 's':
        sem_post(&semaphore);
        break;
    case 'o':
        semop(set, &one, 1);
        break;
    case 'm':
        msgsnd(queue, &message, 1, 0);
        break;
    case 'w':
        SURE(write(ends[1], "x", 1) == 1);
        break;
    case 't':
        SURE(send(both[1], "x", 1, 0) == 1);
        break;
    case 'p':
        close(open(path, O_WRONLY));
        break;
    case 'r':
        msgrcv(queue, &message, sizeof message.text, 0, 0);
        break;
    default:
        kill(getpid(), SIGUSR2);
    }
    return NULL;
}

static void ask(const char *what)
{
    pthread_t thread;
    SURE(pthread_create(&thread, NULL, later, (void *)what) == 0);
    SURE(pthread_detach(thread) == 0);
}

static void until_its_time(void)
{
    struct timespec time = {.tv_nsec = WAIT}, until;
    struct sembuf take = {0, -1, 0};
    sigset_t some;
    struct epoll_event event;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    until = in_ns(CLOCK_REALTIME, WAIT);
    AFTER_ITS_TIME(sem_timedwait(&semaphore, &until) == -1, ETIMEDOUT);
    until = in_ns(CLOCK_MONOTONIC, WAIT);
    AFTER_ITS_TIME(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until) == -1, ETIMEDOUT);
    AFTER_ITS_TIME(semtimedop(set, &take, 1, &time) == -1, EAGAIN);
    AFTER_ITS_TIME(sigtimedwait(&some, NULL, &time) == -1, EAGAIN);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    int waited = epoll_pwait2(poll, &event, 1, &time, NULL);
    SURE(waited == 0 || errno == ENOSYS);
    AFTER_ITS_TIME(thrd_sleep(&time, NULL) == 0, 0);
    /* More descriptors than the ring takes. */
    fd_set *many = calloc(4, sizeof *many);
    struct timeval little = {.tv_usec = WAIT / 1000};
    AFTER_ITS_TIME(select(1500, many, NULL, NULL, &little) == 0, 0);
    AFTER_ITS_TIME(pselect(1500, many, NULL, NULL, &time, NULL) == 0, 0);
    free(many);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&lock);
    until = in_ns(CLOCK_REALTIME, WAIT);
    SURE(pthread_cond_timedwait(&condition, &lock, &until) == ETIMEDOUT);
    struct mq_attr sizes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mqd_t messages = mq_open("/punctual-test", O_RDWR | O_CREAT, 0600, &sizes);
    if (messages != (mqd_t)-1) {
        char text[8];
        mq_unlink("/punctual-test");
        until = in_ns(CLOCK_REALTIME, WAIT);
        AFTER_ITS_TIME(mq_timedreceive(messages, text, 8, NULL, &until) == -1, ETIMEDOUT);
    }
}

static void until_another_acts(void)
{
    struct sembuf take = {0, -1, 0};
    sigset_t some;
    int status = 0;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    ask("s");
    SURE(sem_wait(&semaphore) == 0);
    ask("o");
    SURE(semop(set, &take, 1) == 0);
    ask("m");
    SURE(msgrcv(queue, &message, sizeof message.text, 0, 0) == 1);
    while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0)
        ;
    ask("r");
    SURE(msgsnd(queue, &message, sizeof message.text, 0) == 0);
    ask("k");
    SURE(sigwaitinfo(&some, NULL) == SIGUSR2);
    pid_t child = fork();
    if (child == 0) {
        usleep(WAIT / 1000);
        _exit(0);
    }
    SURE(child > 0 && waitpid(child, &status, 0) == child);
}

/* Of files, pipes and sockets, and for children: those that stop their CPU. */
static void until_a_file_is_ready(void)
{
    char letter = 0;
    int others[2], file = mkstemp(path);
    SURE(file >= 0 && pipe(ends) == 0 && pipe(others) == 0);
    SURE(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    for (const char *how = "fl"; *how; how++) {
        __atomic_store_n(&held, 0, __ATOMIC_SEQ_CST);
        ask(how);
        while (!__atomic_load_n(&held, __ATOMIC_SEQ_CST))
            SURE(punctual_sleep(MS / 10) == PUNCTUAL_OK);
        SURE((*how == 'f' ? locks_file : locks_record)(file) == 0);
        SURE(flock(file, LOCK_UN) == 0);
    }
    close(file);
    SURE(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    ask("p");
    SURE((file = open(path, O_RDONLY)) >= 0 && close(file) == 0 && unlink(path) == 0);
    ask("w");
    SURE(tee(ends[0], others[1], 1, 0) == 1 && read(ends[0], &letter, 1) == 1);
    ask("w");
    SURE(splice(ends[0], NULL, others[1], NULL, 1, 0) == 1);
    struct iovec piece = {&letter, 1};
    struct mmsghdr one = {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}};
    ask("t");
    SURE(recvmmsg(both[0], &one, 1, 0, NULL) == 1);
    siginfo_t ended;
    pid_t child = fork();
    if (child == 0) {
        usleep(WAIT / 1000);
        _exit(0);
    }
    SURE(child > 0 && waitid(P_PID, child, &ended, WEXITED) == 0);
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(9);
    IS(punctual_thread_create(&thread, "beside", &asks, every_ms, NULL), PUNCTUAL_OK);
    until_its_time();
    until_another_acts();
    until_a_file_is_ready();
    SURE(beside > 10);
    over = 1;
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    return argument;
}

int main(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    SURE(sem_init(&semaphore, 0, 0) == 0);
    SURE((set = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    SURE((queue = msgget(IPC_PRIVATE, 0600)) >= 0);
    punctual_options options = punctual_defaults();
    punctual_constraint asks = punctual_aperiodic(1);
    options.without_terms = 1;
    options.first_asks = &asks;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_status ran = punctual_run(&cpu, &options, NULL);
    semctl(set, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    IS(ran, PUNCTUAL_OK);
    puts("no call ends because of the timer");
    return 0;
}
