// SPDX-License-Identifier: BSD-3-Clause
//! The edges of a node, as a type.

/// Where a node can send objects: an enum with one variant for each edge. Made by [`edges!`](crate::edges).
pub trait Next: Copy + PartialEq + 'static {
    /// The edges' names, in the order of their indexes.
    const NAMES: &'static [&'static str];

    /// The edge's index in [`NAMES`](Self::NAMES). Executors panic if it is out of range.
    fn index(self) -> usize;
}

/// The index of an edge, which is less than the number of its type's names. For enums of
/// [`edges!`](crate::edges) the compiler knows that and removes the check.
#[inline(always)]
pub(crate) fn checked<X: Next>(next: X) -> usize {
    let index = next.index();
    assert!(index < X::NAMES.len(), "the index of an edge is out of range of its type's NAMES");
    index
}

/// The edges of a node without edges: a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nowhere {}

impl Next for Nowhere {
    const NAMES: &'static [&'static str] = &[];

    fn index(self) -> usize {
        match self {}
    }
}

/// Declares the edges of a node: an enum without data that is a [`Next`].
///
/// ```
/// graph::edges! {
///     /// Where packets go after the rules.
///     pub enum AclNext {
///         /// A rule allows it.
///         Allowed,
///         /// A rule denies it, or none matches.
///         Denied,
///     }
/// }
/// use graph::Next;
/// assert_eq!(AclNext::NAMES, ["Allowed", "Denied"]);
/// assert_eq!(AclNext::Denied.index(), 1);
/// ```
#[macro_export]
macro_rules! edges {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $edge:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $visibility enum $name { $($(#[$doc])* $edge),+ }

        impl $crate::Next for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($edge)),+];

            #[inline]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
