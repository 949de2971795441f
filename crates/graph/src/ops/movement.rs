//! Broadcasts, rebinds, reshapes.

use helio::Error;

use crate::graph::TensorType;
use crate::{Shape, Tensor};

impl Tensor {
    /// Repeats the tensor to a shape: dimensions are added in front, and those of size 1 stretch.
    /// Errors: `broadcast.C2`. Source: NumPy's `broadcast_to`.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        self.call("broadcast_to", |ty| {
            let shape = shape.into();
            if ty.shape == shape {
                return Ok(self.clone());
            }
            let fits = ty.shape.broadcast(&shape).is_ok_and(|found| found == shape);
            if !fits {
                let detail = format!("{} does not broadcast to {shape}", ty.shape);
                return Err(Error::rule("broadcast.C2", detail));
            }
            let first = shape.rank() - ty.shape.rank();
            let axes: Vec<usize> = (first..shape.rank()).collect();
            let ty = TensorType::new(ty.dtype, shape);
            self.graph().emit(&[self], ty.clone(), move |emit, x| {
                Ok(x[0].broadcast_in_dim(&emit.sizes(&ty.shape)?, &axes))
            })
        })
    }

    /// The same tensor under a shape that is asserted to be equal to its own whenever the program is
    /// called; a call for which it is not fails with `call.C3`. A name that no input has may be
    /// given to a dimension so. Errors: `rebind.C1` if the ranks differ, or sizes that are known
    /// already; `dim.C1`. Source: MAX's `rebind`.
    #[track_caller]
    pub fn rebind(&self, shape: impl Into<Shape>) -> Tensor {
        self.call("rebind", |ty| {
            let shape = shape.into();
            shape.ensure_valid()?;
            let refuse = |why| Err(Error::rule("rebind.C1", why));
            if shape.rank() != ty.shape.rank() {
                return refuse(format!("{} cannot be {shape}: the ranks differ", ty.shape));
            }
            let pairs = ty.shape.iter().zip(shape.iter()).enumerate();
            let pairs: Vec<_> = pairs.filter(|(_, (found, required))| found != required).collect();
            for (_, (found, required)) in &pairs {
                if let (Some(found), Some(required)) = (found.size(), required.size()) {
                    return refuse(format!(
                        "{} cannot be {shape}: {found} is not {required}",
                        ty.shape
                    ));
                }
            }
            for (axis, (found, required)) in pairs {
                self.graph().assert_equal(axis, found, required);
            }
            let ty = TensorType::new(ty.dtype, &shape);
            self.graph().emit(&[self], ty, |_, x| Ok(x[0].clone()))
        })
    }
}
