"""Libraries that ask on which platform a device is, and know none but those of JAX's own.

MuJoCo's MJX, and so brax, chooses by it how to compute. On helio it computes as on a CPU.
"""

import functools
import importlib.abc
import importlib.machinery
import sys


def _as_on_cpu(function, platform):
    """A function of a device that is given a CPU in place of a device of the platform."""

    @functools.wraps(function)
    def ask(device, *args, **kwargs):
        if getattr(device, "platform", None) == platform:
            import jax

            device = jax.devices("cpu")[0]
        return function(device, *args, **kwargs)

    return ask


# By module: the functions that ask.
_ASKING = {"mujoco.mjx._src.io": ("_resolve_impl",)}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Has modules changed as soon as they have been imported."""

    def __init__(self, changes):
        self.changes = changes

    def find_spec(self, name, path=None, target=None):
        change = self.changes.get(name)
        spec = change and importlib.machinery.PathFinder.find_spec(name, path, target)
        if not spec or not spec.loader:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


def after_import(changes):
    """Calls functions, by the names of modules, with these modules: at once with those that are there, with others
    when a program imports them."""
    for name, change in changes.items():
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, _AfterImport(changes))


def install(platform):
    """Has libraries that ask for the platform answered as on a CPU."""

    def change(module):
        for name in _ASKING[module.__name__]:
            function = getattr(module, name, None)
            if function is not None:
                setattr(module, name, _as_on_cpu(function, platform))

    after_import(dict.fromkeys(_ASKING, change))
