"""Random programs whose arguments, values and results are cut up at random give what one device gives.

They need HELIO_DEVICES=8. HELIO_PROGRAMS says how many are made (16 else), HELIO_SEED which.
"""

import os
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.skipif(len(jax.devices()) < 8, reason="HELIO_DEVICES < 8")

COUNT = int(os.environ.get("HELIO_PROGRAMS", "16"))
SEED = int(os.environ.get("HELIO_SEED", "1"))

SPECS = [
    P(),
    P("a"),
    P(None, "b"),
    P("a", "b"),
    P("b", "a"),
    P(("a", "b")),
    P(None, ("c", "a")),
    P("c", ("a", "b")),
    P(("c", "b"), "a"),
]


def grid():
    return jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("a", "b", "c"))


def window(x, dim, combine, init):
    sizes, padding = [1, 1], [(0, 0), (0, 0)]
    sizes[dim], padding[dim] = 8, (7, 0)
    return lax.reduce_window(x, jnp.float32(init), combine, sizes, (1, 1), padding)


def in_part(x, dim):
    """Manual along `b`, which cuts dimension `dim` up; along other axes as it comes."""
    spec = P(*["b" if d == dim else None for d in range(2)])
    part = lambda x: jnp.sin(x) + x.sum(axis=1 - dim, keepdims=True) / 8
    run = jax.shard_map(part, mesh=grid(), in_specs=spec, out_specs=spec, axis_names={"b"})
    return run(x)


def rows_of(x):
    return jnp.clip(jnp.abs(x[:, 0] * 3).astype(jnp.int32), -1, 9)


# Functions of two arrays of 8 by 8 and a dimension, whose result is such an array.
STEPS = {
    "sine": lambda x, y, d: jnp.sin(x),
    "sum": lambda x, y, d: x + y,
    "product": lambda x, y, d: jnp.clip(x * y, -50, 50),
    "dot": lambda x, y, d: x @ y / 8,
    "dot_transposed": lambda x, y, d: x.T @ y / 8,
    "transposed": lambda x, y, d: x.T,
    "without_mean": lambda x, y, d: x - y.mean(axis=d, keepdims=True),
    "sum_of_all": lambda x, y, d: x + y.sum() / 64,
    "bias": lambda x, y, d: x + y[d],
    "places": lambda x, y, d: x + lax.broadcasted_iota(jnp.float32, (8, 8), d),
    "chosen": lambda x, y, d: jnp.where(x > y, x, 2.0),
    "joined": lambda x, y, d: jnp.concatenate([x, y], axis=d).reshape(
        (2, 8, 8) if d == 0 else (8, 2, 8)
    ).sum(axis=d),
    "constant": lambda x, y, d: x + jnp.full((8, 8), 0.5) + jnp.arange(8.0),
    "softmax": lambda x, y, d: jax.nn.softmax(x, axis=d),
    "greatest": lambda x, y, d: x / (1 + jnp.abs(x).max(axis=d, keepdims=True)),
    "least_of_all": lambda x, y, d: x - jnp.minimum(y.min(), 2.5),
    "first_greatest": lambda x, y, d: x + jnp.expand_dims(y.argmax(axis=d), d),
    "reversed": lambda x, y, d: jnp.flip(x, d),
    "narrow": lambda x, y, d: jnp.round(x).astype(jnp.int8).astype(jnp.float32),
    "called": lambda x, y, d: jax.jit(lambda p, q: jnp.tanh(p) * q)(x, y),
    "batches": lambda x, y, d: jnp.concatenate(
        [jnp.einsum("ijk,ilk->ijl", x.reshape(2, 4, 8), y.reshape(2, 4, 8)).reshape(8, 4) / 8] * 2, axis=1
    ),
    "sorted": lambda x, y, d: lax.sort(x, dimension=d),
    "sorted_along": lambda x, y, d: lax.sort([x, y], dimension=d, num_keys=1)[1],
    "padded": lambda x, y, d: jnp.pad(x, [(2, 1) if d == i else (0, 0) for i in range(2)])[:8, :8],
    "sliced": lambda x, y, d: jnp.concatenate([lax.slice_in_dim(x, d, 8, 2, axis=d)] * 2, axis=d)[:8, :8],
    "slice_anywhere": lambda x, y, d: x + lax.dynamic_slice_in_dim(x, y[0, 0].astype(jnp.int32), 1, axis=d),
    "put_anywhere": lambda x, y, d: lax.dynamic_update_slice_in_dim(
        x, lax.slice_in_dim(y, 1, 3, axis=d), y[0, 0].astype(jnp.int32), axis=d
    ),
    "rows": lambda x, y, d: jnp.take(x, rows_of(y), axis=d, mode="clip"),
    "elements": lambda x, y, d: jnp.take_along_axis(x, rows_of(y)[:, None] % 8 + jnp.zeros((8, 8), int), axis=d),
    "added_to_rows": lambda x, y, d: x.at[rows_of(y)].add(y) if d else x.at[:, rows_of(y)].add(y),
    "set": lambda x, y, d: x.at[2:4].set(y[:2]),
    "sums_so_far": lambda x, y, d: window(x, d, lax.add, 0.0) / 4,
    "greatest_so_far": lambda x, y, d: window(x, d, lax.max, -np.inf),
    "cumulative": lambda x, y, d: jnp.cumsum(x, axis=d) / 4,
    "reshaped": lambda x, y, d: (x.reshape(64) * 2).reshape(4, 2, 8).sum(axis=d)[:1] / 4 + y if d
    else x.reshape(2, 4, 2, 4).transpose(1, 0, 3, 2).reshape(8, 8),
    "convolved": lambda x, y, d: lax.conv_general_dilated(
        x.reshape(4, 2, 8), y[:2, :6].reshape(2, 2, 3), (1,), "SAME"
    ).reshape(8, 8) / 4,
    "loop": lambda x, y, d: lax.fori_loop(0, 3, lambda i, z: jnp.sin(z) + y * i, x),
    "branch": lambda x, y, d: lax.cond(x.sum() > 0, jnp.sin, lambda x: x + y, x),
    "loop_turned": lambda x, y, d: lax.fori_loop(0, 3, lambda i, z: jnp.sin(z).T + y, x),
    "loop_until": lambda x, y, d: lax.while_loop(lambda z: jnp.abs(z).max() > 1.5, lambda z: z / 2, x),
    "loop_in_loop": lambda x, y, d: lax.fori_loop(
        0, 2, lambda i, z: lax.fori_loop(0, i + 1, lambda j, w: jnp.sin(w) + y.sum(axis=d), z), x
    ),
    "loop_from_nothing": lambda x, y, d: lax.fori_loop(
        0, 8, lambda i, z: z.at[i].set(x[i] + y[:, d]), jnp.zeros((8, 8))
    ),
    "loop_in_part": lambda x, y, d: lax.fori_loop(0, 2, lambda i, z: in_part(z, d) / 2, x),
    "scan_rows": lambda x, y, d: lax.scan(lambda c, row: (jnp.sin(c) + row, c - row), y[d], x)[1],
    "scan_layers": lambda x, y, d: lax.scan(
        lambda z, w: (jnp.tanh(z @ w), None), x, jnp.stack([y, y.T, x]) / 4
    )[0],
    "scan_gradient": lambda x, y, d: jax.grad(
        lambda w: lax.scan(lambda z, b: (jnp.tanh(z @ w + b), None), x, jnp.stack([y, x]))[0].sum()
    )(y / 4) / 8,
    "branch_of_three": lambda x, y, d: lax.switch(
        (x[0, 0] > 0).astype(int) + (y[0, 0] > 0), [lambda: jnp.cos(x), lambda: x.T, lambda: x + y[d]]
    ),
    "branch_in_loop": lambda x, y, d: lax.fori_loop(
        0, 3, lambda i, z: lax.cond(i % 2 == 0, jnp.sin, lambda z: z + y.sum(axis=d), z), x
    ),
    "eigenvalues": lambda x, y, d: jnp.tile(
        jnp.linalg.eigvalsh(x.reshape(2, 8, 2, 2)).transpose(1, 0, 2).reshape(8, 4), (1, 2)
    ),
    "triangles": lambda x, y, d: jnp.tile(jnp.linalg.qr(x.reshape(8, 4, 2))[1].reshape(8, 4), (1, 2)),
    "greatest_four": lambda x, y, d: jnp.tile(lax.top_k(x, 4)[0], (1, 2)),
    "about_greatest": lambda x, y, d: jnp.concatenate(
        [lax.approx_max_k(x, 4, reduction_dimension=d)[0]] * 2, axis=d
    ),
    "again": lambda x, y, d: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x),
    "barrier": lambda x, y, d: sum(lax.optimization_barrier((x, y.T))),
    "outer": lambda x, y, d: jnp.clip(x[:, :1] * y[:1], -50, 50),
    "in_part": lambda x, y, d: in_part(x, d),
}


def run(steps, arrays, constrain):
    values = list(arrays)
    for name, first, second, spec, dim in steps:
        x, y = values[int(first * len(values))], values[int(second * len(values))]
        value = STEPS[name](x, y, dim)
        if constrain and spec is not None:
            value = lax.with_sharding_constraint(value, NamedSharding(grid(), spec))
        values.append(value)
    return values[-3:], values[-1].sum(), values[-1].max(axis=0)


@pytest.mark.parametrize("number", range(COUNT))
def test_random_programs_give_what_one_device_gives(number):
    choose = random.Random(1000 * SEED + number)
    spec = lambda: choose.choice(SPECS) if choose.random() < 0.3 else None
    names = [choose.choice(list(STEPS)) for _ in range(choose.randint(2, 8))]
    steps = [(name, choose.random(), choose.random(), spec(), choose.randint(0, 1)) for name in names]
    arrays = [np.random.RandomState(number + i).randn(8, 8).astype(np.float32) for i in range(3)]
    alone = jax.jit(lambda *x: run(steps, x, False))(*arrays)
    there = [jax.device_put(x, NamedSharding(grid(), choose.choice(SPECS))) for x in arrays]
    wanted = [NamedSharding(grid(), choose.choice(SPECS)) for _ in range(3)]
    wanted = (wanted, None, None) if choose.random() < 0.5 else None
    together = jax.jit(lambda *x: run(steps, x, True), out_shardings=wanted)(*there)
    for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        message = f"{steps}, {[x.sharding.spec for x in there]}, {wanted}"
        np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=2e-3, atol=2e-3, err_msg=message)
