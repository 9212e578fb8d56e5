// The LU decomposition of a sparse matrix of blocks; one member creates an item for each block that
// a step changes (Slite Fig. 10, `sparselu`, created by a `single`). Compile with `gcc -O2 -fopenmp`.
//
//   sparselu [BLOCKS] [NUMBERS]
//
// BLOCKS x BLOCKS blocks of NUMBERS x NUMBERS numbers. It prints a checksum, which does not depend on
// who does what, since the order of every block's changes is fixed.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static long blocks, size;
static double **matrix;

static double *block(long row, long column) { return matrix[row * blocks + column]; }

static double *empty_block(void) {
    double *new = calloc(size * size, sizeof *new);
    if (!new) exit(2);
    return new;
}

// Blocks near the diagonal, and some others.
static int is_there(long i, long j) {
    return labs(i - j) <= 1 || (i % 3 == 0 && j % 2 == 0 && (i + j) % 4 == 0);
}

static void fill(void) {
    matrix = calloc(blocks * blocks, sizeof *matrix);
    if (!matrix) exit(2);
    unsigned state = 1325;
    for (long i = 0; i < blocks; i++)
        for (long j = 0; j < blocks; j++) {
            if (!is_there(i, j)) continue;
            double *at = matrix[i * blocks + j] = empty_block();
            for (long k = 0; k < size * size; k++) {
                state = state * 1664525u + 1013904223u;
                at[k] = (double)(state >> 20) / 4096 - 0.5;
            }
            // A heavy diagonal: nothing has to be exchanged.
            for (long k = 0; i == j && k < size; k++) at[k * size + k] += 4.0 * size;
        }
}

// The diagonal block itself.
static void lu0(double *diagonal) {
    for (long k = 0; k < size; k++)
        for (long i = k + 1; i < size; i++) {
            double factor = diagonal[i * size + k] /= diagonal[k * size + k];
            for (long j = k + 1; j < size; j++)
                diagonal[i * size + j] -= factor * diagonal[k * size + j];
        }
}

// A block to the right of it.
static void forward(const double *diagonal, double *row) {
    for (long k = 0; k < size; k++)
        for (long i = k + 1; i < size; i++) {
            double factor = diagonal[i * size + k];
            for (long j = 0; j < size; j++) row[i * size + j] -= factor * row[k * size + j];
        }
}

// A block below it.
static void divide(const double *diagonal, double *column) {
    for (long i = 0; i < size; i++)
        for (long k = 0; k < size; k++) {
            double factor = column[i * size + k] /= diagonal[k * size + k];
            for (long j = k + 1; j < size; j++)
                column[i * size + j] -= factor * diagonal[k * size + j];
        }
}

// A block to the right and below.
static void modify(const double *column, const double *row, double *inner) {
    for (long i = 0; i < size; i++)
        for (long k = 0; k < size; k++) {
            double factor = column[i * size + k];
            for (long j = 0; j < size; j++) inner[i * size + j] -= factor * row[k * size + j];
        }
}

static void decompose(void) {
    for (long k = 0; k < blocks; k++) {
        lu0(block(k, k));
        for (long j = k + 1; j < blocks; j++) {
            if (!block(k, j)) continue;
            #pragma omp task
            forward(block(k, k), block(k, j));
        }
        for (long i = k + 1; i < blocks; i++) {
            if (!block(i, k)) continue;
            #pragma omp task
            divide(block(k, k), block(i, k));
        }
        #pragma omp taskwait
        for (long i = k + 1; i < blocks; i++)
            for (long j = k + 1; j < blocks; j++) {
                if (!block(i, k) || !block(k, j)) continue;
                if (!block(i, j)) matrix[i * blocks + j] = empty_block();
                #pragma omp task
                modify(block(i, k), block(k, j), block(i, j));
            }
        #pragma omp taskwait
    }
}

// Decomposes a matrix that a formula gives; a checksum.
double decomposed(long count, long numbers) {
    blocks = count, size = numbers;
    fill();
    #pragma omp parallel
    #pragma omp single
    decompose();
    double sum = 0;
    for (long i = 0; i < blocks * blocks; i++) {
        for (long k = 0; matrix[i] && k < size * size; k++) sum += fabs(matrix[i][k]) * (k % 3 + 1);
        free(matrix[i]);
    }
    free(matrix);
    return sum;
}

#ifndef BENCH
int main(int count, char **words) {
    long number = count > 1 ? atol(words[1]) : 25, numbers = count > 2 ? atol(words[2]) : 50;
    printf("%ld x %ld blocks of %ld x %ld, checksum %.9e\n", number, number, numbers, numbers,
           decomposed(number, numbers));
    return 0;
}
#endif
