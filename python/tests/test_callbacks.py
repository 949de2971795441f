"""Calls from programs back into Python."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback


def test_pure_callbacks_give_arrays():
    def host(x, y):
        return np.sin(x) + y

    @jax.jit
    def f(x, y):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(host, shape, x, y, vmap_method="sequential") * 2

    x = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(f(x, x), 2 * (np.sin(x) + x), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(x, x), 2 * (np.sin(x) + x), rtol=1e-6)


def test_callbacks_in_loops_come_in_order():
    seen = []

    @jax.jit
    def f(n):
        def step(i, total):
            io_callback(lambda i: seen.append(int(i)), None, i, ordered=True)
            return total + i

        return jax.lax.fori_loop(0, n, step, 0)

    assert f(5) == 10
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3, 4]


def test_printing(capfd):
    @jax.jit
    def f(x):
        jax.debug.print("x is {x}", x=x)
        return x + 1

    f(3)
    jax.effects_barrier()
    assert capfd.readouterr().out == "x is 3\n"


def test_errors_of_callbacks_arrive():
    def fails(x):
        raise ValueError("on purpose")

    f = jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), jnp.float32), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)INTERNAL.*ValueError: on purpose"):
        f(1.0).block_until_ready()
    wrong = jax.jit(lambda x: jax.pure_callback(lambda x: np.zeros(2, np.float32), x, x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)Incorrect output shape"):
        wrong(1.0).block_until_ready()


@pytest.mark.parametrize("wrong", [lambda: np.float32(1), lambda x: x])
def test_errors_of_callbacks_arrive_if_nobody_asks_for_results(wrong):
    f = jax.jit(lambda: jax.pure_callback(wrong, jax.ShapeDtypeStruct((1,), jnp.float32)))
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        f()
        jax.effects_barrier()


@pytest.mark.parametrize("result", [None, jax.ShapeDtypeStruct((8,), jnp.int32)])
def test_ordered_callbacks_say_on_which_device_they_run(result):
    seen = []

    def host(x):
        seen.append(int(x.sum()))
        return None if result is None else x

    def f(x):
        io_callback(host, result, x, ordered=True)
        io_callback(host, result, x + 1, ordered=True)
        return x

    mesh = jax.make_mesh((1,), ("d",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    f = jax.jit(f, in_shardings=whole, out_shardings=whole)
    x = jnp.arange(8, dtype=jnp.int32)
    f(x)
    f(x)
    jax.effects_barrier()
    assert seen == [28, 36] * 2
    lines = [line for line in f.lower(x).as_text().splitlines() if "@helio_python_callback" in line]
    assert len(lines) == 2
    assert all("@maximal_mesh_0" in line for line in lines)


def test_libraries_call_back():
    from jax.experimental.sparse.linalg import spsolve

    # The matrix [[2, 1], [0, 4]].
    data, columns, rows = jnp.array([2.0, 1, 4]), jnp.array([0, 1, 1]), jnp.array([0, 2, 3])
    solve = lambda b: spsolve(data, columns, rows, b)
    b = jnp.array([4.0, 8])
    np.testing.assert_allclose(solve(b), [1, 2], rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda b: solve(b)[0])(b), [0.5, -0.125], rtol=1e-6)


def test_functions_live_as_long_as_their_programs_run():
    seen = []
    for i in range(20):
        # Nothing in Python knows the program when it runs.
        jax.jit(jax.jit(lambda x: jax.debug.callback(lambda x: seen.append(float(x.sum())), x)))(
            jnp.full((200, 200), i)
        )
    jax.effects_barrier()
    assert seen == [40000.0 * i for i in range(20)]


def test_functions_end_with_their_programs():
    class Function:
        def __call__(self, x):
            return np.asarray(x) + 1

    function = Function()
    alive = weakref.ref(function)
    f = jax.jit(lambda x: jax.pure_callback(function, jax.ShapeDtypeStruct((), jnp.float32), x))
    assert f(1.0) == 2
    del f, function
    jax.clear_caches()
    gc.collect()
    assert alive() is None
