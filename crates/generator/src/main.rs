// SPDX-License-Identifier: BSD-3-Clause
//! The generator's program: see `generator --help`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum_server::tls_rustls::RustlsConfig;
use clap::Parser;
use dpdk::{Eal, PdumpError};
use generator::cli::{self, Options};
use generator::command::report::Ended;
use generator::command::run::{self as command, RunError};
use generator::command::selftest::{self, SelfTestError};
use generator::command::write::{self, WriteError};
use generator::control::{Control, PortRules, Rules};
use generator::engine::{self, Desk, Mode, Settings};
use generator::entrance::{Entrance, EntranceError};
use generator::location::{Directories, DirectoryError, Interfaces, Policy, Sockets, Vdevs};
use generator::otg::auth::{Access, AuthError, Credentials, TOKEN_USER, Token};
use generator::otg::config::Limits;
use generator::otg::places::Places;
use generator::otg::replays::{ReplayOptionError, Replays};
use generator::otg::{connections, server};
use generator::sandbox::Sandbox;
use generator::telemetry::{self, Question};
use generator::tls::{self, TlsError};
use generator::{stale, start};
use host::{SocketUsers, console};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tokio::sync::{mpsc, oneshot};

/// Most waiting calls and questions.
const BACKLOG: usize = 64;

/// Blocks of this many bytes or more go back to the kernel when they are freed.
const LARGE_BLOCK: usize = 256 << 10;

/// Commands print tables, which EAL's notices would interrupt.
const QUIET: &str = "--log-level=*:warning";

/// Why the program ends early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("--otg-listen {0}: {1}; choose another address or end the program that has it")]
    Listen(SocketAddr, std::io::Error),
    #[error("--netns {0}: {1}; see ip netns list, and run as root")]
    Namespace(String, std::io::Error),
    #[error("root privileges cannot be dropped: {0}; start the program as another user")]
    Privileges(std::io::Error),
    #[error("--port-file {0}: {1}")]
    PortFile(PathBuf, std::io::Error),
    #[error(transparent)]
    SocketDirectory(#[from] DirectoryError),
    #[error(transparent)]
    Options(#[from] start::StartError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Entrance(#[from] EntranceError),
    #[error(transparent)]
    Eal(#[from] dpdk::EalError),
    #[error(transparent)]
    Telemetry(#[from] dpdk::telemetry::RegisterError),
    #[error(transparent)]
    Launch(#[from] dpdk::LaunchError),
    #[error("signals: {0}")]
    Signals(std::io::Error),
    #[error("the HTTP thread: {0}")]
    Http(std::io::Error),
    #[error("the thread that sets configurations: {0}")]
    Configurator(std::io::Error),
    #[error("standard output: {0}; what it printed is not complete")]
    Output(std::io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    SelfTest(#[from] SelfTestError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Replay(#[from] ReplayOptionError),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let (eal_options, own) = cli::split(std::env::args_os().collect());
    let options = Options::parse_from(own);
    let done = match options.otg_listen {
        Some(address) => run_server(eal_options, &options, address).map(|()| ExitCode::SUCCESS),
        None => run_command(eal_options, &options),
    };
    // Check this after a success too.
    let written = console::check().map_err(Failure::Output);
    done.and_then(|code| written.map(|()| code)).unwrap_or_else(|error| {
        eprintln!("generator: {error}");
        ExitCode::FAILURE
    })
}

fn run_server(
    eal_options: Option<Vec<OsString>>,
    options: &Options,
    wanted: SocketAddr,
) -> Result<(), Failure> {
    // Bodies of requests come in any number and size; what they took is to be free afterwards.
    dpdk::map_large_blocks(LARGE_BLOCK);
    let mut token = None;
    let credentials = match (&options.otg_user, &options.otg_password_file) {
        (Some(user), Some(file)) => Some(Credentials::read(user, file)?),
        _ if host::is_root() && !options.insecure => {
            Some(token.insert(Token::new()?).credentials())
        }
        _ => None,
    };
    let access = Access::new(wanted.ip(), options.tls_cert.is_some(), credentials)?;

    // Before EAL: a taken address is the most likely error and the cheapest to find.
    let listener = TcpListener::bind(wanted).map_err(|error| Failure::Listen(wanted, error))?;
    let address = listener.local_addr().map_err(|error| Failure::Listen(wanted, error))?;
    // In the same network namespace. Without it all users of this machine count as one.
    let users = SocketUsers::open().ok();

    let tls = match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::config(certificate, key)?),
        _ => None,
    };

    // Before EAL, for the same reason.
    Directories::new(None, options.socket_directory.clone())?;
    let replays = Replays::open(&options.replay, usize::from(options.max_frame))?;

    let signals = Signals::register()?;
    let own_eal_options = eal_options.is_some();
    let (eal, sandbox) = init(eal_options, options)?;
    let (entrance, local) = Entrance::open(&eal.runtime_dir(), token.as_ref())?;
    let door = Door { listener, users, local, entrance, address, tls, access, sandbox };
    let rules = Rules { replays, ..rules(&eal, options, own_eal_options, api(&eal, options)?) };
    let served = serve(&eal, door, options, rules, &signals.came);
    drop(eal);
    if let Some(file) = &options.port_file {
        host::files::remove(file);
    }
    served
}

/// Runs the flows of the command line, or the self-test.
fn run_command(eal_options: Option<Vec<OsString>>, options: &Options) -> Result<ExitCode, Failure> {
    let own_eal_options = eal_options.is_some();
    if options.command.self_test {
        let signals = Signals::register()?;
        let (eal, _) = init(eal_options, options)?;
        let rules = rules(&eal, options, own_eal_options, command_line(options));
        let good = selftest::run(&eal, rules, &options.command.port, &signals.number)?;
        return Ok(match good {
            Some(true) => ExitCode::SUCCESS,
            Some(false) => ExitCode::FAILURE,
            None => signals.exit_code(),
        });
    }
    // Before EAL, for the same reason.
    let limits = Limits {
        locations: command_line(options),
        max_frame: usize::from(options.max_frame),
        capture_fcs: captures_fcs(options),
    };
    if !options.command.write.is_empty() {
        return write_frames(options, &limits);
    }
    let job = command::prepare(&options.command, &limits).map_err(RunError::from)?;
    let signals = Signals::register()?;
    let (eal, _) = init(eal_options, options)?;
    let rules = rules(&eal, options, own_eal_options, command_line(options));
    match command::run(&eal, rules, &options.command, job, &signals.number)? {
        Ended::Finished => Ok(ExitCode::SUCCESS),
        Ended::Signal(_) => Ok(signals.exit_code()),
    }
}

/// Writes what would be sent into files, and prints the number of frames in each.
fn write_frames(options: &Options, limits: &Limits) -> Result<ExitCode, Failure> {
    let command = &options.command;
    let plan = match &command.otg {
        Some(file) => write::read_plan(file, limits)?,
        None => command::prepare(command, limits).map_err(RunError::from)?.plan,
    };
    let limit = command.write_limit.and_then(|limit| usize::try_from(limit).ok());
    let written = write::write(&plan, &command.write, options.line_rate, limit)?;
    for (spec, frames) in command.write.iter().zip(written) {
        console::print(format_args!("{}: {frames} frames\n", spec.path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Signals that end the program.
struct Signals {
    /// True once one has arrived.
    came: Arc<AtomicBool>,
    /// Its number, or 0.
    number: Arc<AtomicUsize>,
}

impl Signals {
    fn register() -> Result<Self, Failure> {
        let signals = Signals { came: Arc::default(), number: Arc::default() };
        let hangup = (!host::ignores_signal(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let (came, number) = (signals.came.clone(), signals.number.clone());
            // A second one ends the program at once, in case the clean end hangs.
            signal_hook::flag::register_conditional_shutdown(signal, 1, came.clone())
                .and_then(|_| signal_hook::flag::register(signal, came))
                .and_then(|_| signal_hook::flag::register_usize(signal, number, signal as usize))
                .map_err(Failure::Signals)?;
        }
        Ok(signals)
    }

    /// The exit status that a shell expects of a program that was ended by this signal.
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(128u8.saturating_add(self.number.load(Ordering::Relaxed) as u8))
    }
}

fn init(eal_options: Option<Vec<OsString>>, options: &Options) -> Result<(Eal, Sandbox), Failure> {
    // Before any thread is created, because a thread inherits its creator's namespace; listening
    // sockets already have their own.
    if let Some(name) = &options.netns {
        host::enter_network_namespace(name)
            .map_err(|error| Failure::Namespace(name.clone(), error))?;
    }
    if options.otg_listen.is_some() && host::is_root() {
        give_up_privileges(eal_options.as_deref(), options)?;
    }
    let own_eal_options = eal_options.is_some();
    let arguments = match eal_options {
        Some(arguments) => arguments,
        None => {
            start::eal_arguments("generator", options.cpus.as_ref().map(|cpus| cpus.0.as_slice()))?
                .into_iter()
                .map(OsString::from)
                .chain(options.otg_listen.is_none().then(|| QUIET.into()))
                .collect()
        }
    };
    if !own_eal_options {
        // Before anything is removed there, and before the sandbox.
        host::make_runtime_directory().map_err(dpdk::EalError::Runtime)?;
        stale::remove_runtime_dirs(&start::runtime_dir());
    }
    // Before EAL creates its threads, and after reading files that only the user may read.
    let sandbox = match options.otg_listen {
        Some(_) => Sandbox::enter(options, own_eal_options),
        None => Sandbox::default(),
    };
    let (eal, _) = Eal::init(arguments)?;
    match eal.pdump() {
        // No other process can reach its memory, so none needs to be told.
        Ok(()) | Err(PdumpError::NoHugepages | PdumpError::Alone) => {}
        Err(error) => tracing::warn!("{error}; dpdk-dumpcap will see nothing"),
    }
    Ok((eal, sandbox))
}

/// Drops root privileges that ports do not need, so that API clients cannot misuse them. Before EAL
/// creates its threads, because they inherit the privileges. Drivers of PCI devices need more:
/// access to `/dev/vfio`, physical addresses, I/O ports.
fn give_up_privileges(eal_options: Option<&[OsString]>, options: &Options) -> Result<(), Failure> {
    let no_pci = |options: &[OsString]| options.iter().any(|option| option == "--no-pci");
    if eal_options.is_none_or(no_pci) {
        // Without an allowed interface there is no AF_XDP; with it, libxdp needs more privileges.
        let libxdp = !options.allow_port.is_empty();
        return host::keep_capabilities_for_ports(libxdp).map_err(Failure::Privileges);
    }
    tracing::warn!(
        "keeping all root privileges, because PCI devices may need them; without such devices, give EAL --no-pci"
    );
    Ok(())
}

/// What locations on the command line may name.
fn command_line(options: &Options) -> Policy {
    let vdevs = if options.allow_any_vdev { Vdevs::Any } else { Vdevs::Known };
    Policy { vdevs, ..Policy::COMMAND_LINE }
}

/// What locations of API clients may name.
fn api(eal: &Eal, options: &Options) -> Result<Policy, Failure> {
    let vdevs = if options.allow_any_vdev { Vdevs::Any } else { Vdevs::Pathless };
    let directories = Directories::new(Some(eal.runtime_dir()), options.socket_directory.clone())?;
    let interfaces = match options.allow_port.is_empty() && !host::is_root() {
        true => Interfaces::Any,
        false => Interfaces::Matching(options.allow_port.clone().into()),
    };
    Ok(Policy { vdevs, sockets: Sockets::In(directories), interfaces })
}

/// Returns true if captures include the FCS of frames. By default, files of the command line do not: they may be sent
/// again, and pcap cannot say that the FCS is there.
fn captures_fcs(options: &Options) -> bool {
    options.capture_fcs.unwrap_or(options.otg_listen.is_some())
}

fn rules(eal: &Eal, options: &Options, own_eal_options: bool, locations: Policy) -> Rules {
    let hz = dpdk::tsc::hz();
    let settings = Settings {
        mode: if options.flood { Mode::Flood } else { Mode::Paced },
        hz,
        late_after: (u128::from(options.late_after) * u128::from(hz) / 1_000_000) as u64,
        clock_cost: measure::clock::cost(),
    };
    Rules {
        settings,
        ports: PortRules {
            own_eal_options,
            lcores: eal.lcores().len(),
            rx_queues: options.rx_queues,
            max_frame: usize::from(options.max_frame),
            may_wait: options.flood,
        },
        line_rate: options.line_rate,
        locations,
        capture_fcs: captures_fcs(options),
        replays: Replays::default(),
        first_run: RandomState::new().hash_one(0) as u8,
    }
}

/// Where the API is served, and whether over HTTPS.
struct Door {
    listener: TcpListener,
    users: Option<SocketUsers>,
    local: UnixListener,
    entrance: Entrance,
    address: SocketAddr,
    tls: Option<RustlsConfig>,
    access: Access,
    sandbox: Sandbox,
}

impl Door {
    fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// Serves until a signal. The engine runs here, on the main lcore; the threads for HTTP and for
/// configurations are created here too, so that they are bound to the same CPU.
fn serve(
    eal: &Eal,
    door: Door,
    options: &Options,
    rules: Rules,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let settings = rules.settings;
    let (ask, questions) = mpsc::channel(BACKLOG);
    telemetry::register(eal, &ask)?;
    let desk = Desk::new(eal.lcores().len());
    let (end, ended) = oneshot::channel();
    let lines = Lines::of(&door);
    // After EAL's output, and before any client is served.
    let capabilities = host::network_capabilities();
    let any_vdev = options.allow_any_vdev;
    if let Some(warning) =
        door.access.warning(door.address, host::is_root(), &capabilities, any_vdev)
    {
        tracing::warn!("{warning}");
    }
    std::thread::scope(|scope| {
        let (control, configurator) = Control::new(eal, &desk, rules);
        let configuring = configurator.start(scope).map_err(Failure::Configurator)?;
        let http =
            std::thread::Builder::new().name("http".to_owned()).spawn_scoped(scope, move || {
                let result = serve_http(door, control, questions, ended);
                // Without the API there is nothing to do.
                stop.store(true, Ordering::Relaxed);
                result
            });
        let http = http.map_err(Failure::Http)?;
        if let Err(error) = announce(eal, &lines, options) {
            stop.store(true, Ordering::Relaxed);
            drop(end);
            let _ = http.join();
            return Err(error);
        }
        let ran = engine::run(eal, settings, &desk, stop);
        // The thread may have ended already.
        let _ = end.send(());
        let joined = http.join();
        let configured = configuring.join();
        ran?;
        configured.map_err(|_| Failure::Configurator(std::io::Error::other("panicked")))?;
        match joined {
            Ok(result) => result.map_err(Failure::Http),
            Err(_) => Err(Failure::Http(std::io::Error::other("panicked"))),
        }
    })
}

fn serve_http(
    door: Door,
    control: Control<'_, '_>,
    questions: mpsc::Receiver<Question>,
    ended: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    door.listener.set_nonblocking(true)?;
    // Its other threads parse large bodies.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().thread_name("json").build()?;
    runtime.block_on(async {
        let (calls, received) = mpsc::channel(BACKLOG);
        let router = server::router(calls, door.access);
        let places = Places::default();
        let (tls, users) = (door.tls, door.users);
        let tcp = connections::serve_tcp(door.listener, tls, users, places.clone(), router.clone());
        let unix = connections::serve_unix(door.local, places, router);
        tokio::select! {
            served = tcp => served,
            served = unix => served,
            () = control.serve(received, questions) => Ok(()),
            _ = ended => Ok(()),
        }
    })
}

/// What is printed about a [`Door`].
struct Lines {
    url: String,
    port: u16,
    socket: PathBuf,
    token: Option<PathBuf>,
    sandbox: String,
}

impl Lines {
    fn of(door: &Door) -> Self {
        let Entrance { socket, token } = &door.entrance;
        let port = door.address.port();
        let sandbox = door.sandbox.to_string();
        Lines { url: door.url(), port, socket: socket.clone(), token: token.clone(), sandbox }
    }
}

/// Prints the addresses on standard output, and writes the port file.
fn announce(eal: &Eal, lines: &Lines, options: &Options) -> Result<(), Failure> {
    let telemetry = eal.runtime_dir().join("dpdk_telemetry.v2");
    let mut text = format!("OTG on {}\ntelemetry {}\n", lines.url, telemetry.display());
    if let Some(token) = &lines.token {
        text.push_str(&format!("token {} (user {TOKEN_USER})\n", token.display()));
    }
    text.push_str(&format!("sandbox {}\n", lines.sandbox));
    text.push_str(&format!("socket {}\n", lines.socket.display()));
    // In one write: a program that has read the first line may look for the others.
    console::print(format_args!("{text}"));
    match &options.port_file {
        Some(file) => {
            let text = format!("{}\n", lines.port);
            host::files::write(file, &text).map_err(|error| Failure::PortFile(file.clone(), error))
        }
        None => Ok(()),
    }
}
