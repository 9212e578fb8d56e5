/* Threads as POSIX.1-2017 has them: claims of the standard, each asked of the functions that the
   program is compiled with. `posix exit`, `posix code` and `posix deep` are three ways to end. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 64 };

static struct {
    const char *function;
    int claims, kept;
} rows[ROWS];

/* One claim about a function. All are made by the thread of `main`. */
static void claim(const char *function, const char *text, int is_kept)
{
    int row = 0;
    while (rows[row].function && strcmp(rows[row].function, function) != 0)
        row++;
    rows[row].function = function;
    rows[row].claims++;
    rows[row].kept += is_kept != 0;
    if (!is_kept)
        fprintf(stderr, "%s: not true: %s\n", function, text);
}

static struct timespec after(clockid_t clock, long ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static int is_past(clockid_t clock, struct timespec at)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
}

static pthread_t start(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) {
        fprintf(stderr, "no thread\n");
        exit(1);
    }
    return thread;
}

static void *join(pthread_t thread)
{
    void *result = NULL;
    int error = pthread_join(thread, &result);
    if (error != 0)
        fprintf(stderr, "join: %s\n", strerror(error));
    return result;
}

/* Threads. */

static pthread_t seen_self;
static sem_t ready, went;

static void *echo(void *argument)
{
    seen_self = pthread_self();
    return argument;
}

static void leave(void *result)
{
    pthread_exit(result);
}

static void *leaves_from_below(void *argument)
{
    leave(argument);
    return NULL;
}

static void *joins(void *thread)
{
    sem_post(&ready);
    return (void *)(intptr_t)pthread_join(*(pthread_t *)thread, NULL);
}

static void *goes(void *argument)
{
    sem_post(&went);
    return argument;
}

static void *is_deep(void *argument)
{
    volatile char room[700 * 1024];
    for (size_t at = 0; at < sizeof room; at += 1024)
        room[at] = (char)at;
    room[sizeof room - 1] = 5;
    return room[sizeof room - 1] == 5 ? argument : NULL;
}

static void threads(void)
{
    int value = 0;
    pthread_t thread = start(echo, &value);
    claim("pthread_join", "the value that the thread returned", join(thread) == &value);
    claim("pthread_create", "the id that the thread has", pthread_equal(thread, seen_self));
    claim("pthread_equal", "different threads", !pthread_equal(thread, pthread_self()));
    claim("pthread_self", "the same at each call", pthread_equal(pthread_self(), pthread_self()));
    thread = start(leaves_from_below, &value);
    claim("pthread_exit", "its value reaches the thread that joins", join(thread) == &value);
    pthread_t self = pthread_self();
    claim("pthread_join", "EDEADLK for the caller", pthread_join(self, NULL) == EDEADLK);
    int all = 0;
    for (int turn = 0; turn < 1000; turn++)
        all += join(start(echo, &value)) == &value;
    claim("pthread_create", "1,000 threads, one after the other", all == 1000);
    pthread_t many[100];
    for (int at = 0; at < 100; at++)
        many[at] = start(echo, &many[at]);
    all = 0;
    for (int at = 0; at < 100; at++)
        all += join(many[at]) == &many[at];
    claim("pthread_create", "100 threads at a time", all == 100);
}

static void attributes(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    int value = 0;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sem_init(&went, 0, 0);
    claim("pthread_attr_setdetachstate", "a detached thread",
          pthread_create(&thread, &attr, goes, NULL) == 0);
    sem_wait(&went);
    thread = start(goes, NULL);
    claim("pthread_detach", "a thread that runs", pthread_detach(thread) == 0);
    sem_wait(&went);
    thread = start(goes, NULL);
    sem_wait(&went);
    claim("pthread_detach", "a thread that may have ended", pthread_detach(thread) == 0);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE);
    claim("pthread_attr_setstacksize", "a size", pthread_attr_setstacksize(&attr, 800 * 1024) == 0);
    claim("pthread_attr_setstacksize", "a thread with it begins",
          pthread_create(&thread, &attr, is_deep, &value) == 0);
    claim("pthread_attr_setstacksize", "the thread has it", join(thread) == &value);
    pthread_attr_destroy(&attr);
}

/* Cancellation. */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t never;
static int order[8], orders;

static void notes(void *number)
{
    order[orders++] = (int)(intptr_t)number;
}

static void unlocks(void *mutex)
{
    notes((void *)(intptr_t)pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

static void *cleans_up(void *by_exit)
{
    pthread_cleanup_push(notes, (void *)1);
    pthread_cleanup_push(notes, (void *)2);
    pthread_cleanup_push(notes, (void *)3);
    pthread_cleanup_pop(1);
    pthread_cleanup_push(notes, (void *)4);
    pthread_cleanup_pop(0);
    if (by_exit)
        pthread_exit(NULL);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *waits_at_condition(void *argument)
{
    pthread_mutex_lock(&guard);
    pthread_cleanup_push(unlocks, &guard);
    sem_post(&ready);
    for (;;)
        pthread_cond_wait(&changed, &guard);
    pthread_cleanup_pop(0);
    return argument;
}

static void *waits_at_semaphore(void *argument)
{
    sem_post(&ready);
    while (sem_wait(&never) != 0)
        ;
    return argument;
}

static void tells_end(void *semaphore)
{
    sem_post((sem_t *)semaphore);
}

static void *tells_its_end(void *argument)
{
    pthread_cleanup_push(tells_end, &went);
    sem_post(&ready);
    while (sem_wait(&never) != 0)
        ;
    pthread_cleanup_pop(0);
    return argument;
}

static void *sleeps(void *argument)
{
    sem_post(&ready);
    sleep(1000);
    return argument;
}

static void *asks(void *argument)
{
    sem_post(&ready);
    for (;;) {
        pthread_testcancel();
        sched_yield();
    }
    return argument;
}

static sem_t may_go;

static void *is_protected(void *argument)
{
    int before = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    notes((void *)(intptr_t)(before == PTHREAD_CANCEL_ENABLE));
    sem_post(&ready);
    sem_wait(&may_go);
    pthread_testcancel();
    notes((void *)7);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    pthread_testcancel();
    notes((void *)8);
    return argument;
}

static int is_cancelled(void *(*body)(void *))
{
    pthread_t thread = start(body, NULL);
    sem_wait(&ready);
    return pthread_cancel(thread) == 0 && join(thread) == PTHREAD_CANCELED;
}

static void cancellation(void)
{
    orders = 0;
    join(start(cleans_up, NULL));
    claim("pthread_cleanup_pop", "executes, or does not", orders == 1 && order[0] == 3);
    orders = 0;
    join(start(cleans_up, (void *)1));
    int is_last_first = orders == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1;
    claim("pthread_cleanup_push", "the last first, at pthread_exit", is_last_first);
    sem_init(&ready, 0, 0);
    sem_init(&never, 0, 0);
    sem_init(&may_go, 0, 0);
    orders = 0;
    claim("pthread_cancel", "a wait for a condition", is_cancelled(waits_at_condition));
    claim("pthread_cond_wait", "a cleanup handler holds the mutex", orders == 1 && order[0] == 0);
    claim("pthread_cancel", "the mutex is free then", pthread_mutex_lock(&guard) == 0);
    pthread_mutex_unlock(&guard);
    claim("pthread_cancel", "a wait for a semaphore", is_cancelled(waits_at_semaphore));
    claim("pthread_cancel", "a sleep", is_cancelled(sleeps));
    pthread_t waiting = start(waits_at_semaphore, NULL);
    sem_wait(&ready);
    pthread_t joining = start(joins, &waiting);
    sem_wait(&ready);
    pthread_cancel(joining);
    claim("pthread_join", "it is a cancellation point", join(joining) == PTHREAD_CANCELED);
    sem_post(&never);
    join(waiting);
    pthread_t left = start(tells_its_end, NULL);
    sem_wait(&ready);
    pthread_cancel(left);
    pthread_detach(left);
    claim("pthread_detach", "a thread that is cancelled ends", sem_wait(&went) == 0);
    claim("pthread_testcancel", "a loop that asks", is_cancelled(asks));
    orders = 0;
    pthread_t thread = start(is_protected, NULL);
    sem_wait(&ready);
    pthread_cancel(thread);
    sem_post(&may_go);
    int is_late = join(thread) == PTHREAD_CANCELED && orders == 2 && order[1] == 7;
    claim("pthread_setcancelstate", "a cancellation waits until it is enabled", is_late);
    claim("pthread_setcancelstate", "enabled at first", order[0] == 1);
}

/* Mutexes. */

static long count;
static pthread_mutex_t recursive, careful;
#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t recursive_at_once = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
#endif

static void *counts(void *argument)
{
    for (int turn = 0; turn < 5000; turn++) {
        pthread_mutex_lock(&guard);
        long now = count;
        if (turn % 16 == 0)
            sched_yield();
        count = now + 1;
        pthread_mutex_unlock(&guard);
    }
    return argument;
}

static void *tries(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_trylock((pthread_mutex_t *)mutex);
}

static void *unlocks_it(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

static void *locks_in_time(void *mutex)
{
    struct timespec at = after(CLOCK_REALTIME, 30);
    int error = pthread_mutex_timedlock((pthread_mutex_t *)mutex, &at);
    return (void *)(intptr_t)(error == ETIMEDOUT && is_past(CLOCK_REALTIME, at));
}

static intptr_t of(void *(*body)(void *), void *argument)
{
    return (intptr_t)join(start(body, argument));
}

static void mutexes(void)
{
    pthread_t four[4];
    for (int at = 0; at < 4; at++)
        four[at] = start(counts, NULL);
    for (int at = 0; at < 4; at++)
        join(four[at]);
    claim("pthread_mutex_lock", "one at a time", count == 20000);
    pthread_mutex_lock(&guard);
    claim("pthread_mutex_trylock", "EBUSY", of(tries, &guard) == EBUSY);
    claim("pthread_mutex_timedlock", "ETIMEDOUT, and not before", of(locks_in_time, &guard) == 1);
    struct timespec past = {0, 0};
    pthread_mutex_unlock(&guard);
    claim("pthread_mutex_timedlock", "a free one at once",
          pthread_mutex_timedlock(&guard, &past) == 0);
    pthread_mutex_unlock(&guard);
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    claim("pthread_mutex_init", "a recursive one", pthread_mutex_init(&recursive, &attr) == 0);
    int locked = pthread_mutex_lock(&recursive) | pthread_mutex_lock(&recursive);
    claim("pthread_mutex_lock", "again, recursive", locked == 0);
    claim("pthread_mutex_trylock", "again, recursive", pthread_mutex_trylock(&recursive) == 0);
    int unlocked = pthread_mutex_unlock(&recursive) | pthread_mutex_unlock(&recursive);
    claim("pthread_mutex_unlock", "held until as many",
          unlocked == 0 && of(tries, &recursive) == EBUSY);
    claim("pthread_mutex_unlock", "EPERM for others, recursive",
          of(unlocks_it, &recursive) == EPERM);
    pthread_mutex_unlock(&recursive);
    claim("pthread_mutex_unlock", "EPERM when free, recursive",
          pthread_mutex_unlock(&recursive) == EPERM);
    claim("pthread_mutex_destroy", "a free one", pthread_mutex_destroy(&recursive) == 0);
    claim("pthread_mutex_init", "again, after its end", pthread_mutex_init(&recursive, &attr) == 0);
#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
    locked = pthread_mutex_lock(&recursive_at_once) | pthread_mutex_lock(&recursive_at_once);
    claim("PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP", "locked twice", locked == 0);
#endif
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&careful, &attr);
    pthread_mutex_lock(&careful);
    claim("pthread_mutex_lock", "EDEADLK, errorcheck", pthread_mutex_lock(&careful) == EDEADLK);
    claim("pthread_mutex_trylock", "EBUSY, errorcheck", pthread_mutex_trylock(&careful) == EBUSY);
    claim("pthread_mutex_unlock", "EPERM for others, errorcheck",
          of(unlocks_it, &careful) == EPERM);
    pthread_mutex_unlock(&careful);
    pthread_spinlock_t spin;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    int spun = pthread_spin_lock(&spin) | (pthread_spin_trylock(&spin) ^ EBUSY);
    spun |= pthread_spin_unlock(&spin) | pthread_spin_destroy(&spin);
    claim("pthread_spin_lock", "held, EBUSY for whoever tries, free", spun == 0);
}

/* Conditions. */

static int turns, waiting;
static sem_t woken;

static void *waits(void *argument)
{
    pthread_mutex_lock(&guard);
    waiting++;
    sem_post(&ready);
    while (turns == 0)
        pthread_cond_wait(&changed, &guard);
    turns--;
    pthread_mutex_unlock(&guard);
    sem_post(&woken);
    return argument;
}

static void *tells(void *argument)
{
    pthread_mutex_lock(&recursive);
    turns = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&recursive);
    return argument;
}

static void conditions(void)
{
    pthread_t three[3];
    sem_init(&woken, 0, 0);
    for (int at = 0; at < 3; at++) {
        three[at] = start(waits, NULL);
        sem_wait(&ready);
    }
    pthread_mutex_lock(&guard);
    turns = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&guard);
    sem_wait(&woken);
    struct timespec soon = after(CLOCK_REALTIME, 20);
    int more = sem_timedwait(&woken, &soon) == -1 ? errno : 0;
    claim("pthread_cond_signal", "one thread goes on", more == ETIMEDOUT);
    pthread_mutex_lock(&guard);
    turns = 2;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&guard);
    for (int at = 0; at < 3; at++)
        join(three[at]);
    claim("pthread_cond_broadcast", "all go on", turns == 0 && waiting == 3);
    pthread_mutex_lock(&guard);
    soon = after(CLOCK_REALTIME, 20);
    int error = 0;
    while (error == 0)
        error = pthread_cond_timedwait(&changed, &guard, &soon);
    claim("pthread_cond_timedwait", "ETIMEDOUT, and not before",
          error == ETIMEDOUT && is_past(CLOCK_REALTIME, soon));
    claim("pthread_cond_timedwait", "the mutex is held again", of(tries, &guard) == EBUSY);
    struct timespec wrong = {0, 1000000000};
    claim("pthread_cond_timedwait", "EINVAL",
          pthread_cond_timedwait(&changed, &guard, &wrong) == EINVAL);
    pthread_mutex_unlock(&guard);
    pthread_condattr_t attr;
    pthread_cond_t monotonic;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    claim("pthread_cond_init", "with CLOCK_MONOTONIC", pthread_cond_init(&monotonic, &attr) == 0);
    pthread_mutex_lock(&guard);
    soon = after(CLOCK_MONOTONIC, 20);
    for (error = 0; error == 0;)
        error = pthread_cond_timedwait(&monotonic, &guard, &soon);
    claim("pthread_cond_timedwait", "by CLOCK_MONOTONIC",
          error == ETIMEDOUT && is_past(CLOCK_MONOTONIC, soon));
    pthread_mutex_unlock(&guard);
    claim("pthread_cond_destroy", "one that nobody waits for",
          pthread_cond_destroy(&monotonic) == 0);
    claim("pthread_cond_signal", "with nobody", pthread_cond_signal(&changed) == 0);
    pthread_mutex_lock(&recursive);
    pthread_t teller = start(tells, NULL);
    for (turns = 0; turns == 0;)
        pthread_cond_wait(&changed, &recursive);
    claim("pthread_cond_wait", "a recursive mutex is free meanwhile", turns == 1);
    pthread_mutex_unlock(&recursive);
    join(teller);
}

/* Locks for readers and writers. */

static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;

static void *tries_to_read(void *argument)
{
    (void)argument;
    int error = pthread_rwlock_tryrdlock(&readers);
    if (error == 0)
        pthread_rwlock_unlock(&readers);
    return (void *)(intptr_t)error;
}

static void *tries_to_write(void *argument)
{
    (void)argument;
    int error = pthread_rwlock_trywrlock(&readers);
    if (error == 0)
        pthread_rwlock_unlock(&readers);
    return (void *)(intptr_t)error;
}

static void *writes_in_time(void *argument)
{
    (void)argument;
    struct timespec at = after(CLOCK_REALTIME, 20);
    return (void *)(intptr_t)pthread_rwlock_timedwrlock(&readers, &at);
}

static void *reads_in_time(void *argument)
{
    (void)argument;
    struct timespec at = after(CLOCK_REALTIME, 20);
    return (void *)(intptr_t)pthread_rwlock_timedrdlock(&readers, &at);
}

static void readers_and_writers(void)
{
    claim("pthread_rwlock_rdlock", "a free one", pthread_rwlock_rdlock(&readers) == 0);
    claim("pthread_rwlock_rdlock", "again", pthread_rwlock_rdlock(&readers) == 0);
    claim("pthread_rwlock_tryrdlock", "beside a reader", of(tries_to_read, NULL) == 0);
    claim("pthread_rwlock_trywrlock", "EBUSY beside a reader", of(tries_to_write, NULL) == EBUSY);
    claim("pthread_rwlock_timedwrlock", "ETIMEDOUT", of(writes_in_time, NULL) == ETIMEDOUT);
    pthread_rwlock_unlock(&readers);
    claim("pthread_rwlock_unlock", "held until as many", of(tries_to_write, NULL) == EBUSY);
    pthread_rwlock_unlock(&readers);
    claim("pthread_rwlock_wrlock", "a free one", pthread_rwlock_wrlock(&readers) == 0);
    claim("pthread_rwlock_wrlock", "EDEADLK", pthread_rwlock_wrlock(&readers) == EDEADLK);
    claim("pthread_rwlock_tryrdlock", "EBUSY beside a writer", of(tries_to_read, NULL) == EBUSY);
    claim("pthread_rwlock_timedrdlock", "ETIMEDOUT", of(reads_in_time, NULL) == ETIMEDOUT);
    claim("pthread_rwlock_unlock", "the writer's", pthread_rwlock_unlock(&readers) == 0);
    claim("pthread_rwlock_unlock", "free for a writer", of(tries_to_write, NULL) == 0);
}

/* Barriers, and what is called once. */

static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static int calls, inner_calls, early, serials;

static void *comes_to_barrier(void *argument)
{
    for (int turn = 0; turn < 10; turn++) {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
    }
    return argument;
}

static void inner_routine(void)
{
    inner_calls++;
}

static void routine(void)
{
    calls++;
    pthread_once(&inner, inner_routine);
    usleep(20000);
    calls++;
}

static void *calls_once(void *argument)
{
    pthread_once(&once, routine);
    if (calls != 2)
        __atomic_add_fetch(&early, 1, __ATOMIC_RELAXED);
    return argument;
}

static void barriers_and_once(void)
{
    pthread_t eight[8];
    claim("pthread_barrier_init", "EINVAL for 0",
          pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
    claim("pthread_barrier_init", "for 8", pthread_barrier_init(&barrier, NULL, 8) == 0);
    for (int at = 0; at < 8; at++)
        eight[at] = start(comes_to_barrier, NULL);
    for (int at = 0; at < 8; at++)
        join(eight[at]);
    claim("pthread_barrier_wait", "one of 8 is PTHREAD_BARRIER_SERIAL_THREAD", serials == 10);
    claim("pthread_barrier_destroy", "nobody waits", pthread_barrier_destroy(&barrier) == 0);
    for (int at = 0; at < 8; at++)
        eight[at] = start(calls_once, NULL);
    for (int at = 0; at < 8; at++)
        join(eight[at]);
    claim("pthread_once", "once by 8", calls == 2 && inner_calls == 1);
    claim("pthread_once", "has been called when it returns", early == 0);
}

/* Keys. */

static pthread_key_t key, stubborn, deleted;
static int destructed, again;
static void *last;
static __thread int own = 5;

static void destruct(void *value)
{
    destructed++;
    last = value;
}

static void sets_again(void *value)
{
    again++;
    pthread_setspecific(stubborn, value);
}

static void *sets(void *argument)
{
    int was_null = pthread_getspecific(key) == NULL;
    pthread_setspecific(key, argument);
    pthread_setspecific(stubborn, argument);
    pthread_setspecific(deleted, argument);
    pthread_key_delete(deleted);
    int is_set = pthread_getspecific(key) == argument;
    is_set &= own++ == 5;
    return (void *)(intptr_t)(was_null && is_set);
}

static void keys(void)
{
    int value = 0;
    pthread_key_create(&key, destruct);
    pthread_key_create(&stubborn, sets_again);
    pthread_key_create(&deleted, destruct);
    claim("pthread_getspecific", "NULL at first", pthread_getspecific(key) == NULL);
    pthread_setspecific(key, &count);
    claim("pthread_setspecific", "a value of each thread", of(sets, &value) == 1);
    claim("pthread_getspecific", "as it was here", pthread_getspecific(key) == &count);
    claim("pthread_key_create", "the destructor has the value", destructed == 1 && last == &value);
    claim("pthread_key_create", "again, and not for ever", again > 0 && again <= 4);
    claim("pthread_key_delete", "no destructor", destructed == 1);
    pthread_setspecific(key, NULL);
    pthread_key_delete(key);
    pthread_key_create(&key, NULL);
    claim("pthread_key_create", "NULL in every thread", pthread_getspecific(key) == NULL);
    claim("pthread_setspecific", "EINVAL for no key", pthread_setspecific(100000, NULL) == EINVAL);
    claim("__thread", "new in each thread", of(sets, &value) == 1 && own == 5);
}

/* Semaphores, signals, names, and the clock. */

static volatile sig_atomic_t heard;

static void hears(int number)
{
    heard = number;
}

static void *posts(void *argument)
{
    usleep(1000);
    sem_post((sem_t *)argument);
    return NULL;
}

static void others(void)
{
    sem_t sem;
    int permits = -1;
    claim("sem_init", "with permits", sem_init(&sem, 0, 2) == 0);
    sem_getvalue(&sem, &permits);
    claim("sem_getvalue", "the permits", permits == 2);
    sem_wait(&sem);
    claim("sem_trywait", "a permit", sem_trywait(&sem) == 0);
    claim("sem_trywait", "EAGAIN", sem_trywait(&sem) == -1 && errno == EAGAIN);
    struct timespec soon = after(CLOCK_REALTIME, 20);
    int error = sem_timedwait(&sem, &soon) == -1 ? errno : 0;
    claim("sem_timedwait", "ETIMEDOUT, and not before",
          error == ETIMEDOUT && is_past(CLOCK_REALTIME, soon));
    pthread_t thread = start(posts, &sem);
    claim("sem_post", "whoever waits goes on", sem_wait(&sem) == 0);
    join(thread);
    claim("sem_destroy", "nobody waits", sem_destroy(&sem) == 0);
    signal(SIGUSR1, hears);
    claim("pthread_kill", "0 asks only", pthread_kill(pthread_self(), 0) == 0);
    pthread_kill(pthread_self(), SIGUSR1);
    claim("pthread_kill", "the caller has it at once", heard == SIGUSR1);
    soon = after(CLOCK_MONOTONIC, 5);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &soon, NULL);
    claim("clock_nanosleep", "not before", is_past(CLOCK_MONOTONIC, soon));
    struct sched_param parameters;
    int policy = -1;
    error = pthread_getschedparam(pthread_self(), &policy, &parameters);
    claim("pthread_getschedparam", "no real-time class at first",
          error == 0 && policy == SCHED_OTHER);
}

#ifdef PUNCTUAL_PTHREAD_H
/* Priorities that an ordinary user has here, and what is refused. */

pthread_t self_elsewhere(void);
#ifdef __cplusplus
bool times_out(void);
#endif
static int began;

static void *begins(void *argument)
{
    began = 1;
    return argument;
}

static void only_here(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    struct sched_param ten;
    ten.sched_priority = 10;
    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &ten);
#if PUNCTUAL_PTHREAD_TIMESLICE_NS == 0
    pthread_create(&thread, &attr, begins, NULL);
    claim("pthread_attr_setschedparam", "a more urgent thread begins at once", began == 1);
    join(thread);
    began = pthread_setschedparam(pthread_self(), SCHED_FIFO, &ten);
    thread = start(begins, NULL);
    claim("pthread_setschedparam", "as urgent as the caller: later", began == 0);
    join(thread);
#else
    thread = start(begins, NULL);
    while (!__atomic_load_n(&began, __ATOMIC_RELAXED))
        ;
    claim("PUNCTUAL_PTHREAD_TIMESLICE_NS", "a loop that waits for a variable ends", began == 1);
    join(thread);
#endif
    ten.sched_priority = 0;
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &ten);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 20);
    int error = pthread_create(&thread, &attr, begins, NULL);
    claim("pthread_create", "EAGAIN for a stack beyond what is reserved", error == EAGAIN);
    pthread_mutex_t mutex;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_PROTECT);
    pthread_mutexattr_setprioceiling(&kind, 20);
    error = pthread_mutex_init(&mutex, &kind) | pthread_mutex_lock(&mutex);
    error |= pthread_mutex_unlock(&mutex) | pthread_mutex_destroy(&mutex);
    claim("pthread_mutex_init", "with a ceiling", error == 0);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    claim("pthread_mutex_init", "ENOTSUP, robust", pthread_mutex_init(&mutex, &kind) == ENOTSUP);
    error = pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    claim("pthread_setcanceltype", "ENOTSUP, asynchronous", error == ENOTSUP);
    claim("pthread_self", "the same in every file", self_elsewhere() == pthread_self());
#ifdef __cplusplus
    claim("std::condition_variable", "times out, as one of the C library", times_out());
#endif
}
#endif

static void *ends_last(void *argument)
{
    usleep(20000);
    printf("last\n");
    return argument;
}

static void *ends_all(void *argument)
{
    printf("deep\n");
    exit((int)(intptr_t)argument);
}

int main(int count_of, char **arguments)
{
    const char *way = count_of > 1 ? arguments[1] : "";
    if (strcmp(way, "exit") == 0) {
        start(ends_last, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(way, "code") == 0) {
        start(sleeps, NULL);
        return 7;
    }
    if (strcmp(way, "deep") == 0)
        join(start(ends_all, (void *)3));
    threads();
    attributes();
    cancellation();
    mutexes();
    conditions();
    readers_and_writers();
    barriers_and_once();
    keys();
    others();
#ifdef PUNCTUAL_PTHREAD_H
    only_here();
#endif
    int claims = 0, kept = 0;
    for (int row = 0; row < ROWS && rows[row].function; row++) {
        printf("| `%s` | %d of %d |\n", rows[row].function, rows[row].kept, rows[row].claims);
        claims += rows[row].claims;
        kept += rows[row].kept;
    }
    printf("%d of %d claims are kept\n", kept, claims);
    return kept == claims ? 0 : 1;
}
