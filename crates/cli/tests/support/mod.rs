//! What tests of the program share.
#![allow(dead_code)] // Each test program uses a part of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use helio::Array;
use helio::data::{self, Tensor};

/// A directory of its own for each test, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("helio-cli-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub fn arrays(&self, name: &str, arrays: &[(&str, Array)]) -> PathBuf {
        let tensors = arrays.iter().map(|(name, a)| ((*name).to_owned(), Tensor::from_array(a)));
        data::write(self.path(name), &tensors.collect()).unwrap();
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn helio(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_helio")).args(args).output().unwrap()
}

pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
pub fn expect_status(output: &Output, status: i32) {
    let (out, err) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(status), "stdout:\n{out}\nstderr:\n{err}");
}
