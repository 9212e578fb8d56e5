/* A producer and a consumer: messages through a queue, and a sum that both guard by a mutex.
 *
 *     cc -o pipeline pipeline.c $(pkg-config --cflags --libs punctual) && ./pipeline
 */
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

enum { CPU = 0, MESSAGES = 1000, LINE = 8 };

struct reading {
    unsigned number;
    double value;
};

struct shared {
    punctual_queue line;
    punctual_mutex lock;
    unsigned sent, received; /* both under the lock */
};

/* What cannot fail in a program that is right ends this one if it does. */
static void must(punctual_status status, const char *what)
{
    if (status != PUNCTUAL_OK) {
        fprintf(stderr, "%s: %s\n", what, punctual_strerror(status));
        exit(1);
    }
}

static void *producer(void *argument)
{
    struct shared *shared = argument;
    for (unsigned number = 0; number < MESSAGES; number++) {
        struct reading reading = {number, 0.5 * number};
        must(punctual_queue_send(shared->line, &reading, PUNCTUAL_FOREVER), "send");
        must(punctual_mutex_lock(shared->lock, PUNCTUAL_FOREVER), "lock");
        shared->sent++;
        must(punctual_mutex_unlock(shared->lock), "unlock");
    }
    return NULL;
}

static void *consumer(void *argument)
{
    struct shared *shared = argument;
    for (unsigned number = 0; number < MESSAGES; number++) {
        struct reading reading;
        must(punctual_queue_receive(shared->line, &reading, PUNCTUAL_FOREVER), "receive");
        if (reading.number != number) {
            /* Its rule is to end the run: the producer would wait for it for good otherwise. */
            must(punctual_fail("a message is out of order"), "fail");
            return NULL;
        }
        must(punctual_mutex_lock(shared->lock, PUNCTUAL_FOREVER), "lock");
        shared->received++;
        must(punctual_mutex_unlock(shared->lock), "unlock");
    }
    return shared;
}

static void *first(void *argument)
{
    struct shared *shared = argument;
    punctual_constraint low = punctual_aperiodic(1), high = punctual_aperiodic(2);
    punctual_thread from, to;
    void *done = NULL;
    must(punctual_queue_create(&shared->line, sizeof(struct reading), LINE), "queue");
    must(punctual_mutex_create(&shared->lock), "mutex");
    must(punctual_thread_create_with(&to, "consumer", &high, PUNCTUAL_END_RUN, consumer, shared),
         "consumer");
    must(punctual_thread_create(&from, "producer", &low, producer, shared), "producer");
    must(punctual_thread_join(from, PUNCTUAL_FOREVER, NULL), "join");
    must(punctual_thread_join(to, PUNCTUAL_FOREVER, &done), "join");
    must(punctual_queue_destroy(shared->line), "queue's end");
    must(punctual_mutex_destroy(shared->lock), "mutex's end");
    return done;
}

int main(void)
{
    struct shared shared = {{0}, {0}, 0, 0};
    punctual_cpu cpu = punctual_cpu_with(CPU, PUNCTUAL_FIXED_PRIORITY, first, &shared);
    void *done = NULL;
    punctual_status status = punctual_run(&cpu, NULL, &done);
    if (status != PUNCTUAL_OK) {
        char why[512] = "";
        /* With PUNCTUAL_OVER this says whose failure ended the run. */
        if (punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL) != PUNCTUAL_NOTHING)
            fprintf(stderr, "%s\n", why);
        must(status, "run");
    }
    printf("%u sent, %u received, in order\n", shared.sent, shared.received);
    return done == &shared && shared.received == MESSAGES ? 0 : 1;
}
