// SPDX-License-Identifier: BSD-3-Clause
//! Access control lists: which rule of many a packet matches (`librte_acl`).
//!
//! # Lifecycle
//! [`Acl::new`] makes an empty list for one [`Layout`] of fields, in the state [`Configuring`], in
//! which rules are added. [`Acl::build`] consumes it and returns one in the state [`Built`], which
//! classifies packets and takes no rules. [`Acl::reconfigure`] goes back. Dropping the list frees
//! DPDK's memory and its name.
//!
//! To replace rules while packets flow, build a second list and put it into a
//! [`Replaceable`](crate::qsbr::Replaceable). On a machine with several NUMA nodes, make a list for
//! each: see [`PerSocket`](crate::PerSocket).
//!
//! # Threads
//! Any number of threads may read a built list at once. While rules are added it belongs to one
//! thread at a time.
//!
//! # Byte order
//! Packets are in network byte order; rules are in host byte order.
//!
//! ```standalone_crate
//! use std::num::NonZeroU32;
//! use dpdk::acl::{Acl, AclConfig, IPV4_5TUPLE, Match, Rule};
//!
//! # fn run(eal: &dpdk::Eal, burst: &dpdk::Burst<'_, 32>) -> Result<(), Box<dyn std::error::Error>> {
//! let mut acl: Acl<_, 5> = Acl::new(eal, &IPV4_5TUPLE, &AclConfig::named("filter"))?;
//! let from_ten = Match::Prefix { value: 0x0a00_0000, len: 8 };
//! acl.add(&Rule::new(
//!     NonZeroU32::MIN,
//!     1,
//!     [Match::Any, from_ten, Match::Any, Match::Any, Match::Any],
//! ))?;
//! let acl = acl.build()?;
//!
//! let mut verdicts = [[None; 1]; 32];
//! let short = acl.classify_burst(burst, 14, &mut verdicts); // behind the Ethernet header
//! for (packet, [verdict]) in burst.iter().zip(verdicts) {
//!     println!("{} bytes: {verdict:?}", packet.packet_len());
//! }
//! println!("{short} without ports: cut short, or later fragments");
//! # Ok(())
//! # }
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
//! # run(&eal, &dpdk::Burst::new())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod classify;
mod error;
mod five_tuple;
mod layout;
mod rule;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Mutex;

use dpdk_sys::{rte_acl_config, rte_acl_ctx, rte_acl_param};

use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mutex::locked;
use crate::names::{c_name, unique};
use crate::numa::socket_id;
use rule::RawRule;

pub use classify::{InputError, Inputs, Verdict};
pub use error::{AclError, BuildError, ClassifyError};
pub use five_tuple::FiveTuple;
pub use layout::{
    Field, IPV4_5TUPLE, IPV4_5TUPLE_FLAGS, IPV6_5TUPLE, IPV6_5TUPLE_FLAGS, Layout, LayoutError,
    Matching, TCP_FLAGS,
};
pub use rule::{MAX_PRIORITY, Match, Rule, RuleError};

/// State of an [`Acl`] that takes rules.
#[derive(Debug)]
pub struct Configuring(());
/// State of an [`Acl`] that classifies packets.
#[derive(Debug)]
pub struct Built(());

/// DPDK's implementations of the lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The fastest that the CPU supports.
    #[default]
    Best,
    /// Scalar code, without vector instructions.
    Scalar,
    /// SSE4.1.
    Sse,
    /// AVX2.
    Avx2,
    /// AVX-512 with registers of 256 bits.
    Avx512x16,
    /// AVX-512 with registers of 512 bits, which EAL's `--force-max-simd-bitwidth=512` allows.
    Avx512x32,
    /// Arm's NEON.
    Neon,
    /// Power's AltiVec.
    Altivec,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Best,
        Self::Scalar,
        Self::Sse,
        Self::Avx2,
        Self::Avx512x16,
        Self::Avx512x32,
        Self::Neon,
        Self::Altivec,
    ];

    fn raw(self) -> dpdk_sys::rte_acl_classify_alg {
        match self {
            Self::Best => dpdk_sys::RTE_ACL_CLASSIFY_DEFAULT,
            Self::Scalar => dpdk_sys::RTE_ACL_CLASSIFY_SCALAR,
            Self::Sse => dpdk_sys::RTE_ACL_CLASSIFY_SSE,
            Self::Avx2 => dpdk_sys::RTE_ACL_CLASSIFY_AVX2,
            Self::Avx512x16 => dpdk_sys::RTE_ACL_CLASSIFY_AVX512X16,
            Self::Avx512x32 => dpdk_sys::RTE_ACL_CLASSIFY_AVX512X32,
            Self::Neon => dpdk_sys::RTE_ACL_CLASSIFY_NEON,
            Self::Altivec => dpdk_sys::RTE_ACL_CLASSIFY_ALTIVEC,
        }
    }
}

/// Parameters of a list.
#[derive(Clone, Debug)]
pub struct AclConfig {
    /// Unique in the process, at most 31 bytes.
    pub name: String,
    /// The maximum number of rules.
    pub max_rules: u32,
    /// NUMA node; `None` for any.
    pub socket: Option<u32>,
    /// The most bytes that [`Acl::build`] may use for tables; 0 for no limit, which makes lookups
    /// faster.
    pub max_memory: usize,
    /// The implementation that classifies packets.
    pub algorithm: Algorithm,
}

impl AclConfig {
    /// 1024 rules on any NUMA node, no memory limit, the best algorithm.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            max_rules: 1024,
            socket: None,
            max_memory: 0,
            algorithm: Algorithm::Best,
        }
    }

    /// [`named`](Self::named), with a number behind the name: an old and a new list live side by side.
    #[must_use]
    pub fn unique(name: impl Into<String>) -> Self {
        Self::named(unique(name))
    }
}

/// A list of rules about `FIELDS` fields, in `CATEGORIES` categories: 1, 4, 8, 12 or 16.
pub struct Acl<'eal, State, const FIELDS: usize, const CATEGORIES: usize = 1> {
    context: Context<'eal>,
    layout: Layout<FIELDS>,
    rules: u32,
    max_rules: u32,
    max_memory: usize,
    state: PhantomData<State>,
}

impl_debug!([S, const FIELDS: usize, const CATEGORIES: usize] Acl<'_, S, FIELDS, CATEGORIES>, acl => rules: acl.rules, layout: acl.layout);

// SAFETY: `&Acl<Built>` only gives access for rte_acl_classify, which reads the context and keeps
// its own data on the stack.
unsafe impl<const FIELDS: usize, const CATEGORIES: usize> Sync
    for Acl<'_, Built, FIELDS, CATEGORIES>
{
}

/// A context of DPDK's, freed on drop.
struct Context<'eal> {
    raw: NonNull<rte_acl_ctx>,
    eal: PhantomData<&'eal Eal>,
}

// SAFETY: a context belongs to no thread; those of a process are listed under a lock of DPDK's.
unsafe impl Send for Context<'_> {}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and nobody classifies with it any more.
        unsafe { dpdk_sys::rte_acl_free(self.raw.as_ptr()) };
    }
}

/// `rte_acl_create` returns the existing context if the name is in use: the check before it must
/// not be interrupted.
static NAMES: Mutex<()> = Mutex::new(());

impl<'eal> Context<'eal> {
    fn new(_eal: &'eal Eal, config: &AclConfig, rule_size: usize) -> Result<Self, AclError> {
        const NAME: usize = dpdk_sys::RTE_ACL_NAMESIZE as usize - 1;
        let name = config.name.as_str();
        let c_name = c_name(name, NAME, |name, most| AclError::Name { name, most })?;
        // DPDK multiplies the two in 32 bits.
        let most = u32::MAX / rule_size as u32;
        if config.max_rules == 0 || config.max_rules > most {
            let (name, rules) = (name.to_owned(), config.max_rules);
            return Err(AclError::Rules { name, rules, most });
        }
        let socket = socket_id(config.socket)
            .map_err(|node| AclError::Node { name: name.to_owned(), node })?;
        let parameters = rte_acl_param {
            name: c_name.as_ptr(),
            socket_id: socket,
            rule_size: rule_size as u32,
            max_rule_num: config.max_rules,
        };
        let alone = locked(&NAMES);
        // SAFETY: EAL runs (there is an Eal), and the name is a C string, which DPDK copies.
        let made = unsafe {
            if !dpdk_sys::rte_acl_find_existing(c_name.as_ptr()).is_null() {
                return Err(AclError::Taken(name.to_owned()));
            }
            dpdk_sys::rte_acl_create(&raw const parameters)
        };
        drop(alone);
        let raw = NonNull::new(made).ok_or_else(|| AclError::Memory {
            name: name.to_owned(),
            errno: Errno::ENOMEM, // the one reason that is left; DPDK does not say it
        })?;
        Ok(Self { raw, eal: PhantomData })
    }
}

impl<'eal, const FIELDS: usize, const CATEGORIES: usize>
    Acl<'eal, Configuring, FIELDS, CATEGORIES>
{
    const POSSIBLE: () = assert!(
        CATEGORIES == 1 || CATEGORIES % 4 == 0 && CATEGORIES > 0 && CATEGORIES <= 16,
        "an ACL has 1, 4, 8, 12 or 16 categories"
    );

    /// An empty list for packets with these fields (`rte_acl_create`).
    ///
    /// # Errors
    /// See [`AclError`].
    pub fn new(
        eal: &'eal Eal,
        layout: &Layout<FIELDS>,
        config: &AclConfig,
    ) -> Result<Self, AclError> {
        let () = Self::POSSIBLE;
        let context = Context::new(eal, config, size_of::<RawRule<FIELDS>>())?;
        let mut acl = Self {
            context,
            layout: *layout,
            rules: 0,
            max_rules: config.max_rules,
            max_memory: config.max_memory,
            state: PhantomData,
        };
        acl.set_algorithm(config.algorithm)?;
        Ok(acl)
    }

    /// Adds a rule (`rte_acl_add_rules`).
    ///
    /// # Errors
    /// See [`RuleError`]; the rule is then not in the list.
    pub fn add(&mut self, rule: &Rule<FIELDS>) -> Result<(), RuleError> {
        let raw = RawRule::new(rule, &self.layout, CATEGORIES)?;
        if self.rules == self.max_rules {
            return Err(RuleError::Full(self.max_rules));
        }
        // SAFETY: one rule of the size that the context was made for; it has room for it, and is ours.
        let code = unsafe {
            let rule = (&raw const raw).cast();
            dpdk_sys::rte_acl_add_rules(self.context.raw.as_ptr(), rule, 1)
        };
        // All that DPDK checks (priority, categories, room) has been checked already.
        Errno::check(code).map_err(|_| RuleError::Full(self.max_rules))?;
        self.rules += 1;
        Ok(())
    }

    /// Removes all rules (`rte_acl_reset_rules`).
    pub fn clear(&mut self) {
        // SAFETY: the context is ours.
        unsafe { dpdk_sys::rte_acl_reset_rules(self.context.raw.as_ptr()) };
        self.rules = 0;
    }

    /// Makes the tables that lookups use (`rte_acl_build`). Without rules nothing matches. Takes
    /// much time and memory for many rules with wide ranges.
    ///
    /// # Errors
    /// See [`BuildError`]; the list is then dropped.
    pub fn build(self) -> Result<Acl<'eal, Built, FIELDS, CATEGORIES>, BuildError> {
        // DPDK builds no empty list; `classify` handles it without one.
        if self.rules > 0 {
            let config = rte_acl_config {
                num_categories: CATEGORIES as u32,
                num_fields: FIELDS as u32,
                defs: self.layout.definitions(),
                max_size: self.max_memory,
            };
            // SAFETY: the context is ours; its rules have the fields that are defined here.
            let code =
                unsafe { dpdk_sys::rte_acl_build(self.context.raw.as_ptr(), &raw const config) };
            Errno::check(code).map_err(|errno| match errno {
                Errno::ERANGE => BuildError::Limit(self.max_memory),
                errno => BuildError::Refused(errno),
            })?;
        }
        Ok(self.into_state())
    }
}

impl<'eal, const FIELDS: usize, const CATEGORIES: usize> Acl<'eal, Built, FIELDS, CATEGORIES> {
    /// Returns to adding rules; its rules stay ([`clear`](Acl::clear) removes them).
    #[must_use]
    pub fn reconfigure(self) -> Acl<'eal, Configuring, FIELDS, CATEGORIES> {
        self.into_state()
    }
}

impl<'eal, State, const FIELDS: usize, const CATEGORIES: usize>
    Acl<'eal, State, FIELDS, CATEGORIES>
{
    /// The number of rules.
    #[must_use]
    pub fn rules(&self) -> u32 {
        self.rules
    }

    /// The fields that its rules compare.
    #[must_use]
    pub fn layout(&self) -> &Layout<FIELDS> {
        &self.layout
    }

    /// Chooses the implementation of lookups (`rte_acl_set_ctx_classify`).
    ///
    /// # Errors
    /// [`AclError::Algorithm`] if the CPU does not support it; nothing is changed then.
    pub fn set_algorithm(&mut self, algorithm: Algorithm) -> Result<(), AclError> {
        // SAFETY: the context is ours, exclusively.
        let code = unsafe {
            dpdk_sys::rte_acl_set_ctx_classify(self.context.raw.as_ptr(), algorithm.raw())
        };
        Errno::check(code).map_err(|_| AclError::Algorithm(algorithm))?;
        Ok(())
    }

    fn into_state<Next>(self) -> Acl<'eal, Next, FIELDS, CATEGORIES> {
        let Self { context, layout, rules, max_rules, max_memory, .. } = self;
        Acl { context, layout, rules, max_rules, max_memory, state: PhantomData }
    }
}
