#!/bin/sh
# onnx.sh: makes the standard ONNX node tests in .deps/onnx-node-tests/node with the onnx package from PyPI, and hostile files in
# .deps/onnx-malformed where ../shared has their script. Nothing here is an error: without them the tests that need them are skipped.
set -eu
deps=$(cd "$(dirname "$0")/../.." && pwd)/.deps
venv=$deps/onnx-venv
tests=$deps/onnx-node-tests
malformed=$deps/onnx-malformed
make_malformed=$deps/../../shared/onnx/malformed/make_malformed.py
version=1.23.2

wants_nodes=$([ -d "$tests/node" ] || echo yes)
wants_malformed=$([ -d "$malformed" ] || [ ! -f "$make_malformed" ] || echo yes)
[ -n "$wants_nodes$wants_malformed" ] || exit 0
mkdir -p "$deps"
: >"$deps/onnx.log"
echo "setup: making the ONNX node tests and hostile files (the onnx $version package from PyPI) in .deps"
make_venv() {
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || return 1
  "$venv/bin/python" -m pip --disable-pip-version-check -q --timeout 10 --retries 1 install --only-binary :all: "onnx==$version"
}
make_nodes() {
  rm -rf "$tests.part"
  # The package's own command writes other sets only; this writes the node tests, in about 5 s.
  "$venv/bin/python" -W ignore - "$tests.part" <<'PYTHON' || return 1
import argparse, sys
import onnx.backend.test.cmd_tools as tools
from onnx.backend.test.case.node import collect_testcases
tools.model_test.collect_testcases = lambda: collect_testcases(None)
tools.generate_data(argparse.Namespace(output=sys.argv[1]))
PYTHON
  mv "$tests.part" "$tests"
}
make_hostile() {
  rm -rf "$malformed.part"
  "$venv/bin/python" -W ignore "$make_malformed" "$malformed.part" && mv "$malformed.part" "$malformed"
}
{ make_venv && { [ -z "$wants_nodes" ] || make_nodes; } && { [ -z "$wants_malformed" ] || make_hostile; }; } >>"$deps/onnx.log" 2>&1 ||
  echo "setup: no ONNX node tests or hostile files (pip cannot fetch onnx==$version? log: .deps/onnx.log): their tests are skipped"
