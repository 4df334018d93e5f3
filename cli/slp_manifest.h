/* Known facts about replays, one file a line, compared with what the library reads. */
#ifndef EXPHIL_CLI_SLP_MANIFEST_H
#define EXPHIL_CLI_SLP_MANIFEST_H

#include <exphil/slp.h>

#include <stdio.h>

/* Prints "<file> ok" or "<file> MISMATCH <columns>" for each line of the manifest to out, then "N passed, N
 * failed". The files lie beside the manifest. Returns the number of mismatches, -1 when the manifest cannot
 * be read (said on stderr). */
int slp_manifest_verify(exphil_context *context, const char *path, FILE *out);
const char *slp_stop_name(int32_t stop);
/* A whole file in malloc'ed memory, NULL when it cannot be read. */
unsigned char *slp_file_read(const char *path, size_t *bytes);

#endif
