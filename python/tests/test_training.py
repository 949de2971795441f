"""A small transformer in plain JAX learns on helio as it does on JAX's own CPU back end."""

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY, WIDTH, HEADS, LENGTH, LAYERS, BATCH = 32, 32, 4, 16, 2, 8


def parameters(key):
    def matrix(key, *shape):
        return jax.random.normal(key, shape) / np.sqrt(shape[0])

    keys = iter(jax.random.split(key, 4 * LAYERS + 3))
    layer = lambda: {
        "qkv": matrix(next(keys), WIDTH, 3 * WIDTH),
        "out": matrix(next(keys), WIDTH, WIDTH),
        "up": matrix(next(keys), WIDTH, 4 * WIDTH),
        "down": matrix(next(keys), 4 * WIDTH, WIDTH),
    }
    return {
        "layers": [layer() for _ in range(LAYERS)],
        "embed": matrix(next(keys), VOCABULARY, WIDTH),
        "position": matrix(next(keys), LENGTH, WIDTH),
        "logits": matrix(next(keys), WIDTH, VOCABULARY),
    }


def normed(x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def attention(layer, x):
    q, k, v = jnp.split(x @ layer["qkv"], 3, axis=-1)
    heads = lambda x: x.reshape(*x.shape[:-1], HEADS, WIDTH // HEADS)
    scores = jnp.einsum("bqhd,bkhd->bhqk", heads(q), heads(k)) / np.sqrt(WIDTH // HEADS)
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, heads(v)).reshape(x.shape) @ layer["out"]


def loss(params, tokens):
    x = params["embed"][tokens[:, :-1]] + params["position"]
    for layer in params["layers"]:
        x = x + attention(layer, normed(x))
        x = x + jax.nn.gelu(normed(x) @ layer["up"]) @ layer["down"]
    scores = jax.nn.log_softmax(normed(x) @ params["logits"])
    return -jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1).mean()


def update(params, state, tokens):
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradient)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state[1], gradient)
    step = lambda p, m, s: p - 3e-3 * m / (jnp.sqrt(s) + 1e-6)
    return jax.tree.map(step, params, momentum, square), (momentum, square), value


def train(device, steps=100):
    with jax.default_device(device):
        params = parameters(jax.random.key(0))
        zeros = jax.tree.map(jnp.zeros_like, params)
        state = (zeros, jax.tree.map(jnp.zeros_like, params))
        compiled = jax.jit(update, donate_argnums=(0, 1))
        data = np.random.RandomState(0).randint(0, VOCABULARY, (4, BATCH, LENGTH + 1))
        losses = []
        for i in range(steps):
            params, state, value = compiled(params, state, data[i % 4])
            losses.append(value)
    return np.array([float(value) for value in losses])


def test_losses_are_the_same():
    ours, theirs = train(jax.devices("helio")[0]), train(jax.devices("cpu")[0])
    assert theirs[-1] < 0.8 * theirs[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
