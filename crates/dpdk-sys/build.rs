// SPDX-License-Identifier: BSD-3-Clause
//! Generates bindings from the *installed* DPDK headers.
//!
//! It writes three files to `OUT_DIR`:
//! - `bindings.rs`, by bindgen, for everything that is a real symbol or a plain struct;
//! - `layout.rs`, sizes and offsets as the C compiler sees them (`layout.c`), for the fields that
//!   the native fast path uses: bindgen's struct fields change between releases, the C compiler's
//!   offsets are always right;
//! - `libshim.a`, the few header-only functions that have no symbol (`shim.c`).

#[path = "build/link.rs"]
mod link;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The message for a user who builds without DPDK.
const NO_DPDK: &str = "DPDK's development files were not found by pkg-config (module libdpdk).\n\
    On Debian: apt-get install libdpdk-dev libclang-dev pkg-config   (or: make setup)";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    if let Ok(script) = env::current_exe() {
        // A test builds it with other headers.
        println!("cargo::rustc-env=LINERATE_BUILD_SCRIPT={}", script.display());
    }
    if let Err(error) = generate() {
        eprintln!("linerate-dpdk-sys: {error}");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=prebuilt");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    for file in ["wrapper.h", "options.h", "layout.c", "shim.h", "shim.c", "graph.c"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let statically = env::var_os("CARGO_FEATURE_STATIC").is_some();
    let dpdk = pkg_config::Config::new()
        .atleast_version("22.11")
        .cargo_metadata(!statically)
        .probe("libdpdk");
    let dpdk = match dpdk {
        Ok(dpdk) => dpdk,
        Err(_) if env::var_os("DOCS_RS").is_some() => return prebuilt(),
        Err(error) => return Err(format!("{NO_DPDK}\n{error}").into()),
    };
    let version = release(&dpdk.version)?;
    announce(version);
    if statically {
        link::statically()?;
    }

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let cflags = c_flags()?;
    layout(&cflags, &out)?; // First: it refuses headers that would not do.
    bindings(&cflags, &out)?;
    let mut shim = cc::Build::new();
    shim.files(["shim.c", "graph.c"]).std("gnu11").opt_level(3);
    for flag in &cflags {
        shim.flag(flag);
    }
    shim.try_compile("shim")?;
    Ok(())
}

/// For building documentation without DPDK: declarations that were generated from another machine's
/// headers. Nothing is linked, so no program can be built.
fn prebuilt() -> Result<(), Box<dyn Error>> {
    announce((22, 11));
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for file in ["bindings.rs", "layout.rs"] {
        fs::copy(Path::new("prebuilt").join(file), out.join(file))?;
    }
    Ok(())
}

/// `22.11.11` -> (22, 11).
fn release(version: &str) -> Result<(u32, u32), Box<dyn Error>> {
    let mut parts = version.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(year)), Some(Ok(month))) => Ok((year, month)),
        _ => Err(format!("cannot read DPDK's version {version:?} as pkg-config reports it").into()),
    }
}

/// One `cfg` per release whose API differs from the previous one, where the sources need it:
/// `cfg(dpdk_23_11)`.
fn announce(version: (u32, u32)) {
    for (year, month) in [(23, 11), (24, 11)] {
        println!("cargo::rustc-check-cfg=cfg(dpdk_{year}_{month})");
        if version >= (year, month) {
            println!("cargo::rustc-cfg=dpdk_{year}_{month}");
        }
    }
    println!("cargo::metadata=version={}.{}", version.0, version.1);
}

/// pkg-config's own flags, verbatim: the crate drops flags that it does not know (`-march`,
/// `-include`).
fn c_flags() -> Result<Vec<String>, Box<dyn Error>> {
    let mut flags = link::pkg_config(&["--cflags", "libdpdk"])?;
    flags.push("-DALLOW_EXPERIMENTAL_API".into());
    Ok(flags)
}

fn bindings(cflags: &[String], out: &Path) -> Result<(), Box<dyn Error>> {
    bindgen::Builder::default()
        .header("wrapper.h")
        .clang_args(cflags)
        .allowlist_function("rte_(eal|eth|ether|pktmbuf|mempool|dev|tel|telemetry|mbuf)_.*")
        .allowlist_function("rte_(free|lcore_.*|get_.*lcore.*|socket_.*|strerror|get_tsc_hz|version|log)")
        .allowlist_function("rte_(acl|lpm|lpm6)_.*|rte_rcu_qsbr_(get_memsize|init|thread_.*)")
        .allowlist_function("rte_ring_(create_elem|free|lookup)|rte_(hash|fib|fib6|rib|rib6)_.*")
        .allowlist_function("(rte_graph|rte_node|__rte_node_stream)_.*")
        .allowlist_function("rte_(zmalloc_socket|malloc_virt2iova|mem_virt2iova|bus_name|get_ptype_.*)")
        .allowlist_function("rte_pdump_init|rte_malloc_get_socket_stats|rte_memzone_walk")
        .allowlist_function("lr_.*")
        .allowlist_type("rte_(mbuf|mempool|mempool_cache|pktmbuf_pool_private|eth_.*|ether_addr|tel_.*)")
        .allowlist_var("rte_eth_fp_ops|RTE_MAX_.*|RTE_MEMZONE_NAMESIZE|RTE_MBUF_.*|RTE_PKTMBUF_.*|RTE_ETH_LINK_.*|RTE_LOG_ERR|RTE_LOG_INFO|RTE_LOGTYPE_USER1|E_RTE_.*")
        .allowlist_var("RTE_ACL_.*|RTE_PTYPE_.*")
        .allowlist_var("RTE_HASH_EXTRA_FLAGS_.*")
        // Accessed only by the C compiler's offsets, because of flexible arrays, bit fields or
        // atomics.
        .opaque_type("rte_ring|rte_ring_.*|__rte_ring_.*")
        .opaque_type("rte_lpm|rte_lpm_tbl_entry|rte_rcu_qsbr|rte_rcu_qsbr_cnt")
        // Both packed and aligned, which Rust cannot express. No code here uses their fields.
        .opaque_type("rte_arp_ipv4|rte_arp_hdr|rte_l2tpv2_.*|rte_gtp_psc_.*|rte_flow_.*")
        .derive_debug(false)
        .derive_default(false)
        .layout_tests(true)
        .generate_comments(false)
        .prepend_enum_name(false)
        .generate()?
        .write_to_file(out.join("bindings.rs"))?;
    Ok(())
}

/// Compiles `layout.c` to assembly and reads the constants from it: this asks the C compiler, and
/// works for cross-compiling, because nothing is run.
fn layout(cflags: &[String], out: &Path) -> Result<(), Box<dyn Error>> {
    let assembly = out.join("layout.s");
    let mut command = cc::Build::new().std("gnu11").get_compiler().to_command();
    command.args(cflags).arg("-S").arg("layout.c").arg("-o").arg(&assembly);
    if !command.status()?.success() {
        return Err("the C compiler refused layout.c; its message is above".into());
    }
    let mut rust = String::new();
    for line in fs::read_to_string(&assembly)?.lines() {
        let Some(rest) = line.split_once("->").map(|(_, rest)| rest.trim_end_matches('"')) else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let (Some(kind), Some(name), Some(value)) = (words.next(), words.next(), words.next())
        else {
            return Err(format!("cannot read {line:?} in {}", assembly.display()).into());
        };
        // Immediates carry their assembler prefix and are signed.
        let value = value.trim_start_matches(['$', '#']).parse::<i128>()? as u64;
        writeln!(rust, "/// As the C compiler sees it.\npub const {name}: {kind} = {value};")?;
    }
    fs::write(out.join("layout.rs"), rust)?;
    Ok(())
}
