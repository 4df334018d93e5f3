/* `exphil slp`: look into replays. */
#ifndef EXPHIL_CLI_SLP_COMMAND_H
#define EXPHIL_CLI_SLP_COMMAND_H

/* argv[0] is "slp". Returns the exit status of the program: 0 done, 1 a file was refused or differs, 2 usage.
 */
int slp_command(int argc, char **argv);

#endif
