/* Memory straight from the system: pages that cannot be touched, pieces at round addresses. */
#ifndef EXPHIL_TEST_PAGES_H
#define EXPHIL_TEST_PAGES_H

#include <stddef.h>

size_t test_page_bytes(void);
/* Zeros, in whole pages, of which the system gives memory only for what is touched; NULL: none. */
void *test_pages(size_t bytes);
void test_pages_free(void *pages, size_t bytes);
/* From here on whoever touches these pages is ended by the system. */
void test_pages_guard(void *pages, size_t bytes);

/* align: a power of two, at least a pointer's size. NULL: none. */
void *test_aligned(size_t align, size_t bytes);
void test_aligned_free(void *piece);

#endif
