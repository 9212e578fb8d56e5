/* A second file of the program of `posix.c`. */
#include <pthread.h>

#ifdef __cplusplus
#include <chrono>
#include <condition_variable>
#include <mutex>

bool times_out(void);

bool times_out(void)
{
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock<std::mutex> locked(mutex);
    return condition.wait_for(locked, std::chrono::milliseconds(1)) == std::cv_status::timeout;
}
#endif

pthread_t self_elsewhere(void);

pthread_t self_elsewhere(void)
{
    return pthread_self();
}
