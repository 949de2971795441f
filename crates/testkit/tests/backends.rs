//! Back ends that are not the code generator's own: programs run on them through the public way of
//! choosing one, and nothing but the back end makes code.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helio::ir::{BinaryOp, Op};
use helio::passes::watch::Watch;
use helio::passes::{OptLevel, PassCx, optimize};
use helio::unstable::codegen::backend::{FunctionArg, all};
use helio::unstable::codegen::kernel::Kernel;
use helio::unstable::codegen::tile::Portable;
use helio::unstable::codegen::{self, Code, CodeOptions, Function, Vouched};
use helio::unstable::ir::Capabilities;
use helio::{Backend, CompileOptions, ElementType, Error, Executable, Limits, Literal, Reason};
use helio_runtime::program::{Action, Step};
use helio_testkit::cases::{self, Case};
use helio_testkit::tally::report;

/// A back end that counts what it is asked, and has another make the code.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn codegen::Backend>,
    /// Questions about its capabilities.
    asked: AtomicUsize,
    /// Kernels that it was given, and for how many of them there was code.
    kernels: AtomicUsize,
    compiled: AtomicUsize,
    /// Calls of the functions that it gave.
    calls: Arc<AtomicUsize>,
}

impl Counting {
    fn new(inner: Arc<dyn codegen::Backend>) -> Arc<Self> {
        let [asked, kernels, compiled] = [const { AtomicUsize::new(0) }; 3];
        Arc::new(Counting { inner, asked, kernels, compiled, calls: Arc::default() })
    }
}

fn count(of: &AtomicUsize) -> usize {
    of.load(Ordering::Relaxed)
}

impl Capabilities for Counting {
    fn holds(&self, ty: ElementType) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.holds(ty)
    }

    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.supports(op, operands, result)
    }
}

impl codegen::Backend for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn is_available(&self) -> bool {
        self.inner.is_available()
    }

    fn vector_bytes(&self) -> usize {
        self.inner.vector_bytes()
    }

    fn shares_buffers(&self) -> bool {
        self.inner.shares_buffers()
    }

    fn joins_loops(&self) -> bool {
        self.inner.joins_loops()
    }

    fn compile(&self, kernel: &Vouched<Kernel>, options: &CodeOptions) -> helio::Result<Code> {
        self.kernels.fetch_add(1, Ordering::Relaxed);
        let code = match self.inner.compile(kernel, options)? {
            Code::Function(function) => {
                Code::Function(Arc::new(Counted { function, calls: Arc::clone(&self.calls) }))
            }
            machine @ Code::Machine(_) => machine,
        };
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Ok(code)
    }
}

/// A function that counts its calls.
struct Counted {
    function: Arc<dyn Function>,
    calls: Arc<AtomicUsize>,
}

impl Function for Counted {
    fn run(&self, args: &mut [FunctionArg<'_>], piece: Range<i64>) -> helio::Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.function.run(args, piece)
    }
}

/// A back end that can add numbers of one type, and nothing else. It claims vectors of another width
/// than any other, and buffers that are shared, which the tile machine's functions then have to serve.
#[derive(Debug)]
struct Adder;

impl Capabilities for Adder {
    fn holds(&self, ty: ElementType) -> bool {
        ty == ElementType::F32
    }

    fn supports(&self, op: &Op, operands: &[ElementType], _: ElementType) -> bool {
        matches!(op, Op::Binary(BinaryOp::Add)) && operands == [ElementType::F32; 2]
    }
}

impl codegen::Backend for Adder {
    fn name(&self) -> &str {
        "adder"
    }

    fn vector_bytes(&self) -> usize {
        32
    }

    fn shares_buffers(&self) -> bool {
        true
    }

    fn joins_loops(&self) -> bool {
        true
    }

    fn compile(&self, kernel: &Vouched<Kernel>, options: &CodeOptions) -> helio::Result<Code> {
        Portable.compile(kernel, options)
    }
}

/// A back end that has the capabilities and properties of another, and code for no kernel.
#[derive(Debug)]
struct Refusing(Arc<dyn codegen::Backend>);

impl Capabilities for Refusing {
    fn holds(&self, ty: ElementType) -> bool {
        self.0.holds(ty)
    }

    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        self.0.supports(op, operands, result)
    }
}

impl codegen::Backend for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn vector_bytes(&self) -> usize {
        self.0.vector_bytes()
    }

    fn shares_buffers(&self) -> bool {
        self.0.shares_buffers()
    }

    fn joins_loops(&self) -> bool {
        self.0.joins_loops()
    }

    fn compile(&self, _: &Vouched<Kernel>, _: &CodeOptions) -> helio::Result<Code> {
        Err(Error::unimplemented("no code for any kernel"))
    }
}

/// A back end whose vectors have as many bytes as the first number says, and short ones as the second.
#[derive(Debug)]
struct Wide(usize, usize);

impl Capabilities for Wide {
    fn holds(&self, ty: ElementType) -> bool {
        Portable.holds(ty)
    }

    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        Portable.supports(op, operands, result)
    }
}

impl codegen::Backend for Wide {
    fn name(&self) -> &str {
        "wide"
    }

    fn vector_bytes(&self) -> usize {
        self.0
    }

    fn short_vector_bytes(&self) -> usize {
        self.1
    }

    fn shares_buffers(&self) -> bool {
        false
    }

    fn joins_loops(&self) -> bool {
        false
    }

    fn compile(&self, kernel: &Vouched<Kernel>, options: &CodeOptions) -> helio::Result<Code> {
        Portable.compile(kernel, options)
    }
}

fn all_cases() -> impl Iterator<Item = Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    cases::files_below(&dir).into_iter().flat_map(|file| cases::read(&file))
}

/// How many steps of a plan call machine code, and how many call kernels behind safe functions, the
/// runtime's own among them.
#[derive(Default)]
struct Steps {
    machine: usize,
    safe: usize,
}

impl Steps {
    fn of(program: &Executable) -> Self {
        let mut steps = Steps::default();
        program.plan().into_iter().for_each(|plan| steps.add(&plan.parts().steps));
        steps
    }

    fn add(&mut self, steps: &[Step]) {
        for step in steps {
            match &step.action {
                Action::Raw { .. } => self.machine += 1,
                Action::Finished(_) => {
                    self.machine += 1;
                    self.safe += 1;
                }
                Action::Kernel { .. } => self.safe += 1,
                Action::While(step) => {
                    self.add(&step.cond);
                    self.add(&step.body);
                }
                Action::Branch(step) => step.branches.iter().for_each(|steps| self.add(steps)),
                Action::Host { .. } | Action::Copy { .. } | Action::Part(_) => {}
            }
        }
    }
}

/// Runs all cases on a back end; gives the programs that were compared.
fn run_cases(backend: &Backend) -> Vec<Executable> {
    let (mut failures, mut programs) = (Vec::new(), Vec::new());
    for case in all_cases() {
        match case.check_on(backend) {
            Ok(program) => programs.extend(program),
            Err(failure) => failures.push(failure),
        }
    }
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
    assert!(programs.len() > 900, "only {} cases", programs.len());
    programs
}

fn reasons(programs: &[Executable], reason: Reason) -> usize {
    programs.iter().flat_map(Executable::interpreted).filter(|i| i.reason == reason).count()
}

/// A back end wrapped around each of the generator's own: all code that runs was made by it.
#[test]
fn all_code_is_made_by_the_back_end() {
    for inner in all().into_iter().filter(|inner| inner.is_available()) {
        let name = inner.name().to_owned();
        let counting = Counting::new(inner);
        let programs = run_cases(&Backend::Compiler(counting.clone()));
        let machine: usize = programs.iter().map(|program| Steps::of(program).machine).sum();
        let [asked, kernels, compiled, calls] =
            [&counting.asked, &counting.kernels, &counting.compiled, &*counting.calls].map(count);
        report(format_args!(
            "{name}, counted: {} programs, {asked} questions, {kernels} kernels, {compiled} compiled, \
             {machine} steps of machine code, {calls} calls of functions",
            programs.len()
        ));
        assert!(asked > 5000 && kernels > 700, "{name}: {asked} questions, {kernels} kernels");
        let is_told = reasons(&programs, Reason::NoMachineCode) > 0;
        assert_eq!(kernels > compiled, is_told, "{name}");
        match &*name {
            "portable" => assert!(machine == 0 && calls > 700, "{machine} {calls}"),
            _ => assert!((1..=compiled).contains(&machine) && calls == 0, "{machine} {calls}"),
        }
    }
}

/// Without code by the back end there is no machine code at all, and each kernel is told of.
#[test]
fn without_code_kernels_run_on_the_tile_machine() {
    for inner in all() {
        let programs = run_cases(&Backend::Compiler(Arc::new(Refusing(inner))));
        assert_eq!(programs.iter().map(|program| Steps::of(program).machine).sum::<usize>(), 0);
        let refused = reasons(&programs, Reason::NoMachineCode);
        assert!(refused > 700, "{refused} kernels");
    }
}

/// A back end that can add and nothing else gives the right results all the same: what it cannot do is
/// neither fused nor lowered, but interpreted, and told of.
#[test]
fn what_a_back_end_cannot_do_is_done_without_it() {
    let backend = Backend::Compiler(Arc::new(Adder));
    let programs = run_cases(&backend);
    let interpreted = reasons(&programs, Reason::NoKernel);
    assert!(interpreted > 500, "{interpreted} instructions");

    let text = "ENTRY e { x = f32[3] parameter(0) y = f32[3] parameter(1)
        n = s32[3] parameter(2) sum = f32[3] add(x, y) more = f32[3] add(sum, x)
        root = f32[3] sqrt(more) m = s32[3] add(n, n)
        ROOT r = (f32[3], s32[3]) tuple(root, m) }";
    let mut options = CompileOptions::default();
    options.backend = backend;
    let program = helio::compile(helio::parse(text).unwrap(), &options).unwrap();
    let found: Vec<_> = program.interpreted().iter().map(|i| (&*i.instruction, i.reason)).collect();
    assert_eq!(found, [("root", Reason::NoKernel), ("m", Reason::NoKernel)]);
    let x = Literal::array([3], vec![1f32, 2.0, 4.0]).unwrap();
    let y = Literal::array([3], vec![2f32, 0.0, 1.0]).unwrap();
    let n = Literal::array([3], vec![1i32, -2, 3]).unwrap();
    let result = program.run(&[x, y, n]).unwrap();
    let [root, m] = result.leaves()[..] else { panic!("two arrays") };
    assert_eq!(root.as_array().unwrap().as_slice::<f32>().unwrap(), [2.0, 2.0, 3.0]);
    assert_eq!(m.as_array().unwrap().as_slice::<i32>().unwrap(), [2, -4, 6]);
}

fn optimized(text: &str, backend: &dyn codegen::Backend) -> Option<String> {
    let module = helio::parse(text).and_then(helio::ir::verify).ok()?;
    let watch = Watch::new(&module, &Limits::default());
    let module = optimize(module, OptLevel::Default, &PassCx::new(&watch, backend)).ok()?;
    Some(helio::print(&module))
}

/// Back ends of equal capabilities get equal modules, whatever else they are, and passes ask for no
/// code; fewer capabilities make other modules.
#[test]
fn passes_ask_for_capabilities_alone() {
    let counting = Counting::new(Arc::new(Portable));
    let (mut equal, mut others) = (0, 0);
    for case in all_cases() {
        let Some(expected) = optimized(&case.text, &*counting) else { continue };
        equal += 1;
        for backend in all() {
            assert_eq!(optimized(&case.text, &*backend).as_ref(), Some(&expected), "{}", case.name);
        }
        others += usize::from(optimized(&case.text, &Adder).as_ref() != Some(&expected));
    }
    assert!(equal > 900 && others > 300, "{equal} modules, {others} others");
    assert!(count(&counting.asked) > 5000, "{:?}", counting.asked);
    assert_eq!(count(&counting.kernels), 0);
}

/// Names choose back ends; a processor's that is not this one's is replaced, and that is told of.
#[test]
fn back_ends_have_names() {
    for name in Backend::names() {
        let mut options = CompileOptions::default();
        options.backend = Backend::named(&name).unwrap();
        let text = "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }";
        let program = helio::compile(helio::parse(text).unwrap(), &options).unwrap();
        let is_here = all().iter().all(|backend| backend.name() != name || backend.is_available());
        let replaced = program.interpreted().iter().any(|i| i.reason == Reason::NoInstructions);
        assert!(replaced != is_here || name == "cpu", "{name}");
        let x = Literal::array([2], vec![1f32, -2.0]).unwrap();
        let y = program.run(&[x]).unwrap();
        assert_eq!(y.as_array().unwrap().as_slice::<f32>().unwrap(), [-1.0, 2.0], "{name}");
    }
    let error = Backend::named("x86-64-v9").unwrap_err();
    assert!(error.detail().contains("interpreter, x86-64-v4"), "{error}");
}

/// Vectors that kernels cannot be written for are an error, and no others. (A cosine has one recipe for vectors of any width.)
#[test]
fn vectors_have_a_width_within_bounds() {
    let text = "ENTRY e { x = f32[70] parameter(0) y = f32[70] cosine(x)
        z = f64[70] convert(y) ROOT w = (f32[70], f64[70]) tuple(y, z) }";
    let compile = |backend| {
        let mut options = CompileOptions::default();
        options.backend = backend;
        helio::compile(helio::parse(text).unwrap(), &options)
    };
    let x = helio::random_arguments(&compile(Backend::Cpu).unwrap().program_shape().params, 3);
    let x = x.unwrap();
    let bytes_of = |program: Executable| -> Vec<Vec<u8>> {
        let result = program.run(&x).unwrap();
        let arrays = result.leaves().into_iter().filter_map(Literal::as_array);
        arrays.map(|array| array.to_bytes().into_owned()).collect()
    };
    let expected = bytes_of(compile(Backend::named("portable").unwrap()).unwrap());
    for bytes in [0, 1, 8, 12, 15, 16, 24, 32, 64, 100, 128, 256, 512, 1 << 20, usize::MAX] {
        let program = compile(Backend::Compiler(Arc::new(Wide(bytes, bytes))));
        match program {
            Ok(program) => {
                assert!([16, 32, 64, 128, 256].contains(&bytes), "{bytes}");
                assert_eq!(bytes_of(program), expected, "{bytes}");
            }
            Err(errors) => {
                assert!(!(16..=256).contains(&bytes) || !bytes.is_power_of_two(), "{bytes}");
                let detail = errors[0].detail();
                assert!(detail.contains("wide") && detail.contains(&bytes.to_string()), "{detail}");
            }
        }
    }
    for short in [0, 8, 12, 16, 24, 32, 64, 128, usize::MAX] {
        let program = compile(Backend::Compiler(Arc::new(Wide(64, short))));
        assert_eq!(program.is_ok(), [16, 32, 64].contains(&short), "{short}");
    }
}
