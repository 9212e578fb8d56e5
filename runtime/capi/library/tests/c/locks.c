/* Readers and writers, and uses of a spin mutex: what they do, and what a program can do wrong. */
#include <string.h>

#include "is.h"

enum { READERS = PUNCTUAL_READERS };
static const uint64_t MS = 1000000;
static punctual_rwlock table;
static punctual_spin spin;
static punctual_mutex lock;
static punctual_semaphore go_on;
static int inside, most_inside;

static void outside(void)
{
    char odd[2 * sizeof table];
    void *misaligned = odd + ((uintptr_t)odd % 2 ? 0 : 1);
    IS(punctual_rwlock_create(NULL), PUNCTUAL_INVALID);
    IS(punctual_rwlock_create(misaligned), PUNCTUAL_INVALID);
    IS(punctual_rwlock_read(table, 0), PUNCTUAL_STALE);
    IS(punctual_rwlock_create(&table), PUNCTUAL_OK);
    IS(punctual_rwlock_read(table, PUNCTUAL_FOREVER), PUNCTUAL_NO_RUN);
    IS(punctual_rwlock_write(table, 0), PUNCTUAL_NO_RUN);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_NOT_HELD);
    IS(punctual_rwlock_destroy(table), PUNCTUAL_OK);
    IS(punctual_rwlock_destroy(table), PUNCTUAL_STALE);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_STALE);
    IS(punctual_spin_create(NULL), PUNCTUAL_INVALID);
    IS(punctual_spin_create(misaligned), PUNCTUAL_INVALID);
    IS(punctual_spin_destroy(spin), PUNCTUAL_STALE);
    IS(punctual_semaphore_permits(go_on, NULL), PUNCTUAL_INVALID);
}

static punctual_thread begin(const char *name, uint32_t priority, punctual_body body)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(priority);
    IS(punctual_thread_create(&thread, name, &asks, body, NULL), PUNCTUAL_OK);
    return thread;
}

static void end(punctual_thread thread)
{
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
}

static void *reads(void *argument)
{
    IS(punctual_rwlock_read(table, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    if (++inside > most_inside)
        most_inside = inside;
    IS(punctual_semaphore_take(go_on, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    inside--;
    IS(punctual_rwlock_unlock(table), PUNCTUAL_OK);
    return argument;
}

static void *writes(void *argument)
{
    IS(punctual_rwlock_write(table, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    if (inside != 0)
        exit(2);
    /* It ends without unlocking. */
    return argument;
}

static void *is_cancelled(void *argument)
{
    IS(punctual_rwlock_write(table, PUNCTUAL_FOREVER), PUNCTUAL_CANCELLED);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_NOT_HELD);
    return argument;
}

static void readers_and_writers(void)
{
    punctual_thread threads[READERS], writer;
    /* More urgent than this thread: each is in when its call returns. */
    for (int i = 0; i < READERS; i++)
        threads[i] = begin("reads", 5, reads);
    IS(punctual_rwlock_read(table, 0), PUNCTUAL_TIMED_OUT); /* as many as can be */
    IS(punctual_rwlock_write(table, MS), PUNCTUAL_TIMED_OUT);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_NOT_HELD);
    IS(punctual_rwlock_destroy(table), PUNCTUAL_BUSY);
    writer = begin("is cancelled", 5, is_cancelled);
    IS(punctual_thread_cancel(writer), PUNCTUAL_OK);
    end(writer);
    writer = begin("writes", 5, writes);
    for (int i = 0; i < READERS; i++)
        IS(punctual_semaphore_give(go_on), PUNCTUAL_OK);
    for (int i = 0; i < READERS; i++)
        end(threads[i]);
    end(writer);
    if (inside != 0 || most_inside != READERS)
        exit(3);

    IS(punctual_rwlock_read(table, 0), PUNCTUAL_OK); /* the writer that ended is out */
    IS(punctual_rwlock_read(table, 0), PUNCTUAL_ALREADY_HELD);
    IS(punctual_rwlock_write(table, 0), PUNCTUAL_ALREADY_HELD);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_OK);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_NOT_HELD);
    IS(punctual_rwlock_write(table, MS), PUNCTUAL_OK);
    IS(punctual_rwlock_read(table, MS), PUNCTUAL_ALREADY_HELD);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_OK);
}

static void use(void *argument)
{
    uint64_t now = 0;
    int *times = argument;
    ++*times;
    punctual_constraint asks = punctual_aperiodic(9);
    punctual_timer timer = {0, 0};
    IS(punctual_spin_with(spin, use, argument), PUNCTUAL_NO_RUN);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_NO_RUN); /* held, and still afterwards */
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_NO_RUN);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_NO_RUN);
    IS(punctual_semaphore_give(go_on), PUNCTUAL_NO_RUN);
    IS(punctual_sleep(1000 * MS), PUNCTUAL_NO_RUN);
    IS(punctual_sleep_until(PUNCTUAL_FOREVER), PUNCTUAL_NO_RUN);
    IS(punctual_timer_wait(&timer, NULL), PUNCTUAL_NO_RUN);
    IS(punctual_block(PUNCTUAL_FOREVER), PUNCTUAL_NO_RUN);
    IS(punctual_yield(), PUNCTUAL_NO_RUN);
    IS(punctual_wait_next_period(NULL), PUNCTUAL_NO_RUN);
    IS(punctual_thread_create(NULL, "no", &asks, reads, NULL), PUNCTUAL_NO_RUN);
    IS(punctual_lock("no"), PUNCTUAL_NO_RUN);
    IS(punctual_unlock("no"), PUNCTUAL_NO_RUN);
    IS(punctual_fail("no"), PUNCTUAL_NO_RUN);
    IS(punctual_spin_destroy(spin), PUNCTUAL_BUSY);
    IS(punctual_now(&now), PUNCTUAL_OK);
}

static void uses(void)
{
    int times = 0;
    IS(punctual_spin_with(spin, NULL, NULL), PUNCTUAL_INVALID);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_OK);
    IS(punctual_rwlock_read(table, 0), PUNCTUAL_OK);
    IS(punctual_spin_with(spin, use, &times), PUNCTUAL_OK);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_OK);
    IS(punctual_rwlock_unlock(table), PUNCTUAL_OK);
    IS(punctual_spin_with(spin, use, &times), PUNCTUAL_OK);
    if (times != 2)
        exit(4);
}

static void *left_over(void *argument)
{
    IS(punctual_rwlock_read(table, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    punctual_block(PUNCTUAL_FOREVER);
    fprintf(stderr, "a call came back after the end of the run\n");
    exit(1);
    return argument;
}

static void *first(void *argument)
{
    uint64_t permits = 9;
    IS(punctual_semaphore_create(&go_on, 0), PUNCTUAL_OK);
    readers_and_writers();
    uses();
    IS(punctual_semaphore_give(go_on), PUNCTUAL_OK);
    IS(punctual_semaphore_permits(go_on, &permits), PUNCTUAL_OK);
    if (permits != 1)
        exit(5);
    IS(punctual_semaphore_destroy(go_on), PUNCTUAL_OK);
    begin("left over", 5, left_over);
    return argument;
}

int main(void)
{
    outside();
    /* Others come between. */
    punctual_options options = punctual_defaults();
    punctual_constraint asks = punctual_aperiodic(0);
    options.first_asks = &asks;
    /* What one run leaves is out of the way of the next. */
    for (int run = 0; run < 2; run++) {
        punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
        IS(punctual_rwlock_create(&table), PUNCTUAL_OK);
        IS(punctual_spin_create(&spin), PUNCTUAL_OK);
        IS(punctual_mutex_create(&lock), PUNCTUAL_OK);
        IS(punctual_spin_with(spin, use, NULL), PUNCTUAL_NO_RUN);
        IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
        IS(punctual_rwlock_destroy(table), PUNCTUAL_OK);
        IS(punctual_spin_destroy(spin), PUNCTUAL_OK);
        IS(punctual_mutex_destroy(lock), PUNCTUAL_OK);
    }
    puts("readers beside each other, writers alone, and every mistake is a code");
    return 0;
}
