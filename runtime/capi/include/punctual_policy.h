/* punctual_policy.h - the order of a scheduler's threads, written in C
 *
 * A scheduler with `trust = "own-time"` and `code = { library = "libx.so", symbol = "mine" }` in a
 * system file is ordered by the policy that the function `mine` of that object makes; so is a
 * branch of a program's tree by the function of its `punctual_own_policy` (punctual.h). It runs on
 * the scheduler's own supply: one that is slow, wrong or endless costs nobody else.
 *
 * Rules:
 *  - The table has its own size first, and the parameter comes back with each call. Functions that
 *    are not needed may be NULL.
 *  - Threads are numbers below `threads`. wake and block alternate for each; the one that pick
 *    names is ready. Called twice without a change in between, pick names the same.
 *  - Nothing but the calls decides: no clock, no random numbers. No call allocates or waits, but
 *    for the one that makes the policy.
 *  - Calls to one policy come one at a time, not always from the same kernel thread.
 */
#ifndef PUNCTUAL_POLICY_H
#define PUNCTUAL_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of a ready thread. */
typedef struct punctual_attributes {
    uint32_t priority;    /* a larger number is more urgent */
    uint32_t order;       /* the place in the file: the last tie-break */
    uint64_t deadline_ns; /* absolute; UINT64_MAX without one */
    uint64_t release_ns;  /* of its job: the first tie-break */
} punctual_attributes;

/* The choice of a policy. */
typedef struct punctual_pick {
    int64_t thread;    /* a ready one, or -1: nobody */
    uint64_t until_ns; /* when to ask again at the latest; UINT64_MAX: when something changes */
} punctual_pick;

typedef struct punctual_policy {
    size_t size;     /* sizeof(punctual_policy) */
    void *parameter; /* comes back with each call */
    /* A thread becomes ready; is no longer ready; the thread to run. These three are needed. */
    void (*wake)(void *parameter, uint32_t thread, const punctual_attributes *attributes);
    void (*block)(void *parameter, uint32_t thread);
    punctual_pick (*pick)(void *parameter, uint64_t now_ns);
    /* Other attributes; a new budget. Without them: block, then wake. */
    void (*update)(void *parameter, uint32_t thread, const punctual_attributes *attributes);
    void (*renew)(void *parameter, uint32_t thread, const punctual_attributes *attributes);
    /* The running thread lets its equals go first; a thread has executed for so long. */
    void (*yield)(void *parameter, uint32_t thread);
    void (*charge)(void *parameter, uint32_t thread, uint64_t work_ns);
    /* The policy is not used any more. */
    void (*destroy)(void *parameter);
} punctual_policy;

/* Makes a policy for threads with numbers below `threads`: fills the table, which is all zero, and
 * returns 0. Anything else says that it cannot. */
typedef int punctual_make_policy(uint32_t threads, punctual_policy *policy);
typedef punctual_make_policy *punctual_policy_maker;

#ifdef __cplusplus
}
#endif

#endif /* PUNCTUAL_POLICY_H */
