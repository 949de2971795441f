//! Compiles the calls of MPI, and finds its library: with the feature `mpi` only.

fn main() {
    println!("cargo::rerun-if-changed=src/calls.c");
    #[cfg(feature = "mpi")]
    mpi::build();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::process::Command;

    /// The compiler of MPI, which knows where its headers and its library are.
    const COMPILER: &str = "mpicc";

    /// Ends the build with what is missing, if something is.
    pub(super) fn build() {
        // Both Open MPI and MPICH print the command that they would run.
        let shown = Command::new(COMPILER).arg("-show").output();
        let shown = shown.ok().filter(|output| output.status.success()).unwrap_or_else(|| {
            panic!(
                "the feature `mpi` needs MPI and its compiler {COMPILER}, which does not run: \
                 apt-get install -y libopenmpi-dev openmpi-bin"
            )
        });
        cc::Build::new().compiler(COMPILER).file("src/calls.c").compile("helio_processes_calls");
        for word in String::from_utf8_lossy(&shown.stdout).split_whitespace() {
            if let Some(directory) = word.strip_prefix("-L") {
                println!("cargo::rustc-link-search=native={directory}");
            } else if let Some(library) = word.strip_prefix("-l") {
                println!("cargo::rustc-link-lib={library}");
            }
        }
    }
}
