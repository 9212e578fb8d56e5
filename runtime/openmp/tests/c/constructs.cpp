// Every construct in C++: those of `constructs.c`, and such as copy and destroy objects.
#define main constructs_in_c
#include "constructs.c"
#undef main

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

// How many objects there are: each copy that a construct makes has to be destroyed.
static long alive;

struct Object {
    std::vector<long> values;
    Object() { count(1); }
    explicit Object(long value) : values(20, value) { count(1); }
    Object(const Object &other) : values(other.values) { count(1); }
    Object &operator=(const Object &) = default;
    ~Object() { count(-1); }
    static void count(long by) {
        #pragma omp atomic
        alive += by;
    }
    long sum() const {
        long sum = 0;
        for (long value : values) sum += value;
        return sum;
    }
};

static std::vector<long> &join(std::vector<long> &into, const std::vector<long> &from) {
    into.insert(into.end(), from.begin(), from.end());
    return into;
}
#pragma omp declare reduction(join : std::vector<long> : join(omp_out, omp_in))

static void objects(int n) {
    Object own(3), last, given;
    long sum = 0, copies = 0;
    std::vector<long> all;
    #pragma omp parallel num_threads(n) firstprivate(own) reduction(+ : sum) private(given)
    {
        sum += own.sum();
        #pragma omp single copyprivate(given)
        given = Object(5);
        #pragma omp atomic
        copies += given.sum();
        #pragma omp for schedule(dynamic, 3) lastprivate(last)
        for (std::size_t i = 0; i < 50; i++) last = Object(static_cast<long>(i));
        #pragma omp for schedule(guided) reduction(join : all)
        for (long i = 0; i < 40; i++) all.push_back(i);
        #pragma omp critical(of_objects)
        own = given;
    }
    fail("firstprivate object", n, sum, 60L * n);
    fail("copyprivate object", n, copies, 100L * n);
    fail("lastprivate object", n, last.sum(), 980);
    long total = 0;
    for (long value : all) total += value;
    fail("declared reduction", n, total, 780);
}

// The argument of an item is copied when it is created, and destroyed behind it.
static void items_with_objects(int n) {
    long sum = 0, caught = 0;
    #pragma omp parallel num_threads(n)
    #pragma omp single
    #pragma omp taskgroup
    for (long i = 0; i < 60; i++) {
        Object argument(i);
        std::string text(static_cast<std::size_t>(i), 'x');
        #pragma omp task firstprivate(argument, text) untied
        {
            try {
                #pragma omp task
                Object(1);
                #pragma omp taskwait
                if (i % 3 == 0) throw std::runtime_error(text);
            } catch (const std::runtime_error &error) {
                #pragma omp taskyield
                if (text == error.what()) {
                    #pragma omp atomic
                    caught++;
                }
            }
            #pragma omp atomic
            sum += argument.sum();
        }
    }
    fail("objects of items", n, sum, 20L * 1770);
    fail("exceptions in items", n, caught, 20);
}

int main(int count, char **words) {
    omp_set_max_active_levels(3);
    for (int n = 1; n <= 8; n++) {
        objects(n), items_with_objects(n);
        #pragma omp parallel num_threads(2)
        objects(n), items_with_objects(n);
        int inner = 0;
        #pragma omp parallel num_threads(2) reduction(+ : inner)
        {
            Object object(1);
            #pragma omp parallel num_threads(n) firstprivate(object) reduction(+ : inner)
            inner += object.sum() == 20;
        }
        fail("nested objects", n, inner, 2L * n);
    }
    fail("objects left", 8, alive, 0);
    return constructs_in_c(count, words);
}
