/* What tests ask of the stand-in for cuBLASLt, and what it tells them. */
#ifndef EXPHIL_FAKE_BLASLT_H
#define EXPHIL_FAKE_BLASLT_H

#include <stdatomic.h>
#include <stddef.h>

/* Where products are refused. */
enum { FAKE_NOWHERE, FAKE_AT_QUERY, FAKE_AT_RUN, FAKE_IN_CAPTURE, FAKE_AT_CHECK };
enum { FAKE_ALGORITHMS = 3 };
/* Which, as bits: y = x W^T, dw = dy^T x, dx = dy W. */
enum { FAKE_Y = 1, FAKE_DW = 2, FAKE_DX = 4, FAKE_ALL = 7 };
/* Beside cublasStatus_t, at query: it finds nothing. */
enum { FAKE_NO_ALGORITHM = -1 };

typedef struct fake_blaslt {
    /* the device (emu_control.h) */
    int (*call)(void *stream, void (*function)(const void *), const void *data, size_t bytes);
    int (*capturing)(void *stream);
    void (*spoil)(void *stream);
    /* given */
    int where, which, status;
    int spoils; /* a refusal in a capture ends it */
    int along;  /* nonzero: at a query there is nothing but for operands that both lie along the sum */
    /* algorithms, as bits: that do not run; whose state says so when they are found; that want too large a workspace */
    int idle, unfit, hungry;
    /* told; handles of several devices are used at once */
    atomic_int products, alive;
    atomic_int queries, checks, by[FAKE_ALGORITHMS]; /* by: products of each algorithm */
    atomic_int refusals, shapes;                     /* shapes of products that were refused, however often */
    atomic_int together;                             /* products of one description by two threads at once */
} fake_blaslt;

/* A product as the device is asked for it: D[m,n] = op(A)[m,k] op(B)[k,n], by columns. */
typedef struct fake_product {
    long long m, n, k;
    int type, result;  /* of A and B, of C and D: cudaDataType_t */
    int compute, bias; /* cublasComputeType_t; 1: a bias is added */
    int adds;          /* 1: C is read */
    int transposed[2]; /* A, B */
    const void *a, *b, *c, *d;
} fake_product;
/* Of what fake_blaslt.call was given; 0: it is none. */
int fake_product_of(void (*function)(const void *), const void *data, fake_product *product);

#endif
