use crate::testing::{after, check};

/// The opcodes of the entry computation, and of each fusion in it.
fn outline(text: &str) -> String {
    let text = after("fuse", text);
    let module = helio_ir::text::parse(&text).expect("it parses");
    let opcodes = |computation: &helio_ir::Computation| {
        let all = computation.instrs().iter().filter(|instr| instr.op.opcode() != "parameter");
        let all: Vec<String> = all
            .map(|instr| match &instr.op {
                helio_ir::Op::Fusion(op) => {
                    let inner = module.computation(op.calls);
                    let inner = inner.instrs().iter().map(|instr| instr.op.opcode());
                    let inner: Vec<&str> = inner.filter(|op| *op != "parameter").collect();
                    format!("[{}]", inner.join(" "))
                }
                op => op.opcode().to_owned(),
            })
            .collect();
        all.join(" ")
    };
    opcodes(module.entry())
}

const ADD: &str = "
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
    max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }";

#[track_caller]
fn outlines(text: &str, expected: &str) {
    assert_eq!(outline(&format!("{ADD} ENTRY e {{ {text} }}")), expected);
}

#[test]
fn a_chain_is_one_fusion() {
    check(
        "fuse",
        "ENTRY e {
          x = f32[4] parameter(0)
          y = f32[4] exponential(x)
          s = f32[] constant(2)
          b = f32[4] broadcast(s), dimensions={}
          ROOT z = f32[4] add(y, b)
        }",
        "fused_z {
          p0 = f32[4] parameter(0)
          y = f32[4] exponential(p0)
          s = f32[] constant(2)
          b = f32[4] broadcast(s), dimensions={}
          ROOT z = f32[4] add(y, b)
        }
        ENTRY e {
          x = f32[4] parameter(0)
          ROOT z = f32[4] fusion(x), kind=kLoop, calls=fused_z
        }",
    );
}

#[test]
fn functions_of_rows_that_a_loop_would_wait_for_come_before_it() {
    let grid = |rows: &str, function: &str, columns: usize| {
        format!(
            "x = f32[{rows},{columns}] parameter(0)
             y = f32[{rows}] parameter(1)
             d = f32[{rows}] add(y, y)
             f = f32[{rows}] {function}(d)
             b = f32[{rows},{columns}] broadcast(f), dimensions={{0}}
             ROOT r = f32[{rows},{columns}] multiply(x, b)"
        )
    };
    outlines(&grid("200", "sine", 300), "[add sine] [broadcast multiply]");
    // Few rows, a quotient's latency, and rows so long that it does not show.
    outlines(&grid("20", "sine", 300), "[add sine broadcast multiply]");
    outlines(&grid("200", "rsqrt", 300), "[add rsqrt broadcast multiply]");
    outlines(&grid("200", "sine", 10_000), "[add sine broadcast multiply]");
    // What is folded comes to the function in the same kernel.
    outlines(
        "x = f32[200,300] parameter(0)
         zero = f32[] constant(0)
         s = f32[200] reduce(x, zero), dimensions={1}, to_apply=add
         f = f32[200] sine(s)
         b = f32[200,300] broadcast(f), dimensions={0}
         ROOT r = f32[200,300] multiply(x, b)",
        "[constant reduce sine broadcast multiply]",
    );
}

#[test]
fn values_read_many_times_from_places_that_are_found_out_are_kept() {
    // A table's rows for pairs of positions, for each of many matrices.
    let biases = |matrices: &str| {
        format!(
            "i = s32[40,40] parameter(0)
             t = f32[99] parameter(1)
             x = f32[{matrices},40,40] parameter(2)
             v = s32[40,40,1] reshape(i)
             g = f32[40,40] gather(t, v), offset_dims={{}}, collapsed_slice_dims={{0}},
               start_index_map={{0}}, index_vector_dim=2, slice_sizes={{1}}
             b = f32[{matrices},40,40] broadcast(g), dimensions={{1,2}}
             ROOT s = f32[{matrices},40,40] add(x, b)"
        )
    };
    outlines(&biases("48"), "reshape gather [broadcast add]");
    outlines(&biases("4"), "[reshape gather broadcast add]");
    // The regions of shifted windows, which matrices compare along rows and columns.
    outlines(
        "r = s32[28,28] parameter(0)
         x = f32[16,3,49,49] parameter(1)
         m = s32[28,28] multiply(r, r)
         w = s32[4,7,4,7] reshape(m)
         t = s32[4,4,7,7] transpose(w), dimensions={0,2,1,3}
         e = s32[16,49] reshape(t)
         a = s32[16,3,49,49] broadcast(e), dimensions={0,2}
         b = s32[16,3,49,49] broadcast(e), dimensions={0,3}
         same = pred[16,3,49,49] compare(a, b), direction=EQ
         y = f32[16,3,49,49] negate(x)
         ROOT s = f32[16,3,49,49] select(same, x, y)",
        "[multiply reshape transpose] reshape [broadcast broadcast compare negate select]",
    );
    // Each element is part of one result only.
    outlines(
        "x = f32[100,300] parameter(0)
         z = f32[100,300] parameter(1)
         a = f32[100,300] add(x, z)
         b = f32[100,300] multiply(a, x)
         c = f32[100,300] subtract(b, z)
         d = f32[100,300] maximum(c, x)
         e = f32[100,300,1] reshape(d)
         y = f32[100,300,7] parameter(2)
         w = f32[100,300,8] concatenate(e, y), dimensions={2}
         ROOT n = f32[100,300,8] negate(w)",
        "[add multiply subtract maximum reshape concatenate negate]",
    );
    // Counted places lie in steps.
    outlines(
        "x = f32[8,9000] parameter(0)
         i = s32[120,256] iota(), iota_dimension=0
         k = s32[120,256] iota(), iota_dimension=1
         c = s32[] constant(64)
         cs = s32[120,256] broadcast(c), dimensions={}
         h = s32[120,256] multiply(i, cs)
         p = s32[120,256] add(h, k)
         o = s32[120,256] maximum(p, k)
         q = s32[120,256] minimum(o, p)
         v = s32[120,256,1] reshape(q)
         g = f32[8,120,256] gather(x, v), offset_dims={0}, collapsed_slice_dims={1},
           start_index_map={1}, index_vector_dim=2, slice_sizes={8,1}
         ROOT n = f32[8,120,256] negate(g)",
        "[iota iota constant broadcast multiply add maximum minimum reshape gather negate]",
    );
}

#[test]
fn columns_of_short_rows_are_kernels() {
    let columns = |count: usize| {
        format!(
            "x = f32[1000,{count}] parameter(0)
             i = s32[300,1] parameter(1)
             g = f32[1000,300] gather(x, i), offset_dims={{0}}, collapsed_slice_dims={{1}},
               start_index_map={{1}}, index_vector_dim=1, slice_sizes={{1000,1}}
             ROOT t = (f32[1000,300]) tuple(g)"
        )
    };
    outlines(&columns(128), "[gather] tuple");
    outlines(&columns(129), "gather tuple");
}

#[test]
fn values_needed_elsewhere_are_results() {
    outlines(
        "x = f32[4] parameter(0) y = f32[4] exponential(x) z = f32[4] add(y, x)
         ROOT t = (f32[4], f32[4]) tuple(y, z)",
        "[exponential add tuple] get-tuple-element get-tuple-element tuple",
    );
    // What is cheap is computed twice; what is not, once.
    outlines(
        "x = f32[4,4] parameter(0) n = f32[4,4] negate(x) e = f32[4,4] exponential(n)
         d = f32[4,4] dot(e, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         ROOT s = f32[4,4] subtract(d, e)",
        "[negate exponential tuple] get-tuple-element get-tuple-element dot [subtract]",
    );
}

#[test]
fn no_path_leaves_a_fusion_and_comes_back() {
    outlines(
        "x = f32[4,4] parameter(0) e = f32[4,4] exponential(x)
         d = f32[4,4] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         ROOT s = f32[4,4] add(d, e)",
        "[exponential] dot [add]",
    );
}

#[test]
fn a_softmax_is_one_fusion() {
    outlines(
        "x = f32[8,100] parameter(0) low = f32[] constant(-inf) z = f32[] constant(0)
         m = f32[8] reduce(x, low), dimensions={1}, to_apply=max
         mb = f32[8,100] broadcast(m), dimensions={0}
         d = f32[8,100] subtract(x, mb) e = f32[8,100] exponential(d)
         s = f32[8] reduce(e, z), dimensions={1}, to_apply=add
         sr = f32[8,1] reshape(s) sr2 = f32[8] reshape(sr)
         sb = f32[8,100] broadcast(sr2), dimensions={0}
         ROOT r = f32[8,100] divide(e, sb)",
        "[constant constant reduce broadcast subtract exponential reduce reshape reshape broadcast divide]",
    );
}

#[test]
fn reductions_over_other_dimensions_stay_apart() {
    outlines(
        "x = f32[10,100] parameter(0) z = f32[] constant(0)
         s = f32[10] reduce(x, z), dimensions={1}, to_apply=add
         c = f32[100] reduce(x, z), dimensions={0}, to_apply=add
         sb = f32[10,100] broadcast(s), dimensions={0}
         cb = f32[10,100] broadcast(c), dimensions={1}
         d = f32[10,100] divide(x, sb) ROOT r = f32[10,100] divide(d, cb)",
        "[constant reduce] [constant reduce broadcast broadcast divide divide]",
    );
}

#[test]
fn reductions_of_one_array_are_one_fusion() {
    let sums = |from: &str, dims: &str, out: &str, result: &str| {
        format!(
            "x = f32[{from}] parameter(0) z = f32[] constant(0)
             s = f32[{out}] reduce(x, z), dimensions={{{dims}}}, to_apply=add
             q = f32[{from}] multiply(x, x)
             t = f32[{out}] reduce(q, z), dimensions={{{dims}}}, to_apply=add
             {result}"
        )
    };
    let both = "ROOT r = (f32[64], f32[64]) tuple(s, t)";
    let together =
        "[constant reduce multiply reduce tuple] get-tuple-element get-tuple-element tuple";
    outlines(&sums("1024,64", "0", "64", both), together);
    outlines(&sums("64,1024", "1", "64", both), together);
    // What is short is read from a near cache as fast.
    let apart = "[constant reduce] [constant multiply reduce] tuple";
    outlines(&sums("32,64", "0", "64", both), apart);
    // One needs the other, by what is no part of a fusion.
    outlines(
        &sums(
            "1024,64",
            "0",
            "64",
            "w = f32[64,64] parameter(1)
             p = f32[64] dot(t, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
             b = f32[1024,64] broadcast(p), dimensions={1} d = f32[1024,64] subtract(x, b)
             u = f32[64] reduce(d, z), dimensions={0}, to_apply=max
             ROOT r = (f32[64], f32[64]) tuple(s, u)",
        ),
        "[constant multiply reduce] dot [constant reduce broadcast subtract reduce tuple] \
         get-tuple-element get-tuple-element tuple",
    );
    // One is used at other points than it is at, of an array with as many rows as columns.
    outlines(
        "x = f32[256,256] parameter(0) z = f32[] constant(0)
         k = f32[256] reduce(x, z), dimensions={1}, to_apply=add
         b = f32[256,256] broadcast(k), dimensions={1} p = f32[256,256] multiply(x, b)
         s = f32[256] reduce(p, z), dimensions={1}, to_apply=add
         ROOT r = (f32[256], f32[256]) tuple(k, s)",
        "[constant reduce] [constant broadcast multiply reduce] tuple",
    );
    // The sum is of use where the array is read again.
    outlines(
        "x = f32[1024,64] parameter(0) z = f32[] constant(0)
         s = f32[1024] reduce(x, z), dimensions={1}, to_apply=add
         b = f32[1024,64] broadcast(s), dimensions={0} d = f32[1024,64] divide(x, b)
         m = f32[1024] reduce(x, z), dimensions={1}, to_apply=max
         ROOT r = (f32[1024,64], f32[1024]) tuple(d, m)",
        "[constant reduce broadcast divide] [constant reduce] tuple",
    );
}

#[test]
fn what_follows_a_reduction_joins_it() {
    outlines(
        "x = f32[10,100] parameter(0) z = f32[] constant(0) q = f32[10,100] multiply(x, x)
         s = f32[10] reduce(q, z), dimensions={1}, to_apply=add ROOT r = f32[10] sqrt(s)",
        "[constant multiply reduce sqrt]",
    );
}

/// Constants are no arrays, even if they are shared, and stand before all that uses them: sums of `count` powers, one
/// before a product and one behind it.
#[test]
fn constants_do_not_count_as_arrays() {
    use std::fmt::Write;
    let fusions = |count: usize| {
        let mut text = "x = f32[8,8] parameter(0) ".to_owned();
        for i in 0..count {
            let _ = write!(
                text,
                "c{i} = f32[] constant({i}.5) b{i} = f32[8,8] broadcast(c{i}), dimensions={{}} "
            );
        }
        let polynomial = |text: &mut String, from: &str, name: &str| {
            let mut last = "b0".to_owned();
            for i in 1..count {
                let _ = write!(
                    text,
                    "{name}m{i} = f32[8,8] multiply({last}, {from}) {name}a{i} = f32[8,8] add({name}m{i}, b{i}) "
                );
                last = format!("{name}a{i}");
            }
            last
        };
        let first = polynomial(&mut text, "x", "p");
        let _ = write!(
            text,
            "d = f32[8,8] dot({first}, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} "
        );
        let second = polynomial(&mut text, "d", "q");
        let _ = write!(text, "ROOT n = f32[8,8] negate({second})");
        let outline = outline(&format!("{ADD} ENTRY e {{ {text} }}"));
        let outside = outline.split('[').map(|part| part.rsplit(']').next().unwrap_or_default());
        assert!(
            !outside.collect::<String>().contains("broadcast"),
            "constants are arrays: {outline}"
        );
        outline.matches('[').count()
    };
    assert_eq!(fusions(40), 2);
    // As many as there is room for, with their constants.
    assert!((3..=8).contains(&fusions(120)), "{}", fusions(120));
}

#[test]
fn costly_values_are_not_computed_again_and_again() {
    // Each of 4 elements is needed for 100 points.
    outlines(
        "x = f32[4] parameter(0) y = f32[100,4] parameter(1) e = f32[4] exponential(x)
         b = f32[100,4] broadcast(e), dimensions={1} ROOT r = f32[100,4] add(b, y)",
        "[exponential] [broadcast add]",
    );
}

#[test]
fn stencils_of_stencils_are_cut() {
    // Each step reads three places: the second is computed at nine within the fourth.
    let mut text = "x0 = f32[1000] parameter(0)".to_owned();
    for step in 1..=4 {
        let (from, short) = (step - 1, 1000 - 2 * step);
        for (name, first) in [("a", 0), ("b", 1), ("c", 2)] {
            let range = format!("{first}:{}", first + short);
            text += &format!(" {name}{step} = f32[{short}] slice(x{from}), slice={{[{range}]}}");
        }
        text += &format!(" d{step} = f32[{short}] add(a{step}, b{step})");
        let root = if step == 4 { "ROOT " } else { "" };
        text += &format!(" {root}x{step} = f32[{short}] add(d{step}, c{step})");
    }
    let two = "slice slice slice add add slice slice slice add add";
    outlines(&text, &format!("[{two}] [{two}]"));
}

#[test]
fn movement_alone_is_left_alone() {
    outlines(
        "x = f32[4,8] parameter(0) y = f32[4,8] parameter(1) t = f32[8,4] transpose(x), dimensions={1,0}
         c = f32[8,8] concatenate(x, y), dimensions={0} s = f32[64] reshape(c)
         ROOT r = (f32[8,4], f32[64]) tuple(t, s)",
        "transpose concatenate reshape tuple",
    );
}

#[test]
fn short_rows_are_put_together_by_a_kernel() {
    outlines(
        "x = f32[40,3] parameter(0) y = f32[40,5] parameter(1)
         ROOT c = f32[40,8] concatenate(x, y), dimensions={1}",
        "[concatenate]",
    );
}

#[test]
fn short_pieces_are_put_together_by_a_kernel() {
    let joined = |ty: &str, pieces: &[usize], expected: &str| {
        let mut text = String::new();
        for (n, piece) in pieces.iter().enumerate() {
            text += &format!("x{n} = {ty}[40,{piece}] parameter({n}) ");
        }
        let names: Vec<String> = (0..pieces.len()).map(|n| format!("x{n}")).collect();
        let (names, row) = (names.join(", "), pieces.iter().sum::<usize>());
        text += &format!("ROOT c = {ty}[40,{row}] concatenate({names}), dimensions={{1}}");
        outlines(&text, expected);
    };
    joined("f32", &[1; 32], "[concatenate]");
    joined("f32", &[1; 33], "concatenate");
    joined("f64", &[13, 13], "[concatenate]");
    // Pieces as long as a vector, and small elements as many as a number has.
    for (ty, pieces) in [("f64", [8, 8]), ("f32", [8, 8]), ("u8", [4, 8]), ("u8", [11, 10])] {
        joined(ty, &pieces, "concatenate");
    }
    joined("u8", &[3, 8], "[concatenate]");
}

#[test]
fn columns_are_transposed_by_a_kernel() {
    let transposed = |ty: &str, from: [usize; 2], expected: &str| {
        let [rows, columns] = from;
        outlines(
            &format!(
                "x = {ty}[{rows},{columns}] parameter(0)
                 ROOT t = {ty}[{columns},{rows}] transpose(x), dimensions={{1,0}}"
            ),
            expected,
        );
    };
    for few in 2..=16 {
        let is_kernel = |is: bool| if is { "[transpose]" } else { "transpose" };
        transposed("f32", [1000, few], is_kernel(few <= 15));
        transposed("u8", [1000, few], is_kernel((5..=15).contains(&few)));
        transposed("f32", [few, 1000], is_kernel((5..=15).contains(&few)));
        transposed("bf16", [few, 1000], is_kernel(few == 3 || (5..=15).contains(&few)));
    }
    transposed("f32", [100, 10], "transpose");
}

#[test]
fn short_rows_are_reversed_by_a_kernel() {
    outlines(
        "x = f32[40,30,3] parameter(0) ROOT r = f32[40,30,3] reverse(x), dimensions={1}",
        "[reverse]",
    );
    for row in [4, 32] {
        outlines(
            &format!(
                "x = f32[9,8,{row}] parameter(0) ROOT r = f32[9,8,{row}] reverse(x), dimensions={{1}}"
            ),
            "reverse",
        );
    }
}

#[test]
fn what_is_copied_twice_is_copied_once() {
    outlines(
        "x = f32[4,8] parameter(0) s = f32[4,3] slice(x), slice={[0:4], [0:3]}
         t = f32[4,5] slice(x), slice={[0:4], [3:8]}
         ROOT c = f32[4,8] concatenate(t, s), dimensions={1}",
        "[slice slice concatenate]",
    );
    outlines(
        "x = f32[4,8] parameter(0) z = f32[] constant(0) t = f32[8,4] transpose(x), dimensions={1,0}
         p = f32[9,4] pad(t, z), padding=0_1x0_0 ROOT r = f32[36] reshape(p)",
        "[constant transpose pad] reshape",
    );
}

#[test]
fn movements_together_are_one() {
    outlines(
        "x = f32[4,8] parameter(0) y = f32[4,8] parameter(1) z = f32[] constant(0)
         c = f32[4,16] concatenate(x, y), dimensions={1} s = f32[4,10] slice(c), slice={[0:4], [3:13]}
         ROOT p = f32[5,10] pad(s, z), padding=0_1x0_0",
        "[constant concatenate slice pad]",
    );
}

#[test]
fn what_is_made_of_a_costly_value_is_computed_with_it() {
    outlines(
        "x = f32[40,8] parameter(0) y = f32[40,8] parameter(1) n = f32[40,8] negate(x)
         e = f32[40,8] exponential(n) m = f32[40,8] multiply(x, e)
         ROOT c = f32[40,16] concatenate(m, y), dimensions={1}",
        "[negate exponential multiply] concatenate",
    );
    // Of one that others take as well, not all is left out.
    outlines(
        "x = f32[40,8] parameter(0) y = f32[40,8] parameter(1)
         e = f32[40,8] exponential(x) m = f32[40,8] multiply(x, e)
         c = f32[40,16] concatenate(m, y), dimensions={1}
         ROOT t = (f32[40,8], f32[40,16]) tuple(e, c)",
        "[exponential] [multiply concatenate] tuple",
    );
}

#[test]
fn costly_values_of_rows_join() {
    outlines(
        "x = f32[4,100] parameter(0) z = f32[] constant(0)
         s = f32[4] reduce(x, z), dimensions={1}, to_apply=add q = f32[4] rsqrt(s)
         b = f32[4,100] broadcast(q), dimensions={0} ROOT r = f32[4,100] multiply(b, x)",
        "[constant reduce rsqrt broadcast multiply]",
    );
}

#[test]
fn copies_elsewhere_do_not_tie_fusions_together() {
    // `n` is computed in both fusions around the product, and `e` once.
    outlines(
        "x = f32[4,4] parameter(0) e = f32[4,4] exponential(x) n = f32[4,4] negate(e)
         d = f32[4,4] dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         m = f32[4,4] add(n, d) p = f32[4,4] dot(m, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         q = f32[4,4] multiply(n, p) ROOT r = f32[4,4] subtract(q, m)",
        "[exponential negate] dot [add] dot [multiply subtract]",
    );
}

#[test]
fn updates_take_in_what_they_store() {
    outlines(
        "x = f32[10,4] parameter(0) u = f32[1,4] parameter(1) i = s32[] parameter(2)
         z = s32[] constant(0) n = f32[1,4] negate(u) y = f32[10,4] negate(x)
         ROOT r = f32[10,4] dynamic-update-slice(y, n, i, z)",
        "[negate] [constant negate dynamic-update-slice]",
    );
}

#[test]
fn long_chains_fall_into_pieces() {
    let mut text = String::from("x0 = f32[4] parameter(0)");
    for i in 1..1000 {
        text += &format!(" x{i} = f32[4] negate(x{})", i - 1);
    }
    text += " ROOT r = f32[4] negate(x999)";
    let found = outline(&format!("ENTRY e {{ {text} }}"));
    assert_eq!(found.matches('[').count(), 5);
}

#[test]
fn an_update_is_fused_with_what_reads_that_very_part() {
    let part = |start: &str| {
        format!(
            "x = f32[9] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2)
             p = f32[2] dynamic-slice(x, {start}), dynamic_slice_sizes={{2}}
             u = f32[2] multiply(p, p) ROOT r = f32[9] dynamic-update-slice(x, u, j)"
        )
    };
    outlines(&part("j"), "[dynamic-slice multiply dynamic-update-slice]");
    outlines(&part("i"), "dynamic-slice [multiply dynamic-update-slice]");
    // One element of the part goes into all others.
    outlines(
        "x = f32[9] parameter(0) j = s32[] parameter(1) k = s32[] parameter(2)
         p = f32[2] dynamic-slice(x, j), dynamic_slice_sizes={2}
         d = f32[1] dynamic-slice(p, k), dynamic_slice_sizes={1} e = f32[] reshape(d)
         b = f32[2] broadcast(e), dimensions={} u = f32[2] multiply(p, b)
         ROOT r = f32[9] dynamic-update-slice(x, u, j)",
        "dynamic-slice [dynamic-slice reshape broadcast multiply dynamic-update-slice]",
    );
}

#[test]
fn a_place_is_known_before_the_loops() {
    let update = |update: &str| {
        format!(
            "x = f32[9] parameter(0) y = f32[17] parameter(1) k = s32[] parameter(2)
             v = f32[] parameter(3) z = f32[] constant(0) n = f32[17] negate(y)
             s = f32[] reduce(n, z), dimensions={{0}}, to_apply=add {update}"
        )
    };
    let to_place = "u = f32[1] broadcast(v), dimensions={} m = s32[] convert(s)
                    ROOT r = f32[9] dynamic-update-slice(x, u, m)";
    outlines(
        &update(to_place),
        "[constant negate reduce] [broadcast convert dynamic-update-slice]",
    );
    let of_value = "u = f32[1] broadcast(s), dimensions={}
                    ROOT r = f32[9] dynamic-update-slice(x, u, k)";
    outlines(&update(of_value), "[constant negate reduce broadcast dynamic-update-slice]");
}

#[test]
fn effects_stay_in_order() {
    // The first call uses what could be computed together with what uses the second one's result.
    outlines(
        "x = f32[4] parameter(0) e = f32[4] exponential(x)
         a = f32[4] custom-call(e), custom_call_target=\"a\"
         b = f32[4] custom-call(), custom_call_target=\"b\"
         ROOT s = f32[4] add(e, b)",
        "[exponential] custom-call custom-call [add]",
    );
    // Without the first one's effect, the two are one fusion.
    outlines(
        "x = f32[4,4] parameter(0) e = f32[4,4] exponential(x)
         a = f32[4,4] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         b = f32[4,4] custom-call(), custom_call_target=\"b\" s = f32[4,4] add(e, b)
         ROOT t = (f32[4,4], f32[4,4]) tuple(a, s)",
        "custom-call [exponential add tuple] get-tuple-element get-tuple-element dot tuple",
    );
}

#[test]
fn control_predecessors_stay_before() {
    outlines(
        "x = f32[4,4] parameter(0) e = f32[4,4] exponential(x)
         a = f32[4,4] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         b = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
           control-predecessors={a}
         s = f32[4,4] add(e, b) n = f32[4,4] negate(s)
         ROOT t = (f32[4,4], f32[4,4]) tuple(a, n)",
        "[exponential] dot dot [add negate] tuple",
    );
}

#[test]
fn what_is_gathered_often_is_computed_before() {
    let text = |places: usize, value: &str| {
        format!(
            "x = f32[144] parameter(0) y = f32[144] parameter(1) at = s32[{places}] parameter(2)
             {value}
             g = f32[{places}] gather(v, at), offset_dims={{}}, collapsed_slice_dims={{0}},
             start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
             ROOT r = f32[{places}] negate(g)"
        )
    };
    outlines(&text(1000, "v = f32[144] maximum(x, y)"), "[maximum] [gather negate]");
    // Few places need little of it, and of one array as much is gathered either way.
    outlines(&text(20, "v = f32[144] maximum(x, y)"), "[maximum gather negate]");
    outlines(&text(1000, "v = f32[144] maximum(x, x)"), "[maximum gather negate]");
    // The same behind what moves no elements.
    let two = "w = f32[144] maximum(x, y) v = f32[144] negate(w)";
    outlines(&text(1000, two), "[maximum] [negate gather negate]");
}
