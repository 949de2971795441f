"""Several processes, which jax.distributed connects. Each test starts them anew, on this file itself."""

import os
import signal
import socket
import subprocess
import sys

import pytest


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def start(parts, size, devices=1):
    """The exit status of each of so many processes, and what it writes, when they do these parts."""
    arguments = [sys.executable, __file__, parts, str(size), str(free_port())]
    environment = dict(os.environ, JAX_PLATFORMS="helio", HELIO_DEVICES=str(devices), HELIO_THREADS="1")
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen([*arguments, str(rank)], env=environment, stdout=pipe, stderr=pipe, text=True)
        for rank in range(size)
    ]
    try:
        ends = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *end) for process, end in zip(processes, ends)]


def passes(part, size, devices=1):
    for status, out, err in start(part, size, devices):
        assert (status, out) == (0, "done\n"), err


@pytest.mark.parametrize("parts, size, devices", [("programs orders training", 2, 2), ("programs subset", 3, 1)])
def test_programs_run_on_the_devices_of_several_processes(parts, size, devices):
    for status, out, err in start(parts, size, devices):
        assert (status, out) == (0, "done\n"), err


def test_a_process_that_is_killed_ends_the_wait_of_others():
    *others, (status, _, _) = start("killed", 3)
    assert status == -signal.SIGKILL
    for _, out, err in others:
        assert "UNAVAILABLE" in out and "waits in all-reduce" in out and "process 2" in out, err
        assert out.endswith("done\n"), err


class Parts:
    """What each process does with its devices and those of the others."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def mesh(self, shape, names, devices=None):
        devices = jax.devices() if devices is None else devices
        return jax.sharding.Mesh(np.array(devices).reshape(shape), names)

    def spread(self, x, mesh, *spec):
        sharding = NamedSharding(mesh, P(*spec))
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    def programs(self):
        count = len(jax.devices())
        assert jax.process_count() == self.size and jax.process_index() == self.rank
        assert len(jax.local_devices()) * self.size == count
        assert [d.process_index for d in jax.devices()] == sorted(d.process_index for d in jax.devices())
        mesh = self.mesh(count, ("x",))
        x = np.arange(count * 6.0, dtype=np.float32).reshape(count * 2, 3)
        a = self.spread(x, mesh, "x")
        everywhere = NamedSharding(mesh, P())
        np.testing.assert_array_equal(jax.jit(jnp.sum)(a), x.sum())
        product = jax.jit(lambda a: a @ a.T, out_shardings=everywhere)(a)
        np.testing.assert_allclose(product, x @ x.T, rtol=1e-6)
        spread = lambda f, out: jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out))
        total = spread(lambda a: jax.lax.psum(a, "x"), P())(a)
        np.testing.assert_array_equal(total, x.reshape(count, 2, 3).sum(0))
        turn = [(i, (i + 1) % count) for i in range(count)]
        turned = spread(lambda a: jax.lax.ppermute(a, "x", turn), P("x"))(a)
        turned = multihost_utils.process_allgather(turned, tiled=True)
        np.testing.assert_array_equal(turned, np.roll(x, 2, axis=0))
        y = np.arange(count * count * 2.0).reshape(count * count, 2).astype(np.float32)
        swap = lambda a: jax.lax.all_to_all(a, "x", 0, 0, tiled=True)
        swapped = multihost_utils.process_allgather(spread(swap, P("x"))(self.spread(y, mesh, "x")), tiled=True)
        np.testing.assert_array_equal(swapped, y.reshape(count, count, 2).swapaxes(0, 1).reshape(y.shape))
        ranks = multihost_utils.process_allgather(np.array([self.rank]))
        assert list(ranks.ravel()) == list(range(self.size))
        assert multihost_utils.broadcast_one_to_all(np.int32(self.rank + 7)) == 7
        multihost_utils.assert_equal(np.ones(3), "different")
        multihost_utils.sync_global_devices("end")
        # What is larger than a connection takes at once, in both directions, many times.
        big = self.spread(np.ones((count, 1 << 20), np.float32), mesh, "x")
        for _ in range(5):
            assert spread(lambda a: jax.lax.psum(a, "x"), P())(big)[0, 5] == count
        # An array of another process alone.
        elsewhere = jax.devices()[(self.rank + 1) % self.size * len(jax.local_devices())]
        away = jnp.zeros(3, device=elsewhere) + 1
        assert away.shape == (3,) and not away.is_fully_addressable and not away.addressable_shards

    def orders(self):
        x = np.arange(24.0).reshape(4, 6).astype(np.float32)
        for order in ([0, 2, 1, 3], [3, 0, 2, 1], [2, 3, 0, 1]):
            mesh = self.mesh((2, 2), ("x", "y"), [jax.devices()[i] for i in order])
            a, b = self.spread(x, mesh, "x", "y"), self.spread(x, mesh, "y", None)
            f = jax.jit(lambda a, b: (a @ b.T, a.sum(0), b[::-1]), out_shardings=NamedSharding(mesh, P()))
            for found, wanted in zip(f(a, b), (x @ x.T, x.sum(0), x[::-1])):
                np.testing.assert_allclose(found, wanted, rtol=1e-6)
            f = jax.shard_map(lambda a: jax.lax.all_gather(a, "x", tiled=True), mesh=mesh, in_specs=P("x", "y"),
                              out_specs=P(None, "y"), check_vma=False)
            gathered = jax.jit(f, out_shardings=NamedSharding(mesh, P()))(a)
            np.testing.assert_array_equal(gathered, x)

    def subset(self):
        devices = [jax.devices()[2], jax.devices()[0]]
        for step in range(4):
            if self.rank != 1:
                mesh = self.mesh(2, ("x",), devices)
                a = self.spread(np.array([1.0, 2.0 + step], np.float32), mesh, "x")
                assert jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))(a) == 3 + step
            # Each process for itself, and all together, in between.
            assert jnp.arange(5 + self.rank).sum() == sum(range(5 + self.rank))
            ranks = multihost_utils.process_allgather(np.array([self.rank * step]))
            assert list(ranks.ravel()) == [0, step, 2 * step]

    def training(self):
        """The losses of data in parallel are those of one device."""
        keys = jax.random.split(jax.random.key(0), 4)
        parameters = {"a": jax.random.normal(keys[0], (8, 32)) / 3, "b": jax.random.normal(keys[1], (32, 1)) / 6}
        x, y = np.array(jax.random.normal(keys[2], (64, 8))), np.array(jax.random.normal(keys[3], (64, 1)))

        def loss(p, x, y):
            return jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"] - y) ** 2)

        @jax.jit
        def step(p, x, y):
            value, slope = jax.value_and_grad(loss)(p, x, y)
            return jax.tree.map(lambda p, g: p - 0.1 * g, p, slope), value

        alone, expected = jax.tree.map(np.array, parameters), []
        for _ in range(30):
            alone, value = step(alone, x, y)
            expected.append(float(value))
        mesh = self.mesh(len(jax.devices()), ("batch",))
        together = jax.tree.map(lambda p: self.spread(np.array(p), mesh), parameters)
        a, b = self.spread(x, mesh, "batch"), self.spread(y, mesh, "batch")
        for wanted in expected:
            together, value = step(together, a, b)
            np.testing.assert_allclose(float(value), wanted, rtol=1e-5)
        assert expected[-1] < 0.7 * expected[0]

    def killed(self):
        mesh = self.mesh(self.size, ("x",))
        a = self.spread(np.ones(self.size, np.float32), mesh, "x")
        total = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
        assert total(a) == self.size
        if self.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            for _ in range(1000):
                total(a).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            print(error)
        assert jnp.arange(3).sum() == 3
        print("done", flush=True)
        # The service would end the process for the one that is lost.
        os._exit(0)


if __name__ == "__main__":
    parts, size, port, rank = sys.argv[1], *map(int, sys.argv[2:])
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import multihost_utils
    from jax.sharding import NamedSharding, PartitionSpec as P

    jax.distributed.initialize(f"localhost:{port}", size, rank)
    for part in parts.split():
        getattr(Parts(rank, size), part)()
    print("done", flush=True)
