// CMake precompiles headers for a target, and a target needs a source.
