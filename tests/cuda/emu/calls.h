/* How calls of the emulated runtime begin and end, and what a thread has of CUDA: its contexts and its last error. */
#ifndef EXPHIL_EMU_CALLS_H
#define EXPHIL_EMU_CALLS_H

#include "queue.h"

namespace emu
{

extern cudaError_t device_error; /* what every call answers */
extern size_t memory_limit;      /* 0: 4 GiB */
extern thread_local cudaError_t last_error;

int current_device();       /* of this thread */
cudaError_t need_context(); /* for a call that cannot do without one */
cudaError_t refusal();

enum when { IF_WELL, ALWAYS }; /* ALWAYS: handles are given back after a fault, too */

/* Of what needs no context. */
template <class Body> cudaError_t ask(when how, Body body)
{
    if (in_host_function) {
        emu::fail("a host function calls CUDA");
        return last_error = cudaErrorNotPermitted;
    }
    emu::guard held;
    cudaError_t error = refusal();
    if (!error || how == ALWAYS) {
        cudaError_t own = body();
        if (!error) error = own;
    }
    emu::hide();
    if (emu::failed) discard_all();
    if (emu::failed && !error) error = cudaErrorLaunchFailure;
    if (error) last_error = error;
    return error;
}
template <class Body> cudaError_t ask(Body body)
{
    return ask(IF_WELL, body);
}

template <class Body> cudaError_t call(when how, Body body)
{
    return ask(how, [&]() -> cudaError_t {
        const cudaError_t error = device_error ? cudaSuccess : need_context();
        return error ? error : body();
    });
}
template <class Body> cudaError_t call(Body body)
{
    return call(IF_WELL, body);
}

}  // namespace emu

#endif
