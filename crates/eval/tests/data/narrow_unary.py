"""Writes narrow_unary.txt: what unary operations do to every value of floats of up to 16 bits, by NumPy and SciPy.

Run with Python 3.11 or later and `pip install numpy==2.4.6 scipy==1.17.1 ml_dtypes==0.6.0`. A row is: type, operation,
and the FNV-1a hash of all results in the order of the operands' codes, two bytes each, low byte first, NaN as ffff.
Functions are evaluated in f64; no result lies near enough to a tie for the last bits of that to matter.
"""

import ml_dtypes
import numpy as np
import scipy.special

np.seterr(all="ignore")

# Type, bits, what overflow gives.
TYPES = {
    "f4e2m1fn": (ml_dtypes.float4_e2m1fn, 4, "max"),
    "f8e3m4": (ml_dtypes.float8_e3m4, 8, "inf"),
    "f8e4m3": (ml_dtypes.float8_e4m3, 8, "inf"),
    "f8e4m3fn": (ml_dtypes.float8_e4m3fn, 8, "nan"),
    "f8e4m3b11fnuz": (ml_dtypes.float8_e4m3b11fnuz, 8, "nan"),
    "f8e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 8, "nan"),
    "f8e5m2": (ml_dtypes.float8_e5m2, 8, "inf"),
    "f8e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 8, "nan"),
    "f8e8m0fnu": (ml_dtypes.float8_e8m0fnu, 8, "nan"),
    "f16": (np.float16, 16, "inf"),
    "bf16": (ml_dtypes.bfloat16, 16, "inf"),
}

OPS = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cosine": np.cos,
    "cosh": np.cosh,
    "erf": scipy.special.erf,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "floor": np.floor,
    "imag": lambda x: 0 * np.ones_like(x),
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "negate": np.negative,
    "real": lambda x: x,
    "round-nearest-afz": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "round-nearest-even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


def encoder(name, dtype, bits, overflow):
    """From f64 to codes: looks for the place between neighbours, ties to the even code."""
    codes = np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)
    values = codes.view(dtype).astype(np.float64)
    unsigned = name == "f8e8m0fnu"
    no_negative_zero = name.endswith("fnuz")
    half = len(codes) if unsigned else len(codes) // 2
    finite = values[:half][np.isfinite(values[:half])]
    top = 2 * finite[-1] - finite[-2] if not unsigned else 2 * finite[-1]
    ladder = np.append(finite, top)
    middles = (ladder[:-1] + ladder[1:]) / 2

    def encode(x):
        magnitude = np.abs(x)
        code = np.searchsorted(middles, magnitude, side="left")
        tie = (code < len(middles)) & (middles[np.minimum(code, len(middles) - 1)] == magnitude)
        up = np.ones_like(code, bool) if unsigned else code % 2 == 1
        code = np.where(tie & up, code + 1, code)
        out = code >= len(finite)
        nan = np.isnan(x)
        if unsigned:
            nan |= x <= 0
        if overflow == "nan":
            nan |= out
        elif overflow == "max":
            code = np.minimum(code, len(finite) - 1)
        else:
            code = np.minimum(code, len(finite))  # infinity comes next
        if not unsigned:
            negative = np.signbit(x) & ~((code == 0) & no_negative_zero)
            code = np.where(negative, code + half, code)
        # Without a NaN, -0 takes its place.
        return np.where(nan, 8 if overflow == "max" else 0xFFFF, code).astype(np.uint16)

    return values, encode


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


print("# Written by narrow_unary.py, which says what this is.")
for name, (dtype, bits, overflow) in TYPES.items():
    values, encode = encoder(name, dtype, bits, overflow)
    for op, function in OPS.items():
        print(name, op, f"{fnv1a(encode(function(values)).astype('<u2').tobytes()):016x}")
    # is-finite is not a float.
    print(name, "is-finite", f"{fnv1a(np.isfinite(values).astype('<u2').tobytes()):016x}")
