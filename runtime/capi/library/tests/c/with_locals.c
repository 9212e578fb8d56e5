/* A library with a thread-local of its own; with KEYS one that makes a key, too. */
static __thread int calls;

int of_a_library(void)
{
    return ++calls;
}

#ifdef KEYS
#include <pthread.h>

static pthread_key_t key;

__attribute__((constructor)) static void make(void)
{
    pthread_key_create(&key, 0);
}
#endif
