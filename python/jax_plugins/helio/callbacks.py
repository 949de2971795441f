"""Calls from compiled programs back into Python: `pure_callback`, `io_callback`, `debug.callback`,
`debug.print`.

Such a call is a custom call of one target, whose attribute `key` says which Python function it means.
The plugin calls `_call_back` with the addresses of the operands and results.
"""

import atexit
import collections
import ctypes
import inspect
import itertools
import traceback
import weakref

import numpy as np

from jax._src import callback as jax_callback
from jax._src import core, dtypes, ffi
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir.dialects import hlo
from jax._src.sharding_impls import SdyArray, SdyArrayList
from jax.interpreters import mlir as public_mlir

TARGET = "helio_python_callback"

# The number of the error code INTERNAL, by which JAX knows a failed callback.
_INTERNAL = 13

_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_size_t,
)

_keys = itertools.count(1)
# The functions by key, as long as the text of a program that calls them lives.
_functions = weakref.WeakValueDictionary()
# Those that programs call which are compiled or still run, and how many such programs.
_held, _holders = {}, collections.Counter()


class _Function:
    """A Python function, and the arrays that it takes and gives; `None` stands for a token. If it is called
    on one device only, its last operand says which one of several is calling."""

    def __init__(self, function, operands, results, device=None):
        self.function = function
        self.operands = operands
        self.results = results
        self.device = device

    def call(self, operands, results):
        """Calls it on the arrays at these addresses, and writes what it gives."""
        if self.device is not None and _copy(operands.pop(), *self.operands[-1]) != self.device:
            return
        arrays = [
            _copy(address, *spec)
            for address, spec in zip(operands, self.operands)
            if spec is not None
        ]
        given = tuple(self.function(*arrays))
        places = [
            (address, spec) for address, spec in zip(results, self.results) if spec is not None
        ]
        if len(given) != len(places):
            raise RuntimeError(
                "Mismatched number of outputs from callback. "
                f"Expected: {len(places)}, Actual: {len(given)}"
            )
        for number, (value, (address, (shape, dtype))) in enumerate(zip(given, places)):
            value = dtypes.canonicalize_value(np.asarray(value))
            if value.shape != shape:
                raise RuntimeError(
                    f"Incorrect output shape for return value #{number}: "
                    f"Expected: {shape}, Actual: {value.shape}"
                )
            if value.dtype != dtype:
                raise RuntimeError(
                    f"Incorrect output dtype for return value #{number}: "
                    f"Expected: {dtype}, Actual: {value.dtype}"
                )
            value = np.ascontiguousarray(value)
            if value.nbytes:
                ctypes.memmove(address, value.ctypes.data, value.nbytes)


def _copy(address, shape, dtype):
    """The array at an address, which is the program's own and is used again after the call."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    data = ctypes.string_at(address, size)
    array = np.frombuffer(data, dtype=dtype).reshape(shape)
    return array


@ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_bool)
def _hold(key, lives):
    if lives and (function := _functions.get(key)):
        _held[key] = function
        _holders[key] += 1
    elif not lives and key in _holders:
        _holders[key] -= 1
        if not _holders[key]:
            del _holders[key], _held[key]


@_SIGNATURE
def _call_back(key, operands, results, message, capacity):
    try:
        function = _functions[key]
        function.call(
            [operands[i] for i in range(len(function.operands))],
            [results[i] for i in range(len(function.results))],
        )
        return 0
    except BaseException:  # No exception may reach the plugin.
        text = f"Python callback failed: {traceback.format_exc()}".encode()[: capacity - 1]
        ctypes.memmove(message, text + b"\0", len(text) + 1)
        return _INTERNAL


def _spec(aval):
    """Shape and type of an array in memory; `None` of a token."""
    if aval is core.abstract_token:
        return None
    aval = core.physical_aval(aval)
    dtype = np.dtype(np.bool_) if aval.dtype == dtypes.float0 else np.dtype(aval.dtype)
    return tuple(aval.shape), dtype


def _with_token(sharding):
    """The shardings of a call's results, if they are said one by one, with one of a token before them."""
    if not isinstance(sharding, SdyArrayList):
        return sharding
    devices = sharding.shardings[0].logical_device_ids
    token = SdyArray(mesh_shape=(), dim_shardings=(), logical_device_ids=devices)
    return SdyArrayList((token, *sharding.shardings))


def _only_device(ctx, sharding):
    """Which of several devices a call is for, if it is for one."""
    if getattr(ctx.module_context.axis_context, "num_devices", 1) == 1:
        return None
    if isinstance(sharding, SdyArrayList):
        devices = sharding.shardings[0].logical_device_ids
    elif isinstance(sharding, xla_client.OpSharding):
        is_one = sharding.type == xla_client.OpSharding.Type.MAXIMAL
        devices = sharding.tile_assignment_devices if is_one else ()
    else:
        devices = ()
    return devices[0] if devices and len(devices) == 1 else None


def _emit(
    ctx,
    callback,
    token,
    operands,
    operand_avals,
    result_avals,
    *,
    has_side_effect,
    returns_token=True,
    partitioned=False,
    sharding=None,
):
    """What JAX's `emit_python_callback` does, for the platform helio."""
    del returns_token
    if partitioned and result_avals:
        raise ValueError("Partitioned callback not supported with return values.")
    avals_in, avals_out = list(operand_avals), list(result_avals)
    operands = list(operands)
    # Every device of several does a call. Of what it gives, each needs its own.
    device = None if partitioned or avals_out else _only_device(ctx, sharding)
    if device is not None:
        operands.append(hlo.partition_id())
        avals_in.append(core.ShapedArray((), np.uint32))
    if token:
        operands = [token, *operands]
        if avals_out:
            sharding = _with_token(sharding)
        avals_in, avals_out = [core.abstract_token, *avals_in], [core.abstract_token, *avals_out]
    function = _Function(
        callback, [_spec(a) for a in avals_in], [_spec(a) for a in avals_out], device
    )
    key = next(_keys)
    _functions[key] = function
    ctx.module_context.add_keepalive(function)
    # JAX then waits in `effects_barrier` for a program of whose results nobody asks, and raises its errors.
    ctx.module_context.add_host_callback(callback)
    lower = ffi.build_ffi_lowering_function(TARGET, has_side_effect=has_side_effect)
    call = lower(
        ctx.replace(avals_in=avals_in, avals_out=avals_out), *operands, key=np.uint64(key)
    )
    if sharding is not None:
        # JAX 0.9 sets it without the context.
        takes_context = len(inspect.signature(mlir.set_sharding).parameters) == 3
        mlir.set_sharding(*[ctx.module_context][:takes_context], call, sharding)
    results = list(call.results)
    if token:
        token, *results = results
    return results, token, None


def install(platform, library):
    """Registers the target with the library, and the lowering with JAX."""
    plugin = ctypes.CDLL(library)
    register = plugin.helio_register_callback
    register.argtypes = [ctypes.c_char_p, ctypes.c_size_t, _SIGNATURE]
    register.restype = ctypes.c_uint32
    if code := register(TARGET.encode(), len(TARGET), _call_back):
        raise RuntimeError(f"{library} refuses the callback: error code {code}")
    plugin.helio_register_hold.restype = None
    plugin.helio_register_hold(_hold)
    # Programs may end later than Python.
    atexit.register(plugin.helio_register_hold, None)
    of_jax = jax_callback.emit_python_callback

    def emit_python_callback(ctx, *args, **kwargs):
        ours = tuple(ctx.module_context.platforms) == (platform,)
        return (_emit if ours else of_jax)(ctx, *args, **kwargs)

    jax_callback.emit_python_callback = emit_python_callback
    # Where libraries find it.
    public_mlir.emit_python_callback = emit_python_callback
