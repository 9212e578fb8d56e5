/* Two threads that fit, and one too many: who would be late, and what would mend it.
 *
 *     cc -o admission admission.c $(pkg-config --cflags --libs punctual) && ./admission
 */
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

enum { CPU = 0 };
static const uint64_t MS = 1000000;

static void *wait_for_end(void *argument)
{
    /* Until somebody cancels it: PUNCTUAL_CANCELLED. */
    while (punctual_wait_next_period(NULL) == PUNCTUAL_OK)
        ;
    return argument;
}

/* Prints the reason of the last refusal: asks how long it is, then for the text. */
static int print_why(uint32_t form)
{
    size_t length = 0;
    if (punctual_why(form, NULL, 0, &length) != PUNCTUAL_TRUNCATED)
        return 0;
    char *text = malloc(length + 1);
    int printed = text && punctual_why(form, text, length + 1, NULL) == PUNCTUAL_OK;
    if (printed)
        puts(text);
    free(text);
    return printed;
}

static void *first(void *argument)
{
    static const char *const names[] = {"camera", "planner", "one-too-many"};
    punctual_thread threads[3] = {{0}, {0}, {0}};
    int *admitted = argument;
    for (int i = 0; i < 3; i++) {
        /* 40 percent of the processor each. */
        punctual_constraint asks = punctual_periodic(10 * MS, 4 * MS);
        punctual_status status =
            punctual_thread_create(&threads[i], names[i], &asks, wait_for_end, NULL);
        printf("%s: %s\n", names[i], punctual_strerror(status));
        if (status == PUNCTUAL_OK)
            ++*admitted;
        else if (status != PUNCTUAL_REFUSED || !print_why(PUNCTUAL_TEXT) ||
                 !print_why(PUNCTUAL_JSON))
            return NULL;
    }
    for (int i = 0; i < *admitted; i++) {
        /* Cancelling is a wish: the thread hears of it in its call, and returns by itself. */
        if (punctual_thread_cancel(threads[i]) != PUNCTUAL_OK ||
            punctual_thread_join(threads[i], PUNCTUAL_FOREVER, NULL) != PUNCTUAL_OK)
            return NULL;
    }
    return admitted;
}

int main(void)
{
    int admitted = 0;
    punctual_cpu cpu = punctual_cpu_with(CPU, PUNCTUAL_EARLIEST_DEADLINE, first, &admitted);
    punctual_options options = punctual_defaults();
    /* Every machine answers the same. Leave it out to have the costs of yours counted. */
    options.without_terms = 1;
    void *done = NULL;
    punctual_status status = punctual_run(&cpu, &options, &done);
    if (status != PUNCTUAL_OK) {
        fprintf(stderr, "run: %s\n", punctual_strerror(status));
        return 1;
    }
    return done == &admitted && admitted == 2 ? 0 : 1;
}
