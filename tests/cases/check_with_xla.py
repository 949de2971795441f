#!/usr/bin/env python3
"""Check case files against XLA:CPU.

    python3 -m venv V && V/bin/pip install jax==0.10.2 jaxlib==0.10.2 numpy ml_dtypes
    V/bin/python tests/cases/check_with_xla.py [-v] [--show] FILE-OR-DIRECTORY...

Every program is given to XLA's parser. A program with expectations is then compiled and run, and its result compared.
README.md defines the file format. Each program ends in one of these states:

    same      XLA gives the expected result
    differs   it does not: an error, unless the program has a comment line `// XLA:CPU differs: why`
    parsed    the parser accepts it, but there is nothing to run (`// no-run:`), or XLA:CPU cannot run it
              (`// XLA:CPU crashes: why`, or its message, shown with -v): no evidence about the values
    rejected  the parser or the verifier refuses it: an error, unless the program says `// error:` or
              `// XLA rejects: why`
    crashed   XLA:CPU ended the process or did not answer: an error without the line `// XLA:CPU crashes: why`
    broken    the case itself is wrong (a directive is missing, a literal does not fit its type): an error

Exit status 1 if there was an error. --show prints what XLA computed instead of comparing, as a draft for `expect`.
"""
import argparse
import json
import os
import re
import select
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax
import ml_dtypes
import numpy as np
from jax._src.lib import xla_client as xc
from jaxlib import _hlo, lapack

jax.config.update("jax_enable_x64", True)
lapack.prepare_lapack_call("potrf_ffi", np.float32)  # Finds LAPACK, for all custom calls of it.

# Directives whose value may go on over several lines, and those whose value is the rest of the line.
BRACKETED = ("input", "expect", "infeed", "outfeed")
PLAIN = ("source", "tolerance", "error", "round-trip", "replicas", "no-run", "warning", "interpreted", "XLA:CPU differs",
         "XLA:CPU crashes", "XLA rejects", "subnormals")
DIRECTIVE = re.compile(r"^//\s*(" + "|".join(map(re.escape, BRACKETED + PLAIN)) + r")(?:\[(\d+)\])?:\s*(.*)$")
# What has the form of a directive.
LIKE_ONE = re.compile(r"^//\s*([\w-]+(?:\[[^\]]*\])?):")


class Broken(Exception):
    """The case file is wrong."""


class Program:
    """One program of a case file: its text and its directives."""

    def __init__(self, line, text, source):
        self.line, self.text, self.source = line, text, source
        self.inputs, self.expects = {}, {}  # replica (None: every one) -> literal texts
        self.plain = {}
        pending = None
        for row in text.splitlines():
            row = row.strip()
            if pending is not None:
                if not row.startswith("//"):
                    raise Broken("a directive's brackets stay open")
                pending.append(row[2:].strip())
            elif found := DIRECTIVE.match(row):
                name, replica, value = found.groups()
                if name not in BRACKETED:
                    self.plain[name] = value
                    continue
                pending = [name, replica, value]
            elif found := LIKE_ONE.match(row):
                raise Broken(f"no directive is named {found.group(1)}")
            else:
                continue
            name, replica, value = pending[0], pending[1], " ".join(pending[2:])
            if open_brackets(value):
                continue
            pending = None
            if name in ("input", "expect"):
                where = self.inputs if name == "input" else self.expects
                where.setdefault(None if replica is None else int(replica), []).append(value)
        self.source = self.plain.get("source", source)
        if self.source is None:
            raise Broken("no source directive in force")

    @property
    def module(self):
        has_header = re.search(r"^\s*HloModule\b", self.text, re.M)
        return self.text if has_header else "HloModule case\n" + self.text


def open_brackets(text):
    return sum(text.count(c) for c in "({") > sum(text.count(c) for c in ")}")


def programs(path):
    """The programs of a file; a broken one is given as its line and message."""
    line, source = 1, None
    for text in re.split(r"^// -----[ \t]*\n", open(path).read(), flags=re.M):
        try:
            program = Program(line, text, source)
            source = program.source
            yield program
        except Broken as e:
            yield line, str(e)
        line += text.count("\n") + 1


def read_literal(text):
    """HLO constant text as nested tuples (`(`) and lists (`{`) of words."""
    stack, closers = [[]], []
    for token in re.findall(r"[{}()]|[^\s,{}()]+", re.sub(r"/\*.*?\*/", "", text)):
        if token in "({":
            stack.append([])
            closers.append(")" if token == "(" else "}")
        elif token in ")}":
            if not closers or closers.pop() != token:
                raise Broken(f"unbalanced {token} in {text}")
            done = stack.pop()
            stack[-1].append(tuple(done) if token == ")" else done)
        else:
            stack[-1].append(token)
    if closers or len(stack[0]) != 1:
        raise Broken(f"not one literal: {text}")
    return stack[0][0]


def leaves(tree, shape):
    """The array leaves of a literal, in order, each with its shape."""
    if not shape.is_tuple():
        return [(tree, shape)]
    parts = shape.tuple_shapes()
    if not isinstance(tree, tuple) or len(tree) != len(parts):
        raise Broken(f"expected a tuple of {len(parts)}")
    return [leaf for t, s in zip(tree, parts) for leaf in leaves(t, s)]


def array(tree, shape):
    """A leaf as a NumPy array of the shape's type."""
    dtype, dims = np.dtype(shape.numpy_dtype()), shape.dimensions()
    items = []

    def walk(node, depth):
        if depth == len(dims):
            items.append(scalar(node, dtype))
            return
        # A dynamic result is as long as its run-time size.
        if not isinstance(node, list) or (len(node) != dims[depth] and not shape.is_dynamic_dimension(depth)):
            raise Broken(f"literal does not have the shape {shape}")
        for inner in node:
            walk(inner, depth + 1)

    walk(tree, 0)
    real, node = list(dims), tree
    for axis in range(len(dims)):
        real[axis] = len(node)
        node = node[0] if node else []
        if not node and axis + 1 < len(dims):
            break
    return np.array(items, dtype=dtype).reshape(real)


def scalar(word, dtype):
    if dtype.kind == "b":
        return {"true": True, "false": False, "1": True, "0": False}[word]
    if dtype.kind == "c":
        re_, im = word if isinstance(word, tuple) else (word, "0")
        part = np.float32 if dtype.itemsize == 8 else np.float64
        return dtype.type(complex(part(re_), part(im)))
    if isinstance(word, (tuple, list)):
        raise Broken("a scalar is wanted")
    if dtype.kind in "iu" or "int" in dtype.name:
        return dtype.type(int(word))
    return dtype.type(float(word))


def bits(a):
    return a.view(np.dtype(f"u{a.dtype.itemsize}")) if a.dtype.itemsize in (1, 2, 4, 8) else a


def ordered(a):
    """Integers in the order of the floats, one unit in the last place apart."""
    width = 8 * a.dtype.itemsize
    b = bits(a).astype(object)
    return np.where(b >> (width - 1), (1 << (width - 1)) - b, b)


def same(got, want, tolerance):
    """None, or a sentence that says where they differ."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind == "c":
        return same(got.real.copy(), want.real.copy(), tolerance) or same(got.imag.copy(), want.imag.copy(), tolerance)
    if want.dtype.kind in "biu" or "int" in want.dtype.name:
        ok = np.asarray(got == want)
    else:
        wide_got, wide_want = got.astype(np.float64), want.astype(np.float64)
        nans = np.isnan(wide_got) & np.isnan(wide_want)
        exact = bits(np.ascontiguousarray(got)) == bits(np.ascontiguousarray(want))
        ok = nans | exact
        if tolerance:
            numbers = dict(zip(tolerance.split()[::2], map(float, tolerance.split()[1::2])))
            finite = np.isfinite(wide_got) & np.isfinite(wide_want)
            with np.errstate(all="ignore"):
                near = np.abs(wide_got - wide_want) <= numbers.get("atol", 0) + numbers.get("rtol", 0) * np.abs(wide_want)
                if "ulp" in numbers:
                    near = np.abs(ordered(got) - ordered(want)) <= numbers["ulp"]
            ok |= finite & near
    ok = np.asarray(ok)
    if ok.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~ok)[0])
    return f"{np.sum(~ok)} of {ok.size} elements, first at {list(at)}: {got[at]}, expected {want[at]}"


def show(a):
    """An array as HLO constant text."""
    if a.ndim:
        return "{" + ", ".join(show(x) for x in a) + "}"
    if a.dtype.kind == "b":
        return "true" if a else "false"
    if a.dtype.kind == "c":
        return f"({show(a.real)}, {show(a.imag)})"
    if a.dtype.kind in "iu" or "int" in a.dtype.name:
        return str(int(a))
    text = np.format_float_positional(a, trim="-") if 1e-4 <= abs(float(a)) < 1e7 or a == 0 else str(a)
    return text.removesuffix(".0").replace("e+", "e")


class Xla:
    def __init__(self):
        self.devices = jax.devices("cpu")

    def parse(self, text):
        return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()

    def run(self, proto, per_replica):
        """The result leaves of each replica."""
        n = len(per_replica)
        devices = self.devices[:n]
        options = xc.CompileOptions()
        options.num_replicas, options.num_partitions = n, 1
        options.device_assignment = xc.DeviceAssignment.create(np.arange(n).reshape(n, 1))
        mlir = xc._xla.mlir.hlo_to_stablehlo(proto)
        exe = devices[0].client.compile_and_load(mlir, xc.DeviceList(tuple(devices)), options)
        if n == 1:
            args = [jax.device_put(x, devices[0]) for x in per_replica[0]]
            return [[np.asarray(x) for x in exe.execute(args)]]
        mesh = jax.sharding.Mesh(np.array(devices), ("r",))
        everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        args = [
            jax.make_array_from_single_device_arrays(
                per_replica[0][i].shape, everywhere, [jax.device_put(per_replica[r][i], d) for r, d in enumerate(devices)]
            )
            for i in range(len(per_replica[0]))
        ]
        results = exe.execute_sharded(args).disassemble_into_single_device_arrays()
        return [[np.asarray(leaf[r]) for leaf in results] for r in range(n)]


def check(xla, program, showing):
    """(state, message) for one program."""
    stated = len([k for k in ("error", "no-run") if k in program.plain]) + bool(program.expects)
    if stated != 1 and not (stated == 0 and "warning" in program.plain) and not showing:
        raise Broken("wants exactly one of expect, error, no-run, or warnings")
    try:
        proto = xla.parse(program.module)
    except Exception as e:
        fine = "error" in program.plain or "XLA rejects" in program.plain
        return ("rejected as expected" if fine else "rejected"), str(e)
    if "XLA rejects" in program.plain:
        raise Broken("XLA accepts it")
    if "error" in program.plain:
        return "parsed", "an error is expected, but XLA's parser finds none"
    for reason in ("no-run", "XLA:CPU crashes"):
        if reason in program.plain:
            return "parsed", program.plain[reason]
    if not program.expects and not showing:
        return "parsed", "it may wait for ever"
    if "infeed(" in program.text or "outfeed(" in program.text:
        return "parsed", "XLA:CPU would wait for a host transfer for ever"
    signature = _hlo.XlaComputation(proto).program_shape()
    replicas = int(program.plain.get("replicas", 1))
    params, result = signature.parameter_shapes(), signature.result_shape()

    def values(table, replica, shapes):
        texts = table.get(replica, table.get(None, []))
        if len(texts) != len(shapes):
            raise Broken(f"{len(texts)} values for {len(shapes)}")
        out = []
        for text, shape in zip(texts, shapes):
            try:
                out += [array(*leaf) for leaf in leaves(read_literal(text), shape)]
            except (KeyError, ValueError, OverflowError, TypeError) as e:
                raise Broken(f"{text}: {e}")
        return out

    inputs = [values(program.inputs, r, params) for r in range(replicas)]
    wanted = None if showing else [values(program.expects, r, [result]) for r in range(replicas)]
    try:
        got = xla.run(proto, inputs)
    except Exception as e:
        return "parsed", str(e).strip().splitlines()[0]
    if showing:
        return "shown", "\n".join(f"// expect: {', '.join(show(x) for x in r)}" for r in got)
    for r, (g, w) in enumerate(zip(got, wanted)):
        for i, (a, b) in enumerate(zip(g, w)):
            if a.shape != b.shape and not result.is_static():  # it comes back at its bound, without its size
                a = a[tuple(map(slice, b.shape))]
            if message := same(a, b, program.plain.get("tolerance")):
                known = "XLA:CPU differs" in program.plain
                return ("differs as noted" if known else "differs"), f"replica {r} leaf {i}: {message}"
    if "XLA:CPU differs" in program.plain:
        return "same", "although a difference is noted"
    return "same", ""


def work(showing):
    """Serve a parent: lines of path and number come in, lines of JSON with state and message go out."""
    xla, cache = Xla(), {}
    for line in sys.stdin:
        path, number = line.rstrip("\n").split("\t")
        if path not in cache:
            cache = {path: list(programs(path))}
        try:
            answer = check(xla, cache[path][int(number)], showing)
        except Broken as e:
            answer = "broken", str(e)
        print(json.dumps(answer), flush=True)


class Worker:
    """A process that checks programs, so that a crash or a hang of XLA costs one program and not the run."""

    def __init__(self, showing):
        self.command = [sys.executable, os.path.abspath(__file__), "--worker"] + ["--show"] * showing + ["-"]
        self.process = None

    def ask(self, path, number):
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(f"{path}\t{number}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        answer = self.process.stdout.readline() if ready else ""
        if answer:
            return tuple(json.loads(answer))
        self.process.kill()
        self.process = None
        return "crashed", "it ended the process" if ready else "no answer after a minute"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("paths", nargs="+")
    ap.add_argument("-v", action="store_true", help="say why a program was not run")
    ap.add_argument("--show", action="store_true", help="print XLA's results")
    ap.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.worker:
        return work(a.show)
    files = []
    for path in a.paths:
        if os.path.isdir(path):
            files += [os.path.join(d, f) for d, _, fs in os.walk(path) for f in fs if f.endswith(".hlo")]
        else:
            files.append(path)
    worker, totals, errors = Worker(a.show), {}, 0
    for path in sorted(files):
        for number, program in enumerate(programs(path)):
            if isinstance(program, tuple):
                line, (state, message) = program[0], ("broken", program[1])
            else:
                line = program.line
                state, message = worker.ask(path, number)
            totals[state] = totals.get(state, 0) + 1
            bad = state in ("differs", "rejected", "broken", "crashed")
            errors += bad
            if bad or a.show or (message and a.v) or (state == "same" and message):
                print(f"{path}:{line}: #{number + 1} {state}: {message}", flush=True)
    print(f"{len(files)} files, {sum(totals.values())} programs: " + ", ".join(f"{n} {s}" for s, n in sorted(totals.items())))
    return 1 if errors else 0


sys.exit(main())
