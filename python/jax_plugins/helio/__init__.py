"""JAX on helio: importing JAX with this package installed offers the platform `helio`.

    JAX_PLATFORMS=helio python train.py

JAX calls `initialize` by itself. What helio does not do otherwise than XLA's CPU back end needs
nothing here: the rest is the library next to this file.
"""

import os
import pathlib

PLATFORM = "helio"


def library_path():
    """The plugin: the library next to this file, unless HELIO_LIBRARY names another."""
    named = os.environ.get("HELIO_LIBRARY")
    return named or str(pathlib.Path(__file__).with_name("libhelio_pjrt.so"))


def initialize():
    """Registers the platform with JAX, and its lowering rules, callbacks and handlers, and tells libraries of it."""
    from jax._src import config, xla_bridge
    from jax._src.interpreters import mlir

    from . import callbacks, handlers, libraries, rules

    path = library_path()
    # JAX's own callbacks hand arrays on through its CPU platform.
    if config.jax_platforms.value == PLATFORM:
        config.update("jax_platforms", f"{PLATFORM},cpu")
    xla_bridge.register_plugin(PLATFORM, priority=500, library_path=path)
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)
    rules.install(PLATFORM)
    callbacks.install(PLATFORM, path)
    handlers.install(PLATFORM, path)
    libraries.install(PLATFORM)
