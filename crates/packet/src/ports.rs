// SPDX-License-Identifier: BSD-3-Clause
//! What the headers of TCP and UDP have alike: their first two fields, and how their checksums follow them.

/// The ports of a view with the fields `source` and `destination` and the method `update_checksum`, where `Change` is in scope.
macro_rules! ports {
    ($view:ident) => {
        impl $view {
            /// Source port.
            #[inline]
            pub fn source(&self) -> u16 {
                self.source.get()
            }

            /// Destination port.
            #[inline]
            pub fn destination(&self) -> u16 {
                self.destination.get()
            }

            /// Sets the source port; the checksum follows.
            #[inline]
            pub fn update_source(&mut self, port: u16) {
                self.translate_source(Change::NONE, port);
            }

            /// Sets the source port when `change` is that of the addresses; the checksum follows both at once.
            #[inline]
            pub fn translate_source(&mut self, change: Change, port: u16) {
                self.update_checksum(change.and(Change::of_word(self.source(), port)));
                self.set_source(port);
            }

            /// Sets the destination port; the checksum follows.
            #[inline]
            pub fn update_destination(&mut self, port: u16) {
                self.translate_destination(Change::NONE, port);
            }

            /// Sets the destination port when `change` is that of the addresses; the checksum follows both at once.
            #[inline]
            pub fn translate_destination(&mut self, change: Change, port: u16) {
                self.update_checksum(change.and(Change::of_word(self.destination(), port)));
                self.set_destination(port);
            }

            /// Sets the source port.
            #[inline]
            pub fn set_source(&mut self, port: u16) {
                self.source.set(port);
            }

            /// Sets the destination port.
            #[inline]
            pub fn set_destination(&mut self, port: u16) {
                self.destination.set(port);
            }
        }
    };
}

pub(crate) use ports;
