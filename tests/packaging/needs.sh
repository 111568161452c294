#!/bin/sh
# needs.sh FILE: the shared libraries that FILE names are those of glibc and libstdc++, nothing else.
set -eu
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ -n "$needed" ] || { echo "no NEEDED entry read from $1: not a dynamic ELF file?"; exit 1; }
status=0
for library in $needed; do
  case $library in
    libc.so.* | libm.so.* | libstdc++.so.* | libgcc_s.so.* | ld-linux*) ;;
    *) echo "$1 needs $library: link it statically (cmake/FusorDependencies.cmake) or open it with dlopen"; status=1 ;;
  esac
done
exit $status
