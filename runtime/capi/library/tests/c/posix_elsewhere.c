/* A second file of the program of `posix.c`. */
#include <pthread.h>

pthread_t self_elsewhere(void);

pthread_t self_elsewhere(void)
{
    return pthread_self();
}
