"""Writes functions.txt: values of elementary functions, correctly rounded to f64 by mpmath 1.3.0.

Run with Python 3.11 or later and `pip install mpmath==1.3.0`; the output is the same on every machine.
A row is: operation, arguments, results; complex numbers are two words. A word is `nan` or the bits of an f64 in
hexadecimal without trailing zeros. Rows with zeros, infinities and NaN are those of CPython's cmath, which follows
Annex G of C99 where that says something.
"""

import cmath
import math
import random
import struct
import sys

from mpmath import mp, mpc, mpf

mp.prec = 3400  # 1 + 1e-300i needs two thousand bits, and functions lose some
random.seed(1)


def word(x):
    return "nan" if math.isnan(x) else struct.pack(">d", x).hex().rstrip("0") or "0"


def rounded(x):
    """The nearest f64; None where that is infinite or has lost bits to underflow."""
    mantissa, exponent = mp.frexp(x)
    if x == 0:
        return 0.0
    if not -1021 <= exponent <= 1023:
        return None
    return math.ldexp(float(mpf(mantissa)), int(exponent))


REAL = {
    "acos": (mp.acos, lambda x: abs(x) <= 1),
    "acosh": (mp.acosh, lambda x: x >= 1),
    "asin": (mp.asin, lambda x: abs(x) <= 1),
    "asinh": (mp.asinh, None),
    "atan": (mp.atan, None),
    "atanh": (mp.atanh, lambda x: abs(x) < 1),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), None),
    "cosine": (mp.cos, None),
    "cosh": (mp.cosh, lambda x: abs(x) < 711),
    "erf": (mp.erf, lambda x: abs(x) < 10),
    "exponential": (mp.exp, lambda x: abs(x) < 746),
    "exponential-minus-one": (mp.expm1, lambda x: abs(x) < 746),
    "log": (mp.log, lambda x: x > 0),
    "log-plus-one": (mp.log1p, lambda x: x > -1),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), lambda x: abs(x) < 746),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), lambda x: x > 0),
    "sine": (mp.sin, None),
    "sinh": (mp.sinh, lambda x: abs(x) < 711),
    "sqrt": (mp.sqrt, lambda x: x > 0),
    "tan": (mp.tan, None),
    "tanh": (mp.tanh, lambda x: abs(x) < 746),
}

SCALES = [1e-300, 1e-20, 1e-8, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0, 1.001, 1.1, 1.5, 2.0, 3.0, 5.0, 9.0,
          20.0, 36.0, 100.0, 700.0, 709.0, 744.0, 1e5, 1e10, 1e22, 1e300]


def single(x):
    """The nearest f32; x itself outside the range of normal f32."""
    return struct.unpack("f", struct.pack("f", x))[0] if 2**-126 < abs(x) < 2**127 else x


def real_rows():
    for name, (function, domain) in REAL.items():
        for scale in SCALES:
            x = random.choice([1, -1]) * scale * random.choice([1, random.uniform(0.9, 1.1)])
            for x in [single(x), -x]:
                if domain is None or domain(x):
                    y = rounded(function(mpf(x)))
                    if y is not None:
                        print(name, word(x), word(y))


REAL2 = {
    "power": lambda x, y: mp.power(x, y) if x > 0 and abs(y * mp.log(x)) < 700 else None,
    "atan2": lambda x, y: mp.atan2(x, y),
    # What fmod leaves is exact: no rounding, whatever the quotient.
    "remainder": lambda x, y: mp.sign(x) * (abs(x) - abs(y) * mp.floor(abs(x) / abs(y))),
}


def real2_rows():
    for name, function in REAL2.items():
        for _ in range(60):
            x, y = (random.choice([1, -1]) * scale * random.uniform(0.9, 1.1) for scale in random.choices(SCALES, k=2))
            if name == "power":
                x = abs(x)
            for x, y in [(x, y), (single(x), single(y))]:
                z = function(mpf(x), mpf(y))
                z = z if z is None else rounded(z)
                if z is not None:
                    print(name, word(x), word(y), word(z))


def cbrt(z):
    return mp.exp(mp.log(z) / 3)


COMPLEX = {
    "acos": mp.acos,
    "acosh": mp.acosh,
    "asin": mp.asin,
    "asinh": mp.asinh,
    "atan": mp.atan,
    "atanh": mp.atanh,
    "cbrt": cbrt,
    "cosine": mp.cos,
    "cosh": mp.cosh,
    "exponential": mp.exp,
    "exponential-minus-one": lambda z: mp.exp(z) - 1,
    "log": mp.log,
    "log-plus-one": lambda z: mp.log(1 + z),
    "logistic": lambda z: 1 / (1 + mp.exp(-z)),
    "rsqrt": lambda z: 1 / mp.sqrt(z),
    "sign": lambda z: z / abs(z),
    "sine": mp.sin,
    "sinh": mp.sinh,
    "sqrt": mp.sqrt,
    "tan": mp.tan,
    "tanh": mp.tanh,
}
GROWS = {"cosine": 1, "sine": 1, "tan": 1, "cosh": 0, "sinh": 0, "tanh": 0, "exponential": 0, "logistic": 0,
         "exponential-minus-one": 0}
PARTS = [1e-200, 1e-20, 1e-8, 1e-3, 0.3, 0.7, 1 - 2**-30, 1.0, 1 + 2**-30, 1.5, 3.0, 10.0, 30.0, 80.0, 705.0, 1e5, 1e20,
         1e155, 1e200, 1.5e308]


def points(count):
    grid = [(a, b) for a in PARTS for b in PARTS]
    random.shuffle(grid)
    for a, b in grid[:count]:
        x = a if random.random() < 0.3 else a * random.uniform(0.9, 1.1)
        y = b if random.random() < 0.3 else b * random.uniform(0.9, 1.1)
        yield random.choice([x, -x]), random.choice([y, -y])
    # Next to the circle |z| = 1, and around the branch points.
    for _ in range(6):
        angle = random.uniform(-3, 3)
        yield math.cos(angle), math.sin(angle)
        tiny = 10 ** random.uniform(-12, -2)
        yield random.choice([1, -1]) + random.uniform(-1, 1) * tiny, tiny


def complex_rows(count):
    for name, function in COMPLEX.items():
        for x, y in points(count):
            if math.isinf(x) or math.isinf(y) or (name in GROWS and abs([x, y][GROWS[name]]) > 800):
                continue
            if random.random() < 0.5:
                x, y = single(x), single(y)
            z = function(mpc(x, y))
            parts = rounded(z.real), rounded(z.imag)
            if None not in parts:
                print(name, word(x), word(y), *map(word, parts))


def special_rows():
    names = {"cosine": "cos", "exponential": "exp", "sine": "sin"}
    parts = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    for name in ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cosine", "cosh", "exponential", "log", "sine",
                 "sinh", "sqrt", "tan", "tanh"]:
        for x in parts:
            for y in parts:
                if {abs(x), abs(y)} == {1.0}:
                    continue  # nothing special
                if {abs(x), abs(y)} == {math.inf} and name in ["tan", "tanh"]:
                    continue  # the sign of zero is not specified
                if name == "acosh" and x == 0 and math.isnan(y):
                    continue  # C99 and C23 differ
                try:
                    w = getattr(cmath, names.get(name, name))(complex(x, y))
                except ValueError:
                    continue  # what raises an exception is left to the other tests
                print(name, word(x), word(y), word(w.real), word(w.imag))


def complex2_rows():
    """The definition of atan2, which has cuts where x² + y² or the quotient is negative: no row lies on one."""
    for _ in range(150):
        near = random.random() < 0.2
        scales = [random.choice(PARTS[1:-2]) if not near else 1.0 for _ in range(4)]
        parts = [random.choice([1, -1]) * scale * random.uniform(0.9, 1.1) for scale in scales]
        if near:  # Next to a pole, where y is i x or -i x.
            parts[:2] = (part + parts[0] * 10 ** random.uniform(-12, -2) for part in [parts[3], -parts[2]])
        if random.random() < 0.5:
            parts = [single(part) for part in parts]
        y, x = mpc(parts[0], parts[1]), mpc(parts[2], parts[3])
        squares = x * x + y * y
        if squares == 0:
            continue
        z = -1j * mp.log((x + 1j * y) / mp.sqrt(squares))
        results = rounded(z.real), rounded(z.imag)
        if None not in results:
            print("atan2", *map(word, parts), *map(word, results))


print("# Written by functions.py, which says what this is.")
real_rows()
real2_rows()
complex_rows(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
special_rows()
complex2_rows()
