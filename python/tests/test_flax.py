"""A small transformer in Flax, trained with Optax, learns on helio as it does on JAX's own CPU back end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

nn = pytest.importorskip("flax.linen")
optax = pytest.importorskip("optax")

VOCABULARY, WIDTH, HEADS, LENGTH, LAYERS, BATCH = 32, 32, 4, 16, 2, 8


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        y = nn.MultiHeadDotProductAttention(num_heads=HEADS)(nn.LayerNorm()(x), mask=mask)
        x = x + y
        y = nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x)))
        return x + nn.Dense(WIDTH)(y)


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        place = self.param("place", nn.initializers.normal(0.02), (LENGTH, WIDTH))
        x = nn.Embed(VOCABULARY, WIDTH)(tokens) + place
        for _ in range(LAYERS):
            x = Layer()(x)
        return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))


def train(device, steps=100):
    model = Transformer()
    rate = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 10, steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate))

    @jax.jit
    def update(params, state, tokens):
        def loss(params):
            scores = model.apply(params, tokens[:, :-1])
            each = optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:])
            return each.mean()

        value, gradient = jax.value_and_grad(loss)(params)
        changes, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, changes), state, value

    data = np.random.RandomState(0).randint(0, VOCABULARY, (4, BATCH, LENGTH + 1))
    with jax.default_device(device):
        params = model.init(jax.random.key(0), data[0, :, :-1])
        state = optimizer.init(params)
        losses = []
        for i in range(steps):
            params, state, value = update(params, state, data[i % 4])
            losses.append(value)
    return np.array([float(value) for value in losses])


def test_losses_are_the_same():
    ours, theirs = train(jax.devices("helio")[0]), train(jax.devices("cpu")[0])
    assert theirs[-1] < 0.8 * theirs[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
