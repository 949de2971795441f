//! The wheel `jax-helio`: the plugin and its Python package, in one file that pip installs.

use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// The name of the distribution in file names, where `-` is `_`.
const NAME: &str = "jax_helio";

/// The most bytes of a wheel: what grows beyond has taken in something that does not belong there.
const MAX_BYTES: usize = 15 << 20;

/// How the plugin is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// As it is published.
    Release,
    /// As `cargo test` builds it, whose work it shares.
    Dev,
}

impl Profile {
    /// The arguments of cargo, and the folder of what they build.
    fn build(self) -> (&'static [&'static str], &'static str) {
        match self {
            Profile::Release => {
                (&["build", "--release", "--locked", "--package", "helio-pjrt"], "target/release")
            }
            Profile::Dev => {
                (&["build", "--locked", "--workspace", "--lib", "--tests"], "target/debug")
            }
        }
    }
}

/// Builds the plugin and writes the wheel to `target/wheels`; gives its path. Errors: what failed.
pub(crate) fn build(profile: Profile) -> Result<PathBuf, String> {
    let root = crate::root();
    let (arguments, folder) = profile.build();
    crate::cargo(arguments)?;
    let library = root.join(folder).join("libhelio_pjrt.so");
    let bytes = fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    let tag = format!("py3-none-manylinux_2_{}_{}", glibc_version(&bytes), std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    let mut files = package(&root.join("python/jax_plugins/helio"))?;
    files.push(("jax_plugins/helio/libhelio_pjrt.so".to_owned(), bytes));
    let info = format!("{NAME}-{version}.dist-info");
    files.push((format!("{info}/METADATA"), metadata(version).into_bytes()));
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: helio xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    files.push((format!("{info}/WHEEL"), wheel.into_bytes()));
    let record = format!("{info}/RECORD");
    let lines = self::record(&files, &record);
    files.push((record, lines.into_bytes()));
    let method = match profile {
        Profile::Release => CompressionMethod::Deflated,
        // Nobody keeps it, and compressing takes longer than building.
        Profile::Dev => CompressionMethod::Stored,
    };
    let archive = zip(&files, method).map_err(|e| format!("the wheel: {e}"))?;
    if profile == Profile::Release && archive.len() > MAX_BYTES {
        return Err(format!("the wheel has {} bytes, more than {MAX_BYTES}", archive.len()));
    }
    let path = root.join(format!("target/wheels/{NAME}-{version}-{tag}.whl"));
    let write = || {
        fs::create_dir_all(root.join("target/wheels"))?;
        fs::write(&path, &archive)
    };
    write().map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// The Python files of the plugin's package in `dir`, by their path in the wheel, in order.
fn package(dir: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = || -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "py")
                && let Some(name) = path.file_name().and_then(|name| name.to_str())
            {
                files.push((format!("jax_plugins/helio/{name}"), fs::read(&path)?));
            }
        }
        files.sort();
        Ok(files)
    };
    read().map_err(|e| format!("{}: {e}", dir.display()))
}

/// The newest version of glibc whose symbols a library names: `28` of 2.28. At least 17, which Rust's
/// standard library needs.
fn glibc_version(library: &[u8]) -> u32 {
    let prefix = b"GLIBC_2.";
    let versions = library.windows(prefix.len() + 2).filter(|bytes| bytes.starts_with(prefix));
    let number = |bytes: &[u8]| {
        let digits: String = bytes[prefix.len()..]
            .iter()
            .map(|&b| b as char)
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().unwrap_or(0)
    };
    versions.map(number).max().unwrap_or(0).max(17)
}

/// The text of `METADATA`.
fn metadata(version: &str) -> String {
    format!(
        "Metadata-Version: 2.1\nName: jax-helio\nVersion: {version}\n\
         Summary: JAX on helio, a tensor compiler in pure Rust\n\
         License: MIT OR Apache-2.0\nRequires-Python: >=3.11\nRequires-Dist: jax>=0.9.2,<=0.10.2\n"
    )
}

/// The text of `RECORD`, whose path is `record`: each file with its hash and its size in bytes.
fn record(files: &[(String, Vec<u8>)], record: &str) -> String {
    let mut lines = String::new();
    for (name, bytes) in files {
        let hash = base64(&Sha256::digest(bytes));
        let _ = writeln!(lines, "{name},sha256={hash},{}", bytes.len());
    }
    lines + record + ",,\n"
}

/// Base64 in the alphabet for URLs (RFC 4648, section 5), without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0u8; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for digit in 0..=chunk.len() {
            text.push(DIGITS[(word >> (18 - 6 * digit)) as usize & 63] as char);
        }
    }
    text
}

/// A zip archive of these files.
fn zip(files: &[(String, Vec<u8>)], method: CompressionMethod) -> zip::result::ZipResult<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method).unix_permissions(0o644);
    for (name, bytes) in files {
        writer.start_file(name.as_str(), options)?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, without padding.
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn the_newest_glibc_counts() {
        assert_eq!(glibc_version(b"\0GLIBC_2.4\0GLIBC_2.28\0GLIBC_2.17\0"), 28);
        assert_eq!(glibc_version(b"nothing"), 17);
    }
}
