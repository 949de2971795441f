//! Shardy's shardings in HLO's terms.
//!
//! A mesh is an array of devices whose axes have names; a sharding says along which axes, major
//! first, each dimension of a value is cut up. HLO numbers devices in the order of tiles instead, so
//! the mesh is transposed: the axes of the dimensions come first, then those along which every
//! device has the same tile, then those along which devices have its summands.

use std::collections::HashMap;

use helio_ir::sharding::{Devices, Placement, SubgroupKind, Subgroups, Tiles};
use helio_ir::text::attrs::Scan;
use helio_ir::{Error, Result, Sharding};

use crate::mlir::{Attribute, Module};

/// Devices in an array with named axes.
#[derive(Clone, Debug, PartialEq)]
struct Mesh {
    /// The axes and how many devices each has, the last one's fastest.
    axes: Vec<(String, usize)>,
    /// The devices in order; none if they are 0, 1, 2 and so on.
    devices: Vec<usize>,
}

/// The meshes of a module by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meshes(HashMap<String, Mesh>);

/// An axis of a mesh, or the part of one: `size` neighbours, each of which stands for `after`
/// devices along the axis.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    axis: usize,
    size: usize,
    after: usize,
}

/// How many devices a mesh may have.
const MAX_DEVICES: usize = 1 << 20;

impl Meshes {
    /// The meshes that a module defines. Errors: one is not of Shardy's form.
    pub(crate) fn of(module: &Module) -> Result<Self> {
        let mut meshes = HashMap::new();
        for op in module.operations.iter().filter(|op| op.name == "sdy.mesh") {
            let (Some(Attribute::String(name)), Some(Attribute::Other(text))) =
                (op.attribute("sym_name"), op.attribute("mesh"))
            else {
                return Err(Error::invalid("`sdy.mesh` needs a name and a mesh").at(op.at.clone()));
            };
            let mesh =
                Mesh::read(text).map_err(|e| e.in_instruction(&op.name).at(op.at.clone()))?;
            meshes.insert(name.clone(), mesh);
        }
        Ok(Meshes(meshes))
    }

    /// `#sdy.sharding<@mesh, [{"x"}, {}], replicated={"y"}>` in HLO's terms. Errors: it is of another
    /// form, or names a mesh or an axis that is not there.
    pub(crate) fn sharding(&self, text: &str) -> Result<Sharding> {
        self.open_sharding(text).map(|found| found.0)
    }

    /// The same, and of each dimension whether it may be cut up further. Errors: as for `sharding`.
    pub(crate) fn open_sharding(&self, text: &str) -> Result<(Sharding, Vec<bool>)> {
        let inner = text.strip_prefix("#sdy.sharding<").and_then(|text| text.strip_suffix('>'));
        let inner = inner.ok_or_else(|| Error::invalid(format!("`{text}` is no sharding")))?;
        let mut scan = Scan::new(inner);
        let own;
        let mesh = if scan.eat("@") {
            let name = scan.word()?;
            self.0.get(name).ok_or_else(|| Error::invalid(format!("there is no mesh `{name}`")))?
        } else {
            scan.expect("mesh")?;
            own = Mesh::in_angles(&mut scan)?;
            &own
        };
        scan.expect(",")?;
        let dims = scan.list('[', ']', |scan| dimension(scan, mesh))?;
        // Axes along which values are whole need no word.
        let mut summed = Vec::new();
        while scan.eat(",") {
            let what = scan.word()?;
            scan.expect("=")?;
            let axes = scan.list('{', '}', |scan| axis(scan, mesh))?;
            match what {
                "replicated" => {}
                "unreduced" => summed = axes,
                _ => {
                    let detail = format!("a sharding with axes that are {what}");
                    return Err(Error::unimplemented(detail));
                }
            }
        }
        scan.end()?;
        let (dims, is_open): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        Ok((mesh.tiled(&dims, &summed)?, is_open))
    }
}

/// The shardings of a list: `[<@m, [{"x"}]>, <@m, [{}]>]`. Errors: text that is no such list.
pub(crate) fn list(text: &str) -> Result<Vec<&str>> {
    let error = || Error::invalid(format!("a list of shardings is needed, found {text}"));
    let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(error)?;
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, None);
    let mut is_quoted = false;
    for (i, c) in inner.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '<' => {
                start.get_or_insert(i);
                depth += 1;
            }
            '>' => {
                depth = depth.checked_sub(1).ok_or_else(error)?;
                if depth == 0 {
                    parts.extend(start.take().map(|start| &inner[start..=i]));
                }
            }
            _ => {}
        }
    }
    Ok(parts)
}

/// Of one of a list of shardings, `<@m, [{"x"}]>`, and the axes of a mesh, `{"x", "y"}`: the sharding of an
/// array whose one dimension is cut up along all of them. `None` if they have no such form.
pub(crate) fn along_axes(sharding: &str, axes: &str) -> Option<String> {
    let mesh = sharding.strip_prefix('<')?.split(", [").next()?;
    let axes = axes.get(axes.find('{')?..=axes.rfind('}')?)?;
    Some(format!("#sdy.sharding<{mesh}, [{axes}]>"))
}

/// `{"x", "y", ?}p1`: the axes of a dimension, and whether it may be cut up further.
fn dimension(scan: &mut Scan<'_>, mesh: &Mesh) -> Result<(Vec<Part>, bool)> {
    let axes = scan.list('{', '}', |scan| match scan.eat("?") {
        true => Ok(None),
        false => axis(scan, mesh).map(Some),
    })?;
    if scan.rest().starts_with('p') {
        scan.word()?;
    }
    let is_open = axes.iter().any(Option::is_none);
    Ok((axes.into_iter().flatten().collect(), is_open))
}

/// `"x"` or `"x":(2)4`
fn axis(scan: &mut Scan<'_>, mesh: &Mesh) -> Result<Part> {
    let name = scan.string()?;
    let at = mesh.axes.iter().position(|(axis, _)| *axis == name);
    let axis = at.ok_or_else(|| Error::invalid(format!("the mesh has no axis `{name}`")))?;
    let whole = mesh.axes[axis].1;
    if !scan.eat(":") {
        return Ok(Part { axis, size: whole, after: 1 });
    }
    scan.expect("(")?;
    let before = scan.size()?;
    scan.expect(")")?;
    let size = scan.size()?;
    let stride = before.checked_mul(size).filter(|&n| n > 0 && whole.is_multiple_of(n));
    let stride = stride.ok_or_else(|| {
        Error::invalid(format!("axis `{name}` of {whole} devices has no part ({before}){size}"))
    })?;
    Ok(Part { axis, size, after: whole / stride })
}

impl Mesh {
    /// `#sdy.mesh<["x"=2, "y"=4], device_ids=[…]>`
    fn read(text: &str) -> Result<Self> {
        let inner = text.strip_prefix("#sdy.");
        let mut scan = Scan::new(inner.unwrap_or(text));
        scan.expect("mesh")?;
        let mesh = Mesh::in_angles(&mut scan)?;
        scan.end()?;
        Ok(mesh)
    }

    fn in_angles(scan: &mut Scan<'_>) -> Result<Self> {
        scan.expect("<")?;
        let axes = scan.list('[', ']', |scan| {
            let name = scan.string()?;
            scan.expect("=")?;
            Ok((name, scan.size()?))
        })?;
        let mut devices = Vec::new();
        if scan.eat(",") {
            scan.expect("device_ids")?;
            scan.expect("=")?;
            devices = scan.list('[', ']', Scan::size)?;
        }
        scan.expect(">")?;
        let count = axes.iter().try_fold(1_usize, |n, (_, size)| n.checked_mul(*size));
        match count {
            Some(count @ 1..=MAX_DEVICES) if devices.is_empty() || devices.len() == count => {}
            _ => return Err(Error::invalid("a mesh has as many devices as its axes say")),
        }
        Ok(Mesh { axes, devices })
    }

    /// The sharding of a value whose dimensions are cut up along these axes, and that has yet to be added
    /// up along others.
    fn tiled(&self, dims: &[Vec<Part>], summed: &[Part]) -> Result<Sharding> {
        // A mesh without axes is one device.
        if let (true, [device]) = (self.axes.is_empty(), &self.devices[..]) {
            return Ok(Sharding::of(Placement::Maximal { device: *device }));
        }
        let used: Vec<&Part> = dims.iter().flatten().chain(summed).collect();
        let parts = self.parts(&used)?;
        let mut order: Vec<usize> = Vec::new();
        for part in &used {
            let place = parts.iter().position(|p| p == *part);
            let place = place.filter(|place| !order.contains(place));
            order.push(place.ok_or_else(|| Error::invalid("a sharding uses an axis twice"))?);
        }
        if used.iter().all(|part| part.size == 1) {
            return Ok(Sharding::of(Placement::Replicated));
        }
        let rest: Vec<usize> = (0..parts.len()).filter(|place| !order.contains(place)).collect();
        let copies: usize = rest.iter().map(|&place| parts[place].size).product();
        let last = order.len() - summed.len();
        order.splice(last..last, rest);
        let size = |dim: &[Part]| dim.iter().map(|part| part.size).product();
        let mut tiles: Vec<usize> = dims.iter().map(|dim| size(dim)).collect();
        let summands = size(summed);
        tiles.extend([copies, summands].into_iter().filter(|&count| count > 1));
        let subgroups = match (copies > 1, summands > 1) {
            (false, false) => Subgroups::None,
            (true, false) => Subgroups::ReplicateLast,
            (false, true) => Subgroups::Kinds(vec![SubgroupKind::Unreduced]),
            (true, true) => {
                Subgroups::Kinds(vec![SubgroupKind::Replicated, SubgroupKind::Unreduced])
            }
        };
        let sizes: Vec<usize> = parts.iter().map(|part| part.size).collect();
        let devices = self.devices_in(&sizes, order);
        Ok(Sharding::of(Placement::Tiled(Tiles { dims: tiles, devices, subgroups })))
    }

    /// All axes in order, each divided where one of the parts in use begins or ends.
    fn parts(&self, used: &[&Part]) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for (axis, (name, whole)) in self.axes.iter().enumerate() {
            let own = used.iter().filter(|part| part.axis == axis);
            let mut cuts: Vec<usize> = own.flat_map(|p| [p.after, p.after * p.size]).collect();
            cuts.extend([1, *whole]);
            cuts.sort_unstable_by(|a, b| b.cmp(a));
            cuts.dedup();
            for pair in cuts.windows(2) {
                if !pair[0].is_multiple_of(pair[1]) {
                    let detail = format!("parts of axis `{name}` overlap");
                    return Err(Error::invalid(detail));
                }
                parts.push(Part { axis, size: pair[0] / pair[1], after: pair[1] });
            }
            if *whole == 1 {
                parts.push(Part { axis, size: 1, after: 1 });
            }
        }
        Ok(parts)
    }

    /// The devices of a mesh with axes of these sizes, whose axes are put into another order.
    fn devices_in(&self, sizes: &[usize], order: Vec<usize>) -> Devices {
        if self.devices.is_empty() {
            let stays = order.iter().copied().eq(0..sizes.len());
            let transpose = (!stays).then_some(order);
            return Devices::Iota { dims: sizes.to_vec(), transpose };
        }
        let mut strides = vec![1; sizes.len()];
        for axis in (1..sizes.len()).rev() {
            strides[axis - 1] = strides[axis] * sizes[axis];
        }
        let mut places = vec![0];
        for &axis in &order {
            let (size, stride) = (sizes[axis], strides[axis]);
            let along = |&at: &usize| (0..size).map(move |i| i * stride + at);
            places = places.iter().flat_map(along).collect();
        }
        Devices::List(places.into_iter().map(|place| self.devices[place]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meshes() -> Meshes {
        let mesh = |text| Mesh::read(text).expect("a mesh");
        let meshes = [
            ("m", mesh(r##"#sdy.mesh<["x"=2, "y"=4]>"##)),
            ("listed", mesh(r##"#sdy.mesh<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>"##)),
            ("one", mesh("#sdy.mesh<[], device_ids=[5]>")),
        ];
        Meshes(meshes.into_iter().map(|(name, mesh)| (name.to_owned(), mesh)).collect())
    }

    fn hlo(dims: &str) -> String {
        let text = format!("#sdy.sharding<{dims}>");
        meshes().sharding(&text).map_or_else(|e| e.to_string(), |sharding| sharding.to_string())
    }

    /// As XLA's own conversion of these writes them, device by device.
    #[test]
    fn shardings_are_tiles() {
        assert_eq!(hlo(r#"@m, [{"x"}, {"y"}]"#), "{devices=[2,4]<=[2,4]}");
        assert_eq!(hlo(r#"@m, [{"y"}, {"x"}]"#), "{devices=[4,2]<=[2,4]T(1,0)}");
        assert_eq!(
            hlo(r#"@m, [{}, {"x", ?}p2]"#),
            "{devices=[1,2,4]<=[2,4] last_tile_dim_replicate}"
        );
        assert_eq!(hlo(r#"@m, [{"y", "x"}]"#), "{devices=[8]<=[2,4]T(1,0)}");
        assert_eq!(
            hlo(r#"@m, [{"y":(2)2}, {}], replicated={"x"}"#),
            "{devices=[2,1,4]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}"
        );
        assert_eq!(
            hlo(r#"@m, [{"x"}], unreduced={"y"}"#),
            "{devices=[2,4]<=[2,4] last_tile_dims={unreduced}}"
        );
        assert_eq!(
            hlo(r#"@m, [{}], unreduced={"x"}"#),
            "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={replicated, unreduced}}"
        );
        assert_eq!(hlo("@m, [{}, {}]"), "{replicated}");
        assert_eq!(hlo("@one, []"), "{maximal device=5}");
        assert_eq!(hlo(r#"@listed, [{"y"}, {"x"}]"#), "{devices=[2,2]3,2,1,0}");
        assert_eq!(hlo(r#"mesh<["a"=2]>, [{"a"}]"#), "{devices=[2]<=[2]}");
    }

    #[test]
    fn wrong_shardings_are_errors() {
        assert!(hlo(r#"@m, [{"z"}]"#).contains("no axis `z`"));
        assert!(hlo(r#"@m, [{"x"}, {"x"}]"#).contains("twice"));
        assert!(hlo(r#"@other, []"#).contains("no mesh `other`"));
        assert!(hlo(r#"@m, [{"y":(3)2}]"#).contains("no part"));
        assert!(hlo(r#"@m, [{"x"}], unreduced={"x"}"#).contains("twice"));
        assert!(hlo(r#"@m, [{}], unheard={"x"}"#).contains("unheard"));
    }
}
