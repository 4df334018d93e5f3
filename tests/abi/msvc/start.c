/* Where a program begins that is linked without Microsoft's run-time: its arguments are read and main is called. */
int main(int argc, char **argv);
int __getmainargs(int *argc, char ***argv, char ***environment, int wildcards, int *info);
__declspec(noreturn) void exit(int status);

int _fltused = 1; /* what the compiler asks for where floating point is used */

void start(void)
{
    int argc = 0, info = 0;
    char **argv = 0, **environment = 0;
    if (__getmainargs(&argc, &argv, &environment, 0, &info) < 0) exit(3);
    exit(main(argc, argv));
}
