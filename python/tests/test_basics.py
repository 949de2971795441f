"""Programs of JAX's on helio: the same as NumPy or JAX's own CPU back end say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

CPU = jax.devices("cpu")[0]


def test_the_platform_is_helio():
    assert jax.default_backend() == "helio"
    device = jax.devices()[0]
    assert device.platform == "helio" and device.device_kind == "cpu"
    assert {memory.kind for memory in device.addressable_memories()} == {
        "device",
        "pinned_host",
        "unpinned_host",
    }
    assert device.memory_stats()["bytes_in_use"] >= 0


def test_a_function_is_compiled_and_run():
    f = jax.jit(lambda x, y: jnp.tanh(x @ y).sum(axis=0))
    x = np.random.RandomState(0).randn(16, 8).astype(np.float32)
    y = np.random.RandomState(1).randn(8, 4).astype(np.float32)
    np.testing.assert_allclose(f(x, y), np.tanh(x @ y).sum(axis=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int4", "uint4", "int8", "uint16", "int32", "bfloat16", "float16", "float32", "complex64",
     "float8_e4m3fn", "float8_e5m2"],
)
def test_arrays_go_there_and_back(dtype):
    values = np.arange(-8, 8).reshape(4, 4) if not dtype.startswith(("u", "bool")) else np.arange(16).reshape(4, 4)
    array = values.astype(jnp.dtype(dtype))
    for host in (array, array.T, array[::-1, ::2], array[:0]):
        device = jax.device_put(host)
        assert device.dtype == host.dtype
        np.testing.assert_array_equal(np.asarray(device), host)
    negated = np.asarray(jax.jit(lambda x: x)(array))
    np.testing.assert_array_equal(negated, array)


def test_donated_arguments_end():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(5000.0)
    y = f(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, np.arange(5000.0) + 1)


def test_gradients_loops_and_random_numbers_are_those_of_the_cpu():
    def loss(w, x):
        def step(h, row):
            # (A matrix of norm 1: a larger one magnifies the rounding of each step in the next ones.)
            h = jnp.tanh(h @ w / np.float32(np.sqrt(8)) + row)
            return h, (h**2).mean()

        return jax.lax.scan(step, jnp.zeros(8), x)[1].sum()

    key = jax.random.key(7)
    w, x = np.asarray(jax.random.normal(key, (8, 8))), np.asarray(jax.random.normal(key, (20, 8)))
    ours = jax.jit(jax.grad(loss))(w, x)
    with jax.default_device(CPU):
        normal = jax.random.normal(jax.random.key(7), (8, 8))
        np.testing.assert_allclose(w, normal, rtol=1e-5, atol=1e-6)
        theirs = jax.jit(jax.grad(loss))(w, x)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


def test_what_is_known_of_a_compiled_program():
    compiled = jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8))).compile()
    assert compiled.cost_analysis()["flops"] == 2 * 8**3
    assert compiled.memory_analysis().argument_size_in_bytes == 256
    assert "dot" in compiled.as_text()


def test_memories_have_kinds():
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    x = jax.device_put(jnp.arange(3.0), sharding)
    assert x.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_errors_are_pythons():
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT.*no custom call"):
        call = jax.ffi.ffi_call("nobody_knows_it", jax.ShapeDtypeStruct((3,), jnp.float32))
        jax.jit(call)(jnp.ones(3)).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
        jax.jit(lambda x: x, compiler_options={"nobody_knows_it": True})(1.0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="'maybe' is not a valid bool value"):
        jax.jit(lambda x: x, compiler_options={"xla_embed_ir_in_executable": "maybe"})(1.0)
