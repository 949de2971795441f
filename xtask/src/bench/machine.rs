//! Which kind of machine this is: what times of programs depend on before all else.

use std::fs;

/// Sets of instructions that kernels are chosen by.
const FEATURES: [&str; 7] =
    ["avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd"];

/// The processor's maker and family, and which of [`FEATURES`] it has: machines of one name are alike.
/// Errors: the system does not say.
pub(super) fn kind() -> Result<String, String> {
    let path = "/proc/cpuinfo";
    let info = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    Ok(kind_of(&info))
}

fn kind_of(info: &str) -> String {
    let field = |names: [&str; 2]| {
        let mut fields = info.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(key, _)| names.contains(&key.trim()));
        found.map_or("", |(_, value)| value.trim())
    };
    let maker = field(["vendor_id", "CPU implementer"]);
    let family = field(["cpu family", "CPU architecture"]);
    let has: Vec<&str> = field(["flags", "Features"]).split_whitespace().collect();
    let features = FEATURES.into_iter().filter(|feature| has.contains(feature));
    [maker, family].into_iter().chain(features).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_kind_is_maker_family_and_features() {
        let info = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 173\n\
                    flags\t\t: fpu avx2 avx512f amx_tile sse2\nflags\t: none\n";
        assert_eq!(super::kind_of(info), "GenuineIntel 6 avx2 avx512f amx_tile");
    }
}
