/* As much of C's library as the examples use, as msvcrt.dll has it. Microsoft's own headers are not to be had here, and mingw's
 * are for gcc: with these the examples are compiled in the dialect of Microsoft's compiler, and run on wine's msvcrt.dll. */
#pragma once
#include <stddef.h>

typedef struct stub_file {
    char *next;
    int left;
    char *base;
    int flags, number, buffered, size;
    char *name;
} FILE;

#ifdef __cplusplus
extern "C" {
#endif
FILE *__iob_func(void);
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int fputs(const char *text, FILE *file);
int puts(const char *text);
int snprintf(char *text, size_t bytes, const char *format, ...);
int fflush(FILE *file);
FILE *fopen(const char *path, const char *mode);
int fclose(FILE *file);
#ifdef __cplusplus
}
#endif
#define stdout (__iob_func() + 1)
#define stderr (__iob_func() + 2)
