"""Handlers of XLA's foreign function interface: those that are registered for the platform helio with
`jax.ffi`, and, if `HELIO_LAPACK=jaxlib` asks for them, those for LAPACK that jaxlib has for CPUs."""

import ctypes
import os

from jaxlib import lapack, xla_client


def _address(handler):
    """The address in a capsule; of several stages, that of the execution."""
    if isinstance(handler, dict):
        handler = handler["execute"]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(handler, get_name(handler))


def install(platform, library):
    """Has handlers registered with the library."""
    register = ctypes.CDLL(library).helio_register_ffi_handler
    register.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    register.restype = ctypes.c_uint32

    def register_handler(name, handler, platform=platform, api_version=1, traits=0):
        del platform, traits
        name = name.encode() if isinstance(name, str) else name
        if api_version != 1:
            raise NotImplementedError(f"{name}: only handlers of XLA's FFI can be registered")
        if code := register(name, len(name), _address(handler)):
            raise RuntimeError(f"{library} refuses the handler {name}: error code {code}")

    xla_client.register_custom_call_handler(platform, register_handler)
    if os.environ.get("HELIO_LAPACK", "helio") != "jaxlib":
        return  # helio has functions of its own.
    for name, handler, api_version in lapack.registrations().get("cpu", []):
        if api_version == 1:
            register_handler(name, handler)
