/* Threads that use one place of the pool one after the other share no thread-locals. (As C and as
 * C++, where objects are made and destroyed in each of them, too.) */
#include <string.h>

#include "is.h"

enum { THREADS = 30 };
static __thread int plain = 7;
static __thread char zero[300];
static __thread long aligned __attribute__((aligned(64))) = -1;

#ifdef __cplusplus
static int made, gone;
struct object {
    int value;
    object() : value(5) { made++; }
    ~object() { gone++; }
};
static thread_local object local;

static void use_object(int number)
{
    if (local.value != 5 || made != number + 1 || gone != number)
        exit(4);
    local.value = 6;
}
#else
static void use_object(int number)
{
    (void)number;
}
#endif

static void *looks(void *argument)
{
    const int *number = (const int *)argument;
    char nothing[sizeof zero] = {0};
    if (plain != 7 || aligned != -1 || memcmp(zero, nothing, sizeof zero) != 0)
        return NULL;
    if ((uintptr_t)&aligned % 64 != 0)
        exit(3);
    use_object(*number);
    plain = *number;
    aligned = *number;
    memset(zero, 1, sizeof zero);
    if (*number % 3 == 0)
        IS(punctual_sleep(1000000), PUNCTUAL_OK);
    return plain == *number ? argument : NULL;
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(5);
    for (int number = 0; number < THREADS; number++) {
        void *found = NULL;
        IS(punctual_thread_create(&thread, "one", &asks, looks, &number), PUNCTUAL_OK);
        IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, &found), PUNCTUAL_OK);
        if (!found) {
            fprintf(stderr, "thread %d found what another one left\n", number);
            exit(2);
        }
    }
    return argument;
}

/* A program that does not move has a stub of its own at this address: it has no allocator of its own. */
static void *(*volatile allocate)(size_t) = malloc;

int main(void)
{
    free(allocate(1));
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    punctual_options options = punctual_defaults();
    options.threads = 1;
    options.best_effort = 1;
    options.without_terms = 1;
    options.strict = 1;
    /* A program whose header knew no `strict` is told so. */
    options.size -= 8;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_INVALID);
    options.size += 8;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    printf("new in each of %d threads\n", THREADS);
    return 0;
}
