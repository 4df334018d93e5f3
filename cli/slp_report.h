/* What a replay says about itself, for people and for programs. Nothing in it names a person. */
#ifndef EXPHIL_CLI_SLP_REPORT_H
#define EXPHIL_CLI_SLP_REPORT_H

#include <exphil/slp.h>

#include <stdio.h>

void slp_report_text(FILE *out, const char *path, const exphil_slp *slp);
/* One line. slp may be NULL, when error says why. */
void slp_report_json(FILE *out, const char *path, const exphil_slp *slp, const exphil_error *error);

#endif
