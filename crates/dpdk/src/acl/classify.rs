// SPDX-License-Identifier: BSD-3-Clause
//! Classifying packets with a built list.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::num::NonZeroU32;

use super::five_tuple::{self, FiveTuple, Ip};
use super::layout::MAX_INPUT;
use super::{Acl, Built, ClassifyError};
use crate::burst::Burst;
use crate::debug::impl_debug;
use crate::mbuf::Mbuf;

/// The `userdata` of the matching rule with the highest priority; `None` if none matched.
pub type Verdict = Option<NonZeroU32>;

/// Packets handed to DPDK at once by [`Acl::classify_slices`].
const GROUP: usize = 64;

/// Read in place of packets that match nothing.
static NOTHING: [u8; MAX_INPUT] = [0; MAX_INPUT];

/// Up to `N` packets, or later parts of packets, each as long as a layout needs. Input of
/// [`Acl::classify`], made by [`Acl::inputs`].
///
/// ```
/// use dpdk::Mbuf;
/// use dpdk::acl::{Acl, Built, ClassifyError, Inputs, Verdict};
///
/// /// Verdicts for up to 32 packets; for those without a whole IPv4 header none.
/// fn verdicts(
///     acl: &Acl<'_, Built, 5>,
///     packets: &[Mbuf<'_>],
/// ) -> Result<[[Verdict; 1]; 32], ClassifyError> {
///     let mut inputs: Inputs<'_, 5, 32> = acl.inputs();
///     for packet in packets {
///         // An error says that it has no ports where they are looked for, or is one too many: an ACL node would see to it here.
///         let _ = inputs.push_packet(packet, 14);
///     }
///     let mut verdicts = [[None; 1]; 32];
///     acl.classify(&inputs, &mut verdicts)?;
///     Ok(verdicts)
/// }
/// ```
pub struct Inputs<'p, const FIELDS: usize, const N: usize> {
    /// The first `len` point to `needed` bytes or more, valid for `'p`.
    starts: [MaybeUninit<*const u8>; N],
    len: usize,
    needed: usize,
    ip: Option<Ip>,
    packets: PhantomData<&'p [u8]>,
}

impl_debug!([const FIELDS: usize, const N: usize] Inputs<'_, FIELDS, N>, inputs => len: inputs.len, needed: inputs.needed);

/// Why a packet was not added to the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// It ends before the last field.
    #[error("a packet of {len} bytes, the layout needs {needed}")]
    Short {
        /// Bytes that it has.
        len: usize,
        /// Bytes that the layout needs.
        needed: usize,
    },
    /// Its ports are not where the layout has them: classify these bytes instead
    /// ([`FiveTuple::Moved`]).
    #[error("options or extension headers stand before the ports")]
    Moved([u8; five_tuple::LEN]),
    /// It is a fragment without ports, which matches nothing. An ACL whose rules do not compare
    /// ports can classify these bytes ([`FiveTuple::Fragment`]).
    #[error("a fragment that is not the first has no ports")]
    Fragment([u8; five_tuple::LEN]),
    /// Its headers are broken or end too early ([`FiveTuple`]).
    #[error("headers that are broken or cut short")]
    Malformed,
    /// There are `N` already.
    #[error("there are {0} inputs already: classify them first")]
    Full(usize),
}

impl<'p, const FIELDS: usize, const N: usize> Inputs<'p, FIELDS, N> {
    #[inline]
    fn new(needed: usize, ip: Option<Ip>) -> Self {
        let starts = [const { MaybeUninit::uninit() }; N];
        Self { starts, len: 0, needed, ip, packets: PhantomData }
    }

    /// Adds a packet, which begins with the layout's byte 0.
    ///
    /// # Errors
    /// See [`InputError`].
    #[inline]
    pub fn push(&mut self, packet: &'p [u8]) -> Result<(), InputError> {
        if packet.len() < self.needed || !is_in_place(self.ip, packet) {
            return Err(refused(self.ip, packet, self.needed));
        }
        let start = self.starts.get_mut(self.len).ok_or(InputError::Full(N))?;
        start.write(packet.as_ptr());
        self.len += 1;
        Ok(())
    }

    /// Adds the first segment of a packet, whose byte at `offset` is the layout's byte 0. Cheaper
    /// than [`push`](Self::push) if the last field ends in the first 64 bytes.
    ///
    /// # Errors
    /// See [`InputError`]; bytes are counted from `offset` on.
    #[inline]
    pub fn push_packet(&mut self, packet: &'p Mbuf<'_>, offset: usize) -> Result<(), InputError> {
        let found = self.start(packet, offset)?;
        let start = self.starts.get_mut(self.len).ok_or(InputError::Full(N))?;
        start.write(found);
        self.len += 1;
        Ok(())
    }

    /// Returns the start of the layout in a packet.
    #[inline]
    fn start(&self, packet: &Mbuf<'_>, offset: usize) -> Result<*const u8, InputError> {
        if let Some(start) = packet.bytes_at(offset, self.needed) {
            // SAFETY: the packet has this many bytes from there on, and is borrowed meanwhile.
            let bytes = unsafe { std::slice::from_raw_parts(start, self.needed) };
            if is_in_place(self.ip, bytes) {
                return Ok(start);
            }
        }
        let rest = packet.data().get(offset..).unwrap_or_default();
        Err(refused(self.ip, rest, self.needed))
    }

    /// Adds bytes in place of a packet that was refused. Returns true if they are the packet's own;
    /// others match nothing. The caller keeps `moved` until the inputs have been classified, and
    /// adds at most one packet for each of its `N`.
    #[cold]
    fn push_instead(&mut self, moved: &mut Moved<N>, error: InputError) -> bool {
        let own = matches!(error, InputError::Moved(_));
        let found = match (error, moved.0.get_mut(self.len)) {
            (InputError::Moved(bytes), Some(place)) => place.write(bytes).as_ptr(),
            _ => NOTHING.as_ptr(),
        };
        if let Some(start) = self.starts.get_mut(self.len) {
            start.write(found);
            self.len += 1;
        }
        own
    }

    /// Packets inside.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if it is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Room for bytes that are classified in place of `N` packets. It must neither move nor be dropped
/// before that.
struct Moved<const N: usize>([MaybeUninit<[u8; five_tuple::LEN]>; N]);

impl<const N: usize> Moved<N> {
    #[inline]
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; N])
    }
}

/// Returns true if the fields of a packet are at the places of its layout.
#[inline]
fn is_in_place(ip: Option<Ip>, packet: &[u8]) -> bool {
    ip.is_none_or(|ip| ip.is_in_place(packet))
}

/// Why a packet cannot be classified in place.
#[cold]
fn refused(ip: Option<Ip>, packet: &[u8], needed: usize) -> InputError {
    match ip.and_then(|ip| ip.five_tuple(packet)) {
        Some(FiveTuple::Moved(bytes)) => InputError::Moved(bytes),
        // The last fragment may be shorter than a layout needs.
        Some(FiveTuple::Fragment(bytes)) => InputError::Fragment(bytes),
        _ if packet.len() < needed => InputError::Short { len: packet.len(), needed },
        _ => InputError::Malformed,
    }
}

/// Clears the verdicts on packets that match nothing.
#[cold]
fn clear<const CATEGORIES: usize>(verdicts: &mut [[Verdict; CATEGORIES]], nothing: &[bool]) {
    for (verdict, _) in verdicts.iter_mut().zip(nothing).filter(|(_, nothing)| **nothing) {
        *verdict = [None; CATEGORIES];
    }
}

impl<const FIELDS: usize, const CATEGORIES: usize> Acl<'_, Built, FIELDS, CATEGORIES> {
    /// An empty collection of packets for [`classify`](Self::classify).
    #[inline]
    #[must_use]
    pub fn inputs<'p, const N: usize>(&self) -> Inputs<'p, FIELDS, N> {
        Inputs::new(self.layout.input_len(), self.layout.ip)
    }

    /// Classifies all inputs (`rte_acl_classify`). The first verdicts are set in the order of the
    /// inputs, one for each category; the others are left unchanged.
    ///
    /// # Errors
    /// See [`ClassifyError`].
    #[inline]
    pub fn classify<const N: usize>(
        &self,
        inputs: &Inputs<'_, FIELDS, N>,
        verdicts: &mut [[Verdict; CATEGORIES]],
    ) -> Result<(), ClassifyError> {
        let (needed, checked) = (self.layout.input_len(), inputs.needed);
        if checked < needed {
            return Err(ClassifyError::Foreign { checked, needed });
        }
        let len = inputs.len;
        let Some(verdicts) = verdicts.get_mut(..len) else {
            return Err(ClassifyError::Verdicts { verdicts: verdicts.len(), packets: len });
        };
        // SAFETY: each of the first `len` pointers leads to as many bytes as are needed.
        unsafe { self.look_up(inputs.starts.as_ptr().cast(), verdicts) };
        Ok(())
    }

    /// Classifies packets that are slices, arrays or any other type with bytes, beginning with the
    /// layout's byte 0. There is a verdict for each; it is `None` for fragments without ports and
    /// for broken headers ([`FiveTuple`]).
    ///
    /// # Errors
    /// See [`ClassifyError`]. After [`ClassifyError::Short`] the verdicts of earlier packets may
    /// have been written, later ones have not.
    #[inline]
    pub fn classify_slices<P: AsRef<[u8]>>(
        &self,
        packets: &[P],
        verdicts: &mut [[Verdict; CATEGORIES]],
    ) -> Result<(), ClassifyError> {
        if packets.len() != verdicts.len() {
            let (verdicts, packets) = (verdicts.len(), packets.len());
            return Err(ClassifyError::Verdicts { verdicts, packets });
        }
        let needed = self.layout.input_len();
        let groups = packets.chunks(GROUP).zip(verdicts.chunks_mut(GROUP));
        for (group, (packets, verdicts)) in groups.enumerate() {
            if self.layout.ip.is_none() {
                // Every packet that is long enough is classified in place.
                let mut starts = [const { MaybeUninit::<*const u8>::uninit() }; GROUP];
                for (place, (packet, start)) in packets.iter().zip(&mut starts).enumerate() {
                    let packet = packet.as_ref();
                    if packet.len() < needed {
                        let index = group * GROUP + place;
                        return Err(ClassifyError::Short { index, len: packet.len(), needed });
                    }
                    start.write(packet.as_ptr());
                }
                // SAFETY: as many pointers as verdicts, each to as many bytes as are needed.
                unsafe { self.look_up(starts.as_ptr().cast(), verdicts) };
                continue;
            }
            let mut moved = Moved::<GROUP>::new();
            let mut inputs = self.inputs::<GROUP>();
            let (mut nothing, mut count) = ([false; GROUP], 0);
            for (place, packet) in packets.iter().enumerate() {
                // Called once: another call might return other bytes.
                let packet = packet.as_ref();
                let Err(error) = inputs.push(packet) else { continue };
                if let InputError::Short { len, needed } = error {
                    let index = group * GROUP + place;
                    return Err(ClassifyError::Short { index, len, needed });
                }
                nothing[place] = !inputs.push_instead(&mut moved, error);
                count += usize::from(nothing[place]);
            }
            // SAFETY: as many inputs as verdicts, all of this list; the moved bytes still exist.
            unsafe { self.look_up(inputs.starts.as_ptr().cast(), verdicts) };
            if count > 0 {
                clear(verdicts, &nothing);
            }
        }
        Ok(())
    }

    /// Classifies the packets of a burst in place; the layout's byte 0 is at `offset` of each
    /// (`rte_acl_classify`). Packets whose first segment ends before the last field match nothing;
    /// nor do fragments without ports and broken headers ([`FiveTuple`]). Returns the number of
    /// these. Verdicts after those of the packets are left unchanged.
    #[inline]
    pub fn classify_burst<const N: usize>(
        &self,
        burst: &Burst<'_, N>,
        offset: usize,
        verdicts: &mut [[Verdict; CATEGORIES]; N],
    ) -> usize {
        let mut moved = Moved::<N>::new();
        let mut inputs = self.inputs::<N>();
        let (mut nothing, mut count) = ([false; N], 0);
        for (packet, nothing) in burst.iter().zip(&mut nothing) {
            if let Err(error) = inputs.push_packet(packet, offset) {
                *nothing = !inputs.push_instead(&mut moved, error);
                count += usize::from(*nothing);
            }
        }
        // SAFETY: all inputs are of this list, and there are at most N; the moved bytes still
        // exist.
        unsafe { self.look_up(inputs.starts.as_ptr().cast(), &mut verdicts[..inputs.len]) };
        if count > 0 {
            clear(verdicts, &nothing);
        }
        count
    }

    /// `rte_acl_classify`.
    ///
    /// # Safety
    /// `starts` are as many pointers as there are verdicts, each to [`Layout::input_len`] bytes.
    ///
    /// [`Layout::input_len`]: super::Layout::input_len
    #[inline]
    unsafe fn look_up(&self, starts: *const *const u8, verdicts: &mut [[Verdict; CATEGORIES]]) {
        if self.rules == 0 {
            verdicts.fill([None; CATEGORIES]);
            return;
        }
        // SAFETY: the context was built for this layout and these categories; DPDK reads the
        // pointers and the bytes of each packet that the layout covers, and writes a number for
        // each category, 0 for none, which is `None`. DPDK accepts this number of categories, so
        // the call does not fail.
        unsafe {
            dpdk_sys::rte_acl_classify(
                self.context.raw.as_ptr(),
                starts.cast_mut(),
                verdicts.as_mut_ptr().cast(),
                verdicts.len() as u32,
                CATEGORIES as u32,
            );
        }
    }
}

const _: () = assert!(size_of::<Verdict>() == size_of::<u32>());
