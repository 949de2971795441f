"""Writes inputs and expected outputs of the tests down, as NumPy 2 and JAX 0.10 compute them.

Run with a Python that has both: `python expected.py`; it writes `<name>.json` beside itself.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
bf16, e4m3, e5m2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
NAMES = {
    "bool": "pred", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
    "complex64": "c64", "complex128": "c128",
}
nan, inf = np.nan, np.inf
files = {}


def name_of(dtype):
    name = np.dtype(dtype).name
    return NAMES.get(name) or name.replace("uint", "u").replace("int", "s").replace("float", "f")


def number(value):
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, float) and value.is_integer() and not (value == 0 and np.signbit(value)):
        return int(value) if abs(value) < 2**53 else value
    return value


def array(x):
    x = np.asarray(x)
    wide = x if x.dtype.kind in "biu" else x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return {"dtype": name_of(x.dtype), "dims": list(x.shape), "values": [number(v) for v in wide.ravel().tolist()]}


def ramp(*dims, dtype=np.float32, seed=3):
    """Small integers in no order, with ties."""
    count = int(np.prod(dims, dtype=int))
    values = (np.arange(count) * 7 + seed) % 11 - (0 if np.dtype(dtype).kind == "u" else 5)
    return (values > 0 if dtype == bool else values.astype(np.float64).astype(dtype)).reshape(dims)


def case(file, name, calls, function, tolerance=0.0):
    """`calls` lists the inputs of each call."""
    written = []
    for inputs in calls:
        inputs = [np.asarray(x) for x in inputs]
        outputs = function(*inputs)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        written.append({
            "inputs": [array(x) for x in inputs], "outputs": [array(x) for x in outputs], "tolerance": tolerance,
        })
    cases = files.setdefault(file, {})
    assert name not in cases, name
    cases[name] = written


def one(*shapes, dtype=np.float32):
    """Calls with one ramp each."""
    return [[ramp(*shape, dtype=dtype)] for shape in shapes]


exec(pathlib.Path(__file__).with_name("cases.py").read_text())

for file, cases in files.items():
    lines = [f"{json.dumps(name)}: {json.dumps(calls)}" for name, calls in sorted(cases.items())]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    pathlib.Path(__file__).with_name(f"{file}.json").write_text(text)
