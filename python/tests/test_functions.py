"""Functions of JAX's: each gives on helio what it gives on JAX's own CPU back end, and so does its
derivative."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest
from jax import lax

HELIO, CPU = jax.devices("helio")[0], jax.devices("cpu")[0]


def normal(*shape, dtype=np.float32, seed=0):
    random = np.random.RandomState(seed)
    values = random.randn(*shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.randn(*shape)
    return values.astype(dtype)


def uniform(*shape, low=0.1, high=0.9, seed=0):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)


def integers(*shape, low=-9, high=10, dtype=np.int32, seed=0):
    return np.random.RandomState(seed).randint(low, high, shape).astype(dtype)


def positive_definite(n):
    a = normal(n, n)
    return a @ a.T + n * np.eye(n, dtype=np.float32)


X, Y, U = normal(3, 4), normal(3, 4, seed=1), uniform(3, 4)
I, J = integers(3, 4), integers(3, 4, seed=1, low=1)
Z = normal(3, 4, dtype=np.complex64)
VECTOR, IMAGE = normal(40), normal(2, 8, 8, 3)

# What is differentiated with respect to its first argument.
SMOOTH = {
    "abs": (jnp.abs, X),
    "acos": (jnp.arccos, U),
    "acosh": (jnp.arccosh, U + 1),
    "asin": (jnp.arcsin, U),
    "asinh": (jnp.arcsinh, X),
    "atan": (jnp.arctan, X),
    "atan2": (jnp.arctan2, X, Y),
    "atanh": (jnp.arctanh, U),
    "average pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), IMAGE),
    "batched product": (jnp.matmul, normal(5, 3, 4), normal(5, 4, 2, seed=1)),
    "bessel": (jsp.special.i0e, X),
    "beta": (jsp.special.betaln, U, U[::-1]),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)) * 2, X),
    "cholesky": (lambda a: jnp.linalg.cholesky(a), positive_definite(5)),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), X),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x], axis=1), X, Y),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        IMAGE,
        normal(3, 3, 3, 4, seed=1),
    ),
    "convolution in groups": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=3
        ),
        IMAGE,
        normal(3, 3, 1, 6, seed=1),
    ),
    "convolution transposed": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        IMAGE,
        normal(3, 3, 3, 4, seed=1),
    ),
    "cos": (jnp.cos, X),
    "cosh": (jnp.cosh, X),
    "cross": (lambda x, y: jnp.cross(x[:, :3], y[:, :3]), X, Y),
    "cumulative logsumexp": (lambda x: lax.cumlogsumexp(x, axis=1), X),
    "cumulative product": (lambda x: jnp.cumprod(x, axis=1), X),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=0), normal(30, 7)),
    "determinant": (jnp.linalg.det, positive_definite(4)),
    "digamma": (jsp.special.digamma, U),
    "divide": (jnp.divide, X, Y),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)), X, np.int32(5)),
    "dynamic update": (lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :2], (i, i)), X, Y, np.int32(1)),
    "einsum": (lambda x, y: jnp.einsum("abc,dcb->ad", x, y), normal(3, 4, 5), normal(2, 5, 4, seed=1)),
    "erf": (jsp.special.erf, X),
    "erf inverse": (jsp.special.erfinv, U),
    "erfc": (jsp.special.erfc, X),
    "exp": (jnp.exp, X),
    "exp2": (jnp.exp2, X),
    "expm1": (jnp.expm1, X),
    "flip": (lambda x: jnp.flip(x, 1), X),
    "gamma": (jsp.special.gammaln, U),
    "gather": (lambda x, i: x[:, i], X, np.array([[0, 3], [-1, 2]])),
    "gelu": (jax.nn.gelu, X),
    "incomplete gamma": (lambda x, a: jsp.special.gammainc(a, x), U, U[::-1]),
    "interpolation": (lambda x: jnp.interp(x, np.arange(5.0), np.array([0, 1, 4, 9, 16.0])), 4 * U),
    "inverse": (jnp.linalg.inv, positive_definite(4)),
    "layer norm": (lambda x: jax.nn.standardize(x, axis=-1), X),
    "log": (jnp.log, U),
    "log1p": (jnp.log1p, U),
    "logistic": (jax.nn.sigmoid, X),
    "logsumexp": (lambda x: jsp.special.logsumexp(x, axis=1), X),
    "map": (lambda x: lax.map(lambda row: row.sum() * row, x), X),
    "matrix exponential": (jsp.linalg.expm, normal(4, 4) / 4),
    "max": (lambda x: x.max(axis=1), X),
    "max pool": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), IMAGE),
    "maximum": (jnp.maximum, X, Y),
    "mean": (lambda x: x.mean(axis=(0, 1)), normal(3, 50, 4)),
    "median": (lambda x: jnp.median(x, axis=1), normal(3, 5)),
    "norm": (lambda x: jnp.linalg.norm(x, axis=1), X),
    "one scan": (lambda x: lax.scan(lambda c, x: (c * 0.5 + x, jnp.sin(c)), jnp.zeros(4), x), X),
    "outer": (jnp.outer, VECTOR, X),
    "pad": (lambda x: lax.pad(x, 1.5, ((1, -1, 2), (0, 2, 1))), X),
    "power": (jnp.power, U, Y),
    "power of an integer": (lambda x: x**5, X),
    "product": (jnp.matmul, normal(7, 33), normal(33, 5, seed=1)),
    "product of all": (jnp.prod, X),
    "reciprocal root": (lax.rsqrt, U),
    "reshape": (lambda x: x.reshape(2, 6).T, X),
    "resize": (lambda x: jax.image.resize(x, (2, 5, 11, 3), "bicubic"), IMAGE),
    "roll": (lambda x: jnp.roll(x, 2, axis=1), X),
    "scatter": (lambda x, y: x.at[jnp.array([0, 2])].set(y[:2]), X, Y),
    "scatter add": (lambda x, y: x.at[jnp.array([0, 2, 0]), 1].add(y[:, 0]), X, Y),
    "scatter max": (lambda x, y: x.at[:, jnp.array([0, 2])].max(y[:, :2]), X, Y),
    "select": (lambda x, y: jnp.where(x > y, x, 2 * y), X, Y),
    "silu": (jax.nn.silu, X),
    "sin": (jnp.sin, X),
    "sinh": (jnp.sinh, X),
    "slice": (lambda x: x[::2, 1:], X),
    "softmax": (jax.nn.softmax, X),
    "softplus": (jax.nn.softplus, X),
    "solve": (jnp.linalg.solve, positive_definite(5), normal(5, 2)),
    "sort": (lambda x: jnp.sort(x, axis=0), normal(20, 3)),
    "sqrt": (jnp.sqrt, U),
    "standard deviation": (lambda x: x.std(axis=0), normal(50, 3)),
    "switch": (lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x), X),
    "tan": (jnp.tan, X),
    "tanh": (jnp.tanh, X),
    "top k": (lambda x: lax.top_k(x, 3)[0], normal(5, 20)),
    "triangular solve": (lambda a, b: jsp.linalg.solve_triangular(a, b, lower=True), positive_definite(5), normal(5, 2)),
    "zeta": (lambda x: jsp.special.zeta(x, 0.7), U + 2),
}

# What is only computed.
OTHERS = {
    "all": (lambda x: (x > -1).all(axis=0), X),
    "any": (lambda x: (x > 1).any(axis=0), X),
    "argmax": (lambda x: (x.argmax(axis=1), x.argmin()), X),
    "argsort": (lambda x: jnp.argsort(x, axis=1, stable=True), I),
    "bits": (lambda x, y: (x & y, x | y, x ^ y, ~x), I, J),
    "casts": (lambda x: [x.astype(t) for t in ("int8", "uint8", "bfloat16", "float16", "bool")], I),
    "complex": (lambda z: (z.real, z.imag, z.conj(), abs(z), jnp.angle(z)), Z),
    "complex functions": (lambda z: [f(z) for f in COMPLEX], Z),
    "complex product": (jnp.matmul, Z, Z.T),
    "convolution of integers": (lambda x, w: jnp.convolve(x, w), integers(20), integers(5)),
    "counts": (lambda x: jnp.bincount(x, length=10), integers(50, low=0)),
    "decision": (lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x), X),
    "digitize": (lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 0.5])), X),
    "division of integers": (lambda x, y: (x // y, x % y, lax.div(x, y), lax.rem(x, y)), I, J),
    "fourier": (lambda x: (jnp.fft.fft(x), jnp.fft.ifft2(x), jnp.fft.fftshift(x)), Z),
    "fourier of reals": (lambda x: (jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.rfftn(x)), normal(6, 10)),
    "histogram": (lambda x: jnp.histogram(x, 7)[0], VECTOR),
    "iota": (lambda: (jnp.arange(7), jnp.eye(3, 4), jnp.tri(4), jnp.linspace(0, 1, 5)),),
    "loop": (lambda n: lax.fori_loop(0, n, lambda i, x: x * 3 + i, 1), np.int32(10)),
    "next after": (jnp.nextafter, X, Y),
    "numbers of bits": (lambda x: (lax.population_count(x), lax.clz(x)), integers(9, low=0, dtype=np.uint32)),
    "product of integers": (jnp.matmul, integers(4, 5), integers(5, 3)),
    "random bits": (lambda: jax.random.bits(jax.random.key(3), (50,)),),
    "random choice": (lambda: jax.random.permutation(jax.random.key(3), 20),),
    "random integers": (lambda: jax.random.randint(jax.random.key(3), (50,), -5, 100),),
    "random numbers": (lambda: [f(jax.random.key(5), shape=(20,)) for f in DISTRIBUTIONS],),
    "reduce precision": (lambda x: lax.reduce_precision(x, 5, 7), X),
    "rounding": (lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.trunc(x), jnp.sign(x)), 3 * X),
    "scatter of integers": (lambda x: x.at[jnp.array([1, 1, 7])].add(3, mode="drop"), integers(5)),
    "searchsorted": (lambda x, y: jnp.searchsorted(x, y), np.sort(VECTOR), X),
    "segment sum": (lambda x, i: jax.ops.segment_sum(x, i, 6), normal(30), integers(30, low=0, high=7)),
    "shifts": (lambda x, y: (x << y, x >> y, lax.shift_right_logical(x, y)), I, J),
    "sort of pairs": (lambda x, y: lax.sort((x, y), num_keys=2), I, J),
    "squeeze": (lambda x: (x[None].squeeze(0), x[..., None], jnp.moveaxis(x[None], 0, 2)), X),
    "tile": (lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, axis=1), jnp.stack([x, x])), X),
    "unique": (lambda x: jnp.unique(x, size=9, fill_value=99), I),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, 0)), np.int32(3)),
}

COMPLEX = [
    jnp.exp, jnp.log, jnp.sin, jnp.cos, jnp.tan, jnp.sinh, jnp.cosh, jnp.tanh, jnp.sqrt, jnp.expm1,
    jnp.log1p, jnp.arcsin, jnp.arccos, jnp.arctan, jnp.arcsinh, jnp.arctanh, jnp.square, jnp.reciprocal,
]
DISTRIBUTIONS = [
    jax.random.normal, jax.random.uniform, jax.random.exponential, jax.random.gumbel, jax.random.laplace,
    functools.partial(jax.random.truncated_normal, lower=-1.0, upper=2.0),
    functools.partial(jax.random.gamma, a=2.5), functools.partial(jax.random.bernoulli, p=0.3),
    functools.partial(jax.random.categorical, logits=np.zeros(5, np.float32)),
]


def on(device, function, arguments):
    with jax.default_device(device):
        results = jax.jit(function)(*(jax.device_put(x, device) for x in arguments))
    return [np.asarray(x) for x in jax.tree.leaves(results)]


def assert_same(function, arguments, tolerance):
    ours, theirs = on(HELIO, function, arguments), on(CPU, function, arguments)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        assert mine.dtype == other.dtype and mine.shape == other.shape
        if np.issubdtype(mine.dtype, np.inexact):
            size = np.abs(other[np.isfinite(other)]).max(initial=1)
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * size)
        else:
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions(name):
    function, *arguments = SMOOTH[name]
    assert_same(function, arguments, 2e-5)

    def total(x, *rest):
        # Not the plain sum, whose derivative is often a constant.
        return sum((jnp.sin(y) * y).sum() for y in jax.tree.leaves(function(x, *rest)))

    assert_same(jax.grad(total), arguments, 2e-4)


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name):
    function, *arguments = OTHERS[name]
    assert_same(function, arguments, 2e-5)


@pytest.mark.parametrize("name", ["product", "convolution", "softmax", "gather", "sort", "solve", "one scan"])
def test_batches(name):
    function, first, *rest = SMOOTH[name]
    batch = np.stack([first, first + 1, 2 * first])
    assert_same(jax.vmap(function, in_axes=(0, *(None for _ in rest))), [batch, *rest], 1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(dtype):
    x, y = jnp.asarray(X, dtype), jnp.asarray(Y, dtype)
    function = lambda x, y: (jnp.tanh(x) * y, jax.nn.softmax(x), (x @ y.T), x.sum(), x.max(axis=0))
    ours, theirs = (on(device, function, [x, y]) for device in (HELIO, CPU))
    for mine, other in zip(ours, theirs):
        assert mine.dtype == other.dtype
        mine, other = mine.astype(np.float32), other.astype(np.float32)
        np.testing.assert_allclose(mine, other, rtol=2e-2, atol=2e-2)


def test_wide_types():
    with jax.enable_x64(True):
        x = np.random.RandomState(0).randn(4, 5)
        functions = [jnp.sin, jnp.exp, jnp.tanh, jsp.special.erf, jnp.cumsum, jnp.sort]
        for function in functions:
            assert_same(function, [x], 1e-13)
        assert_same(lambda x: x @ x.T, [x], 1e-12)
        assert_same(lambda x: (x * 10**12) // 7, [np.arange(-5, 5)], 0)
