/* Locks, conditions, barriers, and semaphores of `punctual_pthread.h`, which includes this. */
#ifndef PUNCTUAL_PTHREAD_LOCKS_H
#define PUNCTUAL_PTHREAD_LOCKS_H

/* Mutexes. */

PUNCTUAL_PTHREAD_ONE struct punctual_mutex punctual_pthread_lock_of(punctual_pthread_mutex *mutex)
{
    struct punctual_mutex made = {__atomic_load_n(&mutex->id, __ATOMIC_ACQUIRE)};
    uint64_t none = 0;
    if (made.id != 0 || punctual_mutex_create(&made) != PUNCTUAL_OK)
        return made;
    if (!__atomic_compare_exchange_n(&mutex->id, &none, made.id, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        punctual_mutex_destroy(made);
        made.id = none;
    }
    return made;
}

/* A wait was ended by a cancellation that the thread does not follow now: others go first. A
   change of priority lets them; a yield of a thread that was cancelled would not. */
PUNCTUAL_PTHREAD_ONE void punctual_pthread_step_aside(void)
{
    struct punctual_pthread *self = punctual_pthread_current;
    struct punctual_constraint least = punctual_aperiodic(0);
    struct punctual_constraint own = punctual_aperiodic((uint32_t)self->priority);
    punctual_thread_change(self->thread, &least);
    punctual_thread_change(self->thread, &own);
}

/* Locks without waiting, which a cancelled thread cannot do. */
PUNCTUAL_PTHREAD_ONE enum punctual_status punctual_pthread_insist(struct punctual_mutex mutex)
{
    enum punctual_status locked = punctual_mutex_lock(mutex, 0);
    while (locked == PUNCTUAL_TIMED_OUT || locked == PUNCTUAL_CANCELLED) {
        punctual_pthread_step_aside();
        locked = punctual_mutex_lock(mutex, 0);
    }
    return locked;
}

/* Locks for `within_ns` at most; the error is that of a wait. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_lock(punctual_pthread_mutex *mutex, uint64_t within_ns)
{
    pthread_t self = punctual_pthread_self();
    if (mutex->depth > 0 && pthread_equal(mutex->owner, self)) {
        if (mutex->kind != PTHREAD_MUTEX_RECURSIVE)
            return within_ns == 0 ? EBUSY : EDEADLK;
        if (mutex->depth == UINT_MAX)
            return EAGAIN;
        mutex->depth++;
        return 0;
    }
    struct punctual_mutex made = punctual_pthread_lock_of(mutex);
    enum punctual_status locked = punctual_mutex_lock(made, within_ns);
    if (locked == PUNCTUAL_CANCELLED && within_ns == 0)
        return ETIMEDOUT;
    if (locked == PUNCTUAL_CANCELLED)
        locked = punctual_pthread_insist(made);
    /* Before the run and after it there is one thread; in it those beside it lock nothing. */
    int is_beside = !punctual_pthread_current &&
                    __atomic_load_n(&punctual_pthread_alive, __ATOMIC_ACQUIRE) > 0;
    if (locked != PUNCTUAL_OK && (locked != PUNCTUAL_NO_RUN || is_beside))
        return punctual_pthread_error(locked);
    mutex->owner = self;
    mutex->depth = 1;
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_init(punctual_pthread_mutex *mutex,
                                                     const pthread_mutexattr_t *attr)
{
    int shared = PTHREAD_PROCESS_PRIVATE, robust = PTHREAD_MUTEX_STALLED;
    int protocol = PTHREAD_PRIO_INHERIT;
    memset(mutex, 0, sizeof *mutex);
    if (!attr)
        return 0;
    pthread_mutexattr_gettype(attr, &mutex->kind);
    pthread_mutexattr_getpshared(attr, &shared);
    pthread_mutexattr_getrobust(attr, &robust);
    pthread_mutexattr_getprotocol(attr, &protocol);
    if (shared != PTHREAD_PROCESS_PRIVATE || robust != PTHREAD_MUTEX_STALLED)
        return ENOTSUP;
    if (protocol == PTHREAD_PRIO_PROTECT) {
        struct punctual_mutex made;
        int ceiling = 0;
        pthread_mutexattr_getprioceiling(attr, &ceiling);
        enum punctual_status status = punctual_mutex_create_ceiling(
            &made, PUNCTUAL_CEILING_BACKGROUND, (uint64_t)ceiling);
        mutex->id = status == PUNCTUAL_OK ? made.id : 0;
        return punctual_pthread_error(status);
    }
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_destroy(punctual_pthread_mutex *mutex)
{
    struct punctual_mutex made = {mutex->id};
    if (mutex->depth > 0)
        return EBUSY;
    int error = made.id ? punctual_pthread_error(punctual_mutex_destroy(made)) : 0;
    if (error == 0)
        mutex->id = 0;
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_lock(punctual_pthread_mutex *mutex)
{
    return punctual_pthread_lock(mutex, PUNCTUAL_FOREVER);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_trylock(punctual_pthread_mutex *mutex)
{
    int error = punctual_pthread_lock(mutex, 0);
    return error == ETIMEDOUT ? EBUSY : error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_clocklock(punctual_pthread_mutex *mutex,
                                                          clockid_t clock,
                                                          const struct timespec *at)
{
    uint64_t left = 0;
    int error = punctual_pthread_left(clock, at, &left);
    if (error == 0)
        error = punctual_pthread_lock(mutex, left);
    return error == EBUSY ? EDEADLK : error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_timedlock(punctual_pthread_mutex *mutex,
                                                          const struct timespec *at)
{
    return punctual_pthread_mutex_clocklock(mutex, CLOCK_REALTIME, at);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_mutex_unlock(punctual_pthread_mutex *mutex)
{
    if (mutex->depth == 0 || !pthread_equal(mutex->owner, punctual_pthread_self()))
        return EPERM;
    if (--mutex->depth > 0)
        return 0;
    mutex->owner = 0;
    struct punctual_mutex made = {mutex->id};
    enum punctual_status status = punctual_mutex_unlock(made);
    return status == PUNCTUAL_NO_RUN ? 0 : punctual_pthread_error(status);
}

/* A spin lock is a mutex: a thread that spins here would spin for one that cannot execute. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_spin_init(punctual_pthread_mutex *spin, int shared)
{
    memset(spin, 0, sizeof *spin);
    return shared == PTHREAD_PROCESS_PRIVATE ? 0 : ENOTSUP;
}

/* Conditions. */

PUNCTUAL_PTHREAD_ONE struct punctual_condition
punctual_pthread_condition_of(punctual_pthread_cond *cond)
{
    struct punctual_condition made = {__atomic_load_n(&cond->id, __ATOMIC_ACQUIRE)};
    uint64_t none = 0;
    if (made.id != 0 || punctual_condition_create(&made) != PUNCTUAL_OK)
        return made;
    if (!__atomic_compare_exchange_n(&cond->id, &none, made.id, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        punctual_condition_destroy(made);
        made.id = none;
    }
    return made;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_init(punctual_pthread_cond *cond,
                                                    const pthread_condattr_t *attr)
{
    int shared = PTHREAD_PROCESS_PRIVATE;
    memset(cond, 0, sizeof *cond);
    cond->clock = CLOCK_REALTIME;
    if (attr) {
        pthread_condattr_getclock(attr, &cond->clock);
        pthread_condattr_getpshared(attr, &shared);
    }
    return shared == PTHREAD_PROCESS_PRIVATE ? 0 : ENOTSUP;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_destroy(punctual_pthread_cond *cond)
{
    struct punctual_condition made = {cond->id};
    int error = made.id ? punctual_pthread_error(punctual_condition_destroy(made)) : 0;
    if (error == 0)
        cond->id = 0;
    return error;
}

/* A cancellation point. However deep a recursive mutex is held, it is free while this waits. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_wait(punctual_pthread_cond *cond,
                                               punctual_pthread_mutex *mutex, uint64_t within_ns)
{
    if (mutex->depth == 0 || !pthread_equal(mutex->owner, punctual_pthread_self()))
        return EPERM;
    punctual_pthread_testcancel();
    struct punctual_condition made = punctual_pthread_condition_of(cond);
    struct punctual_mutex lock = {mutex->id};
    unsigned int depth = mutex->depth;
    pthread_t owner = mutex->owner;
    mutex->depth = 0;
    mutex->owner = 0;
    enum punctual_status waited = punctual_condition_wait(made, lock, within_ns);
    /* The mutex is held after most answers: then this hears so. */
    if (waited != PUNCTUAL_OK && waited != PUNCTUAL_TIMED_OUT)
        punctual_pthread_insist(lock);
    mutex->depth = depth;
    mutex->owner = owner;
    punctual_pthread_testcancel();
    if (waited != PUNCTUAL_CANCELLED)
        return punctual_pthread_error(waited);
    punctual_pthread_step_aside();
    return 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_wait(punctual_pthread_cond *cond,
                                                    punctual_pthread_mutex *mutex)
{
    return punctual_pthread_wait(cond, mutex, PUNCTUAL_FOREVER);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_clockwait(punctual_pthread_cond *cond,
                                                         punctual_pthread_mutex *mutex,
                                                         clockid_t clock,
                                                         const struct timespec *at)
{
    uint64_t left = 0;
    int error = punctual_pthread_left(clock, at, &left);
    return error ? error : punctual_pthread_wait(cond, mutex, left);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_timedwait(punctual_pthread_cond *cond,
                                                         punctual_pthread_mutex *mutex,
                                                         const struct timespec *at)
{
    return punctual_pthread_cond_clockwait(cond, mutex, cond->clock, at);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_signal(punctual_pthread_cond *cond)
{
    struct punctual_condition made = punctual_pthread_condition_of(cond);
    return punctual_pthread_error(punctual_condition_tell_one(made));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_cond_broadcast(punctual_pthread_cond *cond)
{
    struct punctual_condition made = punctual_pthread_condition_of(cond);
    return punctual_pthread_error(punctual_condition_tell_all(made));
}

/* Locks for readers and writers. A thread may read several times, which is counted with it. */

PUNCTUAL_PTHREAD_ONE struct punctual_rwlock
punctual_pthread_rwlock_of(punctual_pthread_rwlock *rwlock)
{
    struct punctual_rwlock made = {__atomic_load_n(&rwlock->id, __ATOMIC_ACQUIRE)};
    uint64_t none = 0;
    if (made.id != 0 || punctual_rwlock_create(&made) != PUNCTUAL_OK)
        return made;
    if (!__atomic_compare_exchange_n(&rwlock->id, &none, made.id, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        punctual_rwlock_destroy(made);
        made.id = none;
    }
    return made;
}

/* Where the caller counts its reading of a lock, or of none (0); -1 where there is no room. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_read_at(uint64_t id)
{
    struct punctual_pthread *self = punctual_pthread_current;
    for (int at = 0; self && at < PUNCTUAL_PTHREAD_READS; at++) {
        if (self->reads[at].id == id)
            return at;
    }
    return -1;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_init(punctual_pthread_rwlock *rwlock,
                                                      const pthread_rwlockattr_t *attr)
{
    int shared = PTHREAD_PROCESS_PRIVATE;
    memset(rwlock, 0, sizeof *rwlock);
    if (attr)
        pthread_rwlockattr_getpshared(attr, &shared);
    return shared == PTHREAD_PROCESS_PRIVATE ? 0 : ENOTSUP;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_destroy(punctual_pthread_rwlock *rwlock)
{
    struct punctual_rwlock made = {rwlock->id};
    int error = made.id ? punctual_pthread_error(punctual_rwlock_destroy(made)) : 0;
    if (error == 0)
        rwlock->id = 0;
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_read(punctual_pthread_rwlock *rwlock, uint64_t within_ns)
{
    struct punctual_rwlock made = punctual_pthread_rwlock_of(rwlock);
    struct punctual_pthread *self = punctual_pthread_current;
    if (made.id == 0)
        return ENOMEM;
    int held = punctual_pthread_read_at(made.id);
    if (held >= 0) {
        self->reads[held].times++;
        return 0;
    }
    int free_place = punctual_pthread_read_at(0);
    if (free_place < 0)
        return self ? EAGAIN : EPERM;
    int error = punctual_pthread_error(punctual_rwlock_read(made, within_ns));
    if (error == ECANCELED)
        punctual_pthread_testcancel();
    if (error == 0) {
        self->reads[free_place].id = made.id;
        self->reads[free_place].times = 1;
    }
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_rdlock(punctual_pthread_rwlock *rwlock)
{
    return punctual_pthread_read(rwlock, PUNCTUAL_FOREVER);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_tryrdlock(punctual_pthread_rwlock *rwlock)
{
    int error = punctual_pthread_read(rwlock, 0);
    return error == ETIMEDOUT || error == EDEADLK ? EBUSY : error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_clockrdlock(punctual_pthread_rwlock *rwlock,
                                                             clockid_t clock,
                                                             const struct timespec *at)
{
    uint64_t left = 0;
    int error = punctual_pthread_left(clock, at, &left);
    return error ? error : punctual_pthread_read(rwlock, left);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_timedrdlock(punctual_pthread_rwlock *rwlock,
                                                             const struct timespec *at)
{
    return punctual_pthread_rwlock_clockrdlock(rwlock, CLOCK_REALTIME, at);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_write(punctual_pthread_rwlock *rwlock,
                                                uint64_t within_ns)
{
    struct punctual_rwlock made = punctual_pthread_rwlock_of(rwlock);
    int error = punctual_pthread_error(punctual_rwlock_write(made, within_ns));
    if (error == ECANCELED)
        punctual_pthread_testcancel();
    return error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_wrlock(punctual_pthread_rwlock *rwlock)
{
    return punctual_pthread_write(rwlock, PUNCTUAL_FOREVER);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_trywrlock(punctual_pthread_rwlock *rwlock)
{
    int error = punctual_pthread_write(rwlock, 0);
    return error == ETIMEDOUT || error == EDEADLK ? EBUSY : error;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_clockwrlock(punctual_pthread_rwlock *rwlock,
                                                             clockid_t clock,
                                                             const struct timespec *at)
{
    uint64_t left = 0;
    int error = punctual_pthread_left(clock, at, &left);
    return error ? error : punctual_pthread_write(rwlock, left);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_timedwrlock(punctual_pthread_rwlock *rwlock,
                                                             const struct timespec *at)
{
    return punctual_pthread_rwlock_clockwrlock(rwlock, CLOCK_REALTIME, at);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_rwlock_unlock(punctual_pthread_rwlock *rwlock)
{
    struct punctual_rwlock made = {rwlock->id};
    struct punctual_pthread *self = punctual_pthread_current;
    int held = made.id ? punctual_pthread_read_at(made.id) : -1;
    if (held >= 0 && --self->reads[held].times > 0)
        return 0;
    if (held >= 0)
        self->reads[held].id = 0;
    return punctual_pthread_error(punctual_rwlock_unlock(made));
}

/* Barriers. */

PUNCTUAL_PTHREAD_ONE int punctual_pthread_barrier_init(punctual_pthread_barrier *barrier,
                                                       const pthread_barrierattr_t *attr,
                                                       unsigned int threads)
{
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attr)
        pthread_barrierattr_getpshared(attr, &shared);
    if (shared != PTHREAD_PROCESS_PRIVATE)
        return ENOTSUP;
    if (threads == 0)
        return EINVAL;
    return punctual_pthread_error(punctual_barrier_create(&barrier->made, threads));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_barrier_destroy(punctual_pthread_barrier *barrier)
{
    return punctual_pthread_error(punctual_barrier_destroy(barrier->made));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_barrier_wait(punctual_pthread_barrier *barrier)
{
    int last = 0;
    enum punctual_status status = punctual_barrier_wait(barrier->made, PUNCTUAL_FOREVER, &last);
    if (status == PUNCTUAL_CANCELLED)
        punctual_pthread_testcancel();
    if (status != PUNCTUAL_OK)
        return punctual_pthread_error(status);
    return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

/* Semaphores: -1, and the error in `errno`. */

PUNCTUAL_PTHREAD_ONE int punctual_pthread_or_errno(int error)
{
    if (error != 0)
        errno = error;
    return error ? -1 : 0;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_init(punctual_pthread_sem *sem, int shared,
                                                   unsigned int permits)
{
    if (shared)
        return punctual_pthread_or_errno(ENOSYS);
    enum punctual_status made = punctual_semaphore_create(&sem->made, permits);
    return punctual_pthread_or_errno(punctual_pthread_error(made));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_destroy(punctual_pthread_sem *sem)
{
    enum punctual_status ended = punctual_semaphore_destroy(sem->made);
    return punctual_pthread_or_errno(punctual_pthread_error(ended));
}

/* A cancellation point, but for `within_ns` of 0. */
PUNCTUAL_PTHREAD_ONE int punctual_pthread_take(punctual_pthread_sem *sem, uint64_t within_ns)
{
    if (within_ns > 0)
        punctual_pthread_testcancel();
    enum punctual_status taken = punctual_semaphore_take(sem->made, within_ns);
    if (taken != PUNCTUAL_CANCELLED)
        return punctual_pthread_error(taken);
    if (within_ns == 0)
        return ETIMEDOUT;
    punctual_pthread_testcancel();
    punctual_pthread_step_aside();
    return EINTR;
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_wait(punctual_pthread_sem *sem)
{
    return punctual_pthread_or_errno(punctual_pthread_take(sem, PUNCTUAL_FOREVER));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_trywait(punctual_pthread_sem *sem)
{
    int error = punctual_pthread_take(sem, 0);
    return punctual_pthread_or_errno(error == ETIMEDOUT ? EAGAIN : error);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_clockwait(punctual_pthread_sem *sem, clockid_t clock,
                                                        const struct timespec *at)
{
    uint64_t left = 0;
    int error = punctual_pthread_left(clock, at, &left);
    return punctual_pthread_or_errno(error ? error : punctual_pthread_take(sem, left));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_timedwait(punctual_pthread_sem *sem,
                                                        const struct timespec *at)
{
    return punctual_pthread_sem_clockwait(sem, CLOCK_REALTIME, at);
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_post(punctual_pthread_sem *sem)
{
    enum punctual_status given = punctual_semaphore_give(sem->made);
    return punctual_pthread_or_errno(punctual_pthread_error(given));
}

PUNCTUAL_PTHREAD_ONE int punctual_pthread_sem_getvalue(punctual_pthread_sem *sem, int *value)
{
    uint64_t permits = 0;
    enum punctual_status asked = punctual_semaphore_permits(sem->made, &permits);
    *value = permits > INT_MAX ? INT_MAX : (int)permits;
    return punctual_pthread_or_errno(punctual_pthread_error(asked));
}

#endif /* PUNCTUAL_PTHREAD_LOCKS_H */
