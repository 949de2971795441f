//! Processes that `mpirun` starts: this very test program, as the worker that each test names.
//!
//! They need MPI, and the features that say so: `cargo xtask mpi` runs them.
#![cfg(feature = "mpi")]

mod support;

use std::io::Write;
use std::process::{Child, Command, Output, Stdio, exit};
use std::time::{Duration, Instant};

use helio::ir::text::print_literal;
use helio::{Backend, Error, Literal, Result, RunOptions};
use helio_processes::{Options, Processes};
use helio_testkit::collectives::model::Counts;
use helio_testkit::collectives::{Kind, elements, program};
use support::{Known, numbers, rounds, run_part, sums, sums_of, values, values_in_rounds};

/// The longest that a run may take: machines are busy, and nothing here depends on how fast they are.
const BOUND: Duration = Duration::from_secs(300);

/// Has `mpirun` wait for so many seconds, instead of one, until it kills those that it has told to end.
const PATIENT: [&str; 3] = ["--mca", "odls_base_sigkill_timeout", "10"];

/// Runs a worker in so many processes.
fn mpirun(processes: usize, worker: &str, options: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", &BOUND.as_secs().to_string(), "mpirun"]);
    command.args(["--allow-run-as-root", "--oversubscribe"]);
    command.args(["-n", &processes.to_string()]).args(options);
    command.arg(std::env::current_exe().expect("this program"));
    command.args([worker, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.envs(variables.iter().copied());
    command.output().expect("mpirun")
}

fn texts(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{}\n{out}\n{err}", output.status)
}

/// What a run prints that ends well.
#[track_caller]
fn expect_success(output: &Output) -> String {
    assert!(output.status.success(), "{}", texts(output));
    texts(output)
}

/// A number from the environment of a worker.
fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// What a worker does with the processes; it prints an error, and ends with status 1.
fn work(f: impl FnOnce(&Processes) -> Result<()>) {
    let mut options = Options::default();
    if let Some(ms) = variable("HELIO_SILENCE") {
        options.silence = Duration::from_millis(ms as u64);
    }
    options.own_reduction = variable("HELIO_OWN_REDUCTION").is_some();
    let processes = helio_processes::connect(options).expect("MPI");
    match f(&processes) {
        Ok(()) => processes.close(),
        Err(error) => {
            say(format_args!("process {}: {error}", processes.rank()));
            processes.abandon();
            exit(1);
        }
    }
}

#[test]
#[ignore = "run by mpirun"]
fn worker_collectives() {
    work(|processes| {
        let mut ran = 0;
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            for (j, element) in elements().into_iter().enumerate() {
                let (replicas, partitions) = [(4, 1), (2, 2), (4, 1), (1, 4), (8, 1)][(i + j) % 5];
                let counts = Counts { replicas, partitions };
                let program = program(kind, element, counts, (i * 100 + j) as u64);
                let known = Known::new(&program).map_err(Error::internal)?;
                let backend = if j % 4 == 0 { Backend::Interpreter } else { Backend::Cpu };
                let (run, counts) = (RunOptions::default(), (replicas, partitions));
                let found = run_part(processes, &program.text, counts, &known.args, backend, run)?;
                let assignment = processes.assign(replicas, partitions)?;
                let first = assignment.here().next().unwrap_or(0);
                known.compare(first, &found).map_err(Error::internal)?;
                ran += 1;
            }
        }
        // Sums that show their order, as threads of one process compute them.
        let args = sums_of(4);
        let found =
            run_part(processes, &sums(), (4, 1), &args, Backend::Cpu, RunOptions::default())?;
        let lists: Vec<_> = args.iter().map(Vec::as_slice).collect();
        let mut options = helio::ClientOptions::default();
        options.devices = 4;
        let mut compile = helio::CompileOptions::default();
        compile.assignment = Some(helio::DeviceAssignment::iota(4, 1)?);
        let module = helio::parse(&sums())?;
        let threads = helio::Client::new(&options).compile(module, &compile);
        let threads = threads?.run_all(&lists, &RunOptions::default())?;
        let assignment = processes.assign(4, 1)?;
        for (found, number) in found.iter().zip(assignment.here()) {
            if !found.same_bits(&threads[number]) {
                return Err(Error::internal("sums differ from those of threads"));
            }
        }
        say(format_args!("process {}: {ran} collectives", processes.rank()));
        Ok(())
    });
}

#[test]
fn collectives_give_the_same_bits_in_one_two_and_four_processes() {
    for processes in [1, 2, 4] {
        let text = expect_success(&mpirun(processes, "worker_collectives", &[], &[]));
        for rank in 0..processes {
            assert!(text.contains(&format!("process {rank}: ")), "{text}");
        }
        assert!(text.contains(" collectives"), "{text}");
    }
}

/// Large sums and products, and one that is small: what MPI gives of its own.
#[test]
#[ignore = "run by mpirun"]
fn worker_reduction() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      times { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] multiply(a, b) }
      wide { a = f64[] parameter(0) b = f64[] parameter(1) ROOT c = f64[] add(a, b) }
      long { a = u64[] parameter(0) b = u64[] parameter(1) ROOT c = u64[] add(a, b) }
      ENTRY e { x = f32[70000] parameter(0) y = f32[5] parameter(1)
        n = s32[70000] convert(x) d = f64[70000] convert(x) u = u64[70000] convert(x)
        r = f32[70000] all-reduce(x), to_apply=add
        q = s32[70000] all-reduce(n), to_apply=times
        w = f64[70000] all-reduce(d), to_apply=wide
        v = u64[70000] all-reduce(u), to_apply=long
        s = f32[5] all-reduce(y), to_apply=add
        ROOT t = (f32[70000], s32[70000], f64[70000], u64[70000], f32[5]) tuple(r, q, w, v, s) }";
    work(|processes| {
        let value = |replica: usize, i: usize| ((i * 7 + replica * 13) % 101) as f32;
        let args = |replica| {
            let values = |n: usize| (0..n).map(|i| value(replica, i)).collect::<Vec<f32>>();
            [70000, 5].map(|n| Literal::array([n], values(n))).into_iter().collect()
        };
        let args = (0..4).map(args).collect::<Result<Vec<Vec<Literal>>>>()?;
        let found = run_part(processes, text, (4, 1), &args, Backend::Cpu, RunOptions::default())?;
        // Small integers are exact in all types and in any order.
        let sum = |i| (0..4).map(|replica| value(replica, i)).sum::<f32>();
        let sums = |n: usize| (0..n).map(sum).collect::<Vec<f32>>();
        let product = |i| (0..4).map(|replica| value(replica, i) as i32).product::<i32>();
        let expected = Literal::Tuple(vec![
            Literal::array([70000], sums(70000))?,
            Literal::array([70000], (0..70000).map(product).collect())?,
            Literal::array([70000], sums(70000).into_iter().map(f64::from).collect())?,
            Literal::array([70000], sums(70000).into_iter().map(|x| x as u64).collect())?,
            Literal::array([5], sums(5))?,
        ]);
        if !found.iter().all(|found| found.same_bits(&expected)) {
            return Err(Error::internal("other sums or products"));
        }
        say(format_args!("process {}: right", processes.rank()));
        Ok(())
    });
}

#[test]
fn reductions_of_mpi_give_the_same_values_where_nothing_is_rounded() {
    for processes in [2, 4] {
        let own = [("HELIO_OWN_REDUCTION", "1")];
        let text = expect_success(&mpirun(processes, "worker_reduction", &[], &own));
        assert_eq!(text.matches(": right").count(), processes, "{text}");
    }
}

/// Writes a line to standard error in one piece: several processes have one.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Runs as many rounds of a sum for each replica as are said, in four replicas.
fn run_rounds(processes: &Processes, each: [u32; 4], options: RunOptions) -> Result<Vec<Literal>> {
    run_part(processes, &rounds(), (4, 1), &numbers(&each), Backend::Cpu, options)
}

/// In the process that `HELIO_VICTIM` names, begins the script `HELIO_SIGNALS`, in which PID stands for
/// this process. All processes have met when it begins.
fn begin_signals(processes: &Processes) -> Result<Option<Child>> {
    run_rounds(processes, [1; 4], RunOptions::default())?;
    let Ok(signals) = std::env::var("HELIO_SIGNALS") else { return Ok(None) };
    if variable("HELIO_VICTIM") != Some(processes.rank()) {
        return Ok(None);
    }
    let script = signals.replace("PID", &std::process::id().to_string());
    let mut shell = Command::new("sh");
    // It may live longer than this process, and `mpirun` waits for whoever can write to it.
    shell.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().map(Some).map_err(|e| Error::internal(e.to_string()))
}

/// Rounds of a sum, as many for each replica as `HELIO_ROUNDS` says, without end if it says nothing.
#[test]
#[ignore = "run by mpirun"]
fn worker_rounds() {
    work(|processes| {
        let mut options = RunOptions::default();
        options.limits.cancel = Some(helio_processes::on_termination()?);
        begin_signals(processes)?;
        let each = numbers_of("HELIO_ROUNDS");
        let found = run_rounds(processes, each.try_into().unwrap_or([u32::MAX; 4]), options)?;
        say(format_args!("process {}: {}", processes.rank(), print_literal(&found[0])));
        Ok(())
    });
}

/// Runs of twenty rounds each, again and again until the signals have all been sent.
#[test]
#[ignore = "run by mpirun"]
fn worker_rounds_until_signals_end() {
    work(|processes| {
        let (mut signals, mut runs) = (begin_signals(processes)?, 0);
        loop {
            let found = run_rounds(processes, [20; 4], RunOptions::default())?;
            runs += 1;
            if !found[0].same_bits(&Literal::scalar(4f32.powi(20))) {
                return Err(Error::internal(format!("run {runs}: {}", print_literal(&found[0]))));
            }
            let has_ended = |child: &mut Child| child.try_wait().is_ok_and(|s| s.is_some());
            let is_over = signals.as_mut().is_none_or(has_ended);
            let all = processes.all_gather(&[is_over.into()], BOUND)?;
            let all = all.into_iter().collect::<Result<Vec<_>>>()?;
            if all.iter().all(|is_over| is_over == &[1]) {
                say(format_args!("process {}: {runs} runs", processes.rank()));
                return Ok(());
            }
        }
    });
}

#[test]
fn a_process_that_is_killed_ends_all_others_who_say_for_whom_they_waited() {
    // It stops first, for as long as the others need to come to where they wait for it.
    let signals = "sleep 0.2; kill -STOP PID; sleep 8; kill -9 PID";
    let kill = [("HELIO_VICTIM", "2"), ("HELIO_SIGNALS", signals), ("HELIO_SILENCE", "120000")];
    let output = mpirun(4, "worker_rounds", &PATIENT, &kill);
    let text = texts(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("rank 2") && text.contains("signal 9"), "{text}");
    for rank in [0, 1, 3] {
        let said = text.lines().find(|line| line.starts_with(&format!("process {rank}: ")));
        let said = said.unwrap_or_else(|| panic!("process {rank} says nothing: {text}"));
        // It has waited itself, or hears of another that has.
        assert!(said.contains("in total for replica 2"), "{said}");
    }
}

#[test]
fn a_process_that_is_silent_is_named_where_mpirun_lets_others_live() {
    let stop = [
        ("HELIO_VICTIM", "1"),
        ("HELIO_SIGNALS", "sleep 0.2; kill -STOP PID"),
        ("HELIO_SILENCE", "15000"),
    ];
    let output = mpirun(4, "worker_rounds", &[], &stop);
    let text = texts(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("waits in total for replica 1"), "{text}");
    assert!(text.contains("process 1 has not been heard of for 15s"), "{text}");
}

#[test]
fn a_process_that_is_delayed_is_waited_for() {
    let signals = "for i in 1 2 3; do sleep 0.2; kill -STOP PID; sleep 0.5; kill -CONT PID; done";
    let delay = [("HELIO_VICTIM", "1"), ("HELIO_SIGNALS", signals), ("HELIO_SILENCE", "120000")];
    let text = expect_success(&mpirun(4, "worker_rounds_until_signals_end", &[], &delay));
    (0..4).for_each(|rank| assert!(text.contains(&format!("process {rank}: ")), "{text}"));
    assert!(text.contains(" runs"), "{text}");
}

#[test]
fn a_process_whose_replica_comes_more_often_is_told_for_whom_it_waits() {
    let more = [("HELIO_ROUNDS", "7,7,9,7")];
    let output = mpirun(4, "worker_rounds", &[], &more);
    let text = texts(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("replica 2 waits in total for replica"), "{text}");
    assert!(text.contains("whose run has ended without it"), "{text}");
}

/// The numbers that a variable lists.
fn numbers_of(variable: &str) -> Vec<u32> {
    let text = std::env::var(variable).unwrap_or_default();
    text.split(',').filter_map(|n| n.parse().ok()).collect()
}

/// Two replicas of which one waits for a value, and the other does what `HELIO_VALUES` says.
#[test]
#[ignore = "run by mpirun"]
fn worker_values() {
    work(|processes| {
        let args = numbers(&numbers_of("HELIO_VALUES"));
        let options = RunOptions::default();
        run_part(processes, &values(), (2, 1), &args, Backend::Cpu, options).map(drop)
    });
}

/// Two replicas that send each other values without end.
#[test]
#[ignore = "run by mpirun"]
fn worker_values_in_rounds() {
    work(|processes| {
        let mut options = RunOptions::default();
        options.limits.cancel = Some(helio_processes::on_termination()?);
        begin_signals(processes)?;
        let args = numbers(&[u32::MAX; 2]);
        run_part(processes, &values_in_rounds(), (2, 1), &args, Backend::Cpu, options).map(drop)
    });
}

#[test]
fn who_waits_for_a_value_that_never_comes_is_told_why() {
    for (values, why) in [
        ("0,1", "replica 1 in z for replica 0"),
        ("0,2", "replica 0 waits in w for replica 1, whose run has ended without it"),
    ] {
        let begin = Instant::now();
        let text = texts(&mpirun(2, "worker_values", &[], &[("HELIO_VALUES", values)]));
        assert!(text.contains(why), "{text}");
        assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
    }
}

#[test]
fn who_waits_for_a_value_of_a_process_that_is_killed_says_so() {
    let signals = "sleep 0.2; kill -STOP PID; sleep 8; kill -9 PID";
    let kill = [("HELIO_VICTIM", "1"), ("HELIO_SIGNALS", signals), ("HELIO_SILENCE", "120000")];
    let text = texts(&mpirun(2, "worker_values_in_rounds", &PATIENT, &kill));
    let said = text.lines().find(|line| line.starts_with("process 0: "));
    let said = said.unwrap_or_else(|| panic!("process 0 says nothing: {text}"));
    assert!(said.contains("waits in w for replica 1"), "{said}");
}

/// Runs a script for `sh`; whether it succeeds.
fn shell(script: &str) -> bool {
    Command::new("sh").args(["-ec", script]).output().is_ok_and(|output| output.status.success())
}

/// Hosts of a test: network namespaces with an address each on one bridge.
struct Hosts {
    directory: std::path::PathBuf,
    count: usize,
}

impl Hosts {
    /// Errors: why there can be none here.
    fn new(count: usize) -> std::result::Result<Self, &'static str> {
        let directory = std::env::temp_dir().join(format!("helio-hosts-{}", std::process::id()));
        let hosts = Hosts { directory, count };
        hosts.remove();
        let bridge = "ip link add hliobr type bridge; ip addr add 10.77.0.254/24 dev hliobr;
             ip link set hliobr up";
        if !shell(bridge) {
            return Err("no network devices can be made here (ip link add)");
        }
        for i in 0..count {
            let host = format!(
                "ip netns add hlio{i}; ip link add hliov{i} type veth peer name eth0 netns hlio{i}
                 ip link set hliov{i} master hliobr up
                 ip -n hlio{i} addr add 10.77.0.{}/24 dev eth0
                 ip -n hlio{i} link set eth0 up; ip -n hlio{i} link set lo up",
                i + 1
            );
            if !shell(&host) {
                return Err("no network namespaces can be made here (ip netns add)");
            }
        }
        std::fs::create_dir_all(&hosts.directory).map_err(|_| "no directory can be made here")?;
        // What mpirun calls instead of ssh.
        let agent = "#!/bin/sh\nhost=${1##*.}; shift\nexec ip netns exec hlio$((host-1)) unshare --uts \
                     sh -c \"hostname host$host; $*\"\n";
        std::fs::write(hosts.agent(), agent).map_err(|_| "no file can be written here")?;
        shell(&format!("chmod +x {}", hosts.agent()));
        Ok(hosts)
    }

    fn agent(&self) -> String {
        self.directory.join("agent").display().to_string()
    }

    /// Runs a worker in a process on each of them.
    fn mpirun(&self, worker: &str, variables: &[(&str, &str)]) -> Output {
        let names: Vec<String> = (1..=self.count).map(|i| format!("10.77.0.{i}")).collect();
        let (names, agent) = (names.join(","), self.agent());
        let net = "10.77.0.0/24";
        let mut options = vec!["--host", &names, "--mca", "plm_rsh_agent", &agent, "--mca", "btl"];
        options.extend(["tcp,self", "--mca", "btl_tcp_if_include", net]);
        options.extend(["--mca", "oob_tcp_if_include", net]);
        for (name, _) in variables {
            options.extend(["-x", name]);
        }
        mpirun(self.count, worker, &options, variables)
    }

    /// Makes the links slow and lossy; how.
    fn spoil(&self) -> std::result::Result<&'static str, &'static str> {
        let each = |qdisc: &str| {
            (0..self.count)
                .all(|i| shell(&format!("tc -n hlio{i} qdisc replace dev eth0 root {qdisc}")))
        };
        // Where the kernel has it as a module.
        shell("modprobe sch_netem");
        if each("netem delay 2ms 1ms loss 1%") {
            return Ok("netem: 1 to 3 ms of delay, 1 % of packets lost");
        }
        if each("tbf rate 200mbit burst 6kb limit 12kb") {
            return Ok(
                "no netem in this kernel; tbf: a slow link, whose short queue loses packets",
            );
        }
        Err("the kernel has neither netem nor tbf")
    }

    /// How many packets the links have lost by themselves.
    fn lost(&self) -> usize {
        let dropped = |i: usize| {
            let host = format!("hlio{i}");
            let shown = Command::new("tc").args(["-n", &host, "-s", "qdisc", "show"]).output();
            let shown = shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            let words = shown.unwrap_or_default();
            let mut counts = words.split("dropped ").skip(1);
            counts.find_map(|rest| rest.split(',').next()?.parse::<usize>().ok()).unwrap_or(0)
        };
        (0..self.count).map(dropped).sum()
    }

    fn remove(&self) {
        for i in 0..self.count {
            shell(&format!("ip netns del hlio{i}"));
        }
        shell("ip link del hliobr");
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.remove();
    }
}

#[test]
fn processes_on_hosts_of_their_own_with_slow_and_lossy_links() {
    let hosts = match Hosts::new(4) {
        Ok(hosts) => hosts,
        Err(why) => return println!("SKIPPED: hosts of their own: {why}"),
    };
    let begin = Instant::now();
    expect_success(&hosts.mpirun("worker_collectives", &[]));
    println!("four hosts: {:.1} s", begin.elapsed().as_secs_f64());
    match hosts.spoil() {
        Ok(how) => println!("{how}"),
        Err(why) => return println!("SKIPPED: slow and lossy links: {why}"),
    }
    let begin = Instant::now();
    expect_success(&hosts.mpirun("worker_collectives", &[]));
    println!(
        "slow and lossy: {:.1} s, {} packets lost",
        begin.elapsed().as_secs_f64(),
        hosts.lost()
    );
    let more = [("HELIO_ROUNDS", "7,7,9,7")];
    let text = texts(&hosts.mpirun("worker_rounds", &more));
    assert!(text.contains("replica 2 waits in total for replica"), "{text}");
    let kill = [("HELIO_VICTIM", "2"), ("HELIO_SIGNALS", "sleep 1; kill -9 PID")];
    let begin = Instant::now();
    let output = hosts.mpirun("worker_rounds", &kill);
    assert!(!output.status.success() && begin.elapsed() < BOUND);
}
