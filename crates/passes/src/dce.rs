//! The pass that removes instructions whose values nobody takes.

use helio_ir::{Module, Result};

use crate::draft::Draft;
use crate::pass::PassCx;
use crate::rebuild::{drop_unused, rebuild};

/// Drops instructions whose values nobody takes (those with effects stay), and computations that
/// nobody calls.
pub(crate) fn remove_dead_code(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let module = rebuild(module, cx.watch, |new, computation| {
        let (draft, root) = Draft::of(new, computation);
        draft.finish(root)
    })?;
    // The callers of computations may be gone now.
    drop_unused(module, cx.watch)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn dead_code() {
        check(
            "remove-dead-code",
            "
            unused { x = f32[] parameter(0)  ROOT y = f32[] negate(x) }
            used { x = f32[] parameter(0)  dead = f32[] abs(x)  ROOT y = f32[] negate(x) }
            ENTRY e {
              x = f32[] parameter(0)
              unused_parameter = f32[] parameter(1)
              dead = f32[] call(x), to_apply=unused
              y = f32[] call(x), to_apply=used
              token = token[] after-all()
              sent = token[] outfeed(y, token), outfeed_shape=f32[]
              ROOT z = f32[] abs(y)
            }",
            "
            used { x = f32[] parameter(0)  ROOT y = f32[] negate(x) }
            ENTRY e {
              x = f32[] parameter(0)
              unused_parameter = f32[] parameter(1)
              y = f32[] call(x), to_apply=used
              token = token[] after-all()
              sent = token[] outfeed(y, token), outfeed_shape=f32[]
              ROOT z = f32[] abs(y)
            }",
        );
    }
}
