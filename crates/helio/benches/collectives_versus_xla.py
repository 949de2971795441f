#!/usr/bin/env python3
"""Times collectives on two replicas against XLA:CPU, in alternating rounds of one run.

  cargo build --release -p helio-cli
  python collectives_versus_xla.py target/release/helio [--rounds 3] [--replicas 2]

Each line has the least time of a run, of both: 1000 all-reduces of 4 bytes in a loop, and one of 64 MiB.
Needs jax==0.10.2 and jaxlib==0.10.2.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--runs", type=int, default=20)
parser.add_argument("--replicas", type=int, default=2)
options = parser.parse_args()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.replicas}"

import jax
import numpy as np
from jax._src.lib import xla_client as xc
from jaxlib import _hlo

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
SMALL = f"""HloModule small
{ADD}
cond {{ s = (s32[], f32[1]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(1000) ROOT p = pred[] compare(i, n), direction=LT }}
body {{ s = (s32[], f32[1]) parameter(0) i = s32[] get-tuple-element(s), index=0
  x = f32[1] get-tuple-element(s), index=1 y = f32[1] all-reduce(x), to_apply=add
  o = s32[] constant(1) j = s32[] add(i, o) ROOT t = (s32[], f32[1]) tuple(j, y) }}
ENTRY e {{ x = f32[1] parameter(0) z = s32[] constant(0)
  s = (s32[], f32[1]) tuple(z, x) w = (s32[], f32[1]) while(s), condition=cond, body=body
  ROOT r = f32[1] get-tuple-element(w), index=1 }}"""
LARGE = f"""HloModule large
{ADD}
ENTRY e {{ x = f32[16777216] parameter(0) ROOT y = f32[16777216] all-reduce(x), to_apply=add }}"""


class Xla:
    """A program of one array, compiled by XLA."""

    def __init__(self, text, size):
        devices = jax.devices("cpu")[: options.replicas]
        proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        compile_options = xc.CompileOptions()
        compile_options.num_replicas, compile_options.num_partitions = options.replicas, 1
        numbers = np.arange(options.replicas).reshape(options.replicas, 1)
        compile_options.device_assignment = xc.DeviceAssignment.create(numbers)
        mlir = xc._xla.mlir.hlo_to_stablehlo(proto)
        self.program = devices[0].client.compile_and_load(mlir, xc.DeviceList(tuple(devices)), compile_options)
        mesh = jax.sharding.Mesh(np.array(devices), ("r",))
        everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        shards = [jax.device_put(np.full(size, r, np.float32), d) for r, d in enumerate(devices)]
        self.argument = jax.make_array_from_single_device_arrays((size,), everywhere, shards)

    def least_ms(self):
        times = []
        for _ in range(options.runs + 1):
            start = time.perf_counter()
            for leaf in self.program.execute_sharded([self.argument]).disassemble_into_single_device_arrays():
                for shard in leaf:
                    shard.block_until_ready()
            times.append((time.perf_counter() - start) * 1e3)
        return min(times[1:])


def helio_least_ms(path):
    command = [options.program, "bench", path, "--replicas", str(options.replicas), "--random", "1"]
    output = subprocess.run(command + ["--runs", str(options.runs), "--json"], capture_output=True, text=True, check=True)
    return json.loads(output.stdout)["run_ms_min"]


with tempfile.TemporaryDirectory() as directory:
    for name, text, size in [("1000 all-reduces of 4 bytes", SMALL, 1), ("all-reduce of 64 MiB", LARGE, 1 << 24)]:
        path = os.path.join(directory, "module.hlo")
        with open(path, "w") as file:
            file.write(text)
        xla = Xla(text, size)
        rounds = [(helio_least_ms(path), xla.least_ms()) for _ in range(options.rounds)]
        helio, other = (min(times) for times in zip(*rounds))
        print(f"{name:30} helio {helio:9.3f} ms   XLA:CPU {other:9.3f} ms   {other / helio:5.2f} times", flush=True)
