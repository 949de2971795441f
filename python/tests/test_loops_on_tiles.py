"""Loops of sharded programs: the values are those of one device and of JAX's CPU back end, and devices exchange
what they must.

They need HELIO_DEVICES=8.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.skipif(len(jax.devices()) < 8, reason="HELIO_DEVICES < 8")

# Sizes by which a dimension is known: none of them, nor of their tiles, is another one.
STEPS, LAYERS, BATCH, WIDTH, HIDDEN = 4, 3, 56, 9, 88


def grid(devices, model):
    """Devices along `data` and `model`, of which the latter are so many."""
    devices = np.array(jax.devices()[:devices])
    return jax.sharding.Mesh(devices.reshape(-1, model), ("data", "model"))


def exchanges(run, *arguments):
    """The collectives of a program, each with the sizes of its result."""
    text = run.lower(*arguments).compile().as_text()
    found = re.findall(r"= \w+\[([\d,]*)\]\S* (all-\w+|collective-\w+|reduce-scatter)\(", text)
    return sorted((name, tuple(map(int, filter(None, sizes.split(","))))) for sizes, name in found)


def sizes(run, *arguments):
    """All sizes of dimensions in a program."""
    text = run.lower(*arguments).compile().as_text()
    return {int(size) for sizes in re.findall(r"f32\[([\d,]+)\]", text) for size in sizes.split(",")}


def check(program, arguments, specs, mesh, out=None):
    """The program on tiles gives what it gives elsewhere; the arguments in tiles, and the program on these."""
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    there = jax.tree.map(jax.device_put, arguments, shardings)
    run = jax.jit(program, out_shardings=out)
    together = run(*there)
    for device in (jax.devices()[0], jax.devices("cpu")[0]):
        alone = jax.jit(program)(*jax.device_put(arguments, device))
        for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=2e-4, atol=2e-5)
    return there, run, together


def random(*shape, scale=1.0):
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32) * np.float32(scale)


def weights():
    return {"up": random(LAYERS, WIDTH, HIDDEN, scale=0.2), "down": random(LAYERS, HIDDEN, WIDTH, scale=0.2)}


def loss(params, x, y):
    layer = lambda h, w: (h + jnp.tanh(h @ w["up"]) @ w["down"], None)
    return jnp.mean((lax.scan(layer, x, params)[0] - y) ** 2)


def train(params, xs, ys):
    def step(params, batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return lax.scan(step, params, (xs, ys))


def batches():
    return random(STEPS, BATCH, WIDTH), random(STEPS, BATCH, WIDTH)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_examples_in_tiles(devices):
    whole = {"up": P(), "down": P()}
    there, run, (params, _) = check(
        train, (weights(), *batches()), (whole, P(None, "data"), P(None, "data")), grid(devices, 1)
    )
    # The loss, and the gradient of each layer's weights.
    sums = [(), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    assert exchanges(run, *there) == [("all-reduce", size) for size in sums]
    assert BATCH not in sizes(run, *there)
    assert params["up"].sharding.is_fully_replicated


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_weights_in_tiles(devices):
    cut = {"up": P(None, None, "model"), "down": P(None, "model", None)}
    there, run, (params, _) = check(train, (weights(), *batches()), (cut, P(), P()), grid(devices, devices))
    # What a layer adds, and its gradient.
    assert exchanges(run, *there) == [("all-reduce", (BATCH, WIDTH))] * 2
    assert HIDDEN not in sizes(run, *there)
    assert params["up"].sharding.shard_shape(params["up"].shape)[2] == HIDDEN // devices


@pytest.mark.parametrize("devices", [4, 8])
def test_examples_and_weights_in_tiles(devices):
    cut = {"up": P(None, None, "model"), "down": P(None, "model", None)}
    there, run, _ = check(train, (weights(), *batches()), (cut, P(None, "data"), P(None, "data")), grid(devices, 2))
    found = exchanges(run, *there)
    assert {name for name, _ in found} == {"all-reduce"} and len(found) == 5, found
    assert not {BATCH, HIDDEN} & sizes(run, *there)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_recurrence_over_examples_in_tiles(devices):
    def states(w, xs):
        step = lambda h, x: ((h := jnp.tanh(h @ w + x)), h)
        return lax.scan(step, jnp.zeros((BATCH, WIDTH)), xs)

    arguments = (random(WIDTH, WIDTH, scale=0.3), random(STEPS, BATCH, WIDTH))
    there, run, (last, all) = check(states, arguments, (P(), P(None, "data")), grid(devices, 1))
    assert exchanges(run, *there) == []
    assert last.sharding.shard_shape(last.shape) == (BATCH // devices, WIDTH)
    assert all.sharding.shard_shape(all.shape) == (STEPS, BATCH // devices, WIDTH)


@pytest.mark.parametrize("devices", [2, 8])
def test_loop_that_ends_by_all_tiles(devices):
    def halved(x):
        return lax.while_loop(lambda s: (s[0] ** 2).sum() > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    there, run, _ = check(halved, (random(BATCH, WIDTH),), (P("data"),), grid(devices, 1))
    assert exchanges(run, *there) == [("all-reduce", ())]


@pytest.mark.parametrize("devices", [2, 8])
def test_branches_on_tiles(devices):
    def stepped(x):
        turn = lambda x, i: lax.switch(i % 3, [jnp.sin, lambda x: x * x.mean(), lambda x: x + 1], x)
        return lax.fori_loop(0, 5, lambda i, x: turn(x, i), x)

    there, run, _ = check(stepped, (random(BATCH, WIDTH),), (P("data"),), grid(devices, 1))
    assert exchanges(run, *there) == [("all-reduce", ())]
    assert BATCH not in sizes(run, *there)


@pytest.mark.parametrize("devices", [2, 8])
def test_rows_of_examples_in_tiles(devices):
    """A table's gradient is the sum of those of all tiles of the examples."""
    def train(table, places):
        loss = lambda table, place: (jnp.tanh(table[place]).sum(axis=1) ** 2).sum()
        step = lambda table, place: (table - 0.1 * jax.grad(loss)(table, place), None)
        return lax.scan(step, table, places)[0]

    places = np.random.RandomState(0).randint(0, HIDDEN, (STEPS, BATCH, LAYERS))
    there, run, _ = check(train, (random(HIDDEN, WIDTH), places), (P(), P(None, "data")), grid(devices, 1))
    assert exchanges(run, *there) == [("all-reduce", (HIDDEN, WIDTH))]


def test_accumulated_gradients_lie_as_results_do():
    """What a loop begins with zeros for is in the tiles that the program's result is in."""
    def summed(xs):
        return lax.fori_loop(0, STEPS, lambda i, acc: acc + xs[i].T @ xs[i], jnp.zeros((BATCH, BATCH)))

    mesh = grid(8, 1)
    out = NamedSharding(mesh, P("data"))
    there, run, _ = check(summed, (random(STEPS, WIDTH, BATCH),), (P(),), mesh, out)
    assert exchanges(run, *there) == []
