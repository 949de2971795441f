"""Several virtual devices; they need HELIO_DEVICES=4 or more."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.skipif(len(jax.devices()) < 4, reason="HELIO_DEVICES < 4")


def mesh(*sizes):
    names = ("x", "y")[: len(sizes)]
    devices = np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return jax.sharding.Mesh(devices, names)


def test_pmap():
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    y = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(x)
    np.testing.assert_allclose(y, x / x.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("algorithm", ["PHILOX", "THREE_FRY", "DEFAULT"])
@pytest.mark.parametrize("dtype, shape", [("uint32", (8, 6)), ("uint16", (4, 5, 4)), ("uint32", (12,))])
def test_random_bits_in_parts_are_those_of_one_device(algorithm, dtype, shape):
    algorithm = getattr(jax.lax.RandomAlgorithm, f"RNG_{algorithm}")
    generate = lambda key: jax.lax.rng_bit_generator(key, shape, dtype=dtype, algorithm=algorithm)
    parts, whole = (NamedSharding(mesh(4), spec) for spec in (P("x"), P()))
    f = jax.jit(generate, in_shardings=whole, out_shardings=(whole, parts))
    # The counter's low half ends within the first blocks.
    for counter in ((1, 1), (2**32 - 2, 2**32 - 1)):
        key = jnp.array([1, 2, *counter], jnp.uint32)
        for found, wanted in zip(f(key), jax.jit(generate)(key)):
            np.testing.assert_array_equal(found, wanted)
    tile = (shape[0] // 4, *shape[1:])
    odd = algorithm == jax.lax.RandomAlgorithm.RNG_THREE_FRY and tile[0] % 2
    made = shape if odd or np.prod(tile) % 4 else tile
    sizes = ",".join(map(str, made))
    assert f"[{sizes}]" in next(
        line for line in f.lower(key).compile().as_text().splitlines() if " rng-bit-generator(" in line
    )


def test_random_numbers_in_parts_are_those_of_one_device():
    key = jax.random.key(0, impl="rbg")
    draw = lambda key: jax.random.normal(key, (64, 16))
    parts = jax.jit(draw, out_shardings=NamedSharding(mesh(4), P("x")))
    np.testing.assert_array_equal(parts(key), jax.jit(draw)(key))
    assert "[16,16]{1,0}) rng-bit-generator(" in parts.lower(key).compile().as_text()


@pytest.mark.parametrize("ordered", [False, True])
def test_callbacks_see_whole_arrays_once(ordered):
    seen = []

    @jax.jit
    def f(x):
        see = lambda i, x: seen.append((int(i), float(x.sum())))
        io_callback(see, None, 0, x, ordered=ordered)
        jax.lax.fori_loop(1, 3, lambda i, _: io_callback(see, None, i, x * 2, ordered=ordered), None)
        return x + 1

    x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh(4), P("x")))
    for _ in range(2):
        np.testing.assert_array_equal(f(x), np.arange(8) + 1)
    jax.effects_barrier()
    wanted = [(0, 28), (1, 56), (2, 56)] * 2
    assert (seen if ordered else sorted(seen)) == (wanted if ordered else sorted(wanted))


def test_ordered_callbacks_on_every_device():
    seen = []

    @jax.jit
    @jax.shard_map(mesh=mesh(4), in_specs=P("x"), out_specs=P("x"))
    def f(x):
        see = lambda x: seen.append(float(x[0]))
        io_callback(see, (), x, ordered=True)
        io_callback(see, (), x + 10, ordered=True)
        return x * 2

    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(f(x), x * 2)
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert all(seen.index(i) < seen.index(i + 10) for i in range(4))


def test_shard_map_with_collectives():
    grid = mesh(2, 2)

    @jax.jit
    @jax.shard_map(mesh=grid, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    def matmul(a, b):
        return jax.lax.psum(a @ b, "y")

    a = np.random.RandomState(0).randn(4, 6).astype(np.float32)
    b = np.random.RandomState(1).randn(6, 3).astype(np.float32)
    c = matmul(a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)
    assert c.sharding.shard_shape(c.shape) == (2, 3)


def test_automatic_sharding_is_right():
    sharding = NamedSharding(mesh(4), P("x"))
    x = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(8, 2), sharding)
    f = jax.jit(lambda x: jnp.cumsum(x, axis=0) @ x.T, out_shardings=sharding)
    y = f(x)
    host = np.asarray(x)
    np.testing.assert_allclose(y, np.cumsum(host, axis=0) @ host.T, rtol=1e-6)
    assert y.sharding.shard_shape(y.shape) == (2, 8)
    total = jax.jit(jnp.sum)(x)
    assert total == host.sum()


def test_systems_of_equations_are_solved_on_each_device():
    @jax.jit
    @jax.shard_map(mesh=mesh(4), in_specs=P("x"), out_specs=P("x"))
    def solve(a, b):
        return jnp.linalg.solve(a, b)

    a = np.random.RandomState(0).randn(4, 5, 5).astype(np.float32)
    b = np.random.RandomState(1).randn(4, 5, 2).astype(np.float32)
    np.testing.assert_allclose(a @ solve(a, b), b, rtol=1e-3, atol=1e-3)


def test_collectives_of_every_kind():
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    run = lambda f, out=P("x"): np.asarray(
        jax.jit(jax.shard_map(f, mesh=mesh(4), in_specs=P("x"), out_specs=out, check_vma=False))(x)
    )
    lax = jax.lax
    np.testing.assert_array_equal(run(lambda x: lax.psum(x, "x"), P()), x.sum(0, keepdims=True))
    np.testing.assert_array_equal(run(lambda x: lax.pmax(x, "x"), P()), x.max(0, keepdims=True))
    np.testing.assert_array_equal(run(lambda x: lax.pmin(x, "x"), P()), x.min(0, keepdims=True))
    np.testing.assert_array_equal(run(lambda x: lax.pmean(x, "x"), P()), x.mean(0, keepdims=True))
    np.testing.assert_array_equal(run(lambda x: lax.all_gather(x, "x", tiled=True), P()), x)
    np.testing.assert_array_equal(run(lambda x: lax.all_to_all(x, "x", 1, 0), P("x")).reshape(4, 4), x.T)
    scattered = run(lambda x: lax.psum_scatter(x[0], "x", tiled=True))
    np.testing.assert_array_equal(scattered, x.sum(0))
    turned = run(lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]))
    np.testing.assert_array_equal(turned, np.roll(x, 1, axis=0))
    # What nobody sends to is zero.
    shifted = run(lambda x: lax.ppermute(x, "x", [(0, 2)]))
    np.testing.assert_array_equal(shifted, np.where(np.arange(4)[:, None] == 2, x[0], 0))
    numbered = run(lambda x: x * 0 + lax.axis_index("x"))
    np.testing.assert_array_equal(numbered, np.arange(4)[:, None] * np.ones(4))


def test_collectives_among_groups():
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    f = jax.pmap(lambda x: jax.lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3]]), axis_name="i")
    np.testing.assert_array_equal(f(x), np.stack([x[0] + x[2], x[1] + x[3]] * 2))
    grid = jax.shard_map(
        lambda x: jax.lax.psum(x, "y"), mesh=mesh(2, 2), in_specs=P("x", "y"), out_specs=P("x")
    )
    np.testing.assert_array_equal(jax.jit(grid)(x), x.sum(axis=1, keepdims=True))


def test_pmap_of_trees_with_arguments_for_all():
    f = jax.pmap(
        lambda x, scale, tree: {"y": x * scale + tree["b"]},
        axis_name="i",
        in_axes=(0, None, {"b": 1}),
        out_axes={"y": 1},
    )
    x, b = np.arange(12.0, dtype=np.float32).reshape(4, 3), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(f(x, 2.0, {"b": b})["y"], (2 * x + 1).T)


def test_gradients_through_collectives():
    x = np.linspace(0, 1, 8, dtype=np.float32)

    def loss(x):
        part = jax.shard_map(
            lambda x: jax.lax.psum(jnp.sin(x).sum(), "x") ** 2, mesh=mesh(4), in_specs=P("x"), out_specs=P()
        )
        return part(x)

    expected = 2 * np.sin(x).sum() * np.cos(x)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), expected, rtol=1e-5)


PROGRAMS = {
    "element-wise": lambda x, w: jnp.tanh(x) * 2 + x,
    "broadcast": lambda x, w: x - x.mean(axis=0) + w[0, :1],
    "iota": lambda x, w: x + jnp.arange(x.shape[0])[:, None] * jnp.arange(x.shape[1]),
    "product": lambda x, w: jax.nn.relu(x @ w) @ w.T,
    "softmax": lambda x, w: jax.nn.softmax(x @ w, axis=-1),
    "transposed": lambda x, w: (x.T.reshape(2, -1) + 1).T,
    "sums": lambda x, w: (x.sum(), x.max(axis=1), x.argmin(axis=0), jnp.cumsum(x, axis=1)),
    "sort": lambda x, w: jnp.sort(x, axis=0),
    "loop": lambda x, w: jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) + i, x),
    "scan": lambda x, w: jax.lax.scan(lambda c, row: (c + row, c * row), x[0], x),
    "gather": lambda x, w: (x[jnp.array([3, 1])], x.at[2].set(0), jnp.roll(x, 1, axis=0)),
    "branch": lambda x, w: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "called": lambda x, w: jax.jit(jnp.exp)(x) + jax.jit(jnp.exp)(w.sum() + x),
    "random": lambda x, w: x + jax.random.uniform(jax.random.key(1), x.shape),
    "narrow": lambda x, w: (x.astype(jnp.int8) << 1, x > 0, x.astype(jnp.bfloat16)),
    "gradient": lambda x, w: jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w),
}


@pytest.mark.parametrize("spec", [("x",), (None, "y"), ("x", "y"), (("x", "y"),), ()])
@pytest.mark.parametrize("name", PROGRAMS)
def test_automatic_sharding_gives_what_one_device_gives(name, spec):
    program = PROGRAMS[name]
    random = np.random.RandomState(0)
    x, w = random.randn(8, 4).astype(np.float32), random.randn(4, 4).astype(np.float32)
    alone = jax.jit(program)(x, w)
    grid = mesh(2, 2)
    here = jax.device_put(x, NamedSharding(grid, P(*spec)))
    there = jax.device_put(w, NamedSharding(grid, P(None, "y")))
    together = jax.jit(program)(here, there)
    for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        assert one.dtype == other.dtype
        one, other = (np.asarray(value).astype(np.float32) for value in (one, other))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_constraints_in_programs():
    grid = mesh(2, 2)
    x = np.arange(32.0, dtype=np.float32).reshape(8, 4)

    @functools.partial(jax.jit, out_shardings=NamedSharding(grid, P("y")))
    def f(x):
        y = jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(grid, P("x", "y")))
        return jax.lax.with_sharding_constraint(y * 2, NamedSharding(grid, P(None, "x")))

    y = f(x)
    np.testing.assert_allclose(y, 2 * np.sin(x), rtol=1e-5, atol=1e-6)
    assert y.sharding.shard_shape(y.shape) == (4, 4)


def test_results_lie_as_their_operands_do():
    grid = mesh(2, 2)
    on = lambda *spec: NamedSharding(grid, P(*spec))
    x = jax.device_put(np.arange(32.0, dtype=np.float32).reshape(8, 4), on("x", "y"))
    w = jax.device_put(np.ones((4, 6), np.float32), on(None, "y"))
    for function, arguments, spec in [
        (lambda x: jnp.sin(x) + jnp.arange(4), (x,), ("x", "y")),
        (lambda x: x.T - 1, (x,), ("y", "x")),
        (lambda x: x.sum(axis=0), (x,), ("y",)),
        (lambda x, w: x @ w, (jax.device_put(x, on("x")), w), ("x", "y")),
        (lambda x: (x**2).sum(), (x,), ()),
        (lambda x: jax.jit(jnp.exp)(x)[None], (x,), (None, "x", "y")),
    ]:
        result = jax.jit(function)(*arguments)
        assert result.sharding.is_equivalent_to(on(*spec), result.ndim), (result.sharding, spec)
