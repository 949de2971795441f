"""A small network and its training step, as files of jax.export for any batch size.

    python model.py

wrote predict.jax and step.jax with jax 0.10.2 and jaxlib 0.10.2.
"""

import pathlib

import jax
import jax.numpy as jnp
from jax import export


def predict(params, x):
    for layer in params["hidden"]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params["out"]["w"] + params["out"]["b"]


def step(params, x, y, *, rate):
    """One step of gradient descent on the mean squared error: the new parameters and the loss."""
    loss = lambda params: jnp.mean((predict(params, x) - y) ** 2)
    value, gradients = jax.value_and_grad(loss)(params)
    updated = jax.tree.map(lambda p, g: p - rate * g, params, gradients)
    return {"params": updated, "loss": value}


def layer(inputs, outputs):
    f32 = jnp.float32
    return {
        "w": jax.ShapeDtypeStruct((inputs, outputs), f32),
        "b": jax.ShapeDtypeStruct((outputs,), f32),
    }


if __name__ == "__main__":
    (batch,) = export.symbolic_shape("batch")
    params = {"hidden": [layer(1, 16), layer(16, 16)], "out": layer(16, 1)}
    x = jax.ShapeDtypeStruct((batch, 1), jnp.float32)
    rate = jax.ShapeDtypeStruct((), jnp.float32)
    here = pathlib.Path(__file__).parent
    for name, exported in {
        "predict": export.export(jax.jit(predict), platforms=["cpu", "tpu"])(params, x),
        "step": export.export(jax.jit(step))(params, x, x, rate=rate),
    }.items():
        (here / f"{name}.jax").write_bytes(exported.serialize())
