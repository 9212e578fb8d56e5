// Strassen's product of two square matrices, each of its seven products an item (Slite Fig. 10).
// Compile it with `gcc -O2 -fopenmp`.
//
//   strassen [SIZE]
//
// The size is a power of two. Elements are small whole numbers, so the product is exact in any order.
// It prints a checksum of the product, which it compares with the sums of rows and columns.
#include <stdio.h>
#include <stdlib.h>

enum { PLAIN = 64 };

// A square part of a matrix with rows of `stride` numbers.
typedef struct {
    double *at;
    long stride;
} Part;

static Part quarter(Part of, long half, int row, int column) {
    Part part = {of.at + row * half * of.stride + column * half, of.stride};
    return part;
}

static Part fresh(long size) {
    Part part = {malloc(size * size * sizeof(double)), size};
    if (!part.at) exit(2);
    return part;
}

static void add(Part to, Part a, Part b, double sign, long size) {
    for (long i = 0; i < size; i++)
        for (long j = 0; j < size; j++)
            to.at[i * to.stride + j] = a.at[i * a.stride + j] + sign * b.at[i * b.stride + j];
}

static void plain(Part to, Part a, Part b, long size) {
    for (long i = 0; i < size; i++) {
        double *row = to.at + i * to.stride;
        for (long j = 0; j < size; j++) row[j] = 0;
        for (long k = 0; k < size; k++) {
            double factor = a.at[i * a.stride + k];
            const double *other = b.at + k * b.stride;
            for (long j = 0; j < size; j++) row[j] += factor * other[j];
        }
    }
}

static void product(Part to, Part a, Part b, long size);

// (a1 + s a2) (b1 + t b2), where a sign of zero leaves the second one out.
static void product_of_sums(Part to, Part a1, double s, Part a2, Part b1, double t, Part b2,
                            long size) {
    Part left = a1, right = b1;
    if (s != 0) {
        left = fresh(size);
        add(left, a1, a2, s, size);
    }
    if (t != 0) {
        right = fresh(size);
        add(right, b1, b2, t, size);
    }
    product(to, left, right, size);
    if (s != 0) free(left.at);
    if (t != 0) free(right.at);
}

static void product(Part to, Part a, Part b, long size) {
    if (size <= PLAIN) {
        plain(to, a, b, size);
        return;
    }
    long half = size / 2;
    Part a11 = quarter(a, half, 0, 0), a12 = quarter(a, half, 0, 1);
    Part a21 = quarter(a, half, 1, 0), a22 = quarter(a, half, 1, 1);
    Part b11 = quarter(b, half, 0, 0), b12 = quarter(b, half, 0, 1);
    Part b21 = quarter(b, half, 1, 0), b22 = quarter(b, half, 1, 1);
    Part m[7];
    for (int i = 0; i < 7; i++) m[i] = fresh(half);
    #pragma omp task
    product_of_sums(m[0], a11, 1, a22, b11, 1, b22, half);
    #pragma omp task
    product_of_sums(m[1], a21, 1, a22, b11, 0, b11, half);
    #pragma omp task
    product_of_sums(m[2], a11, 0, a11, b12, -1, b22, half);
    #pragma omp task
    product_of_sums(m[3], a22, 0, a22, b21, -1, b11, half);
    #pragma omp task
    product_of_sums(m[4], a11, 1, a12, b22, 0, b22, half);
    #pragma omp task
    product_of_sums(m[5], a21, -1, a11, b11, 1, b12, half);
    #pragma omp task
    product_of_sums(m[6], a12, -1, a22, b21, 1, b22, half);
    #pragma omp taskwait
    Part c11 = quarter(to, half, 0, 0), c12 = quarter(to, half, 0, 1);
    Part c21 = quarter(to, half, 1, 0), c22 = quarter(to, half, 1, 1);
    for (long i = 0; i < half; i++)
        for (long j = 0; j < half; j++) {
            long at = i * half + j, place = i * to.stride + j;
            double p[7];
            for (int k = 0; k < 7; k++) p[k] = m[k].at[at];
            c11.at[place] = p[0] + p[3] - p[4] + p[6];
            c12.at[place] = p[2] + p[4];
            c21.at[place] = p[1] + p[3];
            c22.at[place] = p[0] - p[1] + p[2] + p[5];
        }
    for (int i = 0; i < 7; i++) free(m[i].at);
}

// The product of two matrices that formulas give; a checksum, or -1 when it is wrong.
double matrix_product(long size) {
    Part a = fresh(size), b = fresh(size), c = fresh(size);
    for (long i = 0; i < size * size; i++) {
        a.at[i] = (i * 7 + i / size) % 13 - 6;
        b.at[i] = (i * 5 + i / size) % 11 - 5;
    }
    #pragma omp parallel
    #pragma omp single
    product(c, a, b, size);
    // The sum of the product is that of the columns of one times the rows of the other.
    double sum = 0, expected = 0, check = 0;
    for (long k = 0; k < size; k++) {
        double column = 0, row = 0;
        for (long i = 0; i < size; i++) {
            column += a.at[i * size + k];
            row += b.at[k * size + i];
        }
        expected += column * row;
    }
    for (long i = 0; i < size * size; i++) {
        sum += c.at[i];
        check += c.at[i] * (double)(i % 5 + 1);
    }
    free(a.at), free(b.at), free(c.at);
    return sum == expected ? check : -1;
}

#ifndef BENCH
int main(int count, char **words) {
    long size = count > 1 ? atol(words[1]) : 1024;
    if (size < 1 || (size & (size - 1)) != 0) {
        fprintf(stderr, "the size is a power of two\n");
        return 2;
    }
    double check = matrix_product(size);
    if (check == -1) {
        printf("wrong\n");
        return 1;
    }
    printf("%ld x %ld, checksum %.0f\n", size, size, check);
    return 0;
}
#endif
