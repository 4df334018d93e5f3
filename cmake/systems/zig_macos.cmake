# zig knows no -bundle: what is only opened at run time is made like a library.
set(CMAKE_SHARED_MODULE_CREATE_C_FLAGS -dynamiclib)
