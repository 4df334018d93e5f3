/* What goes wrong while the program measures, in its words on stderr. */
#ifndef EXPHIL_BENCH_SAY_H
#define EXPHIL_BENCH_SAY_H

/* about: what it happened to, or NULL. */
void bench_say(const char *about, const char *what);

#endif
