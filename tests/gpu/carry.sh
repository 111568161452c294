#!/bin/sh
# Strips the binaries that on_device.sh runs into .carry/, which git ignores and the device tool carries.
set -eu
build=${1:-build}
mkdir -p .carry
strip -o .carry/fusor "$build/fusor"
strip -o .carry/fusor_tests_gpu "$build/tests/gpu/fusor_tests_gpu"
strip -o .carry/fusor_gpu_profile "$build/tests/gpu/fusor_gpu_profile"
strip -o .carry/libfusor_gpu_beside_torch.so "$build/tests/gpu/libfusor_gpu_beside_torch.so"
ls -l .carry
[ -d shared/reference ] || { mkdir -p .carry/reference && cp -r ../shared/reference/minigpt_* .carry/reference/; }
