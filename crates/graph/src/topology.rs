// SPDX-License-Identifier: BSD-3-Clause
//! A graph declared once, for every executor.

use crate::next::{Next, checked};
use crate::node::{EachNode, Node, Source};
use crate::object::Object;

/// The properties of a node that are known at compile time.
#[derive(Debug)]
pub struct NodeInfo {
    /// The field's name; the node's in statistics and in the picture.
    pub name: &'static str,
    /// True if it is a source.
    pub source: bool,
    /// Its edges: the name, and the target's index in [`Topology::NODES`].
    pub edges: &'static [(&'static str, usize)],
}

impl NodeInfo {
    /// Returns true if an edge of some node leads to the node at `place`; `edges` are those of each
    /// node.
    #[doc(hidden)]
    #[must_use]
    pub const fn led_to(edges: &[&[(&str, usize)]], place: usize) -> bool {
        let mut node = 0;
        while node < edges.len() {
            let mut edge = 0;
            while edge < edges[node].len() {
                if edges[node][edge].1 == place {
                    return true;
                }
                edge += 1;
            }
            node += 1;
        }
        false
    }
}

/// Nodes and the edges between them. Made by [`topology!`](crate::topology).
///
/// # Safety
/// Executors keep pointers to the nodes that [`visit`](Self::visit) shows. Such a node stays at its
/// address, and keeps its type, until `visit` is called again or the nodes are lent out to be
/// changed.
pub unsafe trait Topology: Sized {
    /// The type of its objects.
    type Object: Object;
    /// An array with one element for each node.
    type PerNode<X>: AsRef<[X]> + AsMut<[X]>;
    /// An array with one element for each source.
    type PerSource<X>;
    /// The nodes, each after those that send to it.
    const NODES: &'static [NodeInfo];

    /// Makes an array with one element for each node.
    fn per_node<X>(make: impl FnMut(usize) -> X) -> Self::PerNode<X>;

    /// Visits each node, in the order of [`NODES`](Self::NODES). Objects waiting for a node that is
    /// not visited are lost.
    fn visit<V: Visitor<Self>>(&mut self, visitor: &mut V);

    /// Calls `ahead` of the nodes that process one object at a time, from the node `at` on, for an
    /// object that may come to them.
    fn ahead(&self, at: usize, object: &Self::Object);

    /// Takes an object through the nodes that process one at a time, from the node `at` on, to the
    /// first of another kind, and returns that node's index. Calls `passes` with each node on the
    /// way.
    fn straight(
        &mut self,
        at: usize,
        object: &mut Self::Object,
        passes: impl FnMut(usize),
    ) -> usize;
}

/// An operation on each node of a topology. `I` is its index in [`Topology::NODES`].
pub trait Visitor<T: Topology> {
    /// Visits a source.
    fn source<const I: usize, S: Source<T::Object>>(&mut self, source: &mut S);

    /// Visits a node.
    fn node<const I: usize, N: Node<T::Object>>(&mut self, node: &mut N);

    /// Visits a node that processes one object at a time: `node` finds it in the topology.
    fn each<const I: usize, N: EachNode<T::Object>>(
        &mut self,
        nodes: &mut T,
        node: impl Fn(&mut T) -> &mut N,
    );
}

/// The most edges that a node may have.
pub(crate) const MOST_EDGES: usize = 64;

/// The target of an edge of the node `I`.
#[doc(hidden)]
#[inline(always)]
#[must_use]
pub fn target<T: Topology, X: Next, const I: usize>(next: X) -> usize {
    let targets = const { &Targets::<T, X, I>::BY_INDEX };
    // If the compiler can follow a node to one of its edges, it can also follow that to the next
    // node; through a table it cannot.
    match checked(next) {
        0 => targets[0],
        1 => targets[1],
        2 => targets[2],
        3 => targets[3],
        index => targets[index],
    }
}

/// The targets of the edges `X` of the node `I`, checked at compile time.
pub(crate) struct Targets<T, X, const I: usize>(std::marker::PhantomData<(T, X)>);

impl<T: Topology, X: Next, const I: usize> Targets<T, X, I> {
    /// The target of each edge, by the edge's index. Each is less than the number of nodes, and
    /// more than `I`; there are as many as `X` has edges, and the following entries are not used.
    pub(crate) const BY_INDEX: [usize; MOST_EDGES] = {
        let edges = T::NODES[I].edges;
        assert!(X::NAMES.len() <= MOST_EDGES, "a node has at most 64 edges");
        assert!(edges.len() == X::NAMES.len(), "each edge of a node has one target");
        let mut targets = [0; MOST_EDGES];
        let mut index = 0;
        while index < X::NAMES.len() {
            let mut found = false;
            let mut edge = 0;
            while edge < edges.len() {
                if same(edges[edge].0, X::NAMES[index]) {
                    assert!(!found, "an edge has two targets");
                    found = true;
                    targets[index] = edges[edge].1;
                }
                edge += 1;
            }
            assert!(found, "an edge has no target");
            assert!(
                targets[index] > I,
                "an edge leads back: declare each node after the nodes that send to it"
            );
            assert!(targets[index] < T::NODES.len(), "an edge leads to no node");
            index += 1;
        }
        targets
    };
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut i = 0;
    while i < one.len() {
        if one[i] != other[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Declares a graph: a struct of nodes, each declared after the nodes that send to it, and the
/// target of each of their edges.
///
/// ```
/// use graph::{Batch, Executor, Fused, Node, Nowhere, Object, Outlet, Room, Source, topology};
///
/// graph::edges! { pub enum Counted { Number } }
/// graph::edges! { pub enum Parity { Even, Odd } }
///
/// struct Count(&'static [u64; 3]);
/// impl Source<&'static u64> for Count {
///     type Next = Counted;
///     fn poll<O: Outlet<&'static u64, Counted>>(&mut self, mut room: Room<'_, &'static u64>, out: &mut O) {
///         for number in self.0 {
///             let _ = room.push(number);
///         }
///         out.forward(Counted::Number, room.into_batch());
///     }
/// }
///
/// struct Split;
/// impl Node<&'static u64> for Split {
///     type Next = Parity;
///     fn process<O: Outlet<&'static u64, Parity>>(&mut self, batch: Batch<'_, &'static u64>, out: &mut O) {
///         out.sort(batch, |n| if **n % 2 == 0 { Parity::Even } else { Parity::Odd });
///     }
/// }
///
/// #[derive(Default)]
/// struct Sum(u64);
/// impl Node<&'static u64> for Sum {
///     type Next = Nowhere;
///     fn process<O: Outlet<&'static u64, Nowhere>>(&mut self, batch: Batch<'_, &'static u64>, _: &mut O) {
///         self.0 += batch.iter().copied().sum::<u64>();
///     }
/// }
///
/// topology! {
///     /// Adds up even and odd numbers.
///     pub struct Sums for &'static u64 {
///         source count: Count => { Number => split },
///         node split: Split => { Even => even, Odd => odd },
///         node even: Sum,
///         node odd: Sum,
///     }
/// }
///
/// let nodes = Sums { count: Count(&[1, 2, 5]), split: Split, even: Sum(0), odd: Sum(0) };
/// let mut graph: Fused<Sums> = Fused::new(nodes);
/// graph.walk();
/// assert_eq!(graph.stats()[3].objects, Some(2));
/// assert_eq!((graph.nodes().even.0, graph.nodes().odd.0), (2, 6));
/// ```
#[macro_export]
macro_rules! topology {
    ($(#[$meta:meta])* $v:vis struct $name:ident for $object:ty { $($body:tt)* }) => {
        $crate::topology!(@emit [$(#[$meta])*] [$v] $name [] [] [$object] $($body)*);
    };
    ($(#[$meta:meta])* $v:vis struct $name:ident<$($lifetime:lifetime),+> for $object:ty { $($body:tt)* }) => {
        $crate::topology!(@emit [$(#[$meta])*] [$v] $name [$($lifetime),+] [$($lifetime),+] [$object] $($body)*);
    };
    ($(#[$meta:meta])* $v:vis struct $name:ident<$($param:ident: $bound:path),+> for $object:ty { $($body:tt)* }) => {
        $crate::topology!(@emit [$(#[$meta])*] [$v] $name [$($param: $bound),+] [$($param),+] [$object] $($body)*);
    };
    (@emit [$($meta:tt)*] [$v:vis] $name:ident [$($generics:tt)*] [$($arguments:tt)*] [$object:ty]
        $($kind:ident $field:ident: $node:ty $(=> { $($edge:ident => $target:ident),+ $(,)? })?),+ $(,)?
    ) => {
        $($meta)*
        $v struct $name<$($generics)*> {
            $(
                #[allow(missing_docs)]
                pub $field: $node
            ),+
        }

        // SAFETY: what is shown are fields, which nothing here replaces or moves.
        unsafe impl<$($generics)*> $crate::Topology for $name<$($arguments)*> {
            type Object = $object;
            type PerNode<PerItem> = [PerItem; 0 $(+ $crate::topology!(@one $field))+];
            type PerSource<PerItem> = [PerItem; 0 $(+ $crate::topology!(@source $kind))+];
            const NODES: &'static [$crate::NodeInfo] = {
                #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
                enum __Place { $($field),+ }
                const SOURCES: &[bool] = &[$($crate::topology!(@source $kind) == 1),+];
                const EDGES: &[&[(&str, usize)]] = &[$(&[$($(
                    (stringify!($edge), $crate::topology!(@target $field $edge $target))
                ),+)?]),+];
                $(
                    const _: () = {
                        let place = __Place::$field as usize;
                        assert!(
                            !SOURCES[place] || !EDGES[place].is_empty(),
                            concat!("the source `", stringify!($field), "` has no edges")
                        );
                        assert!(
                            SOURCES[place] || $crate::NodeInfo::led_to(EDGES, place),
                            concat!("nothing leads to the node `", stringify!($field), "`")
                        );
                    };
                )+
                &[$($crate::NodeInfo {
                    name: stringify!($field),
                    source: SOURCES[__Place::$field as usize],
                    edges: EDGES[__Place::$field as usize],
                }),+]
            };

            fn per_node<PerItem>(make: impl FnMut(usize) -> PerItem) -> Self::PerNode<PerItem> {
                ::std::array::from_fn(make)
            }

            #[inline]
            fn visit<VISITOR: $crate::Visitor<Self>>(&mut self, visitor: &mut VISITOR) {
                #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
                enum __Place { $($field),+ }
                // Named after the nodes, for the compiler to say.
                #[allow(non_camel_case_types, dead_code, clippy::upper_case_acronyms)]
                mod __node {
                    $(pub enum $field<__Edge> { None, edge(__Edge) })+
                }
                $(
                    // That each edge has a target, and each target an edge.
                    #[allow(non_upper_case_globals, dead_code, unreachable_code)]
                    let _ = |next: $crate::topology!(@next $kind $node, $object)| {
                        // The edges' own names come first: these are what others stand for.
                        trait __Missing: Sized {
                            $($(
                                const $edge: Self = panic!(
                                    concat!("the node `", stringify!($field), "` has no edge `",
                                        stringify!($edge), "`")
                                );
                            )+)?
                        }
                        impl<__Edges> __Missing for __Edges {}
                        match __node::$field::edge(next) {
                            __node::$field::None => (),
                            $($(__node::$field::edge(
                                <$crate::topology!(@next $kind $node, $object)>::$edge
                            ) => ()),+)?
                        }
                    };
                    $crate::topology!(@visit $kind visitor self $field [{ __Place::$field as usize }] $node);
                )+
            }

            #[inline(always)]
            #[allow(unused_variables)]
            fn ahead(&self, at: usize, object: &$object) {
                #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
                enum __Place { $($field),+ }
                $(
                    $crate::topology!(@ahead $kind self $field at object [{ __Place::$field as usize }] $object);
                )+
            }

            #[inline(always)]
            #[allow(unused_variables, unused_mut)]
            fn straight(
                &mut self,
                mut at: usize,
                object: &mut $object,
                mut passes: impl FnMut(usize),
            ) -> usize {
                #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
                enum __Place { $($field),+ }
                // Edges lead forward, so that one look at each node is enough.
                $(
                    $crate::topology!(
                        @straight $kind self $field at object passes [{ __Place::$field as usize }] $object
                    );
                )+
                at
            }
        }
    };
    // The place of a target, among what `NODES` has. A node comes first: the trait is what other names stand for.
    (@target $field:ident $edge:ident $target:ident) => {{
        const TARGET: usize = {
            #[allow(non_upper_case_globals, dead_code)]
            trait __Missing: Sized {
                const $target: Self = panic!(
                    concat!("the edge `", stringify!($edge), "` of the node `", stringify!($field), "` leads to `",
                        stringify!($target), "`, which is not a node")
                );
            }
            impl __Missing for __Place {}
            let target = __Place::$target as usize;
            assert!(
                (__Place::$field as usize) < target,
                concat!("the edge `", stringify!($edge), "` of the node `", stringify!($field), "` leads back to `",
                    stringify!($target), "`: declare each node after the nodes that send to it")
            );
            assert!(
                !SOURCES[target],
                concat!("the edge `", stringify!($edge), "` of the node `", stringify!($field), "` leads to `",
                    stringify!($target), "`, which is a source")
            );
            target
        };
        TARGET
    }};
    (@one $field:ident) => { 1 };
    (@source source) => { 1 };
    (@source node) => { 0 };
    (@next source $node:ty, $object:ty) => { <$node as $crate::Source<$object>>::Next };
    (@source each) => { 0 };
    (@visit each $visitor:ident $self:ident $field:ident [$index:expr] $node:ty) => {
        $visitor.each::<$index, $node>($self, |nodes: &mut Self| &mut nodes.$field)
    };
    (@visit $kind:ident $visitor:ident $self:ident $field:ident [$index:expr] $node:ty) => {
        $visitor.$kind::<$index, $node>(&mut $self.$field)
    };
    (@ahead each $self:ident $field:ident $at:ident $object:ident [$index:expr] $type:ty) => {
        if $at <= $index {
            $crate::EachNode::<$type>::ahead(&$self.$field, $object);
        }
    };
    (@ahead $kind:ident $($rest:tt)*) => {};
    (@straight each $self:ident $field:ident $at:ident $object:ident $passes:ident [$index:expr] $type:ty) => {
        if $at == $index {
            $passes($index);
            let next = $crate::EachNode::<$type>::each(&mut $self.$field, $object);
            $at = $crate::target::<Self, _, $index>(next);
        }
    };
    (@straight $kind:ident $($rest:tt)*) => {};
    (@next each $node:ty, $object:ty) => { <$node as $crate::EachNode<$object>>::Next };
    (@next node $node:ty, $object:ty) => { <$node as $crate::Node<$object>>::Next };
}
