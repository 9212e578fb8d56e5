/* Threads, keys, and the start of `punctual_pthread.h`, which includes this. */
#ifndef PUNCTUAL_PTHREAD_THREADS_H
#define PUNCTUAL_PTHREAD_THREADS_H

/* Keys. */

PUNCTUAL_PTHREAD_ONE int punctual_pthread_key_create(pthread_key_t *key,
                                                     void (*destructor)(void *))
{
    for (pthread_key_t at = 0; at < PUNCTUAL_PTHREAD_KEYS; at++) {
        uint64_t none = 0;
        uint64_t made = __atomic_add_fetch(&punctual_pthread_keys_made, 1, __ATOMIC_RELAXED);
        if (!__atomic_compare_exchange_n(&punctual_pthread_keys[at].made, &none, made, 0,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        punctual_pthread_keys[at].destructor = destructor;
        *key = at;
        return 0;
    }
    return EAGAIN;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_key_delete(pthread_key_t key)
{
    if (key >= PUNCTUAL_PTHREAD_KEYS || punctual_pthread_keys[key].made == 0)
        return EINVAL;
    punctual_pthread_keys[key].destructor = NULL;
    __atomic_store_n(&punctual_pthread_keys[key].made, 0, __ATOMIC_RELEASE);
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_setspecific(pthread_key_t key, const void *value)
{
    struct punctual_pthread *self = punctual_pthread_current;
    if (!self || key >= PUNCTUAL_PTHREAD_KEYS || punctual_pthread_keys[key].made == 0)
        return EINVAL;
    self->values[key].made = punctual_pthread_keys[key].made;
    self->values[key].value = (void *)value;
    return 0;
}

PUNCTUAL_PTHREAD_ONE void *punctual_pthread_getspecific(pthread_key_t key)
{
    struct punctual_pthread *self = punctual_pthread_current;
    if (!self || key >= PUNCTUAL_PTHREAD_KEYS ||
        self->values[key].made != punctual_pthread_keys[key].made)
        return NULL;
    return self->values[key].value;
}

/* Threads. */

/* Frees a thread once nobody holds it. */
PUNCTUAL_PTHREAD_ONE void punctual_pthread_drop(struct punctual_pthread *thread)
{
    if (__atomic_sub_fetch(&thread->holders, 1, __ATOMIC_ACQ_REL) == 0)
        free(thread);
}

/* A frame that `pthread_exit` comes back to. */
__attribute__((noinline)) PUNCTUAL_PTHREAD_ONE void
punctual_pthread_call(struct punctual_pthread *self)
{
    if (setjmp(self->end) == 0)
        self->result = self->start(self->argument);
}

/* Executes a thread's function up to its end, whichever way it ends. */
PUNCTUAL_PTHREAD_ONE void *punctual_pthread_body(void *argument)
{
    struct punctual_pthread *self = (struct punctual_pthread *)argument;
    punctual_pthread_current = self;
    punctual_thread_self(&self->thread);
    punctual_pthread_call(self);
    self->is_leaving = 1;
    punctual_pthread_destruct(self);
    void *result = self->result;
    punctual_pthread_current = NULL;
    if (__atomic_fetch_or(&self->is_detached, 2, __ATOMIC_ACQ_REL) & 1)
        punctual_thread_detach(self->thread);
    self->has_ended = 1;
    punctual_pthread_drop(self);
    __atomic_sub_fetch(&punctual_pthread_alive, 1, __ATOMIC_ACQ_REL);
    punctual_semaphore_give(punctual_pthread_ended);
    return result;
}

/* The priority of a thread: 0 for those of no real-time class, as for the kernel. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_asked(struct punctual_pthread *made,
                                                const pthread_attr_t *attr)
{
    struct punctual_pthread *self = punctual_pthread_current;
    int inherits = PTHREAD_INHERIT_SCHED, detached = PTHREAD_CREATE_JOINABLE;
    made->policy = self ? self->policy : SCHED_OTHER;
    made->priority = self ? self->priority : 0;
    if (!attr)
        return 0;
    pthread_attr_getinheritsched(attr, &inherits);
    pthread_attr_getdetachstate(attr, &detached);
    made->is_detached = detached == PTHREAD_CREATE_DETACHED;
    if (inherits == PTHREAD_EXPLICIT_SCHED) {
        struct sched_param parameters;
        pthread_attr_getschedpolicy(attr, &made->policy);
        pthread_attr_getschedparam(attr, &parameters);
        made->priority = made->policy == SCHED_OTHER ? 0 : parameters.sched_priority;
    }
    pthread_attr_t plain;
    size_t asked = 0, by_default = 0;
    pthread_attr_init(&plain);
    pthread_attr_getstacksize(&plain, &by_default);
    pthread_attr_destroy(&plain);
    pthread_attr_getstacksize(attr, &asked);
    if (asked == by_default || asked <= PUNCTUAL_PTHREAD_STACK)
        return 0;
    fprintf(stderr,
            "punctual_pthread.h: a thread asks for a stack of %zu bytes, and %zu are reserved for "
            "each: compile with -DPUNCTUAL_PTHREAD_STACK=%zu\n",
            asked, (size_t)PUNCTUAL_PTHREAD_STACK, asked);
    return EAGAIN;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                                 void *(*start)(void *), void *argument)
{
    struct punctual_pthread *made = (struct punctual_pthread *)calloc(1, sizeof *made);
    if (!made)
        return EAGAIN;
    int error = punctual_pthread_asked(made, attr);
    if (error != 0) {
        free(made);
        return error;
    }
    made->start = start;
    made->argument = argument;
    made->holders = made->is_detached ? 2 : 3;
    strcpy(made->name, "pthread");
    /* The thread may begin, and read this, before it is created. */
    *thread = (pthread_t)made;
    struct punctual_constraint asks = punctual_aperiodic((uint32_t)made->priority);
    struct punctual_thread handle = PUNCTUAL_PTHREAD_NEW;
    __atomic_add_fetch(&punctual_pthread_alive, 1, __ATOMIC_ACQ_REL);
    /* An exception that leaves any thread ends the program, as it does without a run. */
    error = punctual_pthread_error(punctual_thread_create_with(
        &handle, made->name, &asks, PUNCTUAL_END_RUN, punctual_pthread_body, made));
    if (error != 0) {
        __atomic_sub_fetch(&punctual_pthread_alive, 1, __ATOMIC_ACQ_REL);
        free(made);
        return error == EPERM ? EAGAIN : error;
    }
    made->thread = handle;
    punctual_pthread_drop(made);
    return 0;
}

/* A cancellation point, unless `within_ns` is 0. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_end_of(pthread_t thread, uint64_t within_ns,
                                                 void **result)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    void *returned = NULL;
    if (other == punctual_pthread_current)
        return EDEADLK;
    if (__atomic_load_n(&other->is_detached, __ATOMIC_ACQUIRE) & 1)
        return EINVAL;
    if (within_ns > 0)
        punctual_pthread_testcancel();
    enum punctual_status ended = punctual_thread_join(other->thread, within_ns, &returned);
    if (ended == PUNCTUAL_CANCELLED)
        punctual_pthread_testcancel();
    if (ended != PUNCTUAL_OK)
        return punctual_pthread_error(ended);
    if (result)
        *result = returned;
    punctual_pthread_drop(other);
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_join(pthread_t thread, void **result)
{
    int error = punctual_pthread_end_of(thread, PUNCTUAL_FOREVER, result);
    /* It was cancelled, and may not end now: as nobody, until the other has ended. */
    while (error == ECANCELED || error == ETIMEDOUT) {
        punctual_pthread_step_aside();
        error = punctual_pthread_end_of(thread, 0, result);
    }
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_tryjoin_np(pthread_t thread, void **result)
{
    int error = punctual_pthread_end_of(thread, 0, result);
    return error == ETIMEDOUT ? EBUSY : error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_clockjoin_np(pthread_t thread, void **result,
                                                       clockid_t clock, const struct timespec *at)
{
    uint64_t left = 0;
    int error = punctual_pthread_left(clock, at, &left);
    return error ? error : punctual_pthread_end_of(thread, left, result);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_timedjoin_np(pthread_t thread, void **result,
                                                       const struct timespec *at)
{
    return punctual_pthread_clockjoin_np(thread, result, CLOCK_REALTIME, at);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_detach(pthread_t thread)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    int was = __atomic_fetch_or(&other->is_detached, 1, __ATOMIC_ACQ_REL);
    if (was & 1)
        return EINVAL;
    if (was & 2)
        punctual_thread_detach(other->thread);
    punctual_pthread_drop(other);
    return 0;
}

/* What a cancellation of the routine leaves: it was not called. */
PUNCTUAL_PTHREAD_ONE void punctual_pthread_not_called(void *once)
{
    punctual_pthread_mutex_lock(&punctual_pthread_guard);
    __atomic_store_n(&((punctual_pthread_once *)once)->state, 0, __ATOMIC_RELEASE);
    punctual_pthread_cond_broadcast(&punctual_pthread_called);
    punctual_pthread_mutex_unlock(&punctual_pthread_guard);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_call_once(punctual_pthread_once *once,
                                                    void (*routine)(void))
{
    enum { NEW, CALLING, CALLED };
    int state = NEW, before = PTHREAD_CANCEL_ENABLE;
    while (!__atomic_compare_exchange_n(&once->state, &state, CALLING, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
        if (state == CALLED)
            return 0;
        punctual_pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        punctual_pthread_mutex_lock(&punctual_pthread_guard);
        while (__atomic_load_n(&once->state, __ATOMIC_ACQUIRE) == CALLING)
            punctual_pthread_cond_wait(&punctual_pthread_called, &punctual_pthread_guard);
        punctual_pthread_mutex_unlock(&punctual_pthread_guard);
        punctual_pthread_setcancelstate(before, NULL);
        state = NEW;
    }
    struct punctual_pthread_cleanup undo;
    punctual_pthread_cleanup_push(&undo, punctual_pthread_not_called, once);
    routine();
    punctual_pthread_cleanup_pop(&undo, 0);
    punctual_pthread_mutex_lock(&punctual_pthread_guard);
    __atomic_store_n(&once->state, CALLED, __ATOMIC_RELEASE);
    punctual_pthread_cond_broadcast(&punctual_pthread_called);
    punctual_pthread_mutex_unlock(&punctual_pthread_guard);
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_setschedparam(pthread_t thread, int policy,
                                                        const struct sched_param *parameters)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    int least = sched_get_priority_min(policy), most = sched_get_priority_max(policy);
    int priority = parameters->sched_priority;
    if (least < 0 || priority < least || priority > most)
        return EINVAL;
    struct punctual_constraint asks = punctual_aperiodic((uint32_t)priority);
    int error = punctual_pthread_error(punctual_thread_change(other->thread, &asks));
    if (error == 0) {
        other->policy = policy;
        other->priority = priority;
    }
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_setschedprio(pthread_t thread, int priority)
{
    struct sched_param parameters;
    parameters.sched_priority = priority;
    return punctual_pthread_setschedparam(thread, ((struct punctual_pthread *)thread)->policy,
                                          &parameters);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_getschedparam(pthread_t thread, int *policy,
                                                        struct sched_param *parameters)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    *policy = other->policy;
    parameters->sched_priority = other->priority;
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_setname_np(pthread_t thread, const char *name)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    if (strlen(name) >= sizeof other->name)
        return ERANGE;
    strcpy(other->name, name);
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_getname_np(pthread_t thread, char *name, size_t bytes)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    if (strlen(other->name) >= bytes)
        return ERANGE;
    strcpy(name, other->name);
    return 0;
}

/* A signal comes to the thread that sends it, and to no other. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_kill(pthread_t thread, int number)
{
    struct punctual_pthread *other = (struct punctual_pthread *)thread;
    if (number == 0)
        return other->has_ended ? ESRCH : 0;
    if (other != punctual_pthread_current)
        return ENOTSUP;
    return raise(number) == 0 ? 0 : errno;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
    if ((struct punctual_pthread *)thread != punctual_pthread_current)
        return ENOTSUP;
    return pthread_getattr_np(pthread_self(), attr);
}

/* A thread stays on its CPU. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_affinity(pthread_t thread, size_t bytes, const void *set)
{
    (void)thread, (void)bytes, (void)set;
    return ENOTSUP;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_yield(void)
{
    enum punctual_status yielded = punctual_yield();
    if (yielded == PUNCTUAL_CANCELLED) {
        punctual_pthread_step_aside();
        return 0;
    }
    return punctual_pthread_or_errno(punctual_pthread_error(yielded));
}

/* Sleeps are cancellation points. */

PUNCTUAL_PTHREAD_ONE int punctual_pthread_clock_nanosleep(clockid_t clock, int flags,
                                                          const struct timespec *time,
                                                          struct timespec *left)
{
    punctual_pthread_testcancel();
    int error = clock_nanosleep(clock, flags, time, left);
    punctual_pthread_testcancel();
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_nanosleep(const struct timespec *time,
                                                    struct timespec *left)
{
    int error = punctual_pthread_clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
    return punctual_pthread_or_errno(error);
}

PUNCTUAL_PTHREAD_ONE unsigned int punctual_pthread_sleep(unsigned int seconds)
{
    struct timespec time = {(time_t)seconds, 0}, left = {0, 0};
    int error = punctual_pthread_nanosleep(&time, &left);
    return error ? (unsigned int)left.tv_sec + (left.tv_nsec > 0) : 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_usleep(unsigned int us)
{
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    return punctual_pthread_nanosleep(&time, NULL);
}

/* The run: its first thread waits for the end of that of `main`, which is one like the others, or
   of all where `main` leaves by `pthread_exit`. */

PUNCTUAL_PTHREAD_ONE void *punctual_pthread_call_main(void *self)
{
    punctual_pthread_program.code =
        punctual_pthread_program.main(punctual_pthread_program.argc, punctual_pthread_program.argv,
                                      punctual_pthread_program.envp);
    punctual_pthread_program.was_left = 0;
    /* The program ends: no destructor of a key is called. */
    memset(punctual_pthread_current->values, 0, sizeof punctual_pthread_current->values);
    return self;
}

PUNCTUAL_PTHREAD_ONE void *punctual_pthread_first(void *none)
{
    pthread_t thread;
    punctual_pthread_program.was_left = 1;
    int error = punctual_pthread_create(&thread, NULL, punctual_pthread_call_main, NULL);
    while (error == 0 && punctual_pthread_program.was_left && punctual_pthread_alive > 0)
        punctual_semaphore_take(punctual_pthread_ended, PUNCTUAL_FOREVER);
    if (error != 0) {
        fprintf(stderr, "punctual_pthread.h: main does not begin: %s\n", strerror(error));
        punctual_pthread_program.code = EXIT_FAILURE;
    }
    return none;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_main(int argc, char **argv, char **envp)
{
    punctual_pthread_program.argc = argc;
    punctual_pthread_program.argv = argv;
    punctual_pthread_program.envp = envp;
    uint32_t kind = PUNCTUAL_PTHREAD_TIMESLICE_NS ? PUNCTUAL_ROUND_ROBIN : PUNCTUAL_FIXED_PRIORITY;
    struct punctual_cpu cpu =
        punctual_cpu_with(PUNCTUAL_PTHREAD_CPU, kind, punctual_pthread_first, NULL);
    struct punctual_options options = punctual_defaults();
    cpu.timeslice_ns = PUNCTUAL_PTHREAD_TIMESLICE_NS;
    options.threads = PUNCTUAL_PTHREAD_THREADS + 1;
    options.stack_bytes = PUNCTUAL_PTHREAD_STACK;
    /* No thread asks for a guarantee, so no cost has to be counted. */
    options.without_terms = 1;
    enum punctual_status status = punctual_semaphore_create(&punctual_pthread_ended, 0);
    if (status == PUNCTUAL_OK)
        status = punctual_run(&cpu, &options, NULL);
    if (status == PUNCTUAL_OK)
        return punctual_pthread_program.code;
    char why[512] = "";
    size_t length = 0;
    punctual_why(PUNCTUAL_TEXT, why, sizeof why, &length);
    fprintf(stderr, "punctual_pthread.h: %s. %s\n", punctual_strerror(status), why);
    return EXIT_FAILURE;
}

/* The C library calls this before `main`, and the program's own definition comes first. */
PUNCTUAL_PTHREAD_ONE int __libc_start_main(int (*program)(int, char **, char **), int argc,
                                           char **argv, void (*begin)(void), void (*end)(void),
                                           void (*loader_end)(void), void *stack)
{
    typedef int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void),
                         void (*)(void), void (*)(void), void *);
    start next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    punctual_pthread_program.main = program;
    return next(punctual_pthread_main, argc, argv, begin, end, loader_end, stack);
}

#endif /* PUNCTUAL_PTHREAD_THREADS_H */
