/* The tests ask of a call this code, and of a condition that it holds. Else the program ends and
   says which it was. */
#ifndef IS_H
#define IS_H

#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

#define IS(call, code)                                                                             \
    do {                                                                                           \
        punctual_status got = (call);                                                              \
        if (got != (code)) {                                                                       \
            fprintf(stderr, "%d: %s: %s (%d), not %s\n", __LINE__, #call,                          \
                    punctual_strerror(got), got, #code);                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%d: not %s\n", __LINE__, #condition);                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif /* IS_H */
