// How much a file may ask for. A file is hostile: what is not bounded here is bounded by the file's size.
#pragma once
#include <cstdint>

namespace fusor::onnx {

inline constexpr int64_t kMaxModelBytes = (int64_t(1) << 31) - 1; // of protobuf itself; larger models keep side files
inline constexpr int kMaxNesting = 100;                           // messages inside messages
inline constexpr unsigned kMaxRank = 16;                          // of the IR's text too
inline constexpr int64_t kMaxDim = int64_t(1) << 36;              // one dim of a tensor
inline constexpr int64_t kMaxElements = int64_t(1) << 36;         // of one tensor
inline constexpr unsigned kMaxDimTerms = 64;                      // of a symbolic size: B*T+S+1 has three
inline constexpr int64_t kMaxSymbol = int64_t(1) << 16; // the largest value of a symbolic dim; passes multiply several
inline constexpr int64_t kMaxKnown = 4096;              // elements of a shape that is computed symbolically
inline constexpr int64_t kFoldingElements = int64_t(1) << 23; // doubles computed at import, in all: 64 MiB
inline constexpr unsigned kMaxProblems = 100;                 // listed; the rest is counted
inline constexpr unsigned kMaxNameLength = 200;               // of a name in messages and in the IR
inline constexpr unsigned kMaxUnrolled = 1 << 16;             // ops one node may become
inline constexpr unsigned kMaxInlined = 1 << 20;              // nodes, those of functions counted at each call
inline constexpr unsigned kMaxGraphDepth = 32;                // of functions in functions, and of If in If

} // namespace fusor::onnx
