/* Plain pthread programs as threads of a run.
 *
 * `cc -include punctual_pthread.h program.c -lpunctual`, or this header in place of `pthread.h` and
 * `semaphore.h` in every file of the program: `pthread_create` makes a light thread then, `main` is
 * the first of them, and mutexes, conditions, semaphores and the like are those of `punctual.h`.
 * Guide 12 has the table of what is as POSIX says, and of what is refused.
 *
 * What may be chosen, by macros that are the same for all files of a program:
 *   PUNCTUAL_PTHREAD_CPU           which CPU of the machine (0)
 *   PUNCTUAL_PTHREAD_THREADS       threads at a time, beside the first (256)
 *   PUNCTUAL_PTHREAD_STACK         bytes reserved for each stack (1 MiB)
 *   PUNCTUAL_PTHREAD_TIMESLICE_NS  0: the highest priority first; else everybody in turn, for so
 *                                  long at most, whatever the priorities (0)
 */
#ifndef PUNCTUAL_PTHREAD_H
#define PUNCTUAL_PTHREAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <punctual.h>

/* Threads and locks of C++ stay those of the C library: their headers come before the names change. */
#ifdef __cplusplus
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif
#if __cplusplus >= 202002L
#include <barrier>
#include <latch>
#include <semaphore>
#include <stop_token>
#endif
#endif

#ifndef PUNCTUAL_PTHREAD_CPU
#define PUNCTUAL_PTHREAD_CPU 0
#endif
#ifndef PUNCTUAL_PTHREAD_THREADS
#define PUNCTUAL_PTHREAD_THREADS 256
#endif
#ifndef PUNCTUAL_PTHREAD_STACK
#define PUNCTUAL_PTHREAD_STACK (1 << 20)
#endif
#ifndef PUNCTUAL_PTHREAD_TIMESLICE_NS
#define PUNCTUAL_PTHREAD_TIMESLICE_NS 0
#endif

/* Keys that a program may have at a time: what POSIX asks for at least. */
#define PUNCTUAL_PTHREAD_KEYS 128
/* Locks that a thread may read at a time. */
#define PUNCTUAL_PTHREAD_READS 16

/* Every file of a program has all variables and functions, and the linker keeps one of each. */
#define PUNCTUAL_PTHREAD_ONE __attribute__((weak))

#ifdef __cplusplus
#define PUNCTUAL_PTHREAD_NEW {}
extern "C" {
#else
#define PUNCTUAL_PTHREAD_NEW {0}
#endif

/* Objects are made at their first use, so all zero is one that has not been used. */

typedef struct punctual_pthread_mutex {
    uint64_t id;
    pthread_t owner;
    unsigned int depth;
    int kind;
} punctual_pthread_mutex;

typedef struct punctual_pthread_cond {
    uint64_t id;
    clockid_t clock;
} punctual_pthread_cond;

typedef struct punctual_pthread_rwlock {
    uint64_t id;
} punctual_pthread_rwlock;

typedef struct punctual_pthread_barrier {
    struct punctual_barrier made;
} punctual_pthread_barrier;

typedef struct punctual_pthread_once {
    int state;
} punctual_pthread_once;

typedef struct punctual_pthread_sem {
    struct punctual_semaphore made;
} punctual_pthread_sem;

/* What `pthread_cleanup_push` adds, innermost first. */
struct punctual_pthread_cleanup {
    void (*routine)(void *);
    void *argument;
    struct punctual_pthread_cleanup *outer;
};

/* A thread: what its `pthread_t` points to. */
struct punctual_pthread {
    struct punctual_thread thread;
    void *(*start)(void *);
    void *argument;
    void *result;
    jmp_buf end;
    struct punctual_pthread_cleanup *cleanup;
    /* The thread itself, the handle that is to be joined or detached, and who creates it. */
    int holders;
    /* 1: it is detached. 2: its body is at its end. Who adds the second ends the run's handle. */
    int is_detached;
    int has_ended;
    int cancel_state;
    int is_cancelled;
    /* It was left by `pthread_exit`, or by a cancellation. */
    int is_leaving;
    int policy;
    int priority;
    char name[16];
    struct {
        uint64_t made;
        void *value;
    } values[PUNCTUAL_PTHREAD_KEYS];
    struct {
        uint64_t id;
        unsigned int times;
    } reads[PUNCTUAL_PTHREAD_READS];
};

/* The calling thread; null on threads that are not of the run. */
PUNCTUAL_PTHREAD_ONE __thread struct punctual_pthread *punctual_pthread_current;

/* The program's `main`, its arguments, and its answer. */
PUNCTUAL_PTHREAD_ONE struct {
    int (*main)(int, char **, char **);
    int argc;
    char **argv;
    char **envp;
    int code;
    int was_left;
} punctual_pthread_program;

/* Threads that have not ended, and a permit for each end. */
PUNCTUAL_PTHREAD_ONE unsigned int punctual_pthread_alive;
PUNCTUAL_PTHREAD_ONE struct punctual_semaphore punctual_pthread_ended;

/* Who waits for the end of a routine that is called once. */
PUNCTUAL_PTHREAD_ONE punctual_pthread_mutex punctual_pthread_guard;
PUNCTUAL_PTHREAD_ONE punctual_pthread_cond punctual_pthread_called;

/* The number of the making of each key, 0 where there is none, and its destructor. */
PUNCTUAL_PTHREAD_ONE struct {
    uint64_t made;
    void (*destructor)(void *);
} punctual_pthread_keys[PUNCTUAL_PTHREAD_KEYS];
PUNCTUAL_PTHREAD_ONE uint64_t punctual_pthread_keys_made;

/* The error of POSIX that says what a code says. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_error(enum punctual_status status)
{
    switch (status) {
    case PUNCTUAL_OK:
        return 0;
    case PUNCTUAL_NO_RUN:
    case PUNCTUAL_NOT_HELD:
        return EPERM;
    case PUNCTUAL_TIMED_OUT:
        return ETIMEDOUT;
    case PUNCTUAL_DEADLOCK:
    case PUNCTUAL_ALREADY_HELD:
        return EDEADLK;
    case PUNCTUAL_BUSY:
        return EBUSY;
    case PUNCTUAL_CANCELLED:
        return ECANCELED;
    case PUNCTUAL_NO_THREAD_LEFT:
    case PUNCTUAL_FULL:
    case PUNCTUAL_REFUSED:
        return EAGAIN;
    case PUNCTUAL_NO_MEMORY:
        return ENOMEM;
    case PUNCTUAL_NOTHING:
    case PUNCTUAL_STALE:
        return ESRCH;
    default:
        return EINVAL;
    }
}

/* How long it is until an instant of a clock, in nanoseconds. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_left(clockid_t clock, const struct timespec *at,
                                               uint64_t *left)
{
    struct timespec now;
    if (at->tv_nsec < 0 || at->tv_nsec >= 1000000000 || clock_gettime(clock, &now) != 0)
        return EINVAL;
    int64_t seconds = (int64_t)at->tv_sec - now.tv_sec;
    int64_t ns = (int64_t)at->tv_nsec - now.tv_nsec;
    if (seconds > 1000000000)
        seconds = 1000000000;
    if (seconds < -1)
        seconds = -1;
    ns += seconds * 1000000000;
    *left = ns > 0 ? (uint64_t)ns : 0;
    return 0;
}

PUNCTUAL_PTHREAD_ONE pthread_t punctual_pthread_self(void)
{
    struct punctual_pthread *self = punctual_pthread_current;
    return self ? (pthread_t)self : pthread_self();
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_equal(pthread_t one, pthread_t other)
{
    return one == other;
}

/* Ends: cleanup handlers, destructors of keys, and the body. */

PUNCTUAL_PTHREAD_ONE void punctual_pthread_destruct(struct punctual_pthread *self)
{
    int again = 1;
    for (int round = 0; again && round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
        again = 0;
        for (int key = 0; key < PUNCTUAL_PTHREAD_KEYS; key++) {
            void *value = self->values[key].value;
            self->values[key].value = NULL;
            if (!value || self->values[key].made != punctual_pthread_keys[key].made ||
                !punctual_pthread_keys[key].destructor)
                continue;
            again = 1;
            punctual_pthread_keys[key].destructor(value);
        }
    }
}

__attribute__((noreturn)) PUNCTUAL_PTHREAD_ONE void punctual_pthread_exit(void *result)
{
    struct punctual_pthread *self = punctual_pthread_current;
    if (!self)
        pthread_exit(result);
    self->is_leaving = 1;
    self->result = result;
    while (self->cleanup) {
        struct punctual_pthread_cleanup *inner = self->cleanup;
        self->cleanup = inner->outer;
        inner->routine(inner->argument);
    }
    longjmp(self->end, 1);
}

/* A cancellation point: a thread that was cancelled ends here. */
PUNCTUAL_PTHREAD_ONE void punctual_pthread_testcancel(void)
{
    struct punctual_pthread *self = punctual_pthread_current;
    if (self && self->is_cancelled && !self->is_leaving &&
        self->cancel_state == PTHREAD_CANCEL_ENABLE)
        punctual_pthread_exit(PTHREAD_CANCELED);
}

PUNCTUAL_PTHREAD_ONE void punctual_pthread_cleanup_push(struct punctual_pthread_cleanup *added,
                                                        void (*routine)(void *), void *argument)
{
    struct punctual_pthread *self = punctual_pthread_current;
    added->routine = routine;
    added->argument = argument;
    added->outer = self ? self->cleanup : NULL;
    if (self)
        self->cleanup = added;
}

PUNCTUAL_PTHREAD_ONE void punctual_pthread_cleanup_pop(struct punctual_pthread_cleanup *added,
                                                       int execute)
{
    if (punctual_pthread_current)
        punctual_pthread_current->cleanup = added->outer;
    if (execute)
        added->routine(added->argument);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_setcancelstate(int state, int *before)
{
    struct punctual_pthread *self = punctual_pthread_current;
    if (!self || (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE))
        return EINVAL;
    if (before)
        *before = self->cancel_state;
    self->cancel_state = state;
    return 0;
}

/* Nobody is ended in the middle of a computation. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_setcanceltype(int type, int *before)
{
    if (before)
        *before = PTHREAD_CANCEL_DEFERRED;
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        return ENOTSUP;
    return type == PTHREAD_CANCEL_DEFERRED ? 0 : EINVAL;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cancel(pthread_t thread)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    other->is_cancelled = 1;
    if (other->cancel_state == PTHREAD_CANCEL_ENABLE && !other->has_ended)
        punctual_thread_cancel(other->thread);
    return 0;
}

#include "punctual_pthread_locks.h"
#include "punctual_pthread_threads.h"

#ifdef __cplusplus
}
#endif

/* The names of POSIX. `pthread_t`, `pthread_key_t`, and attributes stay the C library's. */

#define pthread_mutex_t punctual_pthread_mutex
#define pthread_cond_t punctual_pthread_cond
#define pthread_rwlock_t punctual_pthread_rwlock
#define pthread_barrier_t punctual_pthread_barrier
#define pthread_spinlock_t punctual_pthread_mutex
#define pthread_once_t punctual_pthread_once
#define sem_t punctual_pthread_sem

#undef PTHREAD_MUTEX_INITIALIZER
#undef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP
#undef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_COND_INITIALIZER
#undef PTHREAD_RWLOCK_INITIALIZER
#undef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#undef PTHREAD_ONCE_INIT
#undef PTHREAD_KEYS_MAX
#define PTHREAD_MUTEX_INITIALIZER PUNCTUAL_PTHREAD_NEW
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP {0, 0, 0, PTHREAD_MUTEX_RECURSIVE}
#define PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP {0, 0, 0, PTHREAD_MUTEX_ERRORCHECK}
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP PUNCTUAL_PTHREAD_NEW
#define PTHREAD_COND_INITIALIZER PUNCTUAL_PTHREAD_NEW
#define PTHREAD_RWLOCK_INITIALIZER PUNCTUAL_PTHREAD_NEW
#define PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP PUNCTUAL_PTHREAD_NEW
#define PTHREAD_ONCE_INIT PUNCTUAL_PTHREAD_NEW
#define PTHREAD_KEYS_MAX PUNCTUAL_PTHREAD_KEYS

#undef pthread_cleanup_push
#undef pthread_cleanup_pop
#define pthread_cleanup_push(routine, argument)                                                    \
    do {                                                                                           \
        struct punctual_pthread_cleanup punctual_pthread_added;                                    \
        punctual_pthread_cleanup_push(&punctual_pthread_added, routine, argument)
#define pthread_cleanup_pop(execute)                                                               \
        punctual_pthread_cleanup_pop(&punctual_pthread_added, execute);                            \
    } while (0)

#define pthread_create punctual_pthread_create
#define pthread_join punctual_pthread_join
#define pthread_detach punctual_pthread_detach
#define pthread_self punctual_pthread_self
#define pthread_equal punctual_pthread_equal
#define pthread_exit punctual_pthread_exit
#define pthread_cancel punctual_pthread_cancel
#define pthread_testcancel punctual_pthread_testcancel
#define pthread_setcancelstate punctual_pthread_setcancelstate
#define pthread_setcanceltype punctual_pthread_setcanceltype
#define pthread_kill punctual_pthread_kill
#define pthread_tryjoin_np punctual_pthread_tryjoin_np
#define pthread_timedjoin_np punctual_pthread_timedjoin_np
#define pthread_clockjoin_np punctual_pthread_clockjoin_np
#define pthread_setname_np punctual_pthread_setname_np
#define pthread_getname_np punctual_pthread_getname_np
#define pthread_getattr_np punctual_pthread_getattr_np
#define pthread_setschedparam punctual_pthread_setschedparam
#define pthread_getschedparam punctual_pthread_getschedparam
#define pthread_setschedprio punctual_pthread_setschedprio
#define pthread_key_create punctual_pthread_key_create
#define pthread_key_delete punctual_pthread_key_delete
#define pthread_getspecific punctual_pthread_getspecific
#define pthread_setspecific punctual_pthread_setspecific
#define pthread_mutex_init punctual_pthread_mutex_init
#define pthread_mutex_destroy punctual_pthread_mutex_destroy
#define pthread_mutex_lock punctual_pthread_mutex_lock
#define pthread_mutex_trylock punctual_pthread_mutex_trylock
#define pthread_mutex_timedlock punctual_pthread_mutex_timedlock
#define pthread_mutex_clocklock punctual_pthread_mutex_clocklock
#define pthread_mutex_unlock punctual_pthread_mutex_unlock
#define pthread_cond_init punctual_pthread_cond_init
#define pthread_cond_destroy punctual_pthread_cond_destroy
#define pthread_cond_wait punctual_pthread_cond_wait
#define pthread_cond_timedwait punctual_pthread_cond_timedwait
#define pthread_cond_clockwait punctual_pthread_cond_clockwait
#define pthread_cond_signal punctual_pthread_cond_signal
#define pthread_cond_broadcast punctual_pthread_cond_broadcast
#define pthread_rwlock_init punctual_pthread_rwlock_init
#define pthread_rwlock_destroy punctual_pthread_rwlock_destroy
#define pthread_rwlock_rdlock punctual_pthread_rwlock_rdlock
#define pthread_rwlock_tryrdlock punctual_pthread_rwlock_tryrdlock
#define pthread_rwlock_timedrdlock punctual_pthread_rwlock_timedrdlock
#define pthread_rwlock_wrlock punctual_pthread_rwlock_wrlock
#define pthread_rwlock_trywrlock punctual_pthread_rwlock_trywrlock
#define pthread_rwlock_timedwrlock punctual_pthread_rwlock_timedwrlock
#define pthread_rwlock_clockrdlock punctual_pthread_rwlock_clockrdlock
#define pthread_rwlock_clockwrlock punctual_pthread_rwlock_clockwrlock
#define pthread_rwlock_unlock punctual_pthread_rwlock_unlock
#define pthread_barrier_init punctual_pthread_barrier_init
#define pthread_barrier_destroy punctual_pthread_barrier_destroy
#define pthread_barrier_wait punctual_pthread_barrier_wait
#define pthread_once punctual_pthread_call_once
#define pthread_yield punctual_pthread_yield
#define pthread_setaffinity_np punctual_pthread_affinity
#define pthread_getaffinity_np punctual_pthread_affinity
#define pthread_spin_init punctual_pthread_spin_init
#define pthread_spin_destroy punctual_pthread_mutex_destroy
#define pthread_spin_lock punctual_pthread_mutex_lock
#define pthread_spin_trylock punctual_pthread_mutex_trylock
#define pthread_spin_unlock punctual_pthread_mutex_unlock
#define sem_init punctual_pthread_sem_init
#define sem_destroy punctual_pthread_sem_destroy
#define sem_wait punctual_pthread_sem_wait
#define sem_trywait punctual_pthread_sem_trywait
#define sem_timedwait punctual_pthread_sem_timedwait
#define sem_clockwait punctual_pthread_sem_clockwait
#define sem_post punctual_pthread_sem_post
#define sem_getvalue punctual_pthread_sem_getvalue
#define sched_yield punctual_pthread_yield
/* What is not there is refused, because the C library would take our objects for its own. */
#define pthread_mutex_consistent(mutex) ENOTSUP
#define pthread_mutex_getprioceiling(mutex, ceiling) ENOTSUP
#define pthread_mutex_setprioceiling(mutex, ceiling, before) ENOTSUP
#define pthread_getcpuclockid(thread, clock) ENOTSUP
#define pthread_sigqueue(thread, number, value) ENOTSUP
#define sem_open(...) (errno = ENOSYS, SEM_FAILED)
#define sem_close(sem) (errno = EINVAL, -1)
/* With arguments only: programs have fields of these names. */
#define sleep(seconds) punctual_pthread_sleep(seconds)
#define usleep(us) punctual_pthread_usleep(us)
#define nanosleep(time, left) punctual_pthread_nanosleep(time, left)
#define clock_nanosleep(clock, flags, time, left)                                                  \
    punctual_pthread_clock_nanosleep(clock, flags, time, left)

#endif /* PUNCTUAL_PTHREAD_H */
