"""JAX's transformations and what surrounds them: compilation, derivatives, control, export."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def test_static_arguments_choose_programs():
    @functools.partial(jax.jit, static_argnums=1, static_argnames="power")
    def f(x, n, *, power=1):
        for _ in range(n):
            x = x + 1
        return x**power

    np.testing.assert_allclose(f(X, 2), X + 2, rtol=1e-6)
    np.testing.assert_allclose(f(X, 3, power=2), (X + 3) ** 2, rtol=1e-6)
    with pytest.raises(ValueError, match="Non-hashable"):
        f(X, [2])


def test_trees_go_in_and_come_out():
    @jax.jit
    def f(tree, *rest, **named):
        return {"sum": tree["a"] + tree["b"][0], "rest": [r * 2 for r in rest], "none": None, **named}

    out = f({"a": X, "b": (1.0, "x"[:0] or 2)}, X, 3, z=X)
    np.testing.assert_allclose(out["sum"], X + 1)
    np.testing.assert_allclose(out["rest"][0], 2 * X)
    assert int(out["rest"][1]) == 6 and out["none"] is None
    np.testing.assert_array_equal(out["z"], X)


def test_arguments_that_nobody_uses_and_results_that_are_arguments():
    f = jax.jit(lambda x, y, z: (y, 1, y, x.shape[0]))
    a, one, b, three = f(X, np.float32(5), X)
    assert a == b == 5 and one == 1 and three == 3
    kept = jax.jit(lambda x, y: y + 1, keep_unused=True)
    np.testing.assert_allclose(kept(X, X), X + 1)
    assert jax.jit(lambda: ())() == () and jax.jit(lambda x: None)(X) is None


def test_constants_of_any_size():
    big = np.random.RandomState(0).randn(300, 300).astype(np.float32)
    f = jax.jit(lambda x: jnp.sum(x * big) + np.float16(2) + jnp.int8(3))
    np.testing.assert_allclose(f(np.float32(2)), 2 * big.sum() + 5, rtol=1e-3, atol=0.05)


def test_programs_are_made_once():
    count = 0

    @jax.jit
    def f(x):
        nonlocal count
        count += 1
        return x * 2

    for value in (1.0, 2.0, np.float32(3)):
        f(value)
    f(X), f(X + 1), f(X.astype(np.int32))
    assert count <= 4
    assert f._cache_size() >= 3
    f.clear_cache()
    assert f._cache_size() == 0
    np.testing.assert_allclose(f(X), 2 * X)


def test_compiling_ahead():
    f = jax.jit(lambda x, y: {"product": x @ y.T})
    compiled = f.lower(jax.ShapeDtypeStruct((3, 4), jnp.float32), X).compile()
    np.testing.assert_allclose(compiled(X, X)["product"], X @ X.T, rtol=1e-5)
    with pytest.raises(TypeError, match="was compiled"):
        compiled(X[:2], X)
    assert compiled.out_info["product"].shape == (3, 3)
    assert compiled.memory_analysis().output_size_in_bytes == 36
    assert "stablehlo.dot_general" in f.lower(X, X).as_text()


def test_executables_are_kept_as_bytes():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda x: jnp.cos(x) * 3).lower(X).compile()
    payload, in_tree, out_tree = serialize_executable.serialize(compiled)
    again = serialize_executable.deserialize_and_load(
        payload, in_tree, out_tree, execution_devices=jax.devices()[:1]
    )
    np.testing.assert_allclose(again(X), np.cos(X) * 3, rtol=1e-5)


def test_exported_programs_run_for_any_size():
    pytest.importorskip("flatbuffers")  # JAX writes such files with it.
    (n,) = jax.export.symbolic_shape("n")
    f = jax.jit(lambda x: jnp.cumsum(x, axis=0) / x.shape[0])
    spec = jax.ShapeDtypeStruct((n, 4), jnp.float32)
    exported = jax.export.export(f, platforms=["helio", "cpu"])(spec)
    again = jax.export.deserialize(exported.serialize(vjp_order=1))
    for rows in (1, 3, 10):
        x = np.random.RandomState(rows).randn(rows, 4).astype(np.float32)
        np.testing.assert_allclose(again.call(x), np.cumsum(x, axis=0) / rows, rtol=1e-5, atol=1e-6)
    gradient = jax.grad(lambda x: again.call(x).sum())(X)
    np.testing.assert_allclose(gradient, jax.grad(lambda x: f(x).sum())(X), rtol=1e-5)


def test_derivatives_of_all_kinds():
    def f(x):
        return jnp.sin(x) @ jnp.arange(4.0) * x.sum()

    x = X[0]
    s, w = x.sum(), np.arange(4.0)
    gradient = np.cos(x) * w * s + np.sin(x) @ w
    for kind in (jax.grad, jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jax.jit(kind(f))(x), gradient, rtol=1e-4, atol=1e-4)
    hessian = np.diag(-np.sin(x) * w * s) + np.add.outer(np.cos(x) * w, np.cos(x) * w)
    np.testing.assert_allclose(jax.hessian(f)(x), hessian, rtol=1e-4, atol=1e-4)
    value, tangent = jax.jvp(f, (x,), (np.ones(4, np.float32),))
    np.testing.assert_allclose(tangent, gradient.sum(), rtol=1e-4)
    np.testing.assert_allclose(jax.linearize(f, x)[1](np.ones(4, np.float32)), tangent, rtol=1e-5)
    np.testing.assert_allclose(jax.vjp(f, x)[1](np.float32(1))[0], gradient, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.grad(jax.checkpoint(f))(x), gradient, rtol=1e-4, atol=1e-4)


def test_derivatives_by_the_user():
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: 5 * clipped(x)))(1.0), 1)

    @jax.custom_jvp
    def softsign(x):
        return x / (1 + jnp.abs(x))

    softsign.defjvp(lambda x, t: (softsign(*x), t[0] * 7))
    np.testing.assert_allclose(jax.vmap(jax.grad(softsign))(X[0]), np.full(4, 7))


def test_batches_along_any_dimension():
    f = jax.vmap(lambda x, y, z: (x @ y, x + z), in_axes=(1, None, 0), out_axes=(0, 1))
    product, total = jax.jit(f)(X, np.arange(3.0, dtype=np.float32), np.arange(4.0, dtype=np.float32))
    np.testing.assert_allclose(product, X.T @ np.arange(3.0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, X + np.arange(4.0), rtol=1e-6)
    means = jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(X)
    np.testing.assert_allclose(means, X - X.mean(axis=0), rtol=1e-5, atol=1e-6)


def test_branches_and_loops():
    def collatz(n):
        step = lambda n: lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
        return lax.while_loop(lambda s: s[0] != 1, lambda s: (step(s[0]), s[1] + 1), (n, 0))[1]

    assert jax.jit(collatz)(27) == 111
    np.testing.assert_array_equal(jax.vmap(collatz)(np.array([1, 2, 3, 6, 7])), [0, 1, 7, 8, 16])
    pick = jax.jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 0], x))
    for i, function in enumerate([np.sin, np.cos, lambda x: x * 0]):
        np.testing.assert_allclose(pick(i, X), function(X), rtol=1e-5, atol=1e-6)
    # Numbers beyond the last branch choose the last.
    np.testing.assert_array_equal(pick(9, X), X * 0)
    products = lax.associative_scan(jnp.multiply, jnp.arange(1.0, 8.0), reverse=True)
    np.testing.assert_allclose(products, np.cumprod(np.arange(7.0, 0, -1))[::-1], rtol=1e-6)
    assert jax.jit(lambda n: lax.fori_loop(3, n, lambda i, c: c + i, 0))(3) == 0


def test_branches_by_platform():
    choose = functools.partial(lax.platform_dependent, jnp.float32(2))
    assert choose(helio=lambda x: x + 1, cpu=lambda x: x + 2, default=lambda x: x + 3) == 3
    assert choose(cpu=lambda x: x + 2, default=lambda x: x + 3) == 5
    # Nothing is said of platforms like this one.
    f = lambda x: lax.platform_dependent(x, tpu=lambda x: x + 1, cpu=lambda x: x * x)
    assert jax.jit(f)(2.0) == 4 and jax.grad(f)(2.0) == 4
    np.testing.assert_array_equal(jax.vmap(f)(X), X * X)
    assert lax.cond(True, f, lambda x: x, 3.0) == 9
    with pytest.raises(NotImplementedError, match="platform_index"):
        choose(tpu=lambda x: x + 1)


def test_programs_without_compiling():
    with jax.disable_jit():
        f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: x + i, x))
        np.testing.assert_allclose(f(X), X + 3, rtol=1e-6)
    assert jax.eval_shape(lambda x: x @ x.T, X).shape == (3, 3)


def test_not_a_number_is_found():
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="nan"):
            jax.jit(lambda x: jnp.log(x))(np.float32(-1)).block_until_ready()
    assert np.isnan(jnp.log(np.float32(-1)))


def test_arguments_that_are_none():
    with pytest.raises(TypeError):
        jax.jit(lambda x: x)("text")
    with pytest.raises(TypeError, match="incompatible shapes|broadcast"):
        jax.jit(jnp.add)(np.ones(3), np.ones(4))
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: 1 if x > 0 else 2)(1.0)


def test_too_much_memory_is_an_error():
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        jax.jit(lambda: jnp.ones((1 << 20, 1 << 20)) * 2)().block_until_ready()


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_numbers_of_every_kind(kind):
    key = jax.random.key(3, impl=kind)
    draw = jax.jit(lambda key: jax.random.normal(key, (5000,)))
    values = np.asarray(draw(key))
    np.testing.assert_array_equal(values, draw(key))
    assert abs(values.mean()) < 0.1 and abs(values.std() - 1) < 0.1
    other = draw(jax.random.fold_in(key, 1))
    assert not np.array_equal(values, other)
    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_allclose(values, draw(jax.random.key(3, impl=kind)), rtol=1e-4, atol=1e-5)


def test_threads_share_a_program():
    from concurrent.futures import ThreadPoolExecutor

    f = jax.jit(lambda x: jnp.sin(x).sum() + x[0])
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: float(f(np.full(1000, i, np.float32))), range(40)))
    np.testing.assert_allclose(results, [1000 * np.sin(i) + i for i in range(40)], rtol=1e-3, atol=0.05)
