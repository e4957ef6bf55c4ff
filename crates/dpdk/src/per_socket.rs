// SPDX-License-Identifier: BSD-3-Clause
//! A value for each NUMA node that lcores are on.

use crate::eal::Eal;
use crate::lcore::Lcore;

/// A table for each NUMA node, so that no lcore looks things up in another node's memory.
///
/// ```standalone_crate
/// use dpdk::PerSocket;
/// use dpdk::acl::{Acl, AclConfig, AclError, Configuring, IPV4_5TUPLE};
///
/// fn lists(eal: &dpdk::Eal) -> Result<PerSocket<Acl<'_, Configuring, 5>>, AclError> {
///     PerSocket::try_new(eal, |socket| {
///         let name = format!("filter-{}", socket.unwrap_or(0));
///         Acl::new(eal, &IPV4_5TUPLE, &AclConfig { socket, ..AclConfig::named(name) })
///     })
/// }
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
/// # assert!(lists(&eal)?.iter().count() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PerSocket<T> {
    first: (Option<u32>, T),
    others: Vec<(Option<u32>, T)>,
}

impl<T> PerSocket<T> {
    /// Makes a value for each NUMA node that lcores of this process are on; `None` is a node that
    /// the system does not report. The main lcore's is made first.
    ///
    /// # Errors
    /// The first error of `make`; values made before are dropped.
    pub fn try_new<E>(
        eal: &Eal,
        mut make: impl FnMut(Option<u32>) -> Result<T, E>,
    ) -> Result<Self, E> {
        let main = eal.main_lcore().socket();
        let mut sockets: Vec<_> = eal.lcores().into_iter().map(Lcore::socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        let first = (main, make(main)?);
        let others = sockets.into_iter().filter(|socket| *socket != main);
        let others = others.map(|socket| Ok((socket, make(socket)?))).collect::<Result<_, E>>()?;
        Ok(Self { first, others })
    }

    /// The value for the lcore's NUMA node.
    #[must_use]
    pub fn of(&self, lcore: Lcore) -> &T {
        let socket = lcore.socket();
        let other = self.others.iter().find(|(other, _)| *other == socket);
        &other.unwrap_or(&self.first).1
    }

    /// All values, each with its node.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u32>, &T)> {
        std::iter::once(&self.first).chain(&self.others).map(|(socket, table)| (*socket, table))
    }

    /// Converts the value of each node: `change` gets the node and its value.
    ///
    /// # Errors
    /// The first error of `change`; everything is dropped then.
    pub fn try_map<U, E>(
        self,
        mut change: impl FnMut(Option<u32>, T) -> Result<U, E>,
    ) -> Result<PerSocket<U>, E> {
        let mut changed = |(socket, table)| Ok((socket, change(socket, table)?));
        let first = changed(self.first)?;
        let others = self.others.into_iter().map(changed).collect::<Result<_, E>>()?;
        Ok(PerSocket { first, others })
    }
}
