// SPDX-License-Identifier: BSD-3-Clause
//! Sets of named bits, as DPDK has them for offloads and hash types, each a type of its own.

/// Declares such a set: a constant for each bit, with the value that the C compiler emitted and the
/// name that is displayed.
macro_rules! bit_set {
    (
        $(#[$about:meta])*
        pub struct $set:ident {
            $($(#[$bit_about:meta])* $bit:ident = $value:expr, $name:literal;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $set(u64);

        impl $set {
            $($(#[$bit_about])* pub const $bit: Self = Self($value);)+
            /// The empty set.
            pub const EMPTY: Self = Self(0);
            /// The set of all bits that this type knows.
            pub const ALL: Self = Self(0 $(| $value)+);

            const NAMES: &'static [(u64, &'static str)] = &[$(($value, $name)),+];

            /// The set of the known bits in `bits`; unknown ones are left out.
            pub(crate) const fn from_bits(bits: u64) -> Self {
                Self(bits & Self::ALL.0)
            }

            /// DPDK's bits.
            #[must_use]
            pub const fn bits(self) -> u64 {
                self.0
            }

            /// Returns true if the set is empty.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns true if all of `other` is in the set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The union, as `|`, also in constants.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The names of the elements, in the order of DPDK's bits.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| *name)
            }
        }

        impl std::ops::BitOr for $set {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl std::ops::BitAnd for $set {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        /// The elements of the first set that are not in the second.
        impl std::ops::Sub for $set {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        /// Names with spaces between them; `none` for the empty set.
        impl std::fmt::Display for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                if self.is_empty() {
                    return f.write_str("none");
                }
                for (place, name) in self.names().enumerate() {
                    let space = if place == 0 { "" } else { " " };
                    write!(f, "{space}{name}")?;
                }
                Ok(())
            }
        }

        impl std::fmt::Debug for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($set))
            }
        }
    };
}

pub(super) use bit_set;

#[cfg(test)]
mod tests {
    bit_set! {
        /// Two bits with a hole between them.
        pub struct Two {
            /// The first.
            FIRST = 1, "first";
            /// The second.
            SECOND = 1 << 63, "second";
        }
    }

    #[test]
    fn sets_are_sets() {
        let both = Two::FIRST | Two::SECOND;
        assert_eq!((both, both.bits()), (Two::ALL, 1 | 1 << 63));
        assert_eq!((both - Two::FIRST, both & Two::FIRST), (Two::SECOND, Two::FIRST));
        assert!(both.contains(Two::SECOND) && !Two::FIRST.contains(both));
        assert!(both.contains(Two::EMPTY) && Two::EMPTY.is_empty() && !both.is_empty());
        assert_eq!(Two::from_bits(u64::MAX), both);
        assert_eq!(Two::from_bits(2), Two::default());
        assert_eq!([both.to_string(), Two::EMPTY.to_string()], ["first second", "none"]);
        assert_eq!(format!("{:?}", Two::SECOND), "Two(second)");
    }
}
