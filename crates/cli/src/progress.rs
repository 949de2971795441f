//! A sign of life during long work: on a terminal only, and only when it takes a while.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shows a spinner with `message` while it lives, from a second on.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn start(message: impl Into<String>) -> Self {
        // Hidden by itself where standard error is no terminal.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(message.into());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
