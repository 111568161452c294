#!/bin/sh
# nvrtc.sh [VERSION-12-TOO]: where no CUDA toolkit is installed, takes NVRTC (a compiler library, no GPU or driver needed)
# from PyPI's wheels into .deps/, where the run time looks for it. Nothing here is an error: without NVRTC, Fusor runs on the CPU.
#   .deps/nvrtc-13/   nvidia-cuda-nvrtc        sm_75 and newer
#   .deps/nvrtc-12/   nvidia-cuda-nvrtc-cu12   sm_50, 60, 70: only what tests of old GPUs need, so only with --tests
set -eu
deps=$(cd "$(dirname "$0")/../.." && pwd)/.deps
venv=$deps/venv

toolkit_nvrtc() {  # the toolkit's own NVRTC 13, if there is one
  for lib in "${CUDA_HOME:-/usr/local/cuda}"/lib64/libnvrtc.so* /usr/local/cuda*/lib64/libnvrtc.so* /usr/lib/x86_64-linux-gnu/libnvrtc.so*; do
    [ ! -e "$lib" ] || return 0
  done
  return 1
}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check -q --timeout 10 --retries 1 "$@" >>"$deps/pip.log" 2>&1; }

fetch() {  # fetch FOLDER REQUIREMENT: a wheel unpacked into .deps/FOLDER, whole or not at all
  [ ! -d "$deps/$1" ] || return 0
  mkdir -p "$deps"
  : >"$deps/pip.log"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >>"$deps/pip.log" 2>&1 || return 1
  echo "setup: fetching $2 from PyPI into .deps/$1"
  rm -rf "$deps/$1.part"
  pip install --no-deps --only-binary :all: --target "$deps/$1.part" "$2" || { rm -rf "$deps/$1.part"; return 1; }
  mv "$deps/$1.part" "$deps/$1"
}

if ! toolkit_nvrtc && ! fetch nvrtc-13 nvidia-cuda-nvrtc==13.0.88; then
  echo "setup: CPU only: no NVRTC (no CUDA toolkit, and pip cannot fetch nvidia-cuda-nvrtc; log: .deps/pip.log)"
  exit 0
fi
if [ "${1:-}" = --tests ] && ! fetch nvrtc-12 nvidia-cuda-nvrtc-cu12==12.9.86; then
  echo "setup: no CUDA 12 NVRTC (pip cannot fetch nvidia-cuda-nvrtc-cu12; log: .deps/pip.log): tests for sm_50 to sm_70 are skipped"
fi
