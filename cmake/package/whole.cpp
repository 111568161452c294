// libfusor.so is made of the rooms' static libraries; CMake wants a source of its own for a library.
