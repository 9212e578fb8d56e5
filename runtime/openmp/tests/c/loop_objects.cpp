// The items of a `taskloop` have objects of their own, each made where the item uses it.
#include <cstdio>
#include <cstdlib>
#include <string>

static long made, gone, wrong;

// It knows where it is, as a short string of the C++ library does.
class Object {
    const Object *self = this;
    long value;

public:
    explicit Object(long value) : value(value) {}
    Object(const Object &other) : value(other.value) {
        #pragma omp atomic
        made++;
    }
    Object &operator=(const Object &) = delete;
    ~Object() {
        #pragma omp atomic
        gone++;
        if (self != this) {
            #pragma omp atomic
            wrong++;
        }
    }
    long get() const { return self == this ? value : -1; }
};

static void note(bool right) {
    if (!right) {
        #pragma omp atomic
        wrong++;
    }
}

static void loops() {
    Object object(7);
    std::string word("short");
    // More items than a member keeps unstarted.
    #pragma omp taskloop firstprivate(object, word) num_tasks(200)
    for (int i = 0; i < 400; i++) {
        if (word.size() < 7) word += "x";
        note(object.get() == 7 && word[5] == 'x');
    }
    #pragma omp taskloop firstprivate(object, word) grainsize(1) nogroup
    for (unsigned long i = 20; i > 0; i--) note(object.get() == 7 && word == "short");
    #pragma omp taskwait
    #pragma omp taskloop firstprivate(object) if (0)
    for (int i = 0; i < 10; i++) note(object.get() == 7);
    #pragma omp taskloop firstprivate(object) final(1)
    for (int i = 0; i < 10; i++) note(object.get() == 7);
}

int main(int count, char **words) {
    int members = count > 1 ? std::atoi(words[1]) : 1;
    for (int round = 0; round < 20; round++) {
        #pragma omp parallel num_threads(members)
        #pragma omp single
        loops();
    }
    // The first one of each round was not copied.
    std::printf("%ld wrong, %s\n", wrong, made + 20 == gone && made > 0 ? "all gone" : "some left");
    return 0;
}
