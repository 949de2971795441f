use super::*;
use crate::ops::{GatherDims, ScatterDims};

#[test]
fn gathers() {
    check(
        |b| {
            let [x, i] = parameters(b, ["f32[4,16,11]", "s32[4,5,2]"]);
            let dims = GatherDims {
                offset_dims: vec![2],
                collapsed_slice_dims: vec![1],
                start_index_map: vec![1, 2],
                operand_batching_dims: vec![0],
                start_indices_batching_dims: vec![0],
                index_vector_dim: 2,
            };
            x.gather(&i, dims, &[1, 1, 6], true);
        },
        "ROOT %3 = f32[4,5,6] gather(x, y), offset_dims={2}, collapsed_slice_dims={1}, \
         start_index_map={1,2}, operand_batching_dims={0}, start_indices_batching_dims={0}, \
         index_vector_dim=2, slice_sizes={1,1,6}, indices_are_sorted=true",
    );
}

#[test]
fn scatters() {
    let dims = ScatterDims {
        update_window_dims: vec![1],
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0],
        index_vector_dim: 1,
        ..ScatterDims::default()
    };
    check(
        |b| {
            let [x, i, u] = parameters(b, ["f32[4,3]", "s32[2,1]", "f32[2,3]"]);
            x.scatter(&i, &u, &add(), dims.clone(), false, true);
        },
        "ROOT %4 = f32[4,3] scatter(x, y, z), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add_f32",
    );
    let both = XlaBuilder::new("both");
    let [_, _, x, y] = parameters(&both, ["f32[]", "f32[]", "f32[]", "f32[]"]);
    let both = both.build_with_root(both.tuple(&[x, y])).expect("a computation");
    check(
        |b| {
            let [x, i, u] = parameters(b, ["f32[4,3]", "s32[2,1]", "f32[2,3]"]);
            b.scatter(&[&x, &x], &i, &[&u, &u], &both, dims.clone(), true, false);
        },
        "ROOT %7 = (f32[4,3], f32[4,3]) scatter(x, x, y, z, z), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=both",
    );
}
