#!/usr/bin/env python3
"""Times benches/elementwise.rs against jax.jit of the same function, in alternating rounds of one run.

  cargo bench -p helio-graph --bench elementwise --no-run     # prints the path of the program
  python versus_jax.py PATH [--threads 1] [--rounds 3]

Needs jax==0.10.2 and jaxlib==0.10.2.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: options.threads]))
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

N = 1 << 20


def function(x, w, b):
    h = x * w + b
    gate = jnp.tanh(h) * 0.5 + 0.5
    softplus = jnp.log1p(jnp.exp(-jnp.abs(h))) + jnp.maximum(h, 0.0)
    k = gate * softplus - x
    norm = jnp.sqrt(k * k + 1e-6)
    return jnp.minimum(jax.nn.sigmoid(k / norm) * w, 6.0)


def argument(seed):
    bits = np.arange(N, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed)
    return jax.device_put((bits >> np.uint32(8)).astype(np.float32) / np.float32(1 << 22) - np.float32(2))


def median_ms(call, seconds=1.0):
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


arguments = [argument(seed) for seed in (1, 2, 3)]
compile_ms = median_ms(lambda: jax.jit(lambda *args: function(*args)).lower(*arguments).compile())
compiled = jax.jit(function)
total = float(np.asarray(compiled(*arguments), dtype=np.float64).sum())
rounds = []
for _ in range(options.rounds):
    xla = median_ms(lambda: compiled(*arguments).block_until_ready())
    helio = json.loads(subprocess.check_output([options.program, "--json"], text=True))
    assert abs(helio["sum"] - total) < 1e-6 * N, (helio["sum"], total)
    rounds.append((xla / helio["run_ms"], xla, helio))
ratio, xla, helio = sorted(rounds, key=lambda entry: entry[0])[len(rounds) // 2]
print(f"compile: jax {compile_ms:.2f} ms, helio {helio['compile_ms']:.3f} ms (built from nothing)")
print(f"run:     jax {xla:.3f} ms, helio {helio['run_ms']:.3f} ms on buffers, {helio['arrays_ms']:.3f} ms on arrays")
print(f"ratio:   {ratio:.2f}")
