"""Times one HLO module on XLA:CPU, whenever a line comes on standard input.

  xla.py MODULE.hlo INPUTS.npz THREADS SECONDS

INPUTS.npz is written unless it is there: in0, in1, … made up from a seed. The first line that is printed
says that it is ready; each other one is the least time of a run, in milliseconds, of as many runs as take
about SECONDS. Needs jax.
"""
import os
import sys
import time

module, inputs, threads, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax._src.lib import xla_client
from jaxlib import _hlo


def made_up(shape, random):
    dtype, dims = np.dtype(shape.numpy_dtype()), tuple(shape.dimensions())
    if dtype.kind == "b":
        return random.random(dims) > 0.5
    if dtype.kind == "c":
        return (random.standard_normal(dims) + 1j * random.standard_normal(dims)).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, 100 if dtype.itemsize == 1 else 30_000, dims).astype(dtype)
    # As a network's weights are: small where the rank is 2 or more, else positive.
    array = random.standard_normal(dims, dtype=np.float32)
    return np.asarray(array * 0.05 if len(dims) > 1 else np.abs(array) * 0.5 + 0.01).astype(dtype)


def as_bits(array):
    known = array.dtype.name in np.sctypeDict
    return array if known else array.view(f"u{array.dtype.itemsize}")


with open(module) as file:
    proto = _hlo.hlo_module_from_text(file.read()).as_serialized_hlo_module_proto()
shapes = _hlo.XlaComputation(proto).program_shape().parameter_shapes()
if not os.path.exists(inputs):
    random = np.random.default_rng(0)
    arrays = [np.asarray(made_up(shape, random)) for shape in shapes]
    np.savez(inputs, **{f"in{i}": as_bits(array) for i, array in enumerate(arrays)})
with np.load(inputs) as file:
    arrays = [file[f"in{i}"] for i in range(len(shapes))]
wanted = [np.dtype(shape.numpy_dtype()) for shape in shapes]
arrays = [a if a.dtype == dtype else a.view(dtype) for a, dtype in zip(arrays, wanted)]
client = jax.devices("cpu")[0].client
devices = client.local_devices()[:1]
text = xla_client._xla.mlir.hlo_to_stablehlo(proto)
program = client.compile_and_load(
    text, xla_client.DeviceList(tuple(devices)), xla_client.CompileOptions()
)
arguments = [jax.device_put(array, devices[0]) for array in arrays]


def run():
    begin = time.perf_counter()
    for result in program.execute(arguments):
        result.block_until_ready()
    return (time.perf_counter() - begin) * 1e3


run()
print("ready", flush=True)
for _ in sys.stdin:
    times, begin = [run() for _ in range(3)], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        times.append(run())
    print(min(times), flush=True)
