// SPDX-License-Identifier: BSD-3-Clause
//! `Debug` for handles: prints what they are, not the data behind their pointers. It waits for no
//! lock.

/// Implements `Debug`: `impl_debug!([GENERICS] Type<ARGUMENTS>, this => field: value of this, ...)`.
macro_rules! impl_debug {
    ([$($generics:tt)*] $name:ident $(<$($argument:tt),+>)? $(, $this:ident => $($field:ident: $value:expr),+)?) => {
        impl<$($generics)*> std::fmt::Debug for $name $(<$($argument),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut fields = f.debug_struct(stringify!($name));
                $(
                    let $this = self;
                    $(fields.field(stringify!($field), &$value);)+
                )?
                fields.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use impl_debug;
