// A merge sort whose halves are items, as are the halves of each merge (Slite Fig. 10, `sort`).
// Compile it with `gcc -O2 -fopenmp`.
//
//   sort [NUMBERS]
//
// It prints a checksum of the sorted numbers, or that they are not sorted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 2048 };

static void insert(int *from, long count) {
    for (long i = 1; i < count; i++) {
        int value = from[i];
        long at = i;
        for (; at > 0 && from[at - 1] > value; at--) from[at] = from[at - 1];
        from[at] = value;
    }
}

// The first place in an ascending list whose number is not below the value.
static long lower(const int *list, long count, int value) {
    long from = 0;
    while (count > 0) {
        long half = count / 2;
        if (list[from + half] < value) {
            from += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return from;
}

static void merge(const int *a, long as, const int *b, long bs, int *to) {
    if (as < bs) {
        const int *list = a;
        long count = as;
        a = b, as = bs;
        b = list, bs = count;
    }
    if (as + bs <= SHORT) {
        while (as > 0 && bs > 0) {
            int first = *b < *a;
            *to++ = first ? *b : *a;
            b += first, bs -= first;
            a += !first, as -= !first;
        }
        memcpy(to, a, as * sizeof *a);
        memcpy(to + as, b, bs * sizeof *b);
        return;
    }
    // The middle of the longer one, and as much of the other as is below it.
    long middle = as / 2, below = lower(b, bs, a[middle]);
    #pragma omp task
    merge(a, middle, b, below, to);
    #pragma omp task
    merge(a + middle, as - middle, b + below, bs - below, to + middle + below);
    #pragma omp taskwait
}

// Sorts `list`; the result stands in `to` if `away`, else in `list`. Both are as long.
static void sort(int *list, int *to, long count, int away) {
    if (count <= 32) {
        insert(list, count);
        if (away) memcpy(to, list, count * sizeof *list);
        return;
    }
    long half = count / 2;
    if (count <= SHORT) {
        sort(list, to, half, !away);
        sort(list + half, to + half, count - half, !away);
    } else {
        #pragma omp task
        sort(list, to, half, !away);
        #pragma omp task
        sort(list + half, to + half, count - half, !away);
        #pragma omp taskwait
    }
    const int *from = away ? list : to;
    merge(from, half, from + half, count - half, away ? to : list);
}

// Sorts numbers that a formula gives; the checksum, or -1 when they are not sorted.
long sorted_numbers(long count) {
    int *list = malloc(count * sizeof *list), *to = malloc(count * sizeof *to);
    if (!list || !to) exit(2);
    unsigned state = 12345;
    for (long i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        list[i] = (int)(state >> 4);
    }
    #pragma omp parallel
    #pragma omp single
    sort(list, to, count, 0);
    long sum = 0;
    for (long i = 0; i < count; i++) {
        sum += list[i] * (i % 7 + 1L);
        if (i > 0 && list[i - 1] > list[i]) {
            sum = -1;
            break;
        }
    }
    free(list);
    free(to);
    return sum;
}

#ifndef BENCH
int main(int count, char **words) {
    long numbers = count > 1 ? atol(words[1]) : 1 << 22;
    long sum = sorted_numbers(numbers);
    if (sum < 0) {
        printf("not sorted\n");
        return 1;
    }
    printf("%ld numbers, checksum %ld\n", numbers, sum);
    return 0;
}
#endif
