/* punctual.h - hard real time for ordinary Linux programs: the C interface of Punctual
 *
 * Written from runtime/capi/src by cbindgen: do not edit.
 *
 * Every call returns a punctual_status. Unless its text says otherwise, nothing has changed when
 * that is not PUNCTUAL_OK. Rules for all of them:
 *
 *  - Times are nanoseconds. within_ns is how long a call may wait: 0 not at all, UINT64_MAX as long
 *    as it takes.
 *  - "Legal everywhere" means on every thread of the program, "on threads of a run" on the first
 *    thread of a run and on those created in it. No call is legal in a signal handler.
 *  - Handles are numbers, to be copied freely. One that names nothing, or nothing any more, is
 *    answered by PUNCTUAL_STALE; so is one that is all zero.
 *  - The library keeps no pointer of yours beyond the call, but for functions with their argument
 *    or parameter, and gives you none that has to be freed. Whatever *_create made is yours to end: by *_destroy, a
 *    thread by punctual_thread_join or punctual_thread_detach, offered work by
 *    punctual_offered_join or punctual_offered_detach.
 *  - All calls may be made from several threads at once, on the same things too.
 *  - Every call that has to wait answers PUNCTUAL_CANCELLED once its thread is to end. One that
 *    has what it asks for at once may succeed: a loop that never waits asks punctual_checkpoint.
 *  - A call in which the end of the run finds a thread does not come back: the thread ends there.
 */

#ifndef PUNCTUAL_H
#define PUNCTUAL_H

#include <stddef.h>
#include <stdint.h>

#include "punctual_policy.h"

/* As long as it takes: for within_ns. */
#define PUNCTUAL_FOREVER UINT64_MAX


/**
 * The answer of a task scheduler that lets nobody fire, and the task before the first firing.
 */
#define PUNCTUAL_IDLE_TASK -1

/**
 * The longest message in bytes; a longer one is sent as a pointer.
 */
#define PUNCTUAL_MESSAGE_BYTES 256

/**
 * The longest line, in messages.
 */
#define PUNCTUAL_QUEUE_MESSAGES (1 << 20)

/**
 * The most threads that read at a time: more wait.
 */
#define PUNCTUAL_READERS 16

/**
 * What a call answers. Only `PUNCTUAL_OK` means that it has happened.
 */
typedef enum punctual_status {
    /**
     * It has happened.
     */
    PUNCTUAL_OK = 0,
    /**
     * Admission says no: somebody could be late. `punctual_why` says who, by how much, and what
     * would mend it.
     */
    PUNCTUAL_REFUSED = 1,
    /**
     * An argument means nothing: a null or misaligned pointer, an unknown number, a period of 0.
     */
    PUNCTUAL_INVALID = 2,
    /**
     * The handle names nothing: it was never made, or what it named has been destroyed or joined.
     */
    PUNCTUAL_STALE = 3,
    /**
     * The caller is on no thread of a run.
     */
    PUNCTUAL_NO_RUN = 4,
    /**
     * The thing belongs to another CPU, or to a run that is over.
     */
    PUNCTUAL_OTHER_CPU = 5,
    /**
     * It did not happen in time; with a time of 0: not at once.
     */
    PUNCTUAL_TIMED_OUT = 6,
    /**
     * Its holder waits for the caller, along a chain of holders; or a thread would wait for its
     * own end.
     */
    PUNCTUAL_DEADLOCK = 7,
    /**
     * The caller holds it already.
     */
    PUNCTUAL_ALREADY_HELD = 8,
    /**
     * The caller does not hold it.
     */
    PUNCTUAL_NOT_HELD = 9,
    /**
     * Somebody else waits for it, and only one may.
     */
    PUNCTUAL_TAKEN = 10,
    /**
     * It is in use: held, waited for, or in the middle of another call; or a run is on already.
     */
    PUNCTUAL_BUSY = 11,
    /**
     * The run ended before its first thread did, or that thread failed. Only `punctual_run` says
     * it: a call in which the end of the run finds a thread does not come back.
     */
    PUNCTUAL_OVER = 12,
    /**
     * The calling thread or its job is to end: clean up and return from the body. Every call that
     * waits answers so from then on.
     */
    PUNCTUAL_CANCELLED = 13,
    /**
     * As many threads as the run was started for exist already.
     */
    PUNCTUAL_NO_THREAD_LEFT = 14,
    /**
     * The text does not fit into the buffer; what fits is there.
     */
    PUNCTUAL_TRUNCATED = 15,
    /**
     * The calling thread has one job only: its constraint is neither periodic, nor sporadic, nor a
     * reservation.
     */
    PUNCTUAL_NO_NEXT_JOB = 16,
    /**
     * The machine refused something that a run cannot do without. `punctual_why` says what.
     */
    PUNCTUAL_CANNOT_RUN = 17,
    /**
     * Nothing of that name is there: no task of this CPU uses such a resource, or no such gang
     * lives.
     */
    PUNCTUAL_UNKNOWN = 18,
    /**
     * The scheduler does not allow it now, or not for this kind of thread. `punctual_why` says
     * more.
     */
    PUNCTUAL_NOT_ALLOWED = 19,
    /**
     * There is nothing to say: no refusal, no run.
     */
    PUNCTUAL_NOTHING = 20,
    /**
     * There is no memory or no number left for another one.
     */
    PUNCTUAL_NO_MEMORY = 21,
    /**
     * A mistake inside Punctual, which has said more on standard error. Please report it.
     */
    PUNCTUAL_INTERNAL = 22,
    /**
     * The thread that is joined said that it could not go on (`punctual_fail`). `punctual_why` has
     * its words.
     */
    PUNCTUAL_FAILED = 23,
    /**
     * The processor was taken from the thread for good.
     */
    PUNCTUAL_ABANDONED = 24,
    /**
     * The queue of work of this CPU is full.
     */
    PUNCTUAL_FULL = 25,
    /**
     * As many schedulers as the run was started for exist already.
     */
    PUNCTUAL_NO_SCHEDULER_LEFT = 26,
    /**
     * A child of this scheduler would be deeper than a tree may be.
     */
    PUNCTUAL_TOO_DEEP = 27,
    /**
     * The scheduler or one above it has as many threads as its quota allows.
     */
    PUNCTUAL_QUOTA = 28,
    /**
     * The scheduler that asks has no power over this thread or scheduler.
     */
    PUNCTUAL_NOT_YOURS = 29,
    /**
     * The scheduler has not that much budget left to lend.
     */
    PUNCTUAL_NO_BUDGET = 30,
    /**
     * A more trusted scheduler has blocked the thread for itself.
     */
    PUNCTUAL_BLOCKED = 31,
    /**
     * The thread has nothing to run, so it cannot be blocked.
     */
    PUNCTUAL_NOT_READY = 32,
    /**
     * A thread with a guarantee changes its scheduler, or what orders it, between two jobs, and it
     * is in the middle of one: ask again.
     */
    PUNCTUAL_HAS_JOB = 33,
    /**
     * The policy of this scheduler cannot be replaced by that one: it decides on its own supply,
     * divides time into slots, or hands on declared resources in another order.
     */
    PUNCTUAL_NOT_REPLACEABLE = 34,
    /**
     * A member of the gang is no more, so none of its rounds ends any more. `punctual_why` names
     * the member and the reason.
     */
    PUNCTUAL_BROKEN = 35,
} punctual_status;

/**
 * Kinds of work: what `kind` of a constraint says.
 */
typedef enum punctual_kind {
    /**
     * Background work, by priority: whatever the others leave. No guarantee, no admission.
     */
    PUNCTUAL_APERIODIC = 0,
    /**
     * A job in every period, of `work_ns` at most, done within `deadline_ns` of its release.
     */
    PUNCTUAL_PERIODIC = 1,
    /**
     * A job per `punctual_thread_release`, never closer than `period_ns`.
     */
    PUNCTUAL_SPORADIC = 2,
    /**
     * `work_ns` of processor time in every period.
     */
    PUNCTUAL_RESERVATION = 3,
    /**
     * `work_ns` of processor time within `deadline_ns` from now, afterwards background work.
     */
    PUNCTUAL_ONCE = 4,
} punctual_kind;

/**
 * The rule for a job that needs more than its budget: the values of `on_overrun` of a constraint.
 */
typedef enum punctual_on_overrun {
    /**
     * The rest of it continues in the next period.
     */
    PUNCTUAL_THROTTLE = 0,
    /**
     * The rest of it continues below all real-time work.
     */
    PUNCTUAL_DEMOTE = 1,
    /**
     * The thread is cancelled: see `PUNCTUAL_CANCELLED`.
     */
    PUNCTUAL_STOP = 2,
    /**
     * `punctual_has_overrun` says so; otherwise as `PUNCTUAL_THROTTLE`.
     */
    PUNCTUAL_SIGNAL = 3,
} punctual_on_overrun;

/**
 * The rule for a release that finds the job before unfinished: the values of `late` of a
 * constraint.
 */
typedef enum punctual_late {
    /**
     * It waits, with up to 63 others.
     */
    PUNCTUAL_QUEUE = 0,
    /**
     * It is dropped.
     */
    PUNCTUAL_SKIP = 1,
} punctual_late;

/**
 * How a thread waits for flags: one of the first two, plus `PUNCTUAL_TAKE` if it lowers them.
 */
typedef enum punctual_want {
    /**
     * One of the mask is enough.
     */
    PUNCTUAL_ANY = 0,
    /**
     * All of the mask.
     */
    PUNCTUAL_ALL = 1,
    /**
     * Those of the mask that are raised then are lowered with it, for one thread only.
     */
    PUNCTUAL_TAKE = 2,
} punctual_want;

/**
 * The kind of a mutex's ceiling: `kind` of `punctual_mutex_create_ceiling`.
 */
typedef enum punctual_ceiling {
    /**
     * The highest priority among its users, some of which have deadlines or budgets.
     */
    PUNCTUAL_CEILING_PRIORITY = 0,
    /**
     * The highest priority among its users, all of which are background work.
     */
    PUNCTUAL_CEILING_BACKGROUND = 1,
    /**
     * The shortest relative deadline among its users in nanoseconds, where deadlines decide.
     */
    PUNCTUAL_CEILING_DEADLINE = 2,
} punctual_ceiling;

/**
 * The policy that decides on a CPU: the values of `policy`.
 */
typedef enum punctual_policy_kind {
    /**
     * The earliest absolute deadline first.
     */
    PUNCTUAL_EARLIEST_DEADLINE = 0,
    /**
     * The highest priority first, with preemption.
     */
    PUNCTUAL_FIXED_PRIORITY = 1,
    /**
     * Every thread in turn, for `timeslice_ns` at most.
     */
    PUNCTUAL_ROUND_ROBIN = 2,
    /**
     * First come, first served, without preemption.
     */
    PUNCTUAL_FIFO = 3,
    /**
     * The highest priority first; a running thread goes on until it waits or its job is done.
     */
    PUNCTUAL_FIXED_PRIORITY_UNPREEMPTED = 4,
    /**
     * Each of its schedulers in its own slots of a frame of `timeslice_ns`, which repeats, and
     * nobody in those that their owner leaves idle (`punctual_slot`). It has no threads itself:
     * the first thread of such a CPU is in the care of its first branch that divides no time and
     * has no policy of the program's.
     */
    PUNCTUAL_TIME_DIVISION = 5,
} punctual_policy_kind;

/**
 * How a text is written: what `form` says.
 */
typedef enum punctual_form {
    /**
     * Lines for people.
     */
    PUNCTUAL_TEXT = 0,
    /**
     * One JSON value, with the names of `punctual check --json`.
     */
    PUNCTUAL_JSON = 1,
} punctual_form;

/**
 * The rule for the other threads when one fails: the values of `on_fault` of
 * `punctual_thread_create_with`.
 */
typedef enum punctual_on_fault {
    /**
     * They go on.
     */
    PUNCTUAL_END_THREAD = 0,
    /**
     * The run ends.
     */
    PUNCTUAL_END_RUN = 1,
} punctual_on_fault;

/**
 * Where a CPU looks for work when its own queue is empty: what `choice` says.
 */
typedef enum punctual_choice {
    /**
     * Two queues drawn at random, the longer one first: two looks however many CPUs there are; a
     * CPU may find nothing while a third one has work.
     */
    PUNCTUAL_TWO_RANDOM = 0,
    /**
     * Every queue once: no CPU stays idle while work waits.
     */
    PUNCTUAL_EVERY_QUEUE = 1,
} punctual_choice;

/**
 * The supply that a scheduler gets of its parent: the values of `supply` of `punctual_terms`.
 */
typedef enum punctual_supply {
    /**
     * The processor, whenever it is the most urgent: no budget of its own.
     */
    PUNCTUAL_SHARED = 0,
    /**
     * Full at each period start if something is pending then; budget without work is lost.
     */
    PUNCTUAL_POLLING = 1,
    /**
     * Full at each period start, and kept to the end of the period.
     */
    PUNCTUAL_DEFERRABLE = 2,
    /**
     * Used budget comes back one period after its use began.
     */
    PUNCTUAL_SPORADIC_SERVER = 3,
    /**
     * A deadline that moves with the use of the budget.
     */
    PUNCTUAL_CONSTANT_BANDWIDTH = 4,
    /**
     * Full at each period start; passes whether used or not.
     */
    PUNCTUAL_PERIODIC_RESOURCE = 5,
    /**
     * Slots, of a parent under `PUNCTUAL_TIME_DIVISION`. A run starts with them; none come later.
     */
    PUNCTUAL_SLOTS = 6,
} punctual_supply;

/**
 * Where the tokens of a FIFO are kept: the values of `place`.
 */
typedef enum punctual_place {
    /**
     * With the tile of its reader.
     */
    PUNCTUAL_CONSUMER = 0,
    /**
     * With the tile of its writer.
     */
    PUNCTUAL_PRODUCER = 1,
    /**
     * With neither: both ends copy.
     */
    PUNCTUAL_MEMORY = 2,
} punctual_place;

/**
 * The instants at which a tile decides: the values of `when`.
 */
typedef enum punctual_when {
    /**
     * After each firing.
     */
    PUNCTUAL_OWN_TIME = 0,
    /**
     * Once in each slot, at its start, when a firing that the last slot interrupted goes on first.
     * After a firing the rest of its slot stays empty. The thread that executes the tile is in the
     * care of a branch in slots (`PUNCTUAL_SLOTS`) with `scheduling_ns` between them.
     */
    PUNCTUAL_BETWEEN_SLOTS = 1,
    /**
     * As `PUNCTUAL_BETWEEN_SLOTS`, but a firing that a slot interrupted is passed over until its
     * turn comes. So each actor has a stack of its own of 256 KiB, and the tile is executed once,
     * up to the stop of its application.
     */
    PUNCTUAL_PASSED_OVER = 2,
    /**
     * Never: as many threads as it has actors execute the tile, and each fires one of them. They
     * are aperiodic equals in one place, whose turns are the order.
     */
    PUNCTUAL_INLINE = 3,
} punctual_when;

/**
 * How values are reduced to one: `with` of `punctual_gang_reduce`.
 */
typedef enum punctual_reduction {
    /**
     * Their sum, modulo 2^64.
     */
    PUNCTUAL_SUM = 0,
    /**
     * The least.
     */
    PUNCTUAL_LEAST = 1,
    /**
     * The greatest.
     */
    PUNCTUAL_GREATEST = 2,
    /**
     * The bits that all have.
     */
    PUNCTUAL_AND = 3,
    /**
     * The bits that any has.
     */
    PUNCTUAL_OR = 4,
} punctual_reduction;

/**
 * How the first arrivals of members are brought together: `correction` of `punctual_gang_admit`.
 */
typedef enum punctual_correction {
    /**
     * One instant for all: the latest at which any member can begin, and `ns` after it.
     */
    PUNCTUAL_AGREED = 0,
    /**
     * Each member at the end of its own admission; the i-th of n to be released (n - i) times `ns`
     * later, as in Nautilus. `punctual_gang_departure_delay` measures that.
     */
    PUNCTUAL_BY_ORDER = 1,
    /**
     * Each member at the end of its own admission.
     */
    PUNCTUAL_UNCORRECTED = 2,
} punctual_correction;

/**
 * How the phases of a gang are kept apart: `how` of `punctual_gang_supersteps`.
 */
typedef enum punctual_apart {
    /**
     * By a barrier behind each.
     */
    PUNCTUAL_BARRIERS = 0,
    /**
     * By time, if that is proved: each phase is one job.
     */
    PUNCTUAL_BY_TIME = 1,
    /**
     * The same, with barriers as well once a phase has ended late.
     */
    PUNCTUAL_TIME_THEN_BARRIERS = 2,
    /**
     * By time without proof: the result is unsafe.
     */
    PUNCTUAL_FORCED = 3,
} punctual_apart;

/**
 * A streaming application. All zero: none.
 */
typedef struct punctual_application {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_application;

/**
 * The tokens of one FIFO in a firing, in one piece.
 */
typedef struct punctual_tokens {
    /**
     * All of them; those of an input are to be read only.
     */
    void *data;
    /**
     * How many bytes they are together.
     */
    size_t bytes;
    /**
     * Bytes of one of them.
     */
    size_t token_size;
} punctual_tokens;

/**
 * One execution of an actor: all its input is there, and all its output has space.
 */
typedef struct punctual_firing {
    /**
     * `sizeof(punctual_firing)`.
     */
    size_t size;
    /**
     * Firings of the actor before this one.
     */
    uint64_t number;
    /**
     * The phase of its rates, from 0.
     */
    uint64_t phase;
    /**
     * The one of the actor.
     */
    void *parameter;
    /**
     * How many FIFOs it reads.
     */
    size_t inputs;
    /**
     * Their tokens, in the order of the FIFOs of the graph.
     */
    const struct punctual_tokens *input;
    /**
     * How many FIFOs it writes.
     */
    size_t outputs;
    /**
     * Places for their tokens, with old content, in the order of the FIFOs of the graph.
     */
    const struct punctual_tokens *output;
} punctual_firing;

/**
 * The work of an actor, called once per firing. It returns 0; any other answer ends its
 * application on its tile, as a crash does. It does not wait, keeps no pointer to tokens, and is
 * left by return alone.
 */
typedef int (*punctual_fire)(const struct punctual_firing *firing);

/**
 * Updates the firing rule of an actor, after each of its firings: it says by `punctual_consume`
 * and `punctual_produce` how many tokens the next one takes and hands on. It gets the parameter of
 * the actor, in which the firing may have left what it needs.
 */
typedef void (*punctual_update_firing_rule)(void *parameter);

/**
 * A task: any code, which runs to its end on its tile, on a stack of its own of 256 KiB. Its calls
 * of `punctual_read_fifo` and `punctual_write_fifo` wait where tokens or space are missing.
 * Another task of the tile goes on meanwhile. It is left by return alone.
 */
typedef void (*punctual_complete)(void *parameter);

/**
 * An actor: a function that is called when its tokens are there. Made by `punctual_actor_with`
 * below, which sets `size`; a field that is 0 or null means what is said of it.
 */
typedef struct punctual_actor {
    /**
     * `sizeof(punctual_actor)`.
     */
    size_t size;
    /**
     * Its name, which no other actor of the graph has.
     */
    const char *name;
    /**
     * The tile that executes it, a number below 256 that is the program's own.
     */
    uint32_t tile;
    /**
     * The longest execution of a firing, claims and decision with it.
     */
    uint64_t wcet_ns;
    /**
     * Instead of it one for each phase. Null: they are equal.
     */
    const uint64_t *phase_wcets_ns;
    /**
     * How many.
     */
    size_t phases;
    /**
     * Its work. Null: it burns its wcet.
     */
    punctual_fire fire;
    /**
     * Says how many tokens its next firing takes and hands on. Null: as many as its FIFOs say.
     */
    punctual_update_firing_rule update;
    /**
     * What they get.
     */
    void *parameter;
    /**
     * Instead of `fire`: it is a task, and so are all others of its graph, which is not real-time.
     */
    punctual_complete task;
} punctual_actor;

/**
 * A FIFO from one actor to another, or to itself: its state. Made by `punctual_fifo_between`
 * below, which sets `size`.
 */
typedef struct punctual_fifo {
    /**
     * `sizeof(punctual_fifo)`.
     */
    size_t size;
    /**
     * Its name, which no other FIFO of the graph has.
     */
    const char *name;
    /**
     * The actor that writes it: its place among the actors, from 0.
     */
    uint32_t from;
    /**
     * The actor that reads it.
     */
    uint32_t to;
    /**
     * Tokens that a firing of the writer hands on.
     */
    uint32_t produce;
    /**
     * Tokens that a firing of the reader takes.
     */
    uint32_t consume;
    /**
     * Instead of `produce` one number for each phase of the writer. Null: they are equal.
     */
    const uint32_t *produce_by_phase;
    /**
     * How many.
     */
    size_t produce_phases;
    /**
     * Instead of `consume` one number for each phase of the reader. Null: they are equal.
     */
    const uint32_t *consume_by_phase;
    /**
     * How many.
     */
    size_t consume_phases;
    /**
     * Bytes of a token.
     */
    uint32_t token_size;
    /**
     * Most tokens in it. 0: room for two iterations of the graph.
     */
    uint32_t capacity;
    /**
     * Tokens that are in it at first.
     */
    uint32_t initial;
    /**
     * One of `punctual_place`.
     */
    uint32_t place;
    /**
     * The bytes of these first tokens. Null: zeros.
     */
    const void *first;
} punctual_fifo;

/**
 * The task scheduler of an application on a tile: the place of the actor that fires next among the
 * actors of that tile, or `PUNCTUAL_IDLE_TASK`. It asks `punctual_check_firing_rules` and
 * `punctual_get_task_id`. It is not believed: an answer that may not fire means the idle task.
 */
typedef int (*punctual_decide)(void *parameter);

/**
 * The order of one tile. A tile without one has its actors fire by turns, in own time. Made by
 * `punctual_scheduled_by`, `punctual_scheduled_in_order`, `punctual_scheduled_between_slots`,
 * `punctual_scheduled_passing_over` and `punctual_scheduled_inline` below, which set `size`.
 */
typedef struct punctual_task_scheduler {
    /**
     * `sizeof(punctual_task_scheduler)`.
     */
    size_t size;
    /**
     * The tile.
     */
    uint32_t tile;
    /**
     * Chooses. Null: turns, or `firings`.
     */
    punctual_decide decide;
    /**
     * What it gets.
     */
    void *parameter;
    /**
     * One of `punctual_when`.
     */
    uint32_t when;
    /**
     * Instead of `decide` a list of actors, by their places in the graph. In own time it is a
     * static order: the firings of one iteration, again and again. With `PUNCTUAL_PASSED_OVER` it
     * has the owners of the slots, one after the other; a slot whose owner may not fire stays
     * empty. Null: none.
     */
    const uint32_t *firings;
    /**
     * How many.
     */
    size_t firing_count;
} punctual_task_scheduler;

/**
 * An application: its actors and its FIFOs, and what goes with them. Made by `punctual_graph_of`
 * below, which sets `size`.
 */
typedef struct punctual_graph {
    /**
     * `sizeof(punctual_graph)`.
     */
    size_t size;
    /**
     * Its name.
     */
    const char *name;
    /**
     * Its actors.
     */
    const struct punctual_actor *actors;
    /**
     * How many.
     */
    size_t actor_count;
    /**
     * Its FIFOs.
     */
    const struct punctual_fifo *fifos;
    /**
     * How many.
     */
    size_t fifo_count;
    /**
     * Its own task schedulers. Null: none.
     */
    const struct punctual_task_scheduler *schedulers;
    /**
     * How many.
     */
    size_t scheduler_count;
    /**
     * Bytes of each memory that its tiles share (`punctual_read_shm`). Null: none.
     */
    const size_t *memories;
    /**
     * How many.
     */
    size_t memory_count;
} punctual_graph;

/**
 * A body that a kernel thread executes. All zero: none.
 */
typedef struct punctual_backed {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_backed;

/**
 * What a thread executes, once. It returns; it may not be left by `longjmp`. An exception of C++
 * that leaves it is as `punctual_fail` with its type and `what()`.
 */
typedef void *(*punctual_body)(void *argument);

/**
 * A barrier. All zero: none.
 */
typedef struct punctual_barrier {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_barrier;

/**
 * A condition. All zero: none.
 */
typedef struct punctual_condition {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_condition;

/**
 * A mutex. All zero: none.
 */
typedef struct punctual_mutex {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_mutex;

/**
 * A thread. All zero: none.
 */
typedef struct punctual_thread {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_thread;

/**
 * Event flags. All zero: none.
 */
typedef struct punctual_flags {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_flags;

/**
 * A gang. All zero: none.
 */
typedef struct punctual_gang {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_gang;

/**
 * How a gang is made. Made by `punctual_gang_of` below, which sets `size`.
 */
typedef struct punctual_gang_options {
    /**
     * `sizeof(punctual_gang_options)`, by which later versions tell earlier ones.
     */
    size_t size;
    /**
     * How many members it has when it is complete, up to 4096.
     */
    uint32_t members;
    /**
     * 0: one counter that all share, for few members. 1: a tree, whose rounds take log n.
     */
    uint32_t tree;
    /**
     * 0: members spin while they wait, which is for those alone on their CPU. Else they sleep so
     * long between two looks.
     */
    uint64_t sleep_ns;
    /**
     * A member that is silent for so long is named, and the gang is broken. 0: a second.
     */
    uint64_t limit_ns;
} punctual_gang_options;

/**
 * The constraint that a thread asks for. Made by `punctual_periodic` and its like below, which set
 * `size`; fields that a kind does not name must be 0. Times are nanoseconds.
 */
typedef struct punctual_constraint {
    /**
     * `sizeof(punctual_constraint)`, by which later versions tell earlier ones.
     */
    size_t size;
    /**
     * One of `punctual_kind`.
     */
    uint32_t kind;
    /**
     * Urgency under fixed priority and among background work: a larger number is more urgent.
     */
    uint32_t priority;
    /**
     * The period; of sporadic work, the least distance between two releases.
     */
    uint64_t period_ns;
    /**
     * Processor time: of a job at most, of a reservation in every period, of `PUNCTUAL_ONCE` in
     * all.
     */
    uint64_t work_ns;
    /**
     * From release to deadline; 0: the period.
     */
    uint64_t deadline_ns;
    /**
     * The first release, counted from the creation or the change; of all but background work.
     */
    uint64_t phase_ns;
    /**
     * One of `punctual_late`, of periodic and sporadic work.
     */
    uint32_t late;
    /**
     * One of `punctual_on_overrun`, of periodic and sporadic work.
     */
    uint32_t on_overrun;
    /**
     * How long a job waits in total, by itself or blocked by a scheduler, of periodic and sporadic
     * work.
     */
    uint64_t suspension_ns;
    /**
     * In how many waits, at most.
     */
    uint32_t suspensions;
} punctual_constraint;

/**
 * A phase of a gang: `iteration` and `phase` count from 0.
 */
typedef void (*punctual_phase)(void *argument, uint64_t iteration, uint64_t phase);

/**
 * How the phases of a gang were kept apart: the same for all members.
 */
typedef struct punctual_kept {
    /**
     * Phases of any member that ended when the next might have begun without a barrier. 0, with
     * `clocks_apart` at its greatest: the gang was kept in step.
     */
    uint64_t late_ends;
    /**
     * The phase from which on there were barriers; `UINT64_MAX`: there were none.
     */
    uint64_t barriers_from;
    /**
     * From when on (nanoseconds of the run) clocks were seen to differ by more than the proof
     * counts with, so that the gang was not kept in step; `UINT64_MAX`: they were not.
     */
    uint64_t clocks_apart;
    /**
     * 1: the barriers were left out without proof.
     */
    int forced;
} punctual_kept;

/**
 * A counting event. All zero: none.
 */
typedef struct punctual_notify {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_notify;

/**
 * A queue. All zero: none.
 */
typedef struct punctual_queue {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_queue;

/**
 * A CPU of a run, and what its first thread executes there.
 */
typedef struct punctual_cpu {
    /**
     * The CPU, as the kernel counts them.
     */
    uint32_t host;
    /**
     * One of `punctual_policy_kind`.
     */
    uint32_t policy;
    /**
     * For `PUNCTUAL_ROUND_ROBIN` the longest turn, for `PUNCTUAL_TIME_DIVISION` the frame, else 0.
     */
    uint64_t timeslice_ns;
    /**
     * What its first thread executes.
     */
    punctual_body first;
    /**
     * With which argument.
     */
    void *argument;
} punctual_cpu;

/**
 * How a run spreads work over its CPUs: `spread` of `punctual_options`. Made by
 * `punctual_spread_with` below, which sets `size`.
 */
typedef struct punctual_spread {
    /**
     * `sizeof(punctual_spread)`, by which later versions tell earlier ones.
     */
    size_t size;
    /**
     * One of `punctual_choice`.
     */
    uint32_t choice;
    /**
     * The priority of the workers, as background work.
     */
    uint32_t priority;
    /**
     * Threads of each CPU that do such work, beside `threads` of the options.
     */
    size_t workers;
    /**
     * Work that may wait in the queue of each CPU.
     */
    size_t room;
} punctual_spread;

/**
 * A part of each frame, which belongs to one scheduler.
 */
typedef struct punctual_slot {
    /**
     * From the start of the frame.
     */
    uint64_t at_ns;
    /**
     * Its length.
     */
    uint64_t length_ns;
} punctual_slot;

/**
 * The terms on which a scheduler joins a tree. Made by `punctual_served`, `punctual_shared` and
 * `punctual_in_slots` below, which set `size`.
 */
typedef struct punctual_terms {
    /**
     * `sizeof(punctual_terms)`, by which later versions tell earlier ones.
     */
    size_t size;
    /**
     * One of `punctual_supply`.
     */
    uint32_t supply;
    /**
     * Urgency among what its parent orders; a larger number is more urgent.
     */
    uint32_t priority;
    /**
     * Processor time in each period; 0 with `PUNCTUAL_SHARED` and `PUNCTUAL_SLOTS`.
     */
    uint64_t budget_ns;
    /**
     * The period; 0 with `PUNCTUAL_SHARED` and `PUNCTUAL_SLOTS`.
     */
    uint64_t period_ns;
    /**
     * Most threads of its subtree at any one time; 0: as many as there are.
     */
    uint32_t quota;
    /**
     * Its slots, with `PUNCTUAL_SLOTS`; else null.
     */
    const struct punctual_slot *slots;
    /**
     * How many.
     */
    size_t slot_count;
} punctual_terms;

/**
 * A scheduler that a run starts with: `schedulers` of `punctual_options`.
 */
typedef struct punctual_branch {
    /**
     * Its name, by which `punctual_scheduler_find` finds it.
     */
    const char *name;
    /**
     * The CPU: 0 for that of the call, from 1 on those beside it.
     */
    uint32_t cpu;
    /**
     * Its parent: 0 for the policy of the CPU, else the place of a branch of the same array,
     * counted from 1.
     */
    uint32_t parent;
    /**
     * How it orders its threads and children: one of `punctual_policy_kind`.
     */
    uint32_t policy;
    /**
     * For `PUNCTUAL_ROUND_ROBIN` the longest turn, for `PUNCTUAL_TIME_DIVISION` the frame, else 0.
     */
    uint64_t timeslice_ns;
    /**
     * Its terms with its parent.
     */
    struct punctual_terms terms;
} punctual_branch;

/**
 * A policy of the program's own, for a branch: `policies` of `punctual_options`. The branch
 * decides on its own supply then, and has threads only. A policy that is slow, wrong or endless,
 * or crashes, costs nobody but its own threads.
 */
typedef struct punctual_own_policy {
    /**
     * The branch: its place in `schedulers`, counted from 1.
     */
    uint32_t branch;
    /**
     * So many periods of its supply may pass without a lawful answer before its threads go on
     * under `fallback`; at once when it crashes. 0: it has none.
     */
    uint32_t fallback_after;
    /**
     * One of `punctual_policy_kind`.
     */
    uint32_t fallback;
    /**
     * For `PUNCTUAL_ROUND_ROBIN` the longest turn, else 0.
     */
    uint64_t fallback_timeslice_ns;
    /**
     * Makes it, once, during the call that starts the run (`punctual_policy.h`).
     */
    punctual_policy_maker make;
} punctual_own_policy;

/**
 * How a run starts. Made by `punctual_defaults` below, which sets `size`; a field that is 0 or
 * null means what is said of it.
 */
typedef struct punctual_options {
    /**
     * `sizeof(punctual_options)`, by which later versions tell earlier ones.
     */
    size_t size;
    /**
     * CPUs beside the one of the call, each with a first thread of its own. Null: none.
     */
    const struct punctual_cpu *beside;
    /**
     * How many.
     */
    size_t beside_count;
    /**
     * How many threads each CPU may have at a time beside its first, less than 2^20. 0: 64.
     */
    size_t threads;
    /**
     * Usable bytes of each stack, at most 1 GiB. 0: 64 KiB.
     */
    size_t stack_bytes;
    /**
     * The constraint of the first thread of each CPU. Null: background work of the highest
     * priority, so that only threads with a guarantee go before it.
     */
    const struct punctual_constraint *first_asks;
    /**
     * 1: do not try for real-time priority and locked memory; guarantees are observations then.
     */
    uint32_t best_effort;
    /**
     * 1: admission counts nothing for the costs of this machine. 0: they are measured before the
     * run, which takes up to half a second. With 1 its answers are the same on every machine, but
     * for budgets that two entries of the scheduler use up: those are refused. The first start on
     * a CPU measures an entry then, in some 40 ms, and for 20 s at most where others have the CPU.
     */
    uint32_t without_terms;
    /**
     * How work is spread over the CPUs (`punctual_offer`). Null: none is.
     */
    const struct punctual_spread *spread;
    /**
     * The schedulers below the policies of the CPUs. Null: none.
     */
    const struct punctual_branch *schedulers;
    /**
     * How many.
     */
    size_t scheduler_count;
    /**
     * How many schedulers each CPU may have at a time beside them (`punctual_scheduler_promote`).
     */
    uint32_t promotions;
    /**
     * The program's own policies for some of `schedulers`. Null: none.
     */
    const struct punctual_own_policy *policies;
    /**
     * How many.
     */
    size_t policy_count;
    /**
     * 1: all of each stack is in memory before the run. 0: its first 64 KiB are (of a smaller
     * stack what it was declared with, and a page). The first use of each page below them takes a
     * page fault.
     */
    uint32_t lock_stacks;
    /**
     * Not looked at.
     */
    uint32_t reserved;
    /**
     * 1: no run begins where a library keeps `__thread` variables from being new in each thread.
     * 0: the first such run says so on standard error, and begins.
     */
    uint32_t strict;
    /**
     * The constant time in which the scheduler decides before each slot: at least so far apart do
     * the slots of each frame lie (`PUNCTUAL_TIME_DIVISION`).
     */
    uint64_t scheduling_ns;
    /**
     * The path of a system file whose schedulers stand in place of `schedulers`. It has these
     * CPUs, in this order and with these policies, and nothing but schedulers on them. Its slices
     * are found by `giver:receiver` (`punctual_scheduler_find_slice`), and it may name policies in
     * C. `policies` counts its schedulers in the order of the file. Null: none.
     */
    const char *tree_file;
} punctual_options;

/**
 * A lock for readers and writers. All zero: none.
 */
typedef struct punctual_rwlock {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_rwlock;

/**
 * A scheduler, and the authority over its subtree. All zero: none.
 */
typedef struct punctual_scheduler {
    /**
     * The library's.
     */
    uint64_t id;
    /**
     * The library's, too.
     */
    uint64_t key;
} punctual_scheduler;

/**
 * A scheduler that budget may be lent to, and nothing else. All zero: none.
 */
typedef struct punctual_recipient {
    /**
     * The library's.
     */
    uint64_t id;
    /**
     * The library's, too.
     */
    uint64_t key;
} punctual_recipient;

/**
 * A semaphore. All zero: none.
 */
typedef struct punctual_semaphore {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_semaphore;

/**
 * A slice of a scheduler's supply in the hands of another, and the authority to hand on its time.
 * All zero: none.
 */
typedef struct punctual_slice {
    /**
     * The library's.
     */
    uint64_t id;
    /**
     * The library's, too.
     */
    uint64_t key;
} punctual_slice;

/**
 * A mutex that is spun for. All zero: none.
 */
typedef struct punctual_spin {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_spin;

/**
 * A use of what a spin mutex guards, alone. It returns soon: no other thread executes on its CPU,
 * and a thread that waits on another one spins. It calls nothing that waits or prints;
 * of this library's calls, those that are for threads of a run answer `PUNCTUAL_NO_RUN` in it. It
 * may not be left by `longjmp`, nor by an exception.
 */
typedef void (*punctual_use)(void *argument);

/**
 * Work that was offered. All zero: none.
 */
typedef struct punctual_offered {
    /**
     * The library's.
     */
    uint64_t id;
} punctual_offered;

/**
 * A job of a thread.
 */
typedef struct punctual_job {
    /**
     * `sizeof(punctual_job)`, set by the caller.
     */
    size_t size;
    /**
     * Which one, from 0.
     */
    uint64_t index;
    /**
     * When it arrived, in nanoseconds of the run.
     */
    uint64_t arrival_ns;
    /**
     * When it is due; the largest number: never.
     */
    uint64_t deadline_ns;
} punctual_job;

/**
 * Instants at a fixed distance: late or not, the next one is where it belongs. A plain value of
 * the caller's, which may be copied and needs no end.
 */
typedef struct punctual_timer {
    /**
     * The next instant, in nanoseconds of the run; the largest number: never again.
     */
    uint64_t next_ns;
    /**
     * The distance; 0: once.
     */
    uint64_t period_ns;
} punctual_timer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Why the last call of the calling thread that was refused (`PUNCTUAL_REFUSED`,
 * `PUNCTUAL_NOT_ALLOWED`, `PUNCTUAL_CANNOT_RUN`, and of graphs `PUNCTUAL_INVALID`) was refused:
 * which thread would be late in which situation, and what would mend it. `form` is one of
 * `punctual_form`. The text and its end go to `buffer`, as far as `capacity` bytes go; `length`,
 * if not null, gets the bytes of the whole text without its end, also with `PUNCTUAL_TRUNCATED`;
 * so a null buffer of capacity 0 asks how many. `PUNCTUAL_NOTHING` when nothing was refused. Legal
 * everywhere.
 *
 * Pointers:
 * `buffer` is null with a capacity of 0, or to that many writable bytes; `length` is null, or to a
 * place for a number.
 */
enum punctual_status punctual_why(uint32_t form, char *buffer, size_t capacity, size_t *length);

/**
 * The promises to the threads of this CPU that have a guarantee, and their grounds. The arguments
 * are those of `punctual_why`. It costs what an analysis costs, on the caller's time. On threads
 * of a run.
 *
 * Pointers:
 * As for `punctual_why`.
 */
enum punctual_status punctual_verdict(uint32_t form, char *buffer, size_t capacity, size_t *length);

/**
 * Makes an application, with all the memory that it will use. What is described is copied, but for
 * the parameters, which are the functions' own. `PUNCTUAL_INVALID` when the description means
 * nothing and `PUNCTUAL_REFUSED` when the graph stops by itself, whatever executes it; then
 * `punctual_why` says where, and what would mend it. Legal everywhere, but not while others are to
 * be on time: it analyses the graph.
 *
 * Pointers:
 * `application` is null, or to a place for one; `graph` is null or to a description, with all that
 * it points to. Each function may be called with its parameter, on the stack of each thread that
 * executes its tile, by one at a time.
 */
enum punctual_status punctual_application_create(struct punctual_application *application,
                                                 const struct punctual_graph *graph);

/**
 * Ends it; `PUNCTUAL_BUSY` while a thread executes one of its tiles. Legal everywhere.
 */
enum punctual_status punctual_application_destroy(struct punctual_application application);

/**
 * Executes a tile of an application on the calling thread, firing after firing, until somebody
 * stops the application (`punctual_application_stop`). Where nobody may fire it looks again and
 * again: what the thread has of the processor, a reservation for example, is the tile's, and
 * nobody else notices what goes on there. The tile's task scheduler is called before each firing,
 * or once in each slot of the branch that has the thread in its care (`PUNCTUAL_BETWEEN_SLOTS`,
 * `PUNCTUAL_PASSED_OVER`): `PUNCTUAL_INVALID` when that has none, or no time between them. With
 * `PUNCTUAL_INLINE` it executes an actor of the tile that no other thread executes, and yields
 * after each firing.
 *
 * Tasks are executed once, until all of them have returned. One goes on until a FIFO blocks it or
 * it returns; then the task scheduler is asked for the next that can go on.
 *
 * `PUNCTUAL_FAILED` when a function of an actor answered something else than 0, or crashed, or the
 * task scheduler did: `punctual_why` says which. From then on the tile fires no more.
 * `PUNCTUAL_BUSY` while another thread executes it. A function that never returns keeps its
 * thread: others see it by `punctual_application_fault`. On threads of a run.
 */
enum punctual_status punctual_tile_run(struct punctual_application application, uint32_t tile);

/**
 * One firing of a tile, on the calling thread: the task scheduler is asked, and the actor that it
 * names fires. `PUNCTUAL_NOTHING` when it names nobody that may. `punctual_actor_firings` counts
 * the firing from the next call on. `PUNCTUAL_NOT_ALLOWED` for a tile that decides between slots,
 * has tasks, or has a thread for each actor.
 * Otherwise as `punctual_tile_run`, but legal everywhere;
 * outside of a run a crash ends the process.
 */
enum punctual_status punctual_tile_fire(struct punctual_application application, uint32_t tile);

/**
 * Has the threads that execute the tiles of an application return, each after the firings that are
 * under way; others that come to execute it return at once. Tasks are told at their next call of a
 * FIFO. Legal everywhere.
 */
enum punctual_status punctual_application_stop(struct punctual_application application);

/**
 * The firings of an actor that have ended, by its place among the actors of its graph; also while
 * it is executed. Legal everywhere.
 *
 * Pointers:
 * `firings` is null, or to a place for a number.
 */
enum punctual_status punctual_actor_firings(struct punctual_application application,
                                            uint32_t actor,
                                            uint64_t *firings);

/**
 * What is wrong with an application, a line for each tile: a function that failed, one that has
 * not returned for longer than `patience_ns`, a task scheduler whose answers were refused.
 * `PUNCTUAL_NOTHING` when nothing is. `punctual_report` has the same of all applications that
 * there are when a run ends. See `punctual_why` for the buffer. Legal everywhere.
 *
 * Pointers:
 * As for `punctual_why`.
 */
enum punctual_status punctual_application_fault(struct punctual_application application,
                                                uint64_t patience_ns,
                                                char *buffer,
                                                size_t capacity,
                                                size_t *length);

/**
 * Starts a kernel thread of this name that waits for `punctual_backed_run`, to execute
 * `body(argument)`: code that waits in the kernel, or starts kernel threads of its own.
 * `PUNCTUAL_CANNOT_RUN` when the machine has no thread or pipe for it, `PUNCTUAL_NOT_ALLOWED` on
 * threads of a run, which start none (`punctual_why` says more). On threads of the program, not
 * of a run.
 *
 * Pointers:
 * `backed` is null, or to a place for one; `name` is null or a string; `body` may be called with
 * `argument` on another kernel thread, as long as it likes.
 */
enum punctual_status punctual_backed_create(struct punctual_backed *backed,
                                            const char *name,
                                            punctual_body body,
                                            void *argument);

/**
 * Ends a body that was never run, and its kernel thread; `PUNCTUAL_BUSY` while it runs, and for
 * good when the run ended before it did. Legal everywhere.
 */
enum punctual_status punctual_backed_destroy(struct punctual_backed backed);

/**
 * Executes the body in place of the calling thread until it returns; `result`, if not null, gets
 * what it returned. It has the processor whenever this thread would have it, budgets and slots
 * included, and is charged for it also while it waits, which nobody can see. The handle is at its
 * end then, whatever the code. When this thread is to end, `punctual_checkpoint` says so in the
 * body. `PUNCTUAL_FAILED` when the body failed (`punctual_fail`), `PUNCTUAL_TAKEN` when somebody
 * runs it already, `PUNCTUAL_CANNOT_RUN` when its kernel thread cannot come to this CPU
 * (`punctual_why` says more). A scheduling point. On threads of a run.
 *
 * Pointers:
 * `result` is null, or to a place for a pointer.
 */
enum punctual_status punctual_backed_run(struct punctual_backed backed, void **result);

/**
 * From the next turn on the calling kernel thread, which a body has started, runs and waits with
 * that body, until `punctual_backed_leave` or its end. Others compete for the CPU like everybody.
 * `PUNCTUAL_NOT_ALLOWED` on threads of a run, and before the body has begun;
 * `PUNCTUAL_ALREADY_HELD` for a member; `PUNCTUAL_FULL` when there are 256 already, or the body
 * has returned.
 */
enum punctual_status punctual_backed_join(struct punctual_backed backed);

/**
 * The end of a `punctual_backed_join`, on the same kernel thread: `PUNCTUAL_NOT_HELD` without
 * one.
 */
enum punctual_status punctual_backed_leave(void);

/**
 * Makes a barrier for `threads` (0 counts as 1), which meet there again and again. Legal
 * everywhere; it belongs to the CPU of its first use.
 *
 * Pointers:
 * `barrier` is null, or to a place for one.
 */
enum punctual_status punctual_barrier_create(struct punctual_barrier *barrier, uint32_t threads);

/**
 * `punctual_barrier_create` for threads of every CPU of a run. Legal everywhere.
 *
 * Pointers:
 * `barrier` is null, or to a place for one.
 */
enum punctual_status punctual_barrier_create_cross_cpu(struct punctual_barrier *barrier,
                                                       uint32_t threads);

/**
 * Ends a barrier; `PUNCTUAL_BUSY` while somebody waits at it. Legal everywhere.
 */
enum punctual_status punctual_barrier_destroy(struct punctual_barrier barrier);

/**
 * Waits for the others, for `within_ns` at most; a thread that gives up has not come. `last`, if
 * not null, gets 1 for the thread that came last and 0 for the others. A scheduling point. On
 * threads of a run.
 *
 * Pointers:
 * `last` is null, or to a place for an `int`.
 */
enum punctual_status punctual_barrier_wait(struct punctual_barrier barrier,
                                           uint64_t within_ns,
                                           int *last);

/**
 * Makes a condition. Legal everywhere; it belongs to the CPU of its first use.
 *
 * Pointers:
 * `condition` is null, or to a place for one.
 */
enum punctual_status punctual_condition_create(struct punctual_condition *condition);

/**
 * Ends a condition; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
 */
enum punctual_status punctual_condition_destroy(struct punctual_condition condition);

/**
 * Unlocks a mutex that the caller holds, waits to be told for `within_ns` at most, and locks it
 * again, however long that takes. A thread may be told without reason: look again. With
 * `PUNCTUAL_OK` and `PUNCTUAL_TIMED_OUT` the mutex is held again; with `PUNCTUAL_STALE`,
 * `PUNCTUAL_NOT_HELD`, and `PUNCTUAL_OTHER_CPU` (a condition of another CPU) nothing has changed;
 * with any other code it is not held. A scheduling point. On threads of a run.
 */
enum punctual_status punctual_condition_wait(struct punctual_condition condition,
                                             struct punctual_mutex mutex,
                                             uint64_t within_ns);

/**
 * Tells the most urgent thread that waits, if there is one. A scheduling point when it is more
 * urgent than the caller. On threads of a run.
 */
enum punctual_status punctual_condition_tell_one(struct punctual_condition condition);

/**
 * Tells all threads that wait. Otherwise as `punctual_condition_tell_one`.
 */
enum punctual_status punctual_condition_tell_all(struct punctual_condition condition);

/**
 * Waits for the end of a thread for `within_ns` at most, takes what it returned into `result`, if
 * that is not null, and ends the handle. `PUNCTUAL_NOTHING` when it ended before its body began,
 * `PUNCTUAL_FAILED` when it failed (`punctual_fail`; `punctual_why` has its words): the handle is
 * at its end then, too. A scheduling point. On threads of its CPU.
 *
 * Pointers:
 * `result` is null, or to a place for a pointer.
 */
enum punctual_status punctual_thread_join(struct punctual_thread thread,
                                          uint64_t within_ns,
                                          void **result);

/**
 * Has a thread end (`punctual_thread_cancel`), waits for that as `punctual_thread_join` does, and
 * if it has not ended after `within_ns`, takes the processor from it for good: a loop without a
 * call does not end otherwise.
 *
 * `PUNCTUAL_ABANDONED` says that this was done; the handle is at its end then. Such a thread
 * unlocks nothing: threads that wait for its locks wait on, and its locks cannot be destroyed any
 * more. Its place among the threads of the run is lost until the run is over; its share of the
 * processor is free. `PUNCTUAL_TIMED_OUT` says that it waits, or has not begun, and would end
 * itself if it got the processor. `PUNCTUAL_TAKEN` says, at once, that somebody else waits for its
 * end: it was told to end, and no more. A thread that comes to wait after that gets
 * `PUNCTUAL_ABANDONED`,
 * too. A scheduling point. On threads of its CPU.
 *
 * Pointers:
 * `result` is null, or to a place for a pointer.
 */
enum punctual_status punctual_thread_kill(struct punctual_thread thread,
                                          uint64_t within_ns,
                                          void **result);

/**
 * Ends the handle and lets the thread go on alone. On threads of a run.
 */
enum punctual_status punctual_thread_detach(struct punctual_thread thread);

/**
 * Whether a thread has ended: `ended` gets 1 or 0. On threads of its CPU.
 *
 * Pointers:
 * `ended` is null, or to a place for an `int`.
 */
enum punctual_status punctual_thread_has_ended(struct punctual_thread thread, int *ended);

/**
 * Tells a thread to end: every call of it that waits, the present one included, answers
 * `PUNCTUAL_CANCELLED` from now on; so does `punctual_checkpoint`, for bodies that do not wait. A
 * `read`, `write` or `poll` of it that waits fails with `ECANCELED`. It cleans up and returns from
 * its body; only `punctual_thread_kill` ends it otherwise. `PUNCTUAL_NOTHING` when it has ended.
 * On threads of its CPU.
 */
enum punctual_status punctual_thread_cancel(struct punctual_thread thread);

/**
 * Says that the calling thread cannot go on, and why; the text is copied, and the first one
 * counts. The thread then cleans up and returns from its body; what it returns is ignored. Who
 * joins it hears `PUNCTUAL_FAILED` and, from `punctual_why`, the text; `punctual_report` has it,
 * too. The run ends with it if its rule says so (`punctual_thread_create_with`), or if it is the
 * first thread of the run. On threads of a run, and of the kernel, whose body was given to this
 * library.
 *
 * Pointers:
 * `why` is null or a string.
 */
enum punctual_status punctual_fail(const char *why);

/**
 * Whether a task may fire, by its place among the actors of the tile: 1 if its tokens and its
 * space are there, else 0; 0 of a task that there is not. In a task scheduler; 0 elsewhere.
 */
int punctual_check_firing_rules(uint32_t task);

/**
 * The task that fired last on this tile, by its place among its actors; `PUNCTUAL_IDLE_TASK` when
 * none has. In a task scheduler; `PUNCTUAL_IDLE_TASK` elsewhere.
 */
int punctual_get_task_id(void);

/**
 * How many tasks the tile has. In a task scheduler; 0 elsewhere.
 */
uint32_t punctual_task_count(void);

/**
 * So many tokens of an input does the next firing take. `PUNCTUAL_INVALID` when the actor has no
 * such input, or its FIFO never holds so many: the rate stays as it was. In an update of a firing
 * rule; `PUNCTUAL_NOT_ALLOWED` elsewhere.
 */
enum punctual_status punctual_consume(uint32_t input, uint32_t tokens);

/**
 * So many tokens does the next firing hand on to an output. `PUNCTUAL_INVALID` when the actor has
 * no such output, or its FIFO never holds so many: the rate stays as it was. In an update of a
 * firing rule; `PUNCTUAL_NOT_ALLOWED` elsewhere.
 */
enum punctual_status punctual_produce(uint32_t output, uint32_t tokens);

/**
 * Copies the next tokens of an input into a buffer (CompOSe's `readFIFO`). The first call of a
 * firing begins with its first token. `PUNCTUAL_NOTHING` when the firing takes fewer; nothing is
 * copied then. The copy calls nothing, so a preemption does not wait for it. In a firing, and in a
 * task; `PUNCTUAL_NOT_ALLOWED` elsewhere.
 *
 * In a task it waits until the tokens are there. `PUNCTUAL_INVALID` when the FIFO never holds so
 * many; `PUNCTUAL_CANCELLED` when the application was stopped, or the thread of the tile is to
 * end: clean up and return.
 *
 * Pointers:
 * `buffer` is null, or to as many writable bytes as the tokens have, outside of the FIFO.
 */
enum punctual_status punctual_read_fifo(uint32_t input, void *buffer, uint32_t tokens);

/**
 * Copies tokens from a buffer to the next places of an output (CompOSe's `writeFIFO`). Their
 * reader has them after the firing. `PUNCTUAL_NOTHING` when the firing hands on fewer; nothing is
 * copied then. As `punctual_read_fifo` otherwise.
 *
 * Pointers:
 * `buffer` is null, or to as many bytes as the tokens have, outside of the FIFO.
 */
enum punctual_status punctual_write_fifo(uint32_t output, const void *buffer, uint32_t tokens);

/**
 * Copies bytes from the place `at` of a memory that the tiles of the application share (CompOSe's
 * `readSHM`), by the copies of this application alone. `PUNCTUAL_INVALID` when the memory is not
 * there, or has not so many bytes; nothing is copied then. What another tile writes meanwhile may
 * be half there: a token that it hands on afterwards says that it is whole. The copy calls
 * nothing, so a preemption does not wait for it. In a firing; `PUNCTUAL_NOT_ALLOWED` elsewhere.
 *
 * Pointers:
 * `buffer` is null, or to that many writable bytes.
 */
enum punctual_status punctual_read_shm(void *buffer, uint32_t memory, size_t at, size_t bytes);

/**
 * Copies bytes to the place `at` of a memory that the tiles of the application share (CompOSe's
 * `writeSHM`). As `punctual_read_shm` otherwise.
 *
 * Pointers:
 * `buffer` is null, or to that many bytes.
 */
enum punctual_status punctual_write_shm(uint32_t memory,
                                        size_t at,
                                        const void *buffer,
                                        size_t bytes);

/**
 * Makes 62 flags, none raised. Legal everywhere; they belong to the CPU of their first use.
 *
 * Pointers:
 * `flags` is null, or to a place for them.
 */
enum punctual_status punctual_flags_create(struct punctual_flags *flags);

/**
 * `punctual_flags_create` for threads of every CPU of a run; waiting threads are served in
 * the order of coming. Legal everywhere.
 *
 * Pointers:
 * `flags` is null, or to a place for them.
 */
enum punctual_status punctual_flags_create_cross_cpu(struct punctual_flags *flags);

/**
 * Ends them; `PUNCTUAL_BUSY` while somebody waits for them. Legal everywhere.
 */
enum punctual_status punctual_flags_destroy(struct punctual_flags flags);

/**
 * Raises flags: threads that have enough of them go on, the most urgent first. `PUNCTUAL_INVALID`
 * for bits from 62 on. A scheduling point when a more urgent thread goes on. On threads of a run.
 */
enum punctual_status punctual_flags_raise(struct punctual_flags flags, uint64_t mask);

/**
 * Lowers flags. On threads of a run.
 */
enum punctual_status punctual_flags_lower(struct punctual_flags flags, uint64_t mask);

/**
 * Waits for flags of `mask` as `want` says, for `within_ns` at most. `found`, if not null, gets
 * those of the mask that were raised then. A scheduling point when it waits. On threads of a run.
 *
 * Pointers:
 * `found` is null, or to a place for a mask.
 */
enum punctual_status punctual_flags_wait(struct punctual_flags flags,
                                         uint64_t mask,
                                         uint32_t want,
                                         uint64_t within_ns,
                                         uint64_t *found);

/**
 * The flags that are raised. On threads of their CPU.
 *
 * Pointers:
 * `raised` is null, or to a place for a mask.
 */
enum punctual_status punctual_flags_raised(struct punctual_flags flags, uint64_t *raised);

/**
 * Makes a gang under a name that no living gang has, of which up to 256 live at a time.
 * `PUNCTUAL_BUSY` when one of this name lives, `PUNCTUAL_NO_MEMORY` when as many live as may.
 * Legal everywhere.
 *
 * Pointers:
 * `gang` is null, or to a place for one; `name` is null or a string; `options` is null or to
 * options.
 */
enum punctual_status punctual_gang_create(struct punctual_gang *gang,
                                          const char *name,
                                          const struct punctual_gang_options *options);

/**
 * `gang` gets the living gang that `punctual_gang_create` made under `name`, so that a thread
 * without its handle may join it. `PUNCTUAL_UNKNOWN` when none of that name lives: it was never
 * made, is broken or destroyed. O(gangs). Legal everywhere.
 *
 * Pointers:
 * `gang` is null, or to a place for one; `name` is null or a string.
 */
enum punctual_status punctual_gang_named(struct punctual_gang *gang, const char *name);

/**
 * Ends a gang: its members are told, and its name is free. Legal everywhere.
 */
enum punctual_status punctual_gang_destroy(struct punctual_gang gang);

/**
 * Makes the calling thread a member; `place`, if not null, gets its place, from 0 in the order of
 * joining. A thread that ends leaves its gangs, which breaks them for the rest. `PUNCTUAL_FULL`
 * when every place is taken, `PUNCTUAL_ALREADY_HELD` when it is one already, `PUNCTUAL_BROKEN`. On
 * threads of a run.
 *
 * Pointers:
 * `place` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_join(struct punctual_gang gang, uint32_t *place);

/**
 * Leaves a gang, which breaks it for the rest. A constraint of its admission ends: the thread is
 * background work from the zero-lag instant of its job on, and returns then. On threads of a run.
 */
enum punctual_status punctual_gang_leave(struct punctual_gang gang);

/**
 * Waits until all members have come; `order`, if not null, gets the order of release, from 0.
 * `PUNCTUAL_BROKEN` with the member that is no more (`punctual_why`), here and below. A scheduling
 * point. On threads of a run.
 *
 * Pointers:
 * `order` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_barrier(struct punctual_gang gang, uint32_t *order);

/**
 * `elected` gets the place of the member with the highest bid, the first among equals. A
 * scheduling point. On threads of a run.
 *
 * Pointers:
 * `elected` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_elect(struct punctual_gang gang,
                                         uint32_t bid,
                                         uint32_t *elected);

/**
 * `result` gets the values of all members, reduced by `with`, one of `punctual_reduction`. A
 * scheduling point. On threads of a run.
 *
 * Pointers:
 * `result` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_reduce(struct punctual_gang gang,
                                          uint32_t with,
                                          uint64_t value,
                                          uint64_t *result);

/**
 * `result` gets the value of the member at `root`. A scheduling point. On threads of a run.
 *
 * Pointers:
 * `result` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_broadcast(struct punctual_gang gang,
                                             uint32_t root,
                                             uint64_t value,
                                             uint64_t *result);

/**
 * Admits all members under the constraint of the one at place 0, or none, and returns in the first
 * job of the calling thread, which `punctual_thread_create` has made. `correction` is one of
 * `punctual_correction`; `arrival_ns`, if not null, gets the arrival of that job. A gang that is
 * admitted changes its constraint so; each member finishes its job under the former one.
 *
 * `PUNCTUAL_REFUSED` for all when one CPU refuses (`punctual_why` has its verdict), and
 * `PUNCTUAL_BROKEN` when a member is no more: each has the constraint that it had then, or none
 * where that is broken. On threads of a run.
 *
 * Pointers:
 * `asks` is null or to a constraint; `arrival_ns` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_admit(struct punctual_gang gang,
                                         const struct punctual_constraint *asks,
                                         uint32_t correction,
                                         uint64_t ns,
                                         uint64_t *arrival_ns);

/**
 * Ends the constraint of the gang's admission for the calling thread alone: it is background work
 * from the zero-lag instant of its job on, and returns then. The others are not moved by it. On
 * threads of a run.
 */
enum punctual_status punctual_gang_give_back(struct punctual_gang gang);

/**
 * `delay_ns` gets the mean delay from one departure from a barrier to the next, over `rounds` of
 * them: for `PUNCTUAL_BY_ORDER`. All members call it. A scheduling point. On threads of a run.
 *
 * Pointers:
 * `delay_ns` is null, or to a place for a number.
 */
enum punctual_status punctual_gang_departure_delay(struct punctual_gang gang,
                                                   uint32_t rounds,
                                                   uint64_t *delay_ns);

/**
 * Goes through `iterations` times `phases` phases: calls `work` with `argument` for each, kept
 * apart as `how` says, one of `punctual_apart`. All members call it with the same numbers; by time
 * behind `punctual_gang_admit`, in its first job. `kept`, if not null, gets what came of it.
 * `PUNCTUAL_REFUSED` when time alone need not keep them apart (`punctual_why` says what is
 * missing). A scheduling point. On threads of a run.
 *
 * Pointers:
 * `work` is null, or may be called with `argument` on this thread; `kept` is null, or to a place
 * for one.
 */
enum punctual_status punctual_gang_supersteps(struct punctual_gang gang,
                                              uint32_t how,
                                              uint64_t iterations,
                                              uint64_t phases,
                                              punctual_phase work,
                                              void *argument,
                                              struct punctual_kept *kept);

/**
 * Makes a mutex whose holder is as urgent as the most urgent thread that waits for it (priority
 * inheritance). Legal everywhere; it belongs to the CPU of its first use.
 *
 * Pointers:
 * `mutex` is null, or to a place for one.
 */
enum punctual_status punctual_mutex_create(struct punctual_mutex *mutex);

/**
 * Makes a mutex whose holder is as urgent as `value` says from the first instruction on
 * (immediate ceiling); `kind` is one of `punctual_ceiling`. Several such are unlocked in the
 * reverse order of locking. Legal everywhere; it belongs to the CPU of its first use.
 *
 * Pointers:
 * `mutex` is null, or to a place for one.
 */
enum punctual_status punctual_mutex_create_ceiling(struct punctual_mutex *mutex,
                                                   uint32_t kind,
                                                   uint64_t value);

/**
 * Ends a mutex; `PUNCTUAL_BUSY` while somebody holds it or waits for it. Legal everywhere.
 */
enum punctual_status punctual_mutex_destroy(struct punctual_mutex mutex);

/**
 * Locks a mutex; waits for it for `within_ns` at most. `PUNCTUAL_ALREADY_HELD` when the caller
 * holds it. A scheduling point when it waits. On threads of a run.
 */
enum punctual_status punctual_mutex_lock(struct punctual_mutex mutex, uint64_t within_ns);

/**
 * Unlocks a mutex that the caller holds: it goes to the most urgent thread that waits for it. A
 * thread that ends unlocks what it holds. A scheduling point when a more urgent thread goes on.
 * On threads of a run.
 */
enum punctual_status punctual_mutex_unlock(struct punctual_mutex mutex);

/**
 * Makes a counting event whose waiters are threads of the caller's CPU. On threads of a run.
 *
 * Pointers:
 * `notify` is null, or to a place for one.
 */
enum punctual_status punctual_notify_create(struct punctual_notify *notify);

/**
 * Ends it; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
 */
enum punctual_status punctual_notify_destroy(struct punctual_notify notify);

/**
 * Notifies it. No notification is lost: each counts. On threads of a run, of any CPU.
 */
enum punctual_status punctual_notify_send(struct punctual_notify notify);

/**
 * Takes the notifications so far, at least one; waits for `within_ns` at most. `count`, if not
 * null, gets their number. `PUNCTUAL_TAKEN` when somebody waits already. A scheduling point when
 * it waits. On threads of the CPU that made it.
 *
 * Pointers:
 * `count` is null, or to a place for a number.
 */
enum punctual_status punctual_notify_wait(struct punctual_notify notify,
                                          uint64_t within_ns,
                                          uint64_t *count);

/**
 * Makes a queue for `messages` messages of `message_bytes` each, at most `PUNCTUAL_QUEUE_MESSAGES`
 * and `PUNCTUAL_MESSAGE_BYTES`; its memory is taken here and once. A queue of 0 messages is a
 * meeting: the sender waits for the receiver. Legal everywhere; it belongs to the CPU of its first
 * use.
 *
 * Pointers:
 * `queue` is null, or to a place for one.
 */
enum punctual_status punctual_queue_create(struct punctual_queue *queue,
                                           size_t message_bytes,
                                           size_t messages);

/**
 * `punctual_queue_create` for threads of every CPU of a run; waiting threads are served in
 * the order of coming. Legal everywhere.
 *
 * Pointers:
 * `queue` is null, or to a place for one.
 */
enum punctual_status punctual_queue_create_cross_cpu(struct punctual_queue *queue,
                                                     size_t message_bytes,
                                                     size_t messages);

/**
 * Ends a queue and drops what is in it; `PUNCTUAL_BUSY` while somebody waits at it. Legal
 * everywhere.
 */
enum punctual_status punctual_queue_destroy(struct punctual_queue queue);

/**
 * Sends a copy of the message at `message`; waits for room for `within_ns` at most. A scheduling
 * point when it waits, or when a more urgent thread waits for the message. On threads of a run.
 *
 * Pointers:
 * `message` is null, or to as many readable bytes as a message of this queue has.
 */
enum punctual_status punctual_queue_send(struct punctual_queue queue,
                                         const void *message,
                                         uint64_t within_ns);

/**
 * Receives a message into `message`; waits for one for `within_ns` at most. A scheduling point
 * when it waits. On threads of a run.
 *
 * Pointers:
 * `message` is null, or to as many writable bytes as a message of this queue has.
 */
enum punctual_status punctual_queue_receive(struct punctual_queue queue,
                                            void *message,
                                            uint64_t within_ns);

/**
 * Messages in the line, those of waiting senders not counted. On threads of its CPU.
 *
 * Pointers:
 * `length` is null, or to a place for a number.
 */
enum punctual_status punctual_queue_length(struct punctual_queue queue, size_t *length);

/**
 * The report of the last run that came to its end: whether it was real time, what the machine
 * refused, the counts of each CPU with the threads of the machine that took most of its time, and
 * the promises. For the threads of each name it has the jobs, late ones, overruns, throttles and
 * lost releases. Then come the threads that failed, where offered work was done, and what is wrong
 * with streaming applications. Where a gang was admitted it says how often clocks were compared,
 * and from when on two differed by more than bounds of gangs count with. The arguments are those
 * of `punctual_why`. `PUNCTUAL_NOTHING` when there was none. On threads of the program, not of a
 * run.
 *
 * Pointers:
 * As for `punctual_why`.
 */
enum punctual_status punctual_report(uint32_t form, char *buffer, size_t capacity, size_t *length);

/**
 * Whether the guarantees of the last run could be kept: `was` gets 1 if it had real-time priority
 * and 0 if not. `PUNCTUAL_NOTHING` when there was none. On threads of the program.
 *
 * Pointers:
 * `was` is null, or to a place for an `int`.
 */
enum punctual_status punctual_was_real_time(int *was);

/**
 * Starts a run on the CPUs that are described, and returns when it is over: it ends when
 * `cpu->first` returns, whose result goes to `result`, if that is not null. Threads that are left
 * end where they wait; what they have on their stacks is not cleaned up. `options` may be null.
 *
 * `PUNCTUAL_INVALID` also when its schedulers mean nothing, as slots that overlap;
 * `PUNCTUAL_BUSY` when a run is on in this process; `PUNCTUAL_CANNOT_RUN` when the machine
 * refuses what a run needs, or a policy cannot be made; `PUNCTUAL_REFUSED` when the first thread
 * does not get the guarantee that it asks for; `PUNCTUAL_OVER` when the run ended before the first
 * thread did, or that failed (`punctual_why` says more in all three cases). On threads of the
 * program, not of a run.
 *
 * Pointers:
 * Each pointer is null or to what it says, for as long as the call takes; the bodies may be
 * called with their arguments, each on a kernel thread of its own.
 */
enum punctual_status punctual_run(const struct punctual_cpu *cpu,
                                  const struct punctual_options *options,
                                  void **result);

/**
 * Makes a lock for one writer or up to `PUNCTUAL_READERS` readers at a time. A reader waits behind
 * a writer that waits and is as urgent as itself or more, so writers do not starve. Those that
 * are in inherit the priority of a waiting thread, one after the other. Legal everywhere; it
 * belongs to the CPU of its first use.
 *
 * Pointers:
 * `rwlock` is null, or to a place for one.
 */
enum punctual_status punctual_rwlock_create(struct punctual_rwlock *rwlock);

/**
 * Ends a lock; `PUNCTUAL_BUSY` while somebody reads, writes or waits. Legal everywhere.
 */
enum punctual_status punctual_rwlock_destroy(struct punctual_rwlock rwlock);

/**
 * Locks for reading, beside other readers; waits for `within_ns` at most. `PUNCTUAL_ALREADY_HELD`
 * when the caller reads or writes already: locks are not counted, and a reader does not become a
 * writer. A scheduling point when it waits. On threads of a run.
 */
enum punctual_status punctual_rwlock_read(struct punctual_rwlock rwlock, uint64_t within_ns);

/**
 * Locks for writing, alone; otherwise as `punctual_rwlock_read`.
 */
enum punctual_status punctual_rwlock_write(struct punctual_rwlock rwlock, uint64_t within_ns);

/**
 * Gives back what the caller reads or writes; a thread that ends does so, too. A scheduling point
 * when a more urgent thread goes on. On threads of a run.
 */
enum punctual_status punctual_rwlock_unlock(struct punctual_rwlock rwlock);

/**
 * The root of the tree of the caller's CPU: its own policy, with authority over the whole tree. It
 * is given to the first thread of the CPU, once; `PUNCTUAL_NOT_YOURS` to anybody else. On threads
 * of a run.
 *
 * Pointers:
 * `scheduler` is null, or to a place for one.
 */
enum punctual_status punctual_scheduler_root(struct punctual_scheduler *scheduler);

/**
 * The scheduler of a name below another one, however deep it is; `PUNCTUAL_STALE` when there is
 * none. On threads of its CPU.
 *
 * Pointers:
 * `name` is null or a string; `found` is null, or to a place for a scheduler.
 */
enum punctual_status punctual_scheduler_find(struct punctual_scheduler scheduler,
                                             const char *name,
                                             struct punctual_scheduler *found);

/**
 * A new scheduler below another one, which orders by fixed priority, if everybody stays on time
 * beside its server. `PUNCTUAL_REFUSED` (`punctual_why` says why), `PUNCTUAL_NO_SCHEDULER_LEFT`
 * (`promotions` of `punctual_options`), `PUNCTUAL_INVALID` for terms that mean nothing there. On
 * threads of its CPU.
 *
 * Pointers:
 * `name` is null or a string; `asks` is null or to terms; `child` is null, or to a place for a
 * scheduler.
 */
enum punctual_status punctual_scheduler_promote(struct punctual_scheduler scheduler,
                                                const char *name,
                                                const struct punctual_terms *asks,
                                                struct punctual_scheduler *child);

/**
 * A scheduler below another one is none any more, nor are those below it: their threads fall back
 * to its parent. `PUNCTUAL_REFUSED` when somebody would be late then; `PUNCTUAL_HAS_JOB` while one
 * of its threads with a guarantee is in the middle of a job. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_demote(struct punctual_scheduler scheduler,
                                               struct punctual_scheduler child);

/**
 * `punctual_thread_create_with` in the care of a scheduler, admitted on its supply: only the root
 * creates threads, and the quotas of this scheduler and of those above it answer
 * (`PUNCTUAL_QUOTA`). On threads of its CPU.
 *
 * Pointers:
 * As for `punctual_thread_create`.
 */
enum punctual_status punctual_scheduler_create(struct punctual_scheduler scheduler,
                                               struct punctual_thread *thread,
                                               const char *name,
                                               const struct punctual_constraint *asks,
                                               uint32_t on_fault,
                                               punctual_body body,
                                               void *argument);

/**
 * Another policy, one of `punctual_policy_kind`, orders what a scheduler orders, from now on,
 * if everybody is on time under it; `timeslice_ns` is 0 but with `PUNCTUAL_ROUND_ROBIN`. Jobs,
 * budgets, and what threads hold or are lent stay as they are. `PUNCTUAL_REFUSED` when somebody
 * could be late; `PUNCTUAL_HAS_JOB` while a thread with a guarantee that has to be between two
 * jobs is in the middle of one, and `PUNCTUAL_BUSY` while one waits for a lock in the old order:
 * ask again. `PUNCTUAL_NOT_REPLACEABLE` where a scheduler divides time into slots, or hands on
 * declared resources in another order. One that decides on its own supply has the policy there, as
 * by `punctual_scheduler_replace_with`. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_replace(struct punctual_scheduler scheduler,
                                                uint32_t by,
                                                uint64_t timeslice_ns);

/**
 * A policy of the program's own orders the threads of a scheduler from its next decision on, in
 * place of the one that decides on its supply now, if everybody is on time under the order that it
 * `claims` to keep, which is one of `punctual_policy_kind` (`timeslice_ns` as above). `make` makes
 * it during the call (`punctual_policy.h`): `PUNCTUAL_INVALID` when it makes none. The one before
 * is destroyed in a later call, or after the run. When the call fails nothing has changed, and the
 * new one is destroyed: `PUNCTUAL_REFUSED` and `PUNCTUAL_HAS_JOB` as above;
 * `PUNCTUAL_NOT_REPLACEABLE` also where the core decides for the scheduler. On threads of its CPU.
 *
 * Pointers:
 * `make` is null or keeps the contract of `punctual_policy.h`.
 */
enum punctual_status punctual_scheduler_replace_with(struct punctual_scheduler scheduler,
                                                     uint32_t claims,
                                                     uint64_t timeslice_ns,
                                                     punctual_policy_maker make);

/**
 * A thread of a scheduler's own goes into the care of its child `to`. `PUNCTUAL_REFUSED` when
 * somebody would be late then; `PUNCTUAL_HAS_JOB` while the thread has a guarantee and is in the
 * middle of a job. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_grant(struct punctual_scheduler scheduler,
                                              struct punctual_thread thread,
                                              struct punctual_scheduler to);

/**
 * A thread that some scheduler below has comes back, however deep it is; otherwise as
 * `punctual_scheduler_grant`. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_revoke(struct punctual_scheduler scheduler,
                                               struct punctual_thread thread);

/**
 * The handle by which siblings lend a scheduler budget. On threads of a run.
 *
 * Pointers:
 * `to_lend` is null, or to a place for one.
 */
enum punctual_status punctual_scheduler_recipient(struct punctual_scheduler scheduler,
                                                  struct punctual_recipient *to_lend);

/**
 * Budget of a scheduler goes to a sibling until the end of the lender's period.
 * `PUNCTUAL_NO_BUDGET` when it has not that much left; `PUNCTUAL_REFUSED` when somebody would be
 * late without it here, or with it there. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_lend(struct punctual_scheduler scheduler,
                                             struct punctual_recipient to,
                                             uint64_t work_ns);

/**
 * A thread of a scheduler's subtree waits, for `within_ns` at most. With `exclusive` 1 only this
 * scheduler and those above it may wake it. A thread with a guarantee waits only as its constraint
 * declares (`suspension_ns`), else `PUNCTUAL_REFUSED`; `PUNCTUAL_NOT_READY` when it has nothing to
 * run. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_block(struct punctual_scheduler scheduler,
                                              struct punctual_thread thread,
                                              uint64_t within_ns,
                                              uint32_t exclusive);

/**
 * A thread of a scheduler's subtree goes on; `PUNCTUAL_BLOCKED` when a more trusted scheduler has
 * blocked it for itself. A scheduling point. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_wake(struct punctual_scheduler scheduler,
                                             struct punctual_thread thread);

/**
 * Makes a semaphore with `permits`. Legal everywhere; it belongs to the CPU of its first use.
 *
 * Pointers:
 * `semaphore` is null, or to a place for one.
 */
enum punctual_status punctual_semaphore_create(struct punctual_semaphore *semaphore,
                                               uint64_t permits);

/**
 * `punctual_semaphore_create` for threads of every CPU of a run; waiting threads are served
 * in the order of coming. Legal everywhere.
 *
 * Pointers:
 * `semaphore` is null, or to a place for one.
 */
enum punctual_status punctual_semaphore_create_cross_cpu(struct punctual_semaphore *semaphore,
                                                         uint64_t permits);

/**
 * Ends a semaphore; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
 */
enum punctual_status punctual_semaphore_destroy(struct punctual_semaphore semaphore);

/**
 * Takes a permit; waits for one for `within_ns` at most. A scheduling point when it waits. On
 * threads of a run.
 */
enum punctual_status punctual_semaphore_take(struct punctual_semaphore semaphore,
                                             uint64_t within_ns);

/**
 * Gives a permit: to the most urgent thread that waits, else for the next that comes. A scheduling
 * point when a more urgent thread goes on. On threads of a run.
 */
enum punctual_status punctual_semaphore_give(struct punctual_semaphore semaphore);

/**
 * The permits that are left; those that others take meanwhile are gone. On threads of its CPU.
 *
 * Pointers:
 * `permits` is null, or to a place for a number.
 */
enum punctual_status punctual_semaphore_permits(struct punctual_semaphore semaphore,
                                                uint64_t *permits);

/**
 * A slice of the supply of a scheduler goes into the hands of the one that `to` names, if
 * everybody stays on time beside it and all of it is sure to come in each of its periods. `asks`
 * are the terms of a server (`punctual_served`); their quota counts for nothing. The slice is for
 * the receiver to bind threads to. `PUNCTUAL_REFUSED` (`punctual_why` says why),
 * `PUNCTUAL_NO_BUDGET` beyond the supply, `PUNCTUAL_NO_SCHEDULER_LEFT` (`promotions` of
 * `punctual_options`: each slice takes a place). On threads of its CPU.
 *
 * Pointers:
 * `asks` is null or to terms; `slice` is null, or to a place for one.
 */
enum punctual_status punctual_scheduler_delegate(struct punctual_scheduler scheduler,
                                                 struct punctual_recipient to,
                                                 const struct punctual_terms *asks,
                                                 struct punctual_slice *slice);

/**
 * The slice of a name below a scheduler: one that a run starts with is named after its giver and
 * its receiver, `giver:receiver`. `PUNCTUAL_STALE` when there is none. On threads of its CPU.
 *
 * Pointers:
 * `name` is null or a string; `found` is null, or to a place for a slice.
 */
enum punctual_status punctual_scheduler_find_slice(struct punctual_scheduler scheduler,
                                                   const char *name,
                                                   struct punctual_slice *found);

/**
 * A thread of a scheduler's own executes on a slice that it holds, and waits for the next when
 * that is used up. It stays in the scheduler's care, and `punctual_scheduler_revoke` brings it
 * back to its supply. `PUNCTUAL_NOT_YOURS` when the slice is for another; else as
 * `punctual_scheduler_grant`. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_bind(struct punctual_scheduler scheduler,
                                             struct punctual_thread thread,
                                             struct punctual_slice to);

/**
 * A slice of the supply of a scheduler, or of one below it, ends, with all that was delegated from
 * it: threads on them go on on the supply of their own schedulers. Otherwise as
 * `punctual_scheduler_demote`. On threads of its CPU.
 */
enum punctual_status punctual_scheduler_take_back(struct punctual_scheduler scheduler,
                                                  struct punctual_slice ends);

/**
 * A slice of a slice goes into the hands of another, as by `punctual_scheduler_delegate`. On
 * threads of its CPU.
 *
 * Pointers:
 * As for `punctual_scheduler_delegate`.
 */
enum punctual_status punctual_slice_delegate(struct punctual_slice from,
                                             struct punctual_recipient to,
                                             const struct punctual_terms *asks,
                                             struct punctual_slice *made);

/**
 * What is left of a slice goes to a slice or a scheduler with the same giver, until the end of its
 * period; otherwise as `punctual_scheduler_lend`. On threads of its CPU.
 */
enum punctual_status punctual_slice_transfer(struct punctual_slice from,
                                             struct punctual_recipient to,
                                             uint64_t work_ns);

/**
 * A slice that was delegated from a slice ends, as by `punctual_scheduler_take_back`. On threads
 * of its CPU.
 */
enum punctual_status punctual_slice_take_back(struct punctual_slice from,
                                              struct punctual_slice ends);

/**
 * The handle by which others transfer time to a slice. On threads of a run.
 *
 * Pointers:
 * `to_lend` is null, or to a place for one.
 */
enum punctual_status punctual_slice_recipient(struct punctual_slice of,
                                              struct punctual_recipient *to_lend);

/**
 * Makes a spin mutex, for threads of every CPU of a run. Legal everywhere; it belongs to the run
 * of its first use.
 *
 * Pointers:
 * `spin` is null, or to a place for one.
 */
enum punctual_status punctual_spin_create(struct punctual_spin *spin);

/**
 * Ends a spin mutex; `PUNCTUAL_BUSY` while somebody uses it or spins for it. Legal everywhere.
 */
enum punctual_status punctual_spin_destroy(struct punctual_spin spin);

/**
 * Does `once(argument)` while nobody else, on whatever CPU, uses this spin mutex, and without
 * preemption. Spins for one use on each other CPU at most, in the order of coming.
 * `PUNCTUAL_NO_RUN` also in a use, of whichever mutex. There is no lock and unlock, so that none
 * is forgotten. On threads of a run.
 *
 * Pointers:
 * `once` is null, or may be called with `argument`.
 */
enum punctual_status punctual_spin_with(struct punctual_spin spin,
                                        punctual_use once,
                                        void *argument);

/**
 * Offers `body(argument)` to all CPUs of the run, that of the caller first: a worker of one that
 * has nothing more urgent to do executes it once, and it stays there. `offered`, if not null, gets
 * its handle, to be joined or detached once; a null pointer detaches it at once.
 * `PUNCTUAL_NOT_ALLOWED` in a run that spreads nothing (`spread` of `punctual_options`),
 * `PUNCTUAL_FULL` when the queue of this CPU is full. Allocates. On threads of a run.
 *
 * Pointers:
 * `offered` is null, or to a place for one; `body` may be called with `argument` on another stack
 * and kernel thread, as long as it likes.
 */
enum punctual_status punctual_offer(struct punctual_offered *offered,
                                    punctual_body body,
                                    void *argument);

/**
 * Waits for the end of work for `within_ns` at most, takes what it returned into `result`, if that
 * is not null, and ends the handle. `PUNCTUAL_FAILED` as for `punctual_thread_join`. A scheduling
 * point. On threads of the run, of any CPU.
 *
 * Pointers:
 * `result` is null, or to a place for a pointer.
 */
enum punctual_status punctual_offered_join(struct punctual_offered offered,
                                           uint64_t within_ns,
                                           void **result);

/**
 * Ends the handle and lets the work go on alone. On threads of a run.
 */
enum punctual_status punctual_offered_detach(struct punctual_offered offered);

/**
 * A code in words, never null: text that lasts as long as the program. Legal everywhere.
 */
const char *punctual_strerror(int32_t status);

/**
 * The version of the library, for example "0.1.0": text that lasts as long as the program. Legal
 * everywhere.
 */
const char *punctual_version(void);

/**
 * Locks a resource that the task of the caller declares (`uses` in a file), for this job alone;
 * waits for it as long as it takes, under its protocol. `PUNCTUAL_UNKNOWN` when no task of this
 * CPU uses one of that name, `PUNCTUAL_NOT_ALLOWED` when the task does not declare it. A
 * scheduling point. On jobs of a file's tasks.
 *
 * Pointers:
 * `resource` is null or a string.
 */
enum punctual_status punctual_lock(const char *resource);

/**
 * `punctual_lock` together with others that only read. On jobs of a file's tasks.
 *
 * Pointers:
 * `resource` is null or a string.
 */
enum punctual_status punctual_lock_shared(const char *resource);

/**
 * `punctual_lock` that waits for `within_ns` at most. On jobs of a file's tasks.
 *
 * Pointers:
 * `resource` is null or a string.
 */
enum punctual_status punctual_lock_within(const char *resource, uint64_t within_ns);

/**
 * Gives back what a `punctual_lock` of any kind locked; what is not held stays as it is. A
 * scheduling point. On jobs of a file's tasks.
 *
 * Pointers:
 * `resource` is null or a string.
 */
enum punctual_status punctual_unlock(const char *resource);

/**
 * Creates a thread on the caller's CPU that executes `body(argument)` under a constraint, if
 * admission agrees: with `PUNCTUAL_REFUSED`, `punctual_why` says why not. The name is copied, 63
 * bytes of it. `thread`, if not null, gets its handle, to be joined or detached once; a null
 * pointer detaches it at once. A more urgent thread may begin before the call returns. On threads
 * of a run.
 *
 * Pointers:
 * `thread` is null, or to a place for one; `name` is null or a string; `asks` is null or to a
 * constraint; `body` may be called with `argument` on another stack, as long as it likes.
 */
enum punctual_status punctual_thread_create(struct punctual_thread *thread,
                                            const char *name,
                                            const struct punctual_constraint *asks,
                                            punctual_body body,
                                            void *argument);

/**
 * `punctual_thread_create` with a rule for what becomes of the others when the thread fails
 * (`punctual_fail`): `on_fault` is one of `punctual_on_fault`.
 *
 * Pointers:
 * As for `punctual_thread_create`.
 */
enum punctual_status punctual_thread_create_with(struct punctual_thread *thread,
                                                 const char *name,
                                                 const struct punctual_constraint *asks,
                                                 uint32_t on_fault,
                                                 punctual_body body,
                                                 void *argument);

/**
 * The handle of the calling thread. It names nothing once the thread is detached; that of the
 * first thread of a CPU can be woken, and nothing else (`PUNCTUAL_NOT_ALLOWED`). In offered work
 * `PUNCTUAL_NOTHING`: it has none. On threads of a run.
 *
 * Pointers:
 * `thread` is null, or to a place for one.
 */
enum punctual_status punctual_thread_self(struct punctual_thread *thread);

/**
 * The name of the calling thread; see `punctual_why` for the buffer. On threads of a run.
 *
 * Pointers:
 * As for `punctual_why`.
 */
enum punctual_status punctual_thread_name(char *buffer, size_t capacity, size_t *length);

/**
 * Bytes of the calling thread's stack that were ever used, by it or by threads before it in its
 * place of the pool, and how many there are. On threads of a run.
 *
 * Pointers:
 * Each pointer is null, or to a place for a number.
 */
enum punctual_status punctual_thread_stack(size_t *used, size_t *bytes);

/**
 * `punctual_thread_stack` of another thread. On threads of its CPU.
 *
 * Pointers:
 * Each pointer is null, or to a place for a number.
 */
enum punctual_status punctual_thread_stack_of(struct punctual_thread thread,
                                              size_t *used,
                                              size_t *bytes);

/**
 * Ends the `punctual_block` or `punctual_yield_to` of a thread, the present or the next one.
 * `PUNCTUAL_NOTHING` when it has ended. A scheduling point when it is more urgent than the caller.
 * On threads of its CPU.
 */
enum punctual_status punctual_thread_wake(struct punctual_thread thread);

/**
 * Releases a job of a sporadic thread; one that comes too early waits for its time. On threads of
 * its CPU.
 */
enum punctual_status punctual_thread_release(struct punctual_thread thread);

/**
 * Asks for another constraint for a thread, in force when its present job is finished. With
 * `PUNCTUAL_REFUSED`, `punctual_why` says why not, and the old one stays. A thread that was
 * created without a guarantee cannot get one later (`PUNCTUAL_INVALID`). On threads of its CPU.
 *
 * Pointers:
 * `asks` is null or to a constraint.
 */
enum punctual_status punctual_thread_change(struct punctual_thread thread,
                                            const struct punctual_constraint *asks);

/**
 * Gives way to a thread in particular: waits until somebody wakes the caller, for `within_ns` at
 * most. The thread inherits the caller's priority meanwhile. `PUNCTUAL_TIMED_OUT` at once when
 * that thread has ended or waits for the caller. A scheduling point. On threads of its CPU.
 */
enum punctual_status punctual_yield_to(struct punctual_thread thread, uint64_t within_ns);

/**
 * Lets others of the same urgency go first; a reservation gives up the rest of its slice. A
 * scheduling point. On threads of a run.
 */
enum punctual_status punctual_yield(void);

/**
 * Waits until somebody wakes this thread (`punctual_thread_wake`), for `within_ns` at most; a
 * wake-up that has come since the last wait counts. A scheduling point. On threads of a run.
 */
enum punctual_status punctual_block(uint64_t within_ns);

/**
 * Ends the present job and returns with the next: the body of a periodic thread is a loop around
 * this call. A sporadic thread returns at its next release, a reservation in its next period.
 * `job`, if not null, gets the new job. A scheduling point. On threads of a run that were
 * created.
 *
 * Pointers:
 * `job` is null, or to a `punctual_job` whose size is set.
 */
enum punctual_status punctual_wait_next_period(struct punctual_job *job);

/**
 * The job that the calling thread works on. On threads of a run.
 *
 * Pointers:
 * `job` is null, or to a `punctual_job` whose size is set.
 */
enum punctual_status punctual_current_job(struct punctual_job *job);

/**
 * Nanoseconds since the start of the run. On threads of a run.
 *
 * Pointers:
 * `now_ns` is null, or to a place for a number.
 */
enum punctual_status punctual_now(uint64_t *now_ns);

/**
 * Suspends the calling thread. A scheduling point. On threads of a run; elsewhere the kernel
 * thread sleeps.
 */
enum punctual_status punctual_sleep(uint64_t span_ns);

/**
 * Suspends the calling thread until an instant of the run; one that has passed is no suspension. A
 * scheduling point. On threads of a run.
 */
enum punctual_status punctual_sleep_until(uint64_t at_ns);

/**
 * Sets a timer: for the first time `first_ns` from now, then every `period_ns`; once if that is 0.
 * On threads of a run.
 *
 * Pointers:
 * `timer` is null, or to a place for one.
 */
enum punctual_status punctual_timer_set(struct punctual_timer *timer,
                                        uint64_t first_ns,
                                        uint64_t period_ns);

/**
 * Sleeps until the next instant of the timer. `passed`, if not null, gets how many have passed
 * since the last call: 1 when none was missed, 0 at once when a timer for once has passed already.
 * A scheduling point. On threads of a run.
 *
 * Pointers:
 * `timer` is null, or to one that nobody else uses meanwhile; `passed` is null, or to a place for
 * a number.
 */
enum punctual_status punctual_timer_wait(struct punctual_timer *timer, uint64_t *passed);

/**
 * Whether the caller may go on: `PUNCTUAL_CANCELLED` when it is to end, because its thread was
 * cancelled or its overrun rule stops its job; in the body of a `punctual_backed`, also because
 * the run is over. For long bodies without a call that waits; a few loads. A thread that has
 * promised checkpoints (`punctual_promise_checkpoints`) is preempted here, too. Legal everywhere:
 * outside of a run, nothing is to end.
 */
enum punctual_status punctual_checkpoint(void);

/**
 * The calling thread promises to pass `punctual_checkpoint`, or anything else that enters the
 * scheduler, at least once in `within_ns` nanoseconds of its execution (20 ms at most counts),
 * from now on until it ends; 0 takes the promise back. It is then preempted at its checkpoints,
 * which read the clock for that, and by a timer only so much later: a signal costs many times
 * more. On threads of a run.
 */
enum punctual_status punctual_promise_checkpoints(uint64_t within_ns);

/**
 * 1 if the present job has used up its budget at least once, else 0, also outside of a run. Legal
 * everywhere.
 */
int punctual_has_overrun(void);

/**
 * Executes for so many nanoseconds of the calling thread's own time: a stand-in for work. On
 * threads of a run.
 */
enum punctual_status punctual_burn(uint64_t work_ns);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PUNCTUAL_H */

#ifndef PUNCTUAL_FUNCTIONS_H
#define PUNCTUAL_FUNCTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* A gang of so many members, of one counter, spinning, with a limit of a second. */
static inline punctual_gang_options punctual_gang_of(uint32_t members)
{
    punctual_gang_options options;
    options.size = sizeof options;
    options.members = members;
    options.tree = 0;
    options.sleep_ns = 0;
    options.limit_ns = 0;
    return options;
}

/* A constraint of which nothing is said yet. */
static inline punctual_constraint punctual_asks(uint32_t kind, uint64_t period_ns, uint64_t work_ns,
                                                uint64_t deadline_ns)
{
    punctual_constraint asks;
    asks.size = sizeof asks;
    asks.kind = kind;
    asks.priority = 0;
    asks.period_ns = period_ns;
    asks.work_ns = work_ns;
    asks.deadline_ns = deadline_ns;
    asks.phase_ns = 0;
    asks.late = PUNCTUAL_QUEUE;
    asks.on_overrun = PUNCTUAL_THROTTLE;
    asks.suspension_ns = 0;
    asks.suspensions = 0;
    return asks;
}

/* Background work; a larger number is more urgent. */
static inline punctual_constraint punctual_aperiodic(uint32_t priority)
{
    punctual_constraint asks = punctual_asks(PUNCTUAL_APERIODIC, 0, 0, 0);
    asks.priority = priority;
    return asks;
}

/* A job of at most work_ns in every period, done by its end. */
static inline punctual_constraint punctual_periodic(uint64_t period_ns, uint64_t work_ns)
{
    return punctual_asks(PUNCTUAL_PERIODIC, period_ns, work_ns, 0);
}

/* A job of at most work_ns per punctual_thread_release, never closer than separation_ns. */
static inline punctual_constraint punctual_sporadic(uint64_t separation_ns, uint64_t work_ns)
{
    return punctual_asks(PUNCTUAL_SPORADIC, separation_ns, work_ns, 0);
}

/* slice_ns of processor time in every period. */
static inline punctual_constraint punctual_reservation(uint64_t period_ns, uint64_t slice_ns)
{
    return punctual_asks(PUNCTUAL_RESERVATION, period_ns, slice_ns, 0);
}

/* work_ns of processor time within deadline_ns from now. */
static inline punctual_constraint punctual_once(uint64_t work_ns, uint64_t deadline_ns)
{
    return punctual_asks(PUNCTUAL_ONCE, 0, work_ns, deadline_ns);
}

/* A CPU of a run and its first thread. */
static inline punctual_cpu punctual_cpu_with(uint32_t host, uint32_t policy, punctual_body first,
                                             void *argument)
{
    punctual_cpu cpu;
    cpu.host = host;
    cpu.policy = policy;
    cpu.timeslice_ns = 0;
    cpu.first = first;
    cpu.argument = argument;
    return cpu;
}

/* Options of which nothing is said yet: what a null pointer means, too. */
static inline punctual_options punctual_defaults(void)
{
    punctual_options options;
    options.size = sizeof options;
    options.beside = NULL;
    options.beside_count = 0;
    options.threads = 0;
    options.stack_bytes = 0;
    options.first_asks = NULL;
    options.best_effort = 0;
    options.without_terms = 0;
    options.spread = NULL;
    options.schedulers = NULL;
    options.scheduler_count = 0;
    options.promotions = 0;
    options.policies = NULL;
    options.policy_count = 0;
    options.lock_stacks = 0;
    options.reserved = 0;
    options.strict = 0;
    options.scheduling_ns = 0;
    options.tree_file = NULL;
    return options;
}

/* A scheduler that gets budget_ns in every period by the rule that supply says. */
static inline punctual_terms punctual_served(uint32_t supply, uint64_t budget_ns,
                                             uint64_t period_ns, uint32_t priority)
{
    punctual_terms terms;
    terms.size = sizeof terms;
    terms.supply = supply;
    terms.priority = priority;
    terms.budget_ns = budget_ns;
    terms.period_ns = period_ns;
    terms.quota = 0;
    terms.slots = NULL;
    terms.slot_count = 0;
    return terms;
}

/* A scheduler without a budget of its own. */
static inline punctual_terms punctual_shared(uint32_t priority)
{
    return punctual_served(PUNCTUAL_SHARED, 0, 0, priority);
}

/* A scheduler in slots of the frame of its parent. */
static inline punctual_terms punctual_in_slots(const punctual_slot *slots, size_t slot_count)
{
    punctual_terms terms = punctual_served(PUNCTUAL_SLOTS, 0, 0, 0);
    terms.slots = slots;
    terms.slot_count = slot_count;
    return terms;
}

/* An actor on a tile: its function, and what that gets. */
static inline punctual_actor punctual_actor_with(const char *name, uint32_t tile, uint64_t wcet_ns,
                                                 punctual_fire fire, void *parameter)
{
    punctual_actor actor;
    actor.size = sizeof actor;
    actor.name = name;
    actor.tile = tile;
    actor.wcet_ns = wcet_ns;
    actor.phase_wcets_ns = NULL;
    actor.phases = 0;
    actor.fire = fire;
    actor.update = NULL;
    actor.parameter = parameter;
    actor.task = NULL;
    return actor;
}

/* A task on a tile. A report names it when it executes longer than wcet_ns, and 100 ms more, between
 * two calls of its FIFOs. */
static inline punctual_actor punctual_task_with(const char *name, uint32_t tile, uint64_t wcet_ns,
                                                punctual_complete task, void *parameter)
{
    punctual_actor actor = punctual_actor_with(name, tile, wcet_ns, NULL, parameter);
    actor.task = task;
    return actor;
}

/* A FIFO without first tokens, of which a firing of either side moves one. */
static inline punctual_fifo punctual_fifo_between(const char *name, uint32_t from, uint32_t to,
                                                  uint32_t token_size, uint32_t capacity)
{
    punctual_fifo fifo;
    fifo.size = sizeof fifo;
    fifo.name = name;
    fifo.from = from;
    fifo.to = to;
    fifo.produce = 1;
    fifo.consume = 1;
    fifo.produce_by_phase = NULL;
    fifo.produce_phases = 0;
    fifo.consume_by_phase = NULL;
    fifo.consume_phases = 0;
    fifo.token_size = token_size;
    fifo.capacity = capacity;
    fifo.initial = 0;
    fifo.place = PUNCTUAL_CONSUMER;
    fifo.first = NULL;
    return fifo;
}

/* The task scheduler of a tile. */
static inline punctual_task_scheduler punctual_scheduled_by(uint32_t tile, punctual_decide decide,
                                                            void *parameter)
{
    punctual_task_scheduler scheduler;
    scheduler.size = sizeof scheduler;
    scheduler.tile = tile;
    scheduler.decide = decide;
    scheduler.parameter = parameter;
    scheduler.when = PUNCTUAL_OWN_TIME;
    scheduler.firings = NULL;
    scheduler.firing_count = 0;
    return scheduler;
}

/* A static order of a tile: the firings of one iteration, by the places of actors in the graph. */
static inline punctual_task_scheduler punctual_scheduled_in_order(uint32_t tile,
                                                                  const uint32_t *firings,
                                                                  size_t firing_count)
{
    punctual_task_scheduler scheduler = punctual_scheduled_by(tile, NULL, NULL);
    scheduler.firings = firings;
    scheduler.firing_count = firing_count;
    return scheduler;
}

/* A task scheduler that is asked once in each slot; null: turns. */
static inline punctual_task_scheduler punctual_scheduled_between_slots(uint32_t tile,
                                                                       punctual_decide decide,
                                                                       void *parameter)
{
    punctual_task_scheduler scheduler = punctual_scheduled_by(tile, decide, parameter);
    scheduler.when = PUNCTUAL_BETWEEN_SLOTS;
    return scheduler;
}

/* The same, and a firing that a slot interrupts waits for its turn. Null, and owners of the slots in
 * `firings`: time division. */
static inline punctual_task_scheduler punctual_scheduled_passing_over(uint32_t tile,
                                                                      punctual_decide decide,
                                                                      void *parameter)
{
    punctual_task_scheduler scheduler = punctual_scheduled_by(tile, decide, parameter);
    scheduler.when = PUNCTUAL_PASSED_OVER;
    return scheduler;
}

/* A tile whose actors are threads, one for each. */
static inline punctual_task_scheduler punctual_scheduled_inline(uint32_t tile)
{
    punctual_task_scheduler scheduler = punctual_scheduled_by(tile, NULL, NULL);
    scheduler.when = PUNCTUAL_INLINE;
    return scheduler;
}

/* A graph of these, whose actors fire by turns. */
static inline punctual_graph punctual_graph_of(const char *name, const punctual_actor *actors,
                                               size_t actor_count, const punctual_fifo *fifos,
                                               size_t fifo_count)
{
    punctual_graph graph;
    graph.size = sizeof graph;
    graph.name = name;
    graph.actors = actors;
    graph.actor_count = actor_count;
    graph.fifos = fifos;
    graph.fifo_count = fifo_count;
    graph.schedulers = NULL;
    graph.scheduler_count = 0;
    graph.memories = NULL;
    graph.memory_count = 0;
    return graph;
}

/* Offered work goes to one worker of each CPU, whose queue has room for as much. */
static inline punctual_spread punctual_spread_with(uint32_t choice, uint32_t priority, size_t room)
{
    punctual_spread spread;
    spread.size = sizeof spread;
    spread.choice = choice;
    spread.priority = priority;
    spread.workers = 1;
    spread.room = room;
    return spread;
}

#ifdef __cplusplus
}
#endif

#endif /* PUNCTUAL_FUNCTIONS_H */
