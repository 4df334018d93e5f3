#include "context_case.h"

exphil_context *context;

int context_open(void **state)
{
    context = test_context(NULL, NULL, 1);
    return 0;
}

int context_close(void **state)
{
    exphil_context_destroy(context);
    return test_leave(state);
}
