#!/bin/sh
# onnx.sh: makes the standard ONNX node tests in .deps/onnx-node-tests/node with the onnx package from PyPI. Nothing here is
# an error: without them the tests that need them are skipped.
set -eu
deps=$(cd "$(dirname "$0")/../.." && pwd)/.deps
venv=$deps/onnx-venv
tests=$deps/onnx-node-tests
version=1.23.2

[ ! -d "$tests/node" ] || exit 0
mkdir -p "$deps"
: >"$deps/onnx.log"
echo "setup: making the ONNX node tests (the onnx $version package from PyPI) in .deps/onnx-node-tests"
make_tests() {
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || return 1
  "$venv/bin/python" -m pip --disable-pip-version-check -q --timeout 10 --retries 1 install --only-binary :all: "onnx==$version" || return 1
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
make_tests >>"$deps/onnx.log" 2>&1 || echo "setup: no ONNX node tests (pip cannot fetch onnx==$version; log: .deps/onnx.log): their tests are skipped"
