/* Reads kernels and launches, runs the blocks that are asked for, and writes what each instruction did.
 *
 * Standard input, numbers separated by blanks:
 *   bytes PATH                                     contents of copies
 *   kernel NAME PARAMETERS COUNT                   then COUNT instructions: OP GUARD GUARD_FLAGS FLAGS WHAT RULE OPERANDS, and of
 *                                                  each operand KIND NUMBER FLAGS VALUE UNIFORM SCALE
 *   upload ADDRESS BYTES AT                        AT: in the file of contents
 *   launch KERNEL GX GY GZ BX BY BZ CLUSTER BYTES ARGUMENTS COUNT    then COUNT blocks: X Y Z
 * Standard output:
 *   launch
 *   block EXECUTED LONGEST                         instructions of its warps, and of the longest of them
 *   AT EXECUTED READS WRITES NEW_READS NEW_WRITES SECTORS UNKNOWN TAKEN PASSED LEAST MOST    of instructions that ran
 * What cannot be run ends it: the message is the last line of standard error, the status 1. */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 4096, NAME_BYTES = 1024 };
static const int64_t most_instructions = 400000000;

static kernel kernels[MOST_KERNELS];
static int kernel_count;
static unsigned char *contents;
static long content_bytes;

_Noreturn void machine_fail(const machine *m, const instruction *i, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (m && i) {
        const kernel *k = m->launch->kernel;
        fprintf(stderr, "%s, block (%u,%u,%u), instruction %td: it ", k->name, m->block[0], m->block[1],
                m->block[2], i - k->code);
    }
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(1);
}

static int64_t number(void)
{
    int64_t value;
    if (scanf("%" SCNd64, &value) != 1)
        machine_fail(NULL, NULL, "a number is missing in what the machine reads");
    return value;
}

static void read_contents(void)
{
    char path[4096];
    if (scanf("%4095s", path) != 1) machine_fail(NULL, NULL, "no path");
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) machine_fail(NULL, NULL, "%s cannot be read", path);
    content_bytes = ftell(file);
    rewind(file);
    contents = malloc((size_t)content_bytes + 1);
    if (!contents || fread(contents, 1, (size_t)content_bytes, file) != (size_t)content_bytes)
        machine_fail(NULL, NULL, "%s cannot be read", path);
    fclose(file);
}

static void read_operand(operand *o)
{
    o->kind = (int)number();
    o->number = (int)number();
    o->flags = (int)number();
    o->value = number();
    o->uniform = (int)number();
    o->scale = (int)number();
}

static void read_instruction(instruction *i)
{
    i->op = (int)number();
    i->guard = (int)number();
    i->guard_flags = (int)number();
    i->flags = (int)number();
    i->what = (int)number();
    i->rule = (int)number();
    i->count = (int)number();
    if (i->op < 0 || i->op >= OPS || i->count < 0 || i->count > MOST_OPERANDS)
        machine_fail(NULL, NULL, "no such instruction: %d with %d operands", i->op, i->count);
    for (int k = 0; k < i->count; k++) read_operand(&i->operands[k]);
}

static void read_kernel(void)
{
    char name[NAME_BYTES];
    if (kernel_count == MOST_KERNELS || scanf("%1023s", name) != 1) machine_fail(NULL, NULL, "no kernel");
    kernel *k = &kernels[kernel_count++];
    k->name = strdup(name);
    k->parameters = (int)number();
    k->count = (int)number();
    k->code = calloc((size_t)k->count, sizeof *k->code);
    for (int i = 0; i < k->count; i++) read_instruction(&k->code[i]);
}

static void read_upload(void)
{
    const uint64_t address = (uint64_t)number();
    const size_t bytes = (size_t)number();
    const int64_t at = number();
    if (at < 0 || at + (int64_t)bytes > content_bytes) machine_fail(NULL, NULL, "no such content");
    memory_upload(address, bytes, contents + at);
}

static void read_arguments(launch *l)
{
    unsigned byte;
    l->argument_bytes = (size_t)number();
    memset(l->arguments, 0, sizeof l->arguments);
    if (l->argument_bytes > sizeof l->arguments || getchar() != ' ') machine_fail(NULL, NULL, "no arguments");
    for (size_t k = 0; k < l->argument_bytes; k++) {
        if (scanf("%2x", &byte) != 1) machine_fail(NULL, NULL, "no arguments");
        l->arguments[k] = (unsigned char)byte;
    }
}

static void write_block(const machine *m)
{
    int64_t executed = 0, longest = 0;
    for (unsigned k = 0; k < m->warp_count; k++) {
        executed += m->warps[k].executed;
        if (m->warps[k].executed > longest) longest = m->warps[k].executed;
    }
    printf("block %" PRId64 " %" PRId64 "\n", executed, longest);
    for (int k = 0; k < m->launch->kernel->count; k++) {
        const account *a = &m->accounts[k];
        if (!a->executed) continue;
        printf("%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
               " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n",
               k, a->executed, a->reads, a->writes, a->new_reads, a->new_writes, a->sectors, a->unknown,
               a->taken, a->passed, a->sectors ? a->least : 0, a->most);
    }
}

static void run_launch(machine *m)
{
    static launch l;
    const int64_t which = number();
    if (which < 0 || which >= kernel_count) machine_fail(NULL, NULL, "no such kernel");
    l.kernel = &kernels[which];
    for (int k = 0; k < 3; k++) l.grid[k] = (unsigned)number();
    for (int k = 0; k < 3; k++) l.block[k] = (unsigned)number();
    l.cluster = (unsigned)number();
    read_arguments(&l);
    m->launch = &l;
    m->accounts = calloc((size_t)l.kernel->count, sizeof *m->accounts);
    memory_begin_launch();
    printf("launch\n");
    const int64_t blocks = number();
    for (int64_t b = 0; b < blocks; b++) {
        for (int k = 0; k < 3; k++) m->block[k] = (unsigned)number();
        memset(m->accounts, 0, (size_t)l.kernel->count * sizeof *m->accounts);
        for (int k = 0; k < l.kernel->count; k++) m->accounts[k].least = UINT64_MAX;
        memory_begin_block((int)b);
        m->left = most_instructions;
        run_block(m);
        write_block(m);
    }
    free(m->accounts);
}

int main(void)
{
    static machine m;
    char word[16];
    m.warps = calloc(MOST_WARPS, sizeof *m.warps);
    while (scanf("%15s", word) == 1) {
        if (strcmp(word, "bytes") == 0)
            read_contents();
        else if (strcmp(word, "kernel") == 0)
            read_kernel();
        else if (strcmp(word, "upload") == 0)
            read_upload();
        else if (strcmp(word, "launch") == 0)
            run_launch(&m);
        else
            machine_fail(NULL, NULL, "no such word: %s", word);
    }
    return fflush(stdout) != 0;
}
