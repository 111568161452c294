#!/bin/sh
# exports.sh LIBRARY: every dynamic symbol that it defines is in namespace fusor, and there are some.
set -eu
# Of `nm -D --defined-only -C` lines, those that are not ours. "vtable for fusor::X" is; "void llvm::f<fusor::X>()" is not.
foreign() { sed 's/^[0-9a-f]* *[A-Za-z] //' | grep -Ev '^((vtable|VTT|typeinfo|typeinfo name|guard variable) for )?fusor::' || true; }

planted=$(printf '%s\n' '0001 T fusor::Builder::Builder()' '0002 W void llvm::sort<fusor::Dim>(fusor::Dim*)' '0003 V vtable for fusor::Program' '0004 T main' | foreign | wc -l)
[ "$planted" = 2 ] || { echo "self-test: $planted of 2 planted foreign symbols found"; exit 1; }

symbols=$(nm -D --defined-only -C "$1")
[ -n "$symbols" ] || { echo "$1 exports nothing: does frontend/api/fusor.h say '#pragma GCC visibility push(default)'?"; exit 1; }
alien=$(printf '%s\n' "$symbols" | foreign)
if [ -n "$alien" ]; then
  echo "$1 exports what is not ours (cmake/package/fusor.map decides):"
  printf '%s\n' "$alien" | head -n 20
  exit 1
fi
echo "$(printf '%s\n' "$symbols" | wc -l) symbols, all in fusor::"
