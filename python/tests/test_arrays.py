"""Arrays on devices: where they lie, in which parts, and how they end. With HELIO_DEVICES=4 or more, also
those of several devices."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

DEVICES = jax.devices()
several = pytest.mark.skipif(len(DEVICES) < 4, reason="HELIO_DEVICES < 4")

HOST = np.arange(32.0, dtype=np.float32).reshape(8, 4)


def sharding(*spec, shape=(2, 2), names=("x", "y")):
    devices = np.array(DEVICES[: int(np.prod(shape))]).reshape(shape)
    return NamedSharding(jax.sharding.Mesh(devices, names), P(*spec))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1), (70000,)])
def test_arrays_of_any_size(shape):
    host = np.random.RandomState(0).uniform(size=shape).astype(np.float32)
    array = jax.device_put(host)
    assert array.shape == shape and array.nbytes == host.nbytes
    np.testing.assert_array_equal(np.asarray(array), host)
    np.testing.assert_array_equal(jnp.negative(array), -np.asarray(host))


def test_the_view_of_an_array_outlives_it():
    array = jnp.arange(100000.0) + 1
    view = np.asarray(array)
    assert not view.flags.writeable
    array.delete()
    del array
    jnp.zeros(100000).block_until_ready()
    np.testing.assert_array_equal(view, np.arange(100000.0) + 1)


def test_the_host_may_change_what_it_has_given():
    # An array that was copied from the host does not change with it.
    host = np.arange(100000.0, dtype=np.float32)
    array = jnp.array(host)
    host[:] = -1
    np.testing.assert_array_equal(array, np.arange(100000.0))


def test_deleted_arrays_are_errors():
    array = jnp.arange(10.0)
    array.delete()
    assert array.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(array)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        jax.jit(lambda x: x + 1)(array)


def test_donated_arguments_cannot_be_used_again():
    f = jax.jit(lambda x, y: (x * y, y - 1), donate_argnums=0)
    x, y = jnp.arange(6000.0), jnp.ones(6000)
    f(x, y)
    with pytest.raises((RuntimeError, ValueError), match="given away|deleted"):
        f(x, y)
    # What is donated and used in the same call is an error of the call, which leaves it as it was.
    with pytest.raises((RuntimeError, ValueError), match="INVALID_ARGUMENT"):
        f(y, y)
    np.testing.assert_array_equal(y, np.ones(6000))


def test_what_is_looked_at_is_copied_when_it_is_donated():
    x = jnp.arange(6000.0) + 0
    view = np.asarray(x)
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    np.testing.assert_array_equal(view, np.arange(6000.0))
    np.testing.assert_array_equal(y, 2 * np.arange(6000.0))


def test_arrays_are_copied_and_pickled():
    array = jnp.asarray(HOST)
    for other in (copy.copy(array), copy.deepcopy(array), array.copy(), pickle.loads(pickle.dumps(array))):
        assert isinstance(other, jax.Array) and other.dtype == array.dtype
        np.testing.assert_array_equal(other, HOST)


def test_arrays_are_python_numbers_and_sequences():
    assert int(jnp.int32(7)) == 7 and float(jnp.float32(0.5)) == 0.5 and complex(jnp.complex64(1j)) == 1j
    assert bool(jnp.bool_(True)) and [10, 20][jnp.int32(1)] == 20
    assert [int(x) for x in jnp.arange(3)] == [0, 1, 2]
    assert jnp.arange(6.0).reshape(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert "[0 1 2]" in repr(np.asarray(jnp.arange(3))) or "0, 1, 2" in repr(jnp.arange(3))
    with pytest.raises(TypeError):
        jnp.arange(3)[0] = 1


def test_copies_to_the_host_are_begun_early():
    arrays = [jnp.full((50, 50), i) * 2 for i in range(10)]
    for array in arrays:
        array.copy_to_host_async()
    for i, array in enumerate(arrays):
        np.testing.assert_array_equal(array, np.full((50, 50), 2 * i))
        assert array.is_ready()


@several
def test_arrays_move_between_devices():
    x = jax.device_put(HOST, DEVICES[1])
    assert x.devices() == {DEVICES[1]} and x.committed
    y = jax.device_put(x, DEVICES[3])
    assert y.devices() == {DEVICES[3]}
    np.testing.assert_array_equal(y, HOST)
    # The computation follows what is bound to a device.
    z = jnp.sin(y) + jnp.ones(4)
    assert z.devices() == {DEVICES[3]}
    with pytest.raises(ValueError, match="incompatible devices"):
        jax.jit(jnp.add)(x, y)
    with jax.default_device(DEVICES[2]):
        assert jnp.arange(3).devices() == {DEVICES[2]}


@several
@pytest.mark.parametrize("spec", [(), ("x",), (None, "x"), ("x", "y"), ("y", "x"), (("x", "y"),), (("y", "x"),)])
def test_shards_are_parts_of_the_array(spec):
    array = jax.device_put(HOST, sharding(*spec))
    np.testing.assert_array_equal(array, HOST)
    assert array.is_fully_replicated == (spec == ())
    assert len(array.addressable_shards) == 4
    for i, shard in enumerate(array.addressable_shards):
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(shard.data, HOST[shard.index])
        np.testing.assert_array_equal(array.addressable_data(i), HOST[shard.index])


@several
def test_arrays_are_made_of_parts():
    parts = sharding("y", "x")
    called = jax.make_array_from_callback(HOST.shape, parts, lambda index: HOST[index])
    np.testing.assert_array_equal(called, HOST)
    places = parts.addressable_devices_indices_map(HOST.shape)
    pieces = [jax.device_put(HOST[index], device) for device, index in places.items()]
    joined = jax.make_array_from_single_device_arrays(HOST.shape, parts, pieces)
    np.testing.assert_array_equal(joined, HOST)
    assert joined.sharding.is_equivalent_to(called.sharding, 2)


@several
@pytest.mark.parametrize("before", [(), ("x",), (None, "y"), ("x", "y")])
@pytest.mark.parametrize("after", [(), ("y",), ("y", "x"), (None, ("x", "y"))])
def test_arrays_are_cut_up_otherwise(before, after):
    array = jax.device_put(HOST, sharding(*before))
    moved = jax.device_put(array, sharding(*after))
    np.testing.assert_array_equal(moved, HOST)
    computed = jax.jit(lambda x: x, out_shardings=sharding(*after))(array)
    assert computed.sharding.is_equivalent_to(moved.sharding, 2)
    for shard in computed.addressable_shards:
        np.testing.assert_array_equal(shard.data, HOST[shard.index])


@several
def test_single_elements_of_arrays_in_parts():
    array = jax.device_put(HOST, sharding("x", "y"))
    assert float(array[5, 3]) == HOST[5, 3]
    np.testing.assert_array_equal(array[2:6, ::2], HOST[2:6, ::2])
    np.testing.assert_array_equal([row.sum() for row in array], HOST.sum(axis=1))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), HOST)
    array.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(array)


@several
def test_arrays_in_parts_are_donated():
    parts = sharding("x", "y")
    x = jax.device_put(np.arange(40000.0, dtype=np.float32).reshape(200, 200), parts)
    y = jax.jit(lambda x: x + 1, donate_argnums=0, out_shardings=parts)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, np.arange(40000.0).reshape(200, 200) + 1)


@several
def test_what_no_result_can_take_is_not_donated():
    x = jax.device_put(np.ones((8, 2), np.float32), sharding("x"))
    y = jax.jit(lambda x: x @ x.T, donate_argnums=0)(x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(y, np.full((8, 8), 2))


@several
def test_keys_of_random_numbers_lie_in_parts():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), sharding(("x", "y")))
    values = jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys)
    alone = jax.vmap(lambda key: jax.random.normal(key, (3,)))(jax.random.split(jax.random.key(0), 8))
    np.testing.assert_allclose(values, alone, rtol=1e-6)
