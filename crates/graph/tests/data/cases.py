# Other shapes, parts, larger tensors.
def movement(name, calls, function):
    case("movement", name, calls, function)


movement("reshape", one((2, 4, 3), (0, 4, 3), (5, 4, 3)), lambda x: x.reshape(x.shape[0] * 2, 6))
movement("reshape_scalar", one((1, 1)), lambda x: x.reshape(()))
movement("flatten", one((2, 3), (7, 3), (0, 3)), lambda x: x.ravel())
movement("transpose", one((2, 3, 5), (1, 3, 7)), lambda x: x.transpose(2, 0, 1))
movement("t", one((2, 3, 5), (1, 3, 0)), lambda x: x.T)
movement("swap_axes", one((2, 3, 5), (4, 3, 1)), lambda x: x.swapaxes(0, -1))
movement("move_axis", one((2, 3, 5, 7), (1, 3, 5, 2)), lambda x: [np.moveaxis(x, 0, 2), np.moveaxis(x, -1, 1)])
movement("squeeze", one((1, 3, 1)), lambda x: [x.squeeze(), x.squeeze(0), x.squeeze((0, -1))])
movement("expand_dims", one((2, 3), (1, 3)), lambda x: [x[None], x[:, None], x[..., None]])
movement("flip", one((2, 3), (5, 3), (0, 3)), lambda x: [np.flip(x, 0), np.flip(x, (0, 1)), np.flip(x)])
for dtype in [bool, np.int8, np.uint64, np.float16, bf16, np.float64, np.complex64, e4m3]:
    movement(f"types_{name_of(dtype)}", one((3, 5), (1, 5), dtype=dtype), lambda x: [
        x[::-1, 1:-1], x.T, np.concatenate([x, x]), np.tile(x, (2, 1)), np.tril(x), np.roll(x, 1, 1),
    ])

SLICES = {
    "front": slice(None, 3), "back": slice(-2, None), "inner": slice(1, -1), "beyond": slice(2, 100),
    "empty": slice(5, 2), "far": slice(-100, 2), "every": slice(None, None, 2), "every_from": slice(1, None, 3),
    "reverse": slice(None, None, -1), "reverse_every": slice(None, None, -2), "down": slice(5, 1, -2),
    "down_far": slice(100, -100, -3), "down_empty": slice(1, 5, -1), "up_to_last": slice(2, 7),
}
for name, s in SLICES.items():
    movement(f"slice_{name}", one((7, 2)), lambda x: x[s])
for name in ["inner", "every", "every_from", "reverse", "reverse_every"]:
    movement(f"symbolic_{name}", one((7, 2), (2, 2), (5, 2)), lambda x: x[SLICES[name]])
movement("symbolic_front", one((7, 2), (3, 2)), lambda x: x[:3])
movement("symbolic_down", one((7, 2), (6, 2)), lambda x: x[5:1:-2])
movement("symbolic_back", one((7, 2), (2, 2)), lambda x: x[-2:])
movement("symbolic_bound", one((7, 2), (4, 2)), lambda x: [x[: x.shape[0] - 3], x[x.shape[0] // 2 :], x[x.shape[0] // 2]])
BOUNDS = [-6, -5, -1, 0, 2, 5, 6]
movement("slice_all", one((5,), (1,), (0,), dtype=np.int32), lambda x: np.concatenate(
    [x[a:b:s] for a in [None, *BOUNDS] for b in [None, *BOUNDS] for s in (1, 2, -1, -3)]
    + [np.int32([len(x[a:b:s]) for a in [None, *BOUNDS] for b in [None, *BOUNDS] for s in (1, 2, -1, -3)])]
))
movement("index", one((4, 3, 2), (1, 3, 2)), lambda x: [x[0], x[:, -1], x[-1, :, 1], x[0, 0, 0], x[:, 1:, ::-1]])
movement("split", one((4, 6), (2, 6)), lambda x: np.split(x, 3, 1))
movement("split_symbolic", one((4, 6), (0, 6)), lambda x: np.split(x, 2, 0))
movement("split_sizes", one((2, 7), (5, 7)), lambda x: np.split(x, [1, 5, 5], 1))
movement("array_split", one((7, 2), (3, 2), (1, 2), (8, 2)), lambda x: np.array_split(x, 3))

movement("concat", [[ramp(2, 3), ramp(2, 5), ramp(2, 1)], [ramp(7, 3), ramp(7, 0), ramp(7, 1)]], lambda *x: np.concatenate(x, 1))
movement("concat_types", [[ramp(2, dtype=np.int8), ramp(3, dtype=np.float16), ramp(1, dtype=bool)]], lambda *x: np.concatenate([y.astype(np.float16) for y in x]))
movement("stack", [[ramp(2, 3), ramp(2, 3, seed=5)], [ramp(1, 3), ramp(1, 3, seed=4)]], lambda *x: [np.stack(x), np.stack(x, -1), np.stack(x, 1)])
movement("pad", one((3, 4), (0, 4), (1, 4)), lambda x: np.pad(x, ((0, 2), (1, 3)), constant_values=9))
movement("crop", one((3, 4), (2, 4)), lambda x: np.asarray(lax.pad(x, np.float32(0), ((-1, 2, 0), (1, -3, 0)))))
movement("pad_interior", one((3, 4), (1, 4)), lambda x: np.asarray(lax.pad(x, np.float32(-1), ((1, 0, 2), (0, -1, 1)))))
movement("pad_edge", one((3, 4), (1, 4)), lambda x: np.pad(x, ((2, 0), (1, 3)), mode="edge"))
movement("pad_reflect", one((3, 5), (4, 5)), lambda x: np.pad(x, ((2, 0), (4, 1)), mode="reflect"))
movement("tile", one((3, 2), (1, 2), (0, 2)), lambda x: [np.tile(x, (2, 3)), np.tile(x, 2), np.tile(x, (2, 1, 1)), np.tile(x, (0, 1))])
movement("repeat", one((3, 2), (1, 2), (0, 2)), lambda x: [np.repeat(x, 2, 0), np.repeat(x, 3, 1), np.repeat(x, 0, 0)])
movement("roll", one((3, 5), (1, 5), (0, 5)), lambda x: [np.roll(x, 2, 0), np.roll(x, -1, 1), np.roll(x, 7, 1), np.roll(x, 0, 0)])
movement("triangles", one((3, 5), (7, 5), (0, 5)), lambda x: [np.tril(x), np.triu(x), np.tril(x, 1), np.triu(x, -2), np.tril(x, -100)])
movement("diagonal", one((3, 5), (5, 3), (1, 1), (0, 2)), lambda x: [np.diagonal(x, k) for k in (0, 1, -2, 9)])
movement("diagonal_square", one((2, 3, 3), (2, 5, 5)), lambda x: [np.diagonal(x, k, -2, -1) for k in (0, 1, -2)] + [np.trace(x, axis1=-2, axis2=-1)])
movement("creation", one((3,), (1,), (0,)), lambda x: [
    np.zeros((x.size, 2), np.int8), np.ones(x.size, np.complex64), np.full((2, x.size), 2.5, np.float16),
    np.full(x.size, True), np.arange(x.size, dtype=bf16), np.arange(2, x.size + 5, 3), np.arange(x.size + 1, -2, -2, dtype=np.float32),
    np.linspace(-1, 2.5, x.size, dtype=np.float32), np.eye(x.size, dtype=np.uint8), np.indices((2, x.size))[1].astype(np.int32),
])


# Products.
def product(name, calls, function, tolerance=0.0):
    case("product", name, calls, function, tolerance)


def pairs(*shapes, dtype=np.float32):
    return [[ramp(*a, dtype=dtype), ramp(*b, dtype=dtype, seed=5)] for a, b in shapes]


for name, shapes in {
    "matrices": [((2, 3), (3, 5)), ((7, 3), (3, 5)), ((0, 3), (3, 5)), ((1, 3), (3, 5))],
    "inner": [((3,), (3,)), ((0,), (0,)), ((7,), (7,))],
    "row": [((3,), (3, 5)), ((1,), (1, 5))],
    "column": [((2, 3), (3,)), ((7, 3), (3,))],
    "row_batch": [((3,), (2, 3, 5)), ((3,), (4, 3, 5))],
    "column_batch": [((2, 7, 3), (3,)), ((1, 7, 3), (3,))],
    "batch": [((2, 3, 4), (2, 4, 5)), ((7, 3, 4), (7, 4, 5)), ((0, 3, 4), (0, 4, 5))],
    "batch_left": [((2, 3, 4), (4, 5)), ((7, 3, 4), (4, 5))],
    "batch_right": [((3, 4), (2, 4, 5)), ((3, 4), (7, 4, 5))],
    "stretch": [((2, 1, 3, 4), (5, 4, 2)), ((3, 1, 3, 4), (5, 4, 2))],
    "stretch_both": [((2, 1, 3, 4), (1, 5, 4, 2)), ((3, 1, 3, 4), (1, 1, 4, 2))],
    "empty_sum": [((2, 0), (0, 3)), ((1, 0), (0, 3))],
    "heads": [((2, 3, 5, 4), (2, 3, 4, 5)), ((1, 3, 7, 4), (1, 3, 4, 7))],
}.items():
    product(name, pairs(*shapes), lambda a, b: np.asarray(np.matmul(a, b)))
for dtype in [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float64, np.complex64, np.complex128]:
    product(f"types_{name_of(dtype)}", pairs(((3, 17), (17, 5)), ((1, 17), (17, 5)), dtype=dtype), np.matmul)
for dtype in [np.float16, bf16, e4m3, e5m2]:
    calls = [[(ramp(3, 700) * 0.25).astype(dtype), (ramp(700, 2, seed=5) * 0.125 + 0.5).astype(dtype)]]
    calls = [[a.reshape(3, -1)[:, :count], b[:count]] for a, b in calls for count in (700, 5)]
    product(f"types_{name_of(dtype)}", calls, lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32).astype(dtype))
product("promoted", [[ramp(2, 3, dtype=np.int8), ramp(3, 2)]], lambda a, b: np.matmul(a.astype(np.float32), b))
product("dot", pairs(((2, 3), (4, 3, 5)), ((7, 3), (4, 3, 5))), np.dot)
product("dot_vectors", pairs(((3,), (3,)), ((5,), (5,))), lambda a, b: np.asarray(np.dot(a, b)))
product("dot_column", pairs(((2, 2, 3), (3,)), ((1, 2, 3), (3,))), np.dot)
product("dot_scalar", pairs(((2, 3), ()), ((1, 3), ())), np.dot)
product("tensordot", pairs(((2, 3, 4), (4, 2, 5)), ((7, 3, 4), (4, 7, 5))), lambda a, b: np.tensordot(a, b, ((0, 2), (1, 0))))
product("tensordot_none", pairs(((2, 3), (4,)), ((1, 3), (4,))), lambda a, b: np.tensordot(a, b, 0))
product("outer", pairs(((2, 3), (4,)), ((1, 3), (4,)), ((0, 3), (4,))), np.outer)

for name, formula, shapes in [
    ("matmul", "ij,jk->ik", [((2, 3), (3, 5)), ((7, 3), (3, 5))]),
    ("matmul_implied", "ij,jk", [((2, 3), (3, 5)), ((7, 3), (3, 5))]),
    ("implied_order", "ba,cb", [((2, 3), (5, 2)), ((7, 3), (5, 7))]),
    ("transposed", "ij,kj->ki", [((2, 3), (5, 3)), ((7, 3), (5, 3))]),
    ("scores", "bqhd,bkhd->bhqk", [((2, 3, 2, 4), (2, 5, 2, 4)), ((1, 3, 2, 4), (1, 5, 2, 4))]),
    ("elementwise", "ij,ij->ij", [((2, 3), (2, 3)), ((1, 3), (1, 3))]),
    ("all", "ij,ij->", [((2, 3), (2, 3)), ((0, 3), (0, 3))]),
    ("outer", "i,j->ji", [((2,), (3,)), ((5,), (3,))]),
    ("alone", "ij,k->k", [((2, 3), (4,)), ((5, 3), (4,))]),
    ("ellipsis", "...ij,...jk->...ik", [((2, 1, 3, 4), (5, 4, 2)), ((3, 1, 3, 4), (5, 4, 2))]),
    ("ellipsis_implied", "...ij,jk", [((2, 3, 4), (4, 2)), ((1, 3, 4), (4, 2))]),
    ("ellipsis_inside", "i...j,j->i...", [((2, 3, 4), (4,)), ((7, 3, 4), (4,))]),
    ("upper", "aB,Bc -> ca", [((2, 3), (3, 5)), ((7, 3), (3, 5))]),
    ("diagonal", "ii,ij->j", [((3, 3), (3, 2)), ((4, 4), (4, 2))]),
    ("hadamard_batch", "bi,bi->b", [((3, 4), (3, 4)), ((0, 4), (0, 4))]),
    ("stretch", "ij,jk->ik", [((2, 1), (3, 5))]),
]:
    product(f"einsum_{name}", pairs(*shapes), lambda a, b: np.asarray(np.einsum(formula, a, b)))
for name, formula, shapes in [
    ("trace", "ii", [(3, 3), (5, 5)]), ("diagonal_of", "ii->i", [(3, 3), (5, 5)]), ("diagonals", "iji->ji", [(3, 2, 3), (5, 2, 5)]),
    ("transpose", "ij->ji", [(2, 3), (7, 3)]), ("sum", "ij->", [(2, 3), (7, 3)]), ("sum_rows", "ij->j", [(2, 3), (7, 3)]),
    ("transpose_last", "...ij->...ji", [(2, 3, 4), (1, 3, 4)]), ("implied_transpose", "ba", [(2, 3), (7, 3)]),
]:
    product(f"einsum_{name}", one(*shapes), lambda a: np.asarray(np.einsum(formula, a)))
product("einsum_three", [[ramp(2, 3), ramp(3, 4, seed=5), ramp(4, 5, seed=1)], [ramp(7, 3), ramp(3, 4, seed=5), ramp(4, 5, seed=1)]], lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c))
product("einsum_bilinear", [[ramp(2, 3), ramp(3, 5, 4, seed=5), ramp(2, 4, seed=1)], [ramp(7, 3), ramp(3, 5, 4, seed=5), ramp(7, 4, seed=1)]], lambda a, b, c: np.einsum("bi,ioj,bj->bo", a, b, c))


# Elements at places.
def indexing(name, calls, function, tolerance=0.0):
    case("indexing", name, calls, function, tolerance)


def at(*values, dtype=np.int32):
    return np.array(values, dtype)


def numpy_take(x, i, axis):
    return np.take(x, np.clip(np.where(i < 0, i + x.shape[axis], i), 0, x.shape[axis] - 1), axis)


MANY = at(0, -1, 2, 1, 2, -3, 50, -50)
for dtype in [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64]:
    some = MANY if np.dtype(dtype).kind == "i" else np.abs(MANY)
    some = np.append(some, np.iinfo(dtype).max).astype(dtype)
    indexing(f"take_{name_of(dtype)}", [[ramp(n, 4), some] for n in (3, 1, 5)], lambda x, i: numpy_take(x.copy(), i.astype(np.float64).clip(-1e6, 1e6).astype(int), 0))
indexing("take_far", [[ramp(300), at(127, -128, -1, dtype=np.int8)], [ramp(130), at(127, -128, -1, dtype=np.int8)]], lambda x, i: numpy_take(x, i.astype(int), 0))
indexing("take_axis", [[ramp(2, 5, 3), at(0, -1).reshape(1, 2)], [ramp(7, 2, 3), at(0, -1).reshape(1, 2)]], lambda x, i: numpy_take(x, i, 1))
indexing("take_scalar", [[ramp(5, 3), at(-2).reshape(())], [ramp(2, 3), at(-2).reshape(())]], lambda x, i: x[-2])
indexing("take_none", [[ramp(5, 3), at()], [ramp(0, 3), at()]], lambda x, i: x[:0])
indexing("take_or", [[ramp(3, 2), MANY], [ramp(1, 2), MANY]], lambda x, i: np.where(((i < -len(x)) | (i >= len(x)))[:, None], np.float32(9), numpy_take(x, i, 0)))
for dtype in [bool, np.int8, np.uint16, np.float16, bf16, np.float64, np.complex64, e4m3]:
    indexing(f"types_{name_of(dtype)}", [[ramp(5, 3, dtype=dtype), at(1, -1)], [ramp(2, 3, dtype=dtype), at(1, -1)]], lambda x, i: [x[i], x[i][:, ::-1][:, [0]], np.concatenate([x[:1], x[:1]])])
indexing("take_along", [[ramp(2, 3, 4), (ramp(2, 5, 4, dtype=np.int64) % 3)], [ramp(7, 3, 4), (ramp(7, 5, 4, dtype=np.int64) % 3)]], lambda x, i: np.take_along_axis(x, i, 1))
indexing("take_along_broadcast", [[ramp(2, 3), at(-1, 0, 1).reshape(1, 3)], [ramp(5, 3), at(-1, 0, 1).reshape(1, 3)]], lambda x, i: np.take_along_axis(x, np.broadcast_to(i, (x.shape[0], 3)), 1))
indexing("gather_nd", [[ramp(4, 3, 2), at(0, 1, -1, -2, 3, 0).reshape(3, 2)], [ramp(7, 3, 2), at(0, 1, -1, -2, 3, 0).reshape(3, 2)]], lambda x, i: x[tuple(i.T)])
indexing("gather_nd_all", [[ramp(4, 3), at(0, 1, -1, -2).reshape(2, 1, 2)], [ramp(7, 3), at(0, 1, -1, -2).reshape(2, 1, 2)]], lambda x, i: x[i[..., 0], i[..., 1]])
indexing("embedding", [[ramp(7, 3), at(0, 6, 2, 2).reshape(2, 2)], [ramp(7, 3), at(1, 1).reshape(1, 2)]], lambda x, i: x[i])
indexing("one_hot", [[at(0, 2, -1, 3, 1).reshape(5, 1)], [at(1).reshape(1, 1)]], lambda i: np.asarray(jax.nn.one_hot(i, 3, dtype=np.float32)))

PLACES = at(1, -1, 1, 7, 0, -7)
for name, how in {"add": "add", "mul": "multiply", "max": "max", "min": "min"}.items():
    calls = [[ramp(n, 2), PLACES, ramp(6, 2, seed=5)] for n in (3, 2, 5)]
    indexing(f"scatter_{name}", calls, lambda x, i, u: np.asarray(getattr(jnp.asarray(x).at[i], how)(u)))
indexing("scatter_update", [[ramp(n, 2), at(1, -1, 9), ramp(3, 2, seed=5)] for n in (3, 5)], lambda x, i, u: np.asarray(jnp.asarray(x).at[i].set(u)))
indexing("scatter_axis", [[ramp(n, 5), at(4, 0, -1, 4), ramp(n, 4, seed=5)] for n in (3, 1)], lambda x, i, u: np.asarray(jnp.asarray(x).at[:, i].add(u)))
indexing("scatter_scalar", [[ramp(n, 5), np.int32(2), np.float32(10)] for n in (3, 1)], lambda x, i, u: np.asarray(jnp.asarray(x).at[:, i].add(u)))
indexing("scatter_bf16", [[np.ones(2, bf16), np.zeros(1000, np.int32), np.ones(1000, bf16)]], lambda x, i, u: np.array([1001, 1], bf16))
for dtype in [np.int8, np.uint64, np.float16, np.float64, np.complex64]:
    indexing(f"scatter_types_{name_of(dtype)}", [[ramp(n, dtype=dtype), PLACES, ramp(6, dtype=dtype, seed=5)] for n in (3, 5)], lambda x, i, u: [np.asarray(jnp.asarray(x).at[i].add(u)), np.asarray(jnp.asarray(x).at[i[1:3]].set(u[1:3]))])

indexing("dynamic_slice", [[ramp(n, 5), np.int32(i), np.int64(j)] for n, i, j in ((3, 1, 2), (4, 3, -2), (2, -9, 9), (7, -2, 0))], lambda x, i, j: np.asarray(lax.dynamic_slice(x, (i, i.dtype.type(j)), (2, 3))))
indexing("dynamic_slice_in_dim", [[ramp(n, 5), np.uint8(i)] for n, i in ((3, 1), (4, 4), (2, 250))], lambda x, i: np.asarray(lax.dynamic_slice_in_dim(x, int(i), 2, 1)))
indexing("dynamic_update_slice", [[ramp(n, 5), ramp(2, 3, seed=5), np.int32(i), np.int32(j)] for n, i, j in ((3, 1, 2), (4, 3, -2), (2, -9, 9))], lambda x, u, i, j: np.asarray(lax.dynamic_update_slice(x, u, (i, j))))
indexing("dynamic_update_slice_in_dim", [[ramp(n, 5), ramp(n, 3, seed=5), np.int32(j)] for n, j in ((3, 1), (4, -2), (2, 9))], lambda x, u, j: np.asarray(lax.dynamic_update_slice_in_dim(x, u, j, 1)))


# Sorting, places, cumulative folds, statistics.
def order(name, calls, function, tolerance=0.0):
    case("order", name, calls, function, tolerance)


def special(*dims, dtype=np.float32):
    x = ramp(*dims, dtype=dtype)
    for i, v in enumerate([nan, -0.0, 0.0, inf, -inf, -nan, 0.0]):
        if x.size > 5 * i:
            x.ravel()[5 * i] = v
    return x


def descending(x, axis):
    return np.asarray(jnp.sort(jnp.asarray(x), axis=axis, descending=True, stable=True))


def argdescending(x, axis):
    return np.asarray(jnp.argsort(jnp.asarray(x), axis=axis, descending=True, stable=True)).astype(np.int64)


def places(x, axis):
    return np.argsort(np.asarray(x, np.float64) if x.dtype.kind not in "biu" else x, axis, stable=True)


def sorts(x):
    return [np.take_along_axis(x, places(x, 0), 0), descending(x, -1), places(x, -1), argdescending(x, 0)]


for dtype in [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, bool]:
    order(f"sort_{name_of(dtype)}", one((7, 3), (1, 3), (0, 3), dtype=dtype), sorts)
for dtype in [np.float16, bf16, np.float32, np.float64]:
    order(f"sort_{name_of(dtype)}", [[special(n, 3, dtype=dtype)] for n in (13, 1, 4)], sorts)
    order(f"argmax_{name_of(dtype)}", [[special(n, 3, dtype=dtype)] for n in (13, 1, 4)], lambda x: [np.argmax(x.astype(np.float64), 0), np.argmin(x.astype(np.float64), -1), np.argmin(x.astype(np.float64), 0)])
order("sort_f8e4m3fn", one((7, 3), (1, 3), dtype=e4m3), lambda x: [np.sort(x.astype(np.float32), 0).astype(e4m3)] * 1 + [places(x, -1)])
order("sort_long", [[ramp(2, 1000)], [ramp(1, 1000)]], lambda x: [np.sort(x, -1), np.argsort(x, -1, stable=True)])
for dtype in [np.int8, np.uint8, np.int64, bool]:
    order(f"argmax_{name_of(dtype)}", one((7, 3), (1, 3), dtype=dtype), lambda x: [np.argmax(x, 0), np.argmin(x, -1), np.argmin(x, 0)])
order("argmax_extremes", [[np.full((n, 2), -inf, np.float32)] for n in (3, 1)], lambda x: [np.argmax(x, 0), np.argmax(-x * 0 + -inf, 1), np.argmin(-x, 1)])
order("argmax_long", [[ramp(n, 1037)] for n in (3, 1)], lambda x: [np.argmax(x, 1), np.argmin(x, 1), np.argmax(x, 0)])
for dtype in [np.float32, bf16, np.int32, np.uint8, bool]:
    order(f"top_k_{name_of(dtype)}", one((2, 7, 3), (1, 7, 3), dtype=dtype), lambda x: [np.moveaxis(np.asarray(y), -1, 1).astype(np.int64 if j else x.dtype) for j, y in enumerate(lax.top_k(np.moveaxis(x.astype(np.int32) if x.dtype == bool else x, 1, -1), 4))])

SHAPES = [(3, 4), (1, 4), (0, 4), (7, 4)]


def exclusive(f, start):
    def fold(x, axis):
        y = f(x, axis)
        first = np.full_like(np.take(y, [0] if x.shape[axis] else [], axis), start)
        return np.concatenate([first, np.take(y, range(max(x.shape[axis] - 1, 0)), axis)], axis)
    return fold


def backwards(f):
    return lambda x, axis: np.flip(f(np.flip(x, axis), axis), axis)


def scans(f, start, dtype):
    def fold(x, axis):
        return f(x, axis).astype(dtype)
    return lambda x: [fold(x, 0), fold(x, -1), backwards(fold)(x, 0), exclusive(fold, start)(x, 0), backwards(exclusive(fold, start))(x, 0)]


for dtype in [np.int8, np.int32, np.uint64, np.float32, np.float64, bf16, np.float16]:
    wide = np.float32 if np.dtype(dtype).itemsize < 4 and np.dtype(dtype).kind not in "iu" else dtype
    calls = one(*SHAPES, dtype=dtype)
    order(f"cumsum_{name_of(dtype)}", calls, scans(lambda x, axis: np.cumsum(x, axis, dtype=wide), 0, dtype))
    order(f"cumprod_{name_of(dtype)}", calls, scans(lambda x, axis: np.cumprod(x, axis, dtype=wide), 1, dtype))
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if np.dtype(dtype).kind in "iu" else (-inf, inf)
    order(f"cummax_{name_of(dtype)}", calls, scans(lambda x, axis: np.maximum.accumulate(x, axis), low, dtype))
    order(f"cummin_{name_of(dtype)}", calls, scans(lambda x, axis: np.minimum.accumulate(x, axis), high, dtype))
order("cummax_nan", [[special(7, 3)], [special(2, 3)]], lambda x: np.maximum.accumulate(x, 0))
order("cumsum_complex", one((3, 4), (1, 4), dtype=np.complex64), lambda x: np.cumsum(x, 0))
order("cumsum_long", [[np.ones((2, n), bf16)] for n in (1000, 3)], lambda x: np.cumsum(x.astype(np.float32), 1).astype(bf16))

for dtype in [np.float32, np.float64, bf16, np.float16, np.int32, np.int64, np.int8]:
    def stds(x):
        y = x.astype(np.float64)
        kind = x.dtype if x.dtype.kind not in "iu" else np.float64
        return [np.std(y, 0).astype(kind), np.std(y, ddof=1).astype(kind), np.std(y, 1, ddof=1, keepdims=True).astype(kind)]
    order(f"std_{name_of(dtype)}", one((7, 3), (2, 3), dtype=dtype), stds, 1e-6 if np.dtype(dtype).itemsize >= 4 else 4e-3)
order("var_complex", one((7, 3), (2, 3), dtype=np.complex64), lambda x: np.var(x * (1 + 2j), 0).astype(np.float32), 1e-6)
order("logsumexp", [[special(13, 3)], [ramp(4, 3)], [ramp(2, 3) * 100], [np.full((2, 3), -inf, np.float32)], [ramp(0, 3)]], lambda x: [np.asarray(jax.nn.logsumexp(x, axis=0)), np.asarray(jax.nn.logsumexp(x, axis=1, keepdims=True)), np.asarray(jax.nn.logsumexp(x))], 1e-6)
order("logsumexp_f16", [[ramp(7, 3, dtype=np.float16)]], lambda x: np.asarray(jax.nn.logsumexp(x.astype(np.float32), axis=0)).astype(np.float16))
order("norm", one((7, 3), (0, 3), (1, 3)), lambda x: [np.linalg.norm(x, axis=0), np.linalg.norm(x), np.linalg.norm(x, axis=-1, keepdims=True)], 1e-6)
order("norm_complex", one((7, 3), (1, 3), dtype=np.complex64), lambda x: np.linalg.norm(x * np.complex64(1 + 2j), axis=0), 1e-6)
order("count_nonzero", [[ramp(7, 3)], [ramp(0, 3)], [special(4, 3)]], lambda x: [np.count_nonzero(x, 0), np.asarray(np.count_nonzero(x), np.int64), np.count_nonzero(x, 1, keepdims=True)])
order("median", [[ramp(7, 3)], [ramp(4, 3)], [special(6, 3)], [ramp(1, 3)]], lambda x: [np.median(x, 0), np.median(x, 1, keepdims=True), np.median(x)])
order("median_axes", [[ramp(2, 5, 4)], [ramp(3, 5, 4)]], lambda x: [np.median(x, (0, 2)), np.median(x, (0, 1), keepdims=True)])
order("median_s32", [[ramp(7, 3, dtype=np.int32)], [ramp(4, 3, dtype=np.int32)]], lambda x: np.median(x, 0))
order("median_f16", [[ramp(7, 3, dtype=np.float16)], [ramp(4, 3, dtype=np.float16)]], lambda x: np.median(x.astype(np.float32), 0).astype(np.float16))


# Convolutions and pooling.
def convolution(name, calls, function, tolerance=0.0):
    case("convolution", name, calls, function, tolerance)


DIMS = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW"), 3: ("NCDHW", "OIDHW", "NCDHW")}
LAST = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def conv(x, k, strides=None, padding="VALID", dims=DIMS, transpose=False, **more):
    n = x.ndim - 2
    wide = np.float32 if x.dtype.itemsize < 4 and x.dtype.kind not in "iu" else x.dtype
    f = lax.conv_transpose if transpose else lax.conv_general_dilated
    more |= {"dimension_numbers": dims[n]}
    return np.asarray(f(x.astype(wide), k.astype(wide), strides or (1,) * n, padding, **more)).astype(x.dtype)


def images(kernel, *shapes, dtype=np.float32):
    return [[ramp(*shape, dtype=dtype), ramp(*kernel, dtype=dtype, seed=5)] for shape in shapes]


K2 = (3, 2, 3, 2)
convolution("valid", images(K2, (1, 2, 5, 4), (3, 2, 3, 7), (2, 2, 2, 4), (0, 2, 5, 4)), conv)
convolution("same", images(K2, (1, 2, 5, 4), (3, 2, 1, 7)), lambda x, k: conv(x, k, padding="SAME"))
convolution("same_strides", images(K2, (1, 2, 5, 4), (3, 2, 6, 7), (1, 2, 1, 1)), lambda x, k: conv(x, k, (2, 3), "SAME"))
convolution("strides", images(K2, (1, 2, 5, 4), (3, 2, 6, 7)), lambda x, k: conv(x, k, (2, 3)))
convolution("explicit", images(K2, (1, 2, 5, 4), (3, 2, 6, 7)), lambda x, k: conv(x, k, (1, 2), ((1, 2), (0, -1))))
convolution("dilation", images(K2, (1, 2, 5, 4), (3, 2, 9, 7)), lambda x, k: conv(x, k, (2, 1), ((1, 1), (2, 0)), rhs_dilation=(2, 3)))
convolution("dilation_same", images(K2, (1, 2, 5, 4), (3, 2, 9, 7)), lambda x, k: conv(x, k, (2, 1), "SAME", rhs_dilation=(2, 3)))
convolution("groups", images((6, 2, 3, 2), (1, 4, 5, 4), (3, 4, 3, 7)), lambda x, k: conv(x, k, feature_group_count=2))
convolution("depthwise", images((8, 1, 3, 2), (1, 4, 5, 4), (3, 4, 3, 7)), lambda x, k: conv(x, k, padding="SAME", feature_group_count=4))
convolution("last", images((3, 2, 2, 5), (1, 5, 4, 2), (3, 3, 7, 2)), lambda x, k: conv(x, k, (2, 1), "SAME", LAST))
convolution("last_groups", images((3, 2, 2, 6), (1, 5, 4, 4), (3, 3, 7, 4)), lambda x, k: conv(x, k, dims=LAST, feature_group_count=2))
convolution("one", images((3, 2, 3), (1, 2, 7), (5, 2, 3)), lambda x, k: conv(x, k, (2,), ((1, 1),)))
convolution("three", images((3, 2, 2, 1, 3), (1, 2, 3, 2, 4), (2, 2, 4, 2, 5)), lambda x, k: conv(x, k, padding="SAME"))
convolution("three_last", images((2, 1, 3, 2, 3), (1, 3, 2, 4, 2), (2, 4, 2, 5, 2)), lambda x, k: conv(x, k, dims=LAST))
for dtype in [np.float64, np.float16, bf16, e4m3, np.int32, np.int8]:
    convolution(f"types_{name_of(dtype)}", images(K2, (1, 2, 5, 4), (3, 2, 3, 7), dtype=dtype), lambda x, k: conv(x, k, padding="SAME") if x.dtype.kind not in "iu" else conv(x.astype(np.float64), k.astype(np.float64), padding="SAME").astype(np.int64).astype(x.dtype))
for name, strides in {"1": (1, 1), "2": (2, 3), "5": (5, 2)}.items():
    for padding in ["VALID", "SAME"]:
        convolution(f"transpose_{padding.lower()}_{name}", images(K2, (1, 2, 5, 4), (3, 2, 1, 7)), lambda x, k: conv(x, k, strides, padding, transpose=True))
convolution("transpose_explicit", images(K2, (1, 2, 5, 4), (3, 2, 2, 7)), lambda x, k: conv(x, k, (2, 1), ((1, 2), (0, 1)), transpose=True))
convolution("transpose_dilation", images(K2, (1, 2, 5, 4), (3, 2, 2, 7)), lambda x, k: conv(x, k, (2, 1), "SAME", transpose=True, rhs_dilation=(2, 2)))
convolution("transpose_last", images((3, 2, 2, 5), (1, 5, 4, 2), (3, 3, 7, 2)), lambda x, k: conv(x, k, (2, 2), "SAME", LAST, transpose=True))


def pool(x, window, strides, padding, f, init, last=False, dilation=None):
    full = lambda w: (1, *w, 1) if last else (1, 1, *w)
    pads = padding if isinstance(padding, str) else full_pairs(padding, last)
    return np.asarray(lax.reduce_window(x, x.dtype.type(init), f, full(window), full(strides), pads, None, full(dilation) if dilation else None))


def full_pairs(pairs, last):
    return ((0, 0), *pairs, (0, 0)) if last else ((0, 0), (0, 0), *pairs)


def average(x, window, strides, padding, skip, last=False):
    sums = pool(x, window, strides, padding, lax.add, 0, last)
    counts = pool(np.ones_like(x), window, strides, padding, lax.add, 0, last) if skip else np.prod(window)
    return (sums / counts).astype(x.dtype)


POOLED = one((1, 2, 5, 4), (3, 2, 6, 7))
convolution("max_pool", POOLED, lambda x: pool(x, (2, 3), (2, 3), "VALID", lax.max, -inf))
convolution("max_pool_same", POOLED, lambda x: pool(x, (2, 3), (1, 2), "SAME", lax.max, -inf))
convolution("max_pool_explicit", POOLED, lambda x: pool(x, (2, 3), (2, 3), ((1, 0), (2, 1)), lax.max, -inf))
convolution("max_pool_dilation", POOLED, lambda x: pool(x, (2, 2), (1, 1), "VALID", lax.max, -inf, dilation=(2, 3)))
convolution("max_pool_last", one((1, 5, 4, 2), (3, 6, 7, 2)), lambda x: pool(x, (2, 3), (2, 3), "VALID", lax.max, -inf, True))
convolution("max_pool_one", one((1, 2, 5), (3, 2, 6)), lambda x: pool(x, (2,), (2,), "VALID", lax.max, -inf))
convolution("max_pool_s8", one((1, 2, 5, 4), (3, 2, 6, 7), dtype=np.int8), lambda x: pool(x, (2, 3), (2, 3), "VALID", lax.max, -128))
convolution("max_pool_nan", [[special(1, 2, 5, 4)], [special(3, 2, 6, 7)]], lambda x: pool(x, (2, 3), (2, 3), "VALID", lax.max, -inf))
convolution("avg_pool", POOLED, lambda x: average(x, (2, 3), (2, 3), "VALID", False), 1e-6)
convolution("avg_pool_same", POOLED, lambda x: [average(x, (2, 3), (1, 1), "SAME", skip) for skip in (False, True)], 1e-6)
convolution("avg_pool_explicit", POOLED, lambda x: [average(x, (2, 3), (2, 3), ((1, 0), (2, 1)), skip) for skip in (False, True)], 1e-6)
convolution("avg_pool_last", one((1, 5, 4, 2), (3, 6, 7, 2)), lambda x: average(x, (2, 3), (1, 1), "SAME", True, True), 1e-6)
convolution("avg_pool_bf16", one((1, 2, 5, 4), (3, 2, 6, 7), dtype=bf16), lambda x: average(x.astype(np.float32), (2, 2), (2, 2), "VALID", False).astype(bf16))


# Layers of networks. JAX's attention has the heads in another place.

def waves(*dims, step=0.7, dtype=np.float32):
    return np.sin(np.arange(int(np.prod(dims))) * step + 1).reshape(dims).astype(dtype)


def jax_attention(query, key, value, **options):
    moved = [jnp.asarray(x)[:, :, None, :] for x in (query, key, value)]
    return jax.nn.dot_product_attention(*moved, **options)[:, :, 0, :]


qkv = [
    [waves(2, 3, 4), waves(2, 3, 4, step=1.3), waves(2, 3, 4, step=0.9)],
    [waves(1, 7, 4), waves(1, 7, 4, step=0.3), waves(1, 7, 4, step=1.9)],
]
case("nn", "attention", qkv, jax_attention, 1e-6)
case("nn", "attention_causal", qkv, lambda q, k, v: jax_attention(q, k, v, is_causal=True), 1e-6)
case("nn", "attention_bf16", [[x.astype(bf16) for x in call] for call in qkv], jax_attention, 2e-2)
seen = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], bool)
case("nn", "attention_where", [[*qkv[0], seen]],
     lambda q, k, v, seen: jax_attention(q, k, v, mask=jnp.asarray(seen)[None, None]), 1e-6)
case("nn", "attention_add", [[*qkv[0], waves(3, 3, step=0.4)]],
     lambda q, k, v, bias: jax_attention(q, k, v, bias=jnp.asarray(bias)[None, None]), 1e-6)


def layer_norm(x):
    wide = x.astype(np.float64)
    centered = wide - wide.mean(-1, keepdims=True)
    return (centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)


def rms_norm(x):
    wide = x.astype(np.float64)
    return (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)


for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-13), (bf16, 1e-2)):
    calls = [[waves(2, 5, step=2.1, dtype=dtype)], [waves(3, 5, dtype=dtype) + dtype(100)]]
    case("nn", f"layer_norm_{name_of(dtype)}", calls, layer_norm, tolerance * 100)
    case("nn", f"rms_norm_{name_of(dtype)}", calls, rms_norm, tolerance)
case("nn", "cross_entropy", [
    [waves(2, 5, step=2.1) * 9, np.array([3, 0], np.int32)],
    [waves(3, 5), np.array([4, -1, 5], np.int32)],
], lambda x, labels: np.where(
    (labels >= 0) & (labels < 5),
    -np.take_along_axis(np.asarray(jax.nn.log_softmax(x, -1)), np.clip(labels, 0, 4)[:, None], 1)[:, 0],
    np.float32(nan)), 2e-6)
