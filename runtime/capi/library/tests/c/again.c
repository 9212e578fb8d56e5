/* Run after run in one process: memory, descriptors, mappings and threads stay as many. */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "is.h"

static const uint64_t MS = 1000000;

typedef struct {
    size_t kib, descriptors, mappings, threads;
} had;

static size_t entries(const char *path)
{
    size_t count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* A number behind some words, behind some others. */
static size_t number(const char *text, const char *first, const char *then)
{
    const char *at = strstr(text, first);
    at = at ? strstr(at, then) : NULL;
    if (!at)
        exit(2);
    return strtoul(at + strlen(then), NULL, 10);
}

/* KiB of all arenas of the allocator that are in use. */
static size_t allocated_kib(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file || malloc_info(0, file) != 0)
        exit(2);
    fclose(file);
    /* The sums of all come behind the last arena. */
    char *sums = text;
    for (char *next = text; (next = strstr(next, "</heap>")); next++)
        sums = next;
    size_t free_kib = (number(sums, "\"fast\"", "size=\"") + number(sums, "\"rest\"", "size=\"")) >> 10;
    size_t kib = number(sums, "\"current\"", "size=\"") >> 10;
    free(text);
    return kib - free_kib;
}

static had has(void)
{
    had now = {allocated_kib(), entries("/proc/self/fd"), 0, entries("/proc/self/task")};
    FILE *file = fopen("/proc/self/maps", "r");
    for (int letter; file && (letter = getc(file)) != EOF;)
        now.mappings += letter == '\n';
    if (file)
        fclose(file);
    return now;
}

static void *works(void *argument)
{
    for (int job = 0; job < 3; job++)
        IS(punctual_wait_next_period(NULL), PUNCTUAL_OK);
    return argument;
}

static void *first(void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_periodic(2 * MS, MS / 2);
    IS(punctual_thread_create(&thread, "works", &asks, works, NULL), PUNCTUAL_OK);
    IS(punctual_thread_join(thread, PUNCTUAL_FOREVER, NULL), PUNCTUAL_OK);
    return argument;
}

/* What so many runs leave behind, in KiB; all else stays. */
static size_t left_by(int runs, uint32_t without_terms)
{
    punctual_options options = punctual_defaults();
    options.without_terms = without_terms;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    had before = {0, 0, 0, 0};
    /* The first ones fill what is kept for later ones. */
    for (int run = -4; run < runs; run++) {
        if (run == 0)
            before = has();
        IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    }
    had after = has();
    if (after.descriptors != before.descriptors || after.threads != before.threads ||
        after.mappings > before.mappings + 4) {
        fprintf(stderr, "descriptors %zu, %zu; threads %zu, %zu; mappings %zu, %zu\n",
                before.descriptors, after.descriptors, before.threads, after.threads,
                before.mappings, after.mappings);
        exit(3);
    }
    return after.kib > before.kib ? after.kib - before.kib : 0;
}

int main(int count, char **arguments)
{
    int runs = count > 1 ? atoi(arguments[1]) : 8;
    size_t measured = left_by(runs, 0), plain = left_by(10 * runs, 1);
    /* The allocator keeps about 1 KiB for each of 65 threads, and of those that measure. */
    if (measured > (size_t)runs * 90 || plain > (size_t)runs * 10 * 90) {
        fprintf(stderr, "%d runs left %zu KiB, %d without terms %zu\n", runs, measured, 10 * runs,
                plain);
        return 4;
    }
    puts("run after run, nothing is left");
    return 0;
}
