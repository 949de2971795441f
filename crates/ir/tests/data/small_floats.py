"""Writes small_floats.txt: what ml_dtypes 0.6.0 and exact arithmetic say of conversions to narrow floats.

Run with Python 3.11 or later and `pip install numpy ml_dtypes==0.6.0`; the output is the same on every machine.
"""

from fractions import Fraction
import math
import struct

import ml_dtypes
import numpy as np

TYPES = {
    "f4e2m1fn": (ml_dtypes.float4_e2m1fn, 4),
    "f8e3m4": (ml_dtypes.float8_e3m4, 8),
    "f8e4m3": (ml_dtypes.float8_e4m3, 8),
    "f8e4m3fn": (ml_dtypes.float8_e4m3fn, 8),
    "f8e4m3b11fnuz": (ml_dtypes.float8_e4m3b11fnuz, 8),
    "f8e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 8),
    "f8e5m2": (ml_dtypes.float8_e5m2, 8),
    "f8e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 8),
    "f8e8m0fnu": (ml_dtypes.float8_e8m0fnu, 8),
}


def hex64(x):
    return struct.pack(">d", x).hex().rstrip("0") or "0"


def encode(dtype, x):
    return int(np.array([x], np.float32).astype(dtype).view(np.uint8)[0])


def small():
    for name, (dtype, bits) in TYPES.items():
        codes = np.arange(1 << bits, dtype=np.uint8).view(dtype)
        decoded = codes.astype(np.float32)
        # The sign and payload of NaN are nobody's promise.
        words = ["nan" if np.isnan(x) else f"{x.view(np.uint32):x}" for x in decoded]
        print(name, "decode", *words)
        finite = sorted({abs(float(x)) for x in decoded if np.isfinite(x)})
        top = 2 * finite[-1] - finite[-2]  # where the next number would be
        # Pairs of an input and the one to ask ml_dtypes about: it rounds f64 to f32 first, so next to
        # a tie it is asked about the next f32, which lies on the same side.
        inputs = []
        for low, high in zip(finite, finite[1:] + [top]):
            if 0 < low < 2.0**-126:
                continue  # f8e8m0fnu: ml_dtypes rounds subnormal f32 up, whatever is nearest
            middle = np.float32((low + high) / 2)
            inputs += [(low, low), (middle, middle)]
            for side in [0, np.inf]:
                inputs.append((math.nextafter(middle, side), np.nextafter(middle, np.float32(side))))
        inputs += [(x, x) for x in [top, 4 * top, 3e38, 1e-45, math.inf]]
        inputs += [(-x, -asked) for x, asked in inputs[:8] + inputs[-16:]]
        words = [f"{hex64(x)}:{encode(dtype, asked):x}" for x, asked in inputs]
        print(name, "encode", *words)


def round_to(x, mantissa, min_exponent, max_exponent):
    """The nearest number of an IEEE format to a Fraction, ties to even, as a Fraction or infinity."""
    if x == 0:
        return Fraction(0)
    exponent = 0
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, min_exponent) - mantissa)
    rounded = round(x / unit) * unit  # Python rounds halves to even
    if abs(rounded) >= Fraction(2) ** (max_exponent + 1):
        return math.inf if x > 0 else -math.inf
    return rounded


FORMATS = {"f16": (10, -14, 15), "bf16": (7, -126, 127), "f32": (23, -126, 127)}


def wide():
    """Inputs that two roundings, first to f32 or f64, would get wrong, and others."""
    for name, (mantissa, low, high) in FORMATS.items():
        integers, floats = [], []
        for exponent in [mantissa + 2, 24, 25, 26, 31, 40, 52, 53, 54, 55, 62]:
            unit = 1 << (exponent - mantissa) if exponent > mantissa else 1
            for odd in [0, 1]:
                tie = (1 << exponent) + odd * unit + unit // 2
                for step in [-1, 0, 1]:
                    for sign in [1, -1]:
                        value = sign * (tie + step)
                        if -(1 << 63) <= value < 1 << 63:
                            integers.append(value)
        for exponent in [low - mantissa - 1, low - mantissa, low - 1, low, -3, 0, high - 1, high]:
            unit = Fraction(2) ** (max(exponent, low) - mantissa)
            for odd in [0, 1]:
                tie = float(Fraction(2) ** exponent // unit * unit + odd * unit + unit / 2)
                floats += [math.nextafter(tie, 0), tie, math.nextafter(tie, math.inf), -tie]
        top = float((2 - Fraction(1, 2 ** (mantissa + 1))) * Fraction(2) ** high)
        floats += [top, math.nextafter(top, 0), -top, 1e300, 5e-324]
        result = lambda x: hex64(float(round_to(Fraction(x), mantissa, low, high)))
        print(name, "from_s64", *(f"{x}:{result(x)}" for x in sorted(set(integers))))
        print(name, "from_f64", *(f"{hex64(x)}:{result(x)}" for x in sorted(set(floats))))


print("# Written by small_floats.py, which says what this is. f64 as hexadecimal bits without trailing zeros.")
small()
wide()
