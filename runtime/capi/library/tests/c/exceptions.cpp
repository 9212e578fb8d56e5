// Exceptions that leave bodies: each ends its thread, with its words, and nobody else.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "is.h"

static const uint64_t MS = 1000000;
static int ended;
static volatile int goes_on = 1;

struct Counted {
    ~Counted() { ended++; }
};

struct Silent : virtual std::runtime_error {
    explicit Silent(const std::string &sensor) : std::runtime_error(sensor + " is silent") {}
};

static void *throws_an_exception(void *argument)
{
    Counted counted;
    auto text = std::make_unique<std::string>("the sensor");
    punctual_sleep(MS);
    throw Silent(*text);
    return argument;
}

static void *throws_a_number(void *argument)
{
    Counted counted;
    throw 42;
    return argument;
}

static void *catches_its_own(void *argument)
{
    try {
        throws_a_number(argument);
    } catch (int) {
        return argument;
    }
    return nullptr;
}

static void *rounds(void *argument)
{
    while (goes_on)
        punctual_sleep(MS);
    return argument;
}

static void *locks_and_throws(void *argument)
{
    IS(punctual_mutex_lock(*static_cast<punctual_mutex *>(argument), PUNCTUAL_FOREVER), PUNCTUAL_OK);
    throw std::logic_error("in a lock");
}

static punctual_thread begin(punctual_body body, void *argument)
{
    punctual_thread thread;
    punctual_constraint asks = punctual_aperiodic(5);
    IS(punctual_thread_create(&thread, "in C++", &asks, body, argument), PUNCTUAL_OK);
    return thread;
}

static void why_is(const char *words)
{
    char text[300] = "";
    IS(punctual_why(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!std::strstr(text, words)) {
        std::fprintf(stderr, "not \"%s\": %s\n", words, text);
        std::exit(2);
    }
}

static void *first(void *argument)
{
    void *result = nullptr;
    punctual_mutex lock;
    IS(punctual_mutex_create(&lock), PUNCTUAL_OK);
    punctual_thread others = begin(rounds, &result);
    for (int round = 1; round < 4; round++) {
        IS(punctual_thread_join(begin(throws_an_exception, argument), PUNCTUAL_FOREVER, NULL),
           PUNCTUAL_FAILED);
        why_is("Silent: the sensor is silent");
        IS(punctual_thread_join(begin(throws_a_number, argument), PUNCTUAL_FOREVER, NULL),
           PUNCTUAL_FAILED);
        why_is("an exception left its body: int");
        IS(punctual_thread_join(begin(catches_its_own, &lock), PUNCTUAL_FOREVER, &result),
           PUNCTUAL_OK);
        if (ended != 3 * round || result != &lock)
            std::exit(3);
    }
    IS(punctual_thread_join(begin(locks_and_throws, &lock), PUNCTUAL_FOREVER, NULL), PUNCTUAL_FAILED);
    IS(punctual_mutex_lock(lock, 0), PUNCTUAL_OK);
    IS(punctual_mutex_unlock(lock), PUNCTUAL_OK);
    IS(punctual_mutex_destroy(lock), PUNCTUAL_OK);
    goes_on = 0;
    IS(punctual_thread_join(others, PUNCTUAL_FOREVER, &result), PUNCTUAL_OK);
    return argument;
}

static void *throws_at_last(void *)
{
    throw std::runtime_error("no more");
}

int main()
{
    char text[4096] = "";
    punctual_options options = punctual_defaults();
    options.without_terms = 1;
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, first, NULL);
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OK);
    IS(punctual_report(PUNCTUAL_TEXT, text, sizeof text, NULL), PUNCTUAL_OK);
    if (!std::strstr(text, "`in C++` failed: an exception left its body: Silent"))
        std::exit(4);
    cpu.first = throws_at_last;
    IS(punctual_run(&cpu, &options, NULL), PUNCTUAL_OVER);
    why_is("std::runtime_error: no more");
    std::puts("an exception ends its thread and nobody else");
    return 0;
}
