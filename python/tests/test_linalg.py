"""Linear algebra, by whoever serves LAPACK's names: helio itself, or the handlers of jaxlib."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_decompositions(dtype):
    random = np.random.RandomState(0)
    a = random.randn(3, 5, 5).astype(dtype)
    if dtype == "complex64":
        a = a + 1j * random.randn(3, 5, 5).astype("float32")
    hermitian = a + np.swapaxes(a.conj(), -1, -2)
    values, vectors = jax.jit(jnp.linalg.eigh)(hermitian)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(hermitian), rtol=1e-4, atol=1e-4)
    back = (vectors * values[:, None, :]) @ np.swapaxes(vectors.conj(), -1, -2)
    np.testing.assert_allclose(back, hermitian, rtol=1e-4, atol=1e-4)
    u, s, v = jax.jit(lambda a: jnp.linalg.svd(a, full_matrices=False))(a)
    np.testing.assert_allclose((u * s[:, None, :]) @ v, a, rtol=1e-4, atol=1e-4)
    q, r = jax.jit(jnp.linalg.qr)(a)
    np.testing.assert_allclose(q @ r, a, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jnp.linalg.inv(a) @ a, np.broadcast_to(np.eye(5), a.shape), atol=1e-3)


def test_eigenvalues_of_any_matrix():
    a = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
    values = np.sort_complex(np.asarray(jnp.linalg.eigvals(a)))
    np.testing.assert_allclose(values, [-1j, 1j], atol=1e-6)
