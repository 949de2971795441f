"""Several virtual devices; they need HELIO_DEVICES=4 or more."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
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
