/* What a C program can do wrong, and what is left over: every case is a code, none a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "is.h"

static const uint64_t MS = 1000000;
static punctual_mutex lock;
static punctual_condition told;
static punctual_queue line;
static punctual_semaphore permits;
static punctual_barrier meeting;
static punctual_flags flags;

static void outside(void)
{
    punctual_thread thread = {0};
    punctual_constraint asks = punctual_aperiodic(1);
    uint64_t now;
    int was;
    IS(punctual_now(&now), PUNCTUAL_NO_RUN);
    IS(punctual_thread_create(&thread, "a", &asks, NULL, NULL), PUNCTUAL_INVALID);
    IS(punctual_mutex_create(NULL), PUNCTUAL_INVALID);
    IS(punctual_mutex_create(&lock), PUNCTUAL_OK);
    IS(punctual_mutex_lock(lock, PUNCTUAL_FOREVER), PUNCTUAL_NO_RUN);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_NOT_HELD);
    IS(punctual_mutex_destroy(lock), PUNCTUAL_OK);
    IS(punctual_mutex_destroy(lock), PUNCTUAL_STALE);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_STALE);
    IS(punctual_queue_create(&line, 257, 1), PUNCTUAL_INVALID);
    IS(punctual_queue_create(&line, 8, 1), PUNCTUAL_OK);
    IS(punctual_queue_length(line, (size_t[]){0}), PUNCTUAL_NO_RUN);
    IS(punctual_queue_destroy(line), PUNCTUAL_OK);
    IS(punctual_why(PUNCTUAL_TEXT, NULL, 0, NULL), PUNCTUAL_NOTHING);
    IS(punctual_report(PUNCTUAL_TEXT, NULL, 0, NULL), PUNCTUAL_NOTHING);
    IS(punctual_was_real_time(&was), PUNCTUAL_NOTHING);
    IS(punctual_run(NULL, NULL, NULL), PUNCTUAL_INVALID);
    IS(punctual_thread_join(thread, 0, NULL), PUNCTUAL_NO_RUN);
    IS(punctual_promise_checkpoints(1000000), PUNCTUAL_NO_RUN);
    IS(punctual_checkpoint(), PUNCTUAL_OK);
}

static void *returns(void *argument)
{
    return argument;
}

static void *waits(void *argument)
{
    int *cancelled = argument;
    IS(punctual_semaphore_take(permits, PUNCTUAL_FOREVER), PUNCTUAL_CANCELLED);
    IS(punctual_semaphore_take(permits, PUNCTUAL_FOREVER), PUNCTUAL_CANCELLED);
    IS(punctual_sleep(PUNCTUAL_FOREVER), PUNCTUAL_CANCELLED);
    IS(punctual_block(PUNCTUAL_FOREVER), PUNCTUAL_CANCELLED);
    IS(punctual_promise_checkpoints(1000000), PUNCTUAL_OK);
    IS(punctual_checkpoint(), PUNCTUAL_CANCELLED);
    IS(punctual_promise_checkpoints(0), PUNCTUAL_OK);
    *cancelled = 1;
    return NULL;
}

static void *keeps(void *argument)
{
    /* It ends without unlocking. */
    IS(punctual_mutex_lock(lock, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    return argument;
}

static void *holds(void *argument)
{
    IS(punctual_mutex_lock(lock, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_semaphore_give(permits), PUNCTUAL_OK);
    IS(punctual_block(PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_OK);
    return argument;
}

/* Threads that the end of the run finds in a call: it does not come back. */
static int left;
static punctual_thread blocked;

static void came_back(punctual_status from)
{
    fprintf(stderr, "a call came back after the end of the run: %s\n", punctual_strerror(from));
    exit(1);
}

static void *left_in_a_semaphore(void *argument)
{
    IS(punctual_mutex_lock(lock, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    left++;
    came_back(punctual_semaphore_take(permits, PUNCTUAL_FOREVER));
    return argument;
}

static void *left_in_a_mutex(void *argument)
{
    left++;
    came_back(punctual_mutex_lock(lock, PUNCTUAL_FOREVER));
    return argument;
}

static void *left_blocked(void *argument)
{
    left++;
    came_back(punctual_block(PUNCTUAL_FOREVER));
    return argument;
}

static void *left_in_a_short_block(void *argument)
{
    left++;
    came_back(punctual_block(1000 * MS));
    return argument;
}

static void *left_yielding(void *argument)
{
    left++;
    came_back(punctual_yield_to(blocked, PUNCTUAL_FOREVER));
    return argument;
}

static void *left_joining(void *argument)
{
    left++;
    came_back(punctual_thread_join(blocked, PUNCTUAL_FOREVER, NULL));
    return argument;
}

static void *left_asleep(void *argument)
{
    left++;
    came_back(punctual_sleep(PUNCTUAL_FOREVER));
    return argument;
}

static punctual_thread begin(const char *name, punctual_body body, void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(5);
    IS(punctual_thread_create(&thread, name, &asks, body, argument), PUNCTUAL_OK);
    return thread;
}

static void threads(void)
{
    int here = 0, cancelled = 0, ended = 0;
    void *result = NULL;
    punctual_thread thread = begin("returns", returns, &here);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, &result), PUNCTUAL_OK);
    if (result != &here)
        exit(2);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, &result), PUNCTUAL_STALE);
    IS(punctual_thread_wake(thread), PUNCTUAL_STALE);

    thread = begin("waits", waits, &cancelled);
    IS(punctual_thread_join(thread, MS, NULL), PUNCTUAL_TIMED_OUT);
    IS(punctual_thread_has_ended(thread, &ended), PUNCTUAL_OK);
    IS(punctual_semaphore_destroy(permits), PUNCTUAL_BUSY);
    IS(punctual_thread_cancel(thread), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(punctual_semaphore_destroy(permits), PUNCTUAL_OK);
    IS(punctual_semaphore_create(&permits, 0), PUNCTUAL_OK);
    if (ended || !cancelled)
        exit(3);

    punctual_constraint asks = punctual_aperiodic(1), wrong = asks;
    wrong.size = 1;
    IS(punctual_thread_create(&thread, "w", &wrong, returns, NULL), PUNCTUAL_INVALID);
    wrong = asks;
    wrong.on_overrun = PUNCTUAL_STOP;
    IS(punctual_thread_create(&thread, "w", &wrong, returns, NULL), PUNCTUAL_INVALID);
    wrong = asks;
    wrong.kind = 77;
    IS(punctual_thread_create(&thread, "w", &wrong, returns, NULL), PUNCTUAL_INVALID);
    wrong = punctual_periodic(0, 1);
    IS(punctual_thread_create(&thread, "w", &wrong, returns, NULL), PUNCTUAL_INVALID);
    IS(punctual_thread_create(&thread, NULL, &asks, returns, NULL), PUNCTUAL_INVALID);
    IS(punctual_thread_create(&thread, "w", NULL, returns, NULL), PUNCTUAL_INVALID);
    IS(punctual_thread_create(NULL, "alone", &asks, returns, NULL), PUNCTUAL_OK);
    IS(punctual_thread_self(NULL), PUNCTUAL_INVALID);
    IS(punctual_wait_next_period(NULL), PUNCTUAL_NO_NEXT_JOB);
    for (int i = 0; i < 200; i++)
        IS(punctual_thread_join(begin("many", returns, NULL), PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
}

static void locks(void)
{
    punctual_thread thread = begin("holds", holds, NULL);
    IS(punctual_semaphore_take(permits, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_TIMED_OUT);
    IS(punctual_mutex_lock(lock, MS), PUNCTUAL_TIMED_OUT);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_NOT_HELD);
    IS(punctual_mutex_destroy(lock), PUNCTUAL_BUSY);
    IS(punctual_thread_wake(thread), PUNCTUAL_OK);
    IS(punctual_mutex_lock(lock, PUNCTUAL_FOREVER), PUNCTUAL_OK);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_ALREADY_HELD);
    IS(punctual_mutex_destroy(lock), PUNCTUAL_BUSY);
    IS(punctual_condition_wait(told, lock, MS), PUNCTUAL_TIMED_OUT);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_OK);
    IS(punctual_condition_wait(told, lock, MS), PUNCTUAL_NOT_HELD);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);

    thread = begin("keeps", keeps, NULL);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_OK);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_OK);
    punctual_mutex other;
    IS(punctual_mutex_create_ceiling(&other, PUNCTUAL_CEILING_BACKGROUND, 9), PUNCTUAL_OK);
    IS(punctual_mutex_lock(other, MS), PUNCTUAL_OK);
    IS(punctual_mutex_unlock(other), PUNCTUAL_OK);
    IS(punctual_mutex_destroy(other), PUNCTUAL_OK);
    IS(punctual_mutex_create_ceiling(&other, 3, 9), PUNCTUAL_INVALID);
}

static void messages(void)
{
    char in[64] = "a message", out[64] = "";
    size_t length = 9;
    int last = 0;
    uint64_t found = 0;
    IS(punctual_queue_receive(line, out, MS), PUNCTUAL_TIMED_OUT);
    IS(punctual_queue_send(line, in, 0), PUNCTUAL_OK);
    IS(punctual_queue_send(line, in, MS), PUNCTUAL_TIMED_OUT);
    IS(punctual_queue_send(line, NULL, 0), PUNCTUAL_INVALID);
    IS(punctual_queue_length(line, &length), PUNCTUAL_OK);
    IS(punctual_queue_receive(line, out, 0), PUNCTUAL_OK);
    if (length != 1 || strcmp(in, out) != 0)
        exit(4);
    IS(punctual_barrier_wait(meeting, MS, &last), PUNCTUAL_OK);
    IS(punctual_flags_raise(flags, 6), PUNCTUAL_OK);
    IS(punctual_flags_raise(flags, 1ULL << 63), PUNCTUAL_INVALID);
    IS(punctual_flags_wait(flags, 3, PUNCTUAL_ALL, MS, &found), PUNCTUAL_TIMED_OUT);
    IS(punctual_flags_wait(flags, 3, PUNCTUAL_ANY | PUNCTUAL_TAKE, 0, &found), PUNCTUAL_OK);
    IS(punctual_flags_raised(flags, NULL), PUNCTUAL_INVALID);
    if (last != 1 || found != 2)
        exit(5);
    IS(punctual_flags_raised(flags, &found), PUNCTUAL_OK);
    if (found != 4)
        exit(5);
    punctual_timer timer;
    uint64_t passed = 0;
    IS(punctual_timer_set(&timer, MS, MS), PUNCTUAL_OK);
    IS(punctual_timer_wait(&timer, &passed), PUNCTUAL_OK);
    if (passed == 0)
        exit(6);
    IS(punctual_block(MS), PUNCTUAL_TIMED_OUT);
    IS(punctual_lock("none"), PUNCTUAL_UNKNOWN);
    IS(punctual_lock_shared("none"), PUNCTUAL_UNKNOWN);
    IS(punctual_lock_within("none", 0), PUNCTUAL_UNKNOWN);
    IS(punctual_lock(NULL), PUNCTUAL_INVALID);
    IS(punctual_unlock("none"), PUNCTUAL_UNKNOWN);
}

static void leave_some(void)
{
    left = 0;
    begin("in a semaphore", left_in_a_semaphore, NULL);
    begin("in a mutex", left_in_a_mutex, NULL);
    blocked = begin("blocked", left_blocked, NULL);
    begin("in a short block", left_in_a_short_block, NULL);
    begin("yielding", left_yielding, NULL);
    begin("joining", left_joining, NULL);
    begin("asleep", left_asleep, NULL);
    for (int looks = 0; looks < 30000 && left != 7; looks++)
        IS(punctual_sleep(MS), PUNCTUAL_OK);
    if (left != 7)
        exit(9);
}

static void *first(void *argument)
{
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, returns, NULL);
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_BUSY);
    IS(punctual_mutex_create(&lock), PUNCTUAL_OK);
    IS(punctual_condition_create(&told), PUNCTUAL_OK);
    IS(punctual_queue_create(&line, sizeof(char[64]), 1), PUNCTUAL_OK);
    IS(punctual_semaphore_create(&permits, 0), PUNCTUAL_OK);
    IS(punctual_barrier_create(&meeting, 1), PUNCTUAL_OK);
    IS(punctual_flags_create(&flags), PUNCTUAL_OK);
    threads();
    locks();
    messages();
    IS(punctual_condition_tell_all(told), PUNCTUAL_OK);
    IS(punctual_condition_destroy(told), PUNCTUAL_OK);
    IS(punctual_queue_destroy(line), PUNCTUAL_OK);
    IS(punctual_barrier_destroy(meeting), PUNCTUAL_OK);
    IS(punctual_flags_destroy(flags), PUNCTUAL_OK);
    leave_some();
    return argument;
}

int main(void)
{
    char text[16];
    size_t length = 0;
    void *result = NULL;
    outside();
    /* What one run leaves is out of the way of the next. */
    for (int run = 0; run < 2; run++) {
        punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, &result);
        IS(punctual_run(&cpu, NULL, &result), PUNCTUAL_OK);
        if (result != &result)
            exit(7);
        IS(punctual_mutex_destroy(lock), PUNCTUAL_OK);
    }
    punctual_cpu cpu = punctual_cpu_with(100000, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_CANNOT_RUN);
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, &length), PUNCTUAL_TRUNCATED);
    if (length < sizeof text || strlen(text) != sizeof text - 1)
        exit(8);
    IS(punctual_why(9, text, sizeof text, NULL), PUNCTUAL_INVALID);
    IS(punctual_report(PUNCTUAL_JSON, NULL, 0, &length), PUNCTUAL_TRUNCATED);
    puts("every case is a code");
    return 0;
}
