//! What Ctrl-C does.

use std::io::{IsTerminal as _, Write as _};

/// The exit status of a program that a user has interrupted.
const STATUS: i32 = 130;

/// Makes Ctrl-C end the program with status 130 and no trace of its progress on the terminal.
pub(crate) fn install() {
    let end = || {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            // Clears the line, and shows the cursor. Nothing is left to do if standard error is closed.
            let _ = stderr.write_all(b"\r\x1b[2K\x1b[?25h");
        }
        std::process::exit(STATUS);
    };
    // Without a handler the system ends the program, only less tidily.
    let _ = ctrlc::set_handler(end);
}
