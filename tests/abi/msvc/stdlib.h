/* See stdio.h. */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void free(void *memory);
int atoi(const char *text);
long long atoll(const char *text);
double atof(const char *text);
long strtol(const char *text, char **end, int base);
double strtod(const char *text, char **end);
__declspec(noreturn) void exit(int status);
#ifdef __cplusplus
}
#endif
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
