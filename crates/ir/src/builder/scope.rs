//! What instructions carry besides their operation: metadata, shardings, attributes; and the
//! attributes of the module.

use std::sync::Arc;

use super::{XlaBuilder, XlaOp};
use crate::text::attrs::quote;
use crate::{
    AliasKind, BackendConfig, Error, Extra, InputOutputAlias, Location, Metadata, Result, Sharding,
};

/// What the next instructions carry.
#[derive(Default)]
pub(super) struct Scope {
    metadata: Option<Arc<Metadata>>,
    one_shot_metadata: Option<Arc<Metadata>>,
    sharding: Option<Sharding>,
    frontend_attributes: Vec<(String, String)>,
    /// Where they stand; `None` for the place of the call that makes each.
    place: Option<Location>,
}

impl Scope {
    /// What the framework says of the next instruction.
    pub(super) fn metadata(&self) -> Option<&Metadata> {
        self.one_shot_metadata.as_deref().or(self.metadata.as_deref())
    }

    /// For the next instruction.
    pub(super) fn extra(&mut self) -> Option<Box<Extra>> {
        let metadata = self.one_shot_metadata.take().or_else(|| self.metadata.clone());
        let plain =
            metadata.is_none() && self.sharding.is_none() && self.frontend_attributes.is_empty();
        (!plain).then(|| {
            Box::new(Extra {
                metadata,
                sharding: self.sharding.clone(),
                frontend_attributes: self.frontend_attributes.clone(),
                ..Extra::default()
            })
        })
    }
}

impl XlaBuilder {
    /// The metadata of all instructions from now on. Source: XLA's `XlaBuilder::SetOpMetadata`.
    pub fn set_op_metadata(&self, metadata: Metadata) {
        self.state.borrow_mut().scope.metadata = Some(metadata.into());
    }

    /// The metadata of the next instruction only. Source: XLA's `SetOneShotOpMetadata`.
    pub fn set_one_shot_op_metadata(&self, metadata: Metadata) {
        self.state.borrow_mut().scope.one_shot_metadata = Some(metadata.into());
    }

    /// No metadata from now on. Source: XLA's `ClearOpMetadata`.
    pub fn clear_op_metadata(&self) {
        self.state.borrow_mut().scope.metadata = None;
    }

    /// Runs `body`; the instructions it makes have this metadata.
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Metadata, Shape, builder::XlaBuilder};
    /// let b = XlaBuilder::new("b");
    /// let x = b.parameter(0, Shape::scalar(F32), "x");
    /// let metadata = Metadata { op_name: Some("layer1/tanh".to_owned()), ..Metadata::default() };
    /// let y = b.with_op_metadata(metadata, || x.tanh());
    /// # b.build()?;
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    pub fn with_op_metadata<T>(&self, metadata: Metadata, body: impl FnOnce() -> T) -> T {
        let before = self.state.borrow_mut().scope.metadata.replace(metadata.into());
        let result = body();
        self.state.borrow_mut().scope.metadata = before;
        result
    }

    /// Runs `body`; the instructions it makes, and its errors, stand at this place instead of where
    /// the builder is called: for functions on top of this builder, whose callers care for their own
    /// lines.
    pub fn with_place<T>(&self, place: Location, body: impl FnOnce() -> T) -> T {
        let before = self.state.borrow_mut().scope.place.replace(place);
        let result = body();
        self.state.borrow_mut().scope.place = before;
        result
    }

    /// The place of what is made now.
    #[track_caller]
    pub(super) fn place(&self) -> Location {
        let caller = Location::caller();
        self.state.borrow().scope.place.clone().unwrap_or(caller)
    }

    /// The sharding of all instructions from now on, as HLO text has it between the braces
    /// (`replicated`, `devices=[2,1]0,1`). Errors: `builder.C8`. Source: XLA's `SetSharding`.
    #[track_caller]
    pub fn set_sharding(&self, sharding: &str) {
        match ensure_balanced(sharding).and_then(|()| Sharding::read(sharding)) {
            Ok(sharding) => self.state.borrow_mut().scope.sharding = Some(sharding),
            Err(error) => drop(self.report_error(error)),
        }
    }

    /// No sharding from now on. Source: XLA's `ClearSharding`.
    pub fn clear_sharding(&self) {
        self.state.borrow_mut().scope.sharding = None;
    }

    /// Runs `body`; the instructions it makes have this sharding. Errors: `builder.C8`. Source:
    /// XLA's `XlaScopedShardingAssignment`.
    #[track_caller]
    pub fn with_sharding<T>(&self, sharding: &str, body: impl FnOnce() -> T) -> T {
        let before = self.state.borrow().scope.sharding.clone();
        self.set_sharding(sharding);
        let result = body();
        self.state.borrow_mut().scope.sharding = before;
        result
    }

    /// Attributes of the front end for all instructions from now on, instead of those set before.
    /// Errors: `builder.C8`. Source: XLA's `SetFrontendAttributes`.
    #[track_caller]
    pub fn set_frontend_attributes(&self, attributes: &[(&str, &str)]) {
        let attributes: Result<_> =
            attributes.iter().map(|(name, value)| frontend_attribute(name, value)).collect();
        match attributes {
            Ok(attributes) => self.state.borrow_mut().scope.frontend_attributes = attributes,
            Err(error) => drop(self.report_error(error)),
        }
    }

    /// No attributes of the front end from now on. Source: XLA's `ClearFrontendAttributes`.
    pub fn clear_frontend_attributes(&self) {
        self.state.borrow_mut().scope.frontend_attributes.clear();
    }

    /// Runs `body`; the instructions it makes have these attributes of the front end. Errors:
    /// `builder.C8`. Source: XLA's `XlaScopedFrontendAttributesAssignment`.
    #[track_caller]
    pub fn with_frontend_attributes<T>(
        &self,
        attributes: &[(&str, &str)],
        body: impl FnOnce() -> T,
    ) -> T {
        let before = self.state.borrow().scope.frontend_attributes.clone();
        self.set_frontend_attributes(attributes);
        let result = body();
        self.state.borrow_mut().scope.frontend_attributes = before;
        result
    }

    /// The thread that the computation is for, if not the main one; see
    /// [`XlaBuilder::async_start`].
    pub fn set_execution_thread(&self, thread: Option<&str>) {
        self.state.borrow_mut().set_execution_thread(thread);
    }

    /// Lets an output of the program reuse the buffer of an input; both named by their path
    /// through nested tuples. Takes effect in programs, not in computations that others call.
    /// Source: XLA's `XlaBuilder::SetUpAlias`.
    pub fn set_up_alias(
        &self,
        output: &[usize],
        parameter: usize,
        parameter_index: &[usize],
        kind: AliasKind,
    ) {
        self.state.borrow_mut().config.input_output_alias.push(InputOutputAlias {
            output: output.to_vec(),
            parameter,
            parameter_index: parameter_index.to_vec(),
            kind,
        });
    }

    /// Gives up the buffer of an input for any output. Source: XLA's `AddBufferDonor`.
    pub fn add_buffer_donor(&self, parameter: usize, parameter_index: &[usize]) {
        let donor = (parameter, parameter_index.to_vec());
        self.state.borrow_mut().config.buffer_donors.push(donor);
    }

    /// Changes what an instruction carries. Errors: those of `change`, `builder.C1`.
    #[track_caller]
    fn change(&self, op: &XlaOp, change: impl FnOnce(&mut Extra) -> Result<()>) {
        let changed = self.id(op).and_then(|id| change(self.state.borrow_mut().extra_mut(id)));
        if let Err(error) = changed {
            self.report_error(error);
        }
    }
}

impl XlaOp {
    /// Gives this instruction an attribute of the front end, instead of one of the same name.
    /// Errors: `builder.C8`. Source: XLA's `SetInstructionFrontendAttribute`.
    #[track_caller]
    pub fn set_frontend_attribute(&self, name: &str, value: &str) {
        self.builder.change(self, |extra| {
            let attribute = frontend_attribute(name, value)?;
            extra.frontend_attributes.retain(|(known, _)| *known != attribute.0);
            extra.frontend_attributes.push(attribute);
            Ok(())
        });
    }

    /// Gives this instruction a sharding, as HLO text has it between the braces, or takes it away.
    /// Errors: `builder.C8`. Source: XLA's `SetInstructionSharding`.
    #[track_caller]
    pub fn set_sharding(&self, sharding: Option<&str>) {
        self.builder.change(self, |extra| {
            sharding.map_or(Ok(()), ensure_balanced)?;
            extra.sharding = sharding.map(Sharding::read).transpose()?;
            Ok(())
        });
    }

    /// Gives this instruction metadata of its own.
    #[track_caller]
    pub fn set_metadata(&self, metadata: Metadata) {
        self.builder.change(self, |extra| {
            extra.metadata = Some(metadata.into());
            Ok(())
        });
    }

    /// Makes this instruction run after another, without using its value. Errors: `builder.C1`, and
    /// `InvalidArgument` if the other one was not made before.
    #[track_caller]
    pub fn add_control_predecessor(&self, predecessor: impl AsRef<XlaOp>) {
        let before = self.builder.id(predecessor.as_ref());
        let this = self.builder.id(self);
        self.builder.change(self, |extra| {
            let (before, this) = (before?, this?);
            if before >= this {
                return Err(Error::invalid("a control predecessor was made after its successor"));
            }
            if !extra.control_predecessors.contains(&before) {
                extra.control_predecessors.push(before);
            }
            Ok(())
        });
    }

    /// Gives this instruction a configuration for the back end: a string, kept as it is.
    #[track_caller]
    pub fn set_backend_config(&self, config: &str) {
        self.configure(BackendConfig::of(config));
    }

    /// Gives this instruction a configuration for the back end, or the function that it calls.
    #[track_caller]
    pub(super) fn configure(&self, config: BackendConfig) {
        self.builder.change(self, |extra| {
            extra.backend_config = Some(config);
            Ok(())
        });
    }
}

/// Name and value as HLO text has them: a braced map as it is, all else in quotes.
fn frontend_attribute(name: &str, value: &str) -> Result<(String, String)> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    crate::ensure!(
        !name.is_empty() && name.chars().all(allowed),
        "builder.C8",
        "`{name}` cannot be the name of an attribute: letters, digits, `_`, `-`, `.` are allowed"
    );
    let braced = value.starts_with('{') && value.ends_with('}');
    let value =
        if braced && ensure_balanced(value).is_ok() { value.to_owned() } else { quote(value) };
    Ok((name.to_owned(), value))
}

/// Errors: `builder.C8` unless the text is one word, as HLO text has it without quotes.
pub(super) fn ensure_word(text: &str) -> Result<()> {
    crate::ensure!(
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        "builder.C8",
        "`{text}` is not a word of letters, digits and `_`"
    );
    Ok(())
}

/// Errors: `builder.C8` unless all brackets and quotes close in order.
pub(super) fn ensure_balanced(text: &str) -> Result<()> {
    let unbalanced = |what| {
        Err(Error::rule("builder.C8", format!("{what} in `{text}`, which stands in HLO text")))
    };
    let mut open = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return unbalanced("a bracket is not open"),
            '"' => loop {
                match chars.next() {
                    Some('"') => break,
                    Some('\\') => drop(chars.next()),
                    Some(_) => {}
                    None => return unbalanced("a string does not end"),
                }
            },
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { unbalanced("a bracket stays open") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert!(ensure_word("kLoop").is_ok());
        for bad in ["", "kLoop, calls=f", "{}"] {
            assert_eq!(ensure_word(bad).unwrap_err().rule_id(), Some("builder.C8"), "{bad}");
        }
    }

    #[test]
    fn brackets_balance() {
        for good in ["", "replicated", "devices=[2,1]0,1", r#"{a="}", b=(1)}"#, r#""\"{""#] {
            assert!(ensure_balanced(good).is_ok(), "{good}");
        }
        for bad in ["}", "(]", "{", r#""abc"#, r#""\"#] {
            assert_eq!(ensure_balanced(bad).unwrap_err().rule_id(), Some("builder.C8"), "{bad}");
        }
    }
}
