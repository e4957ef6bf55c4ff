// SPDX-License-Identifier: BSD-3-Clause
//! Works out, once per flow, where each field stands, which of them change, and what counts for
//! which checksum.
//!
//! Sums are made of 16-bit words as they lie in the frame, from its first byte on. A header at an
//! odd offset (behind custom bytes) has its own words across these; in ones' complement arithmetic
//! that only exchanges the two bytes of the sum (RFC 1071, section 2), which numbers of a
//! pseudo-header take part in by a shift of 8 bits.

use super::column::{Check, Column, Columns, Covered, LengthColumn, Store};
use super::finish::Tails;
use super::source::{Source, Word};
use super::{BURST, Lanes, longest};
use crate::checksum;
use crate::classifier::Rule;
use crate::field::Pattern;
use crate::frame::{Checksum, FieldValue, FrameError, FrameSpec, Header};
use crate::headers::{
    Auto, Cover, FieldKind, HeaderKind, IPV6, IPV6_EXTENSION_HEADER, SEGMENT, Transit, UDP,
};
use crate::vlan;

/// What [`plan`] makes of a description.
pub struct Plan {
    pub columns: Columns,
    pub checks: Vec<Check>,
}

/// What a field turned out to be.
enum What<'a> {
    Constant(u128),
    Changing(&'a Pattern),
    /// The frame's length less this.
    Length(usize),
    Check {
        cover: Cover,
        bad: bool,
    },
}

/// A field of the stack.
struct Place<'a> {
    header: usize,
    kind: &'static FieldKind,
    /// First bit, counted from the start of the frame.
    offset: usize,
    bits: u32,
    what: What<'a>,
}

impl Place<'_> {
    fn end(&self) -> usize {
        self.offset + self.bits as usize
    }

    fn is_constant(&self) -> bool {
        matches!(self.what, What::Constant(_))
    }
}

/// The bytes that a checksum is made over.
struct Region {
    start: usize,
    end: usize,
    /// The addresses of the pseudo-header.
    addresses: Vec<Address>,
    /// What the last hop receives in place of bits of the destination adds.
    received: u16,
    protocol: Option<u8>,
}

/// Bytes of a pseudo-header's addresses.
struct Address {
    /// The byte of the frame at which a word of the pseudo-header would begin, before or at the start.
    word: usize,
    start: usize,
    end: usize,
}

impl Region {
    /// By how many bits a number of the pseudo-header is shifted.
    fn shift(&self) -> u32 {
        8 * (self.start % 2) as u32
    }

    /// How a field that ends at a bit counts, if it does.
    fn counts(&self, first_byte: usize, end: usize) -> Option<u32> {
        let shift = |end: usize| (end.next_multiple_of(16) - end) as u32;
        if (self.start..self.end).contains(&first_byte) {
            return Some(shift(end));
        }
        let address = self.addresses.iter().find(|a| (a.start..a.end).contains(&first_byte))?;
        Some((shift(end - address.word * 8) + self.shift()) % 16)
    }
}

/// Works it out. The description must have passed [`FrameSpec::check`].
pub fn plan(spec: &FrameSpec) -> Result<Plan, FrameError> {
    let headers_len = spec.headers_len();
    let mut starts = Vec::with_capacity(spec.headers.len());
    let mut at = 0;
    for header in &spec.headers {
        starts.push(at);
        at += header.len();
    }
    let fixed_len = spec.sizes.is_constant().then(|| longest(&spec.sizes));
    let mut places = places(spec, &starts);
    for place in &mut places {
        if let (What::Length(minus), Some(len)) = (&place.what, fixed_len) {
            place.what = What::Constant(len.saturating_sub(*minus) as u128);
        }
    }
    overlaps(spec, &places)?;

    let stride = headers_len.max(1).next_multiple_of(64);
    let mut image = vec![0u8; stride];
    for (header, start) in spec.headers.iter().zip(&starts) {
        let from = start + header.fixed_len();
        image[from..from + header.options.len()].copy_from_slice(&header.options);
    }
    for place in &places {
        if let What::Constant(value) = place.what {
            put(&mut image, place.offset, place.bits, value);
        }
    }
    for place in places.iter().filter(|place| !place.is_constant()) {
        put(&mut image, place.offset, place.bits, 0);
    }

    let (regions, mut checks) = checks(spec, &starts, &places)?;
    let tails = Tails::new(spec, 0);
    for (check, region) in checks.iter_mut().zip(&regions) {
        let reaches_end = region.end > headers_len;
        let mut sum = image_sum(&image, region);
        let from = region.start;
        if let Some(protocol) = region.protocol {
            sum += u64::from(protocol) << region.shift();
            sum += u64::from(region.received) << region.shift();
            match fixed_len {
                Some(len) => sum += ((len - from) as u64) << region.shift(),
                None => check.length = Some((from as u32, region.shift())),
            }
        }
        if reaches_end {
            sum += u64::from(tails.constant_sum());
            match fixed_len {
                Some(len) if tails.payload_counts() => sum += u64::from(tails.payload_sum(len)),
                _ => check.payload = tails.payload_counts(),
            }
        }
        check.base = checksum::fold(sum).into();
    }

    let covers = |place: &Place<'_>| -> Vec<Covered> {
        let count = |region: &Region| region.counts(place.offset / 8, place.end());
        let counts = regions.iter().map(count).enumerate();
        counts.filter_map(|(i, shift)| Some((i, shift?))).collect()
    };
    let changing: Vec<(&Place<'_>, Vec<Covered>)> = places
        .iter()
        .filter(|place| matches!(place.what, What::Changing(_) | What::Length(_)))
        .map(|place| (place, covers(place)))
        .collect();
    let touched: Vec<usize> =
        changing.iter().flat_map(|(_, covered)| covered.iter().map(|(i, _)| *i)).collect();
    let (checks, left) = settle(checks, &mut image, &touched);

    let mut columns = Columns {
        headers_len,
        stride,
        rows: Vec::new(),
        sums: vec![Lanes::default(); checks.len()],
        ..Columns::default()
    };
    for (place, covered) in changing {
        let left = |(i, shift): (usize, u32)| Some((left.get(i).copied()??, shift));
        let covered: Box<[Covered]> = covered.into_iter().filter_map(left).collect();
        let (offset, bits) = (place.offset, place.bits);
        match place.what {
            What::Changing(pattern) => {
                let max = u128::MAX >> (128 - bits.max(1));
                let store = Store::new(offset, bits, stride);
                match bits {
                    0 => {}
                    1..=32 => columns.narrow.push(column(pattern, max, store, covered)),
                    33..=64 => columns.wide.push(column(pattern, max, store, covered)),
                    _ => columns.huge.push(column(pattern, max, store, covered)),
                }
            }
            What::Length(minus) => {
                let store = Store::new(offset, bits, stride);
                columns.lengths.push(LengthColumn { minus: minus as u32, store, covered });
            }
            What::Constant(_) | What::Check { .. } => {}
        }
    }
    columns.rows = image.repeat(BURST);
    Ok(Plan { columns, checks })
}

/// The bits of the headers that are the same in all frames of a description, and the bounds of fields that change,
/// as far as they stay so on the way; with `rewritten` also those of fields that some devices rewrite.
pub fn rule(spec: &FrameSpec, rewritten: bool) -> Rule {
    let mut starts = Vec::with_capacity(spec.headers.len());
    let mut at = 0;
    for header in &spec.headers {
        starts.push(at);
        at += header.len();
    }
    let (mut mask, mut value) = (vec![0; at], vec![0; at]);
    for (header, start) in spec.headers.iter().zip(&starts) {
        // Routers work on the options of an IP header.
        let kept = header.kind.addresses.is_none();
        let from = start + header.fixed_len();
        for (i, byte) in header.options.iter().enumerate().filter(|_| kept) {
            (mask[from + i], value[from + i]) = (0xff, *byte);
        }
    }
    let places = places(spec, &starts);
    let counts = |place: &Place<'_>| match place.kind.transit {
        _ if names_first_tag(place) => false,
        _ if is_steered(spec, place) => rewritten,
        Transit::Kept => true,
        Transit::Rewritten => rewritten,
        Transit::Volatile => false,
    };
    for place in &places {
        if let What::Constant(number) = place.what {
            put(&mut value, place.offset, place.bits, number);
            if counts(place) {
                put(&mut mask, place.offset, place.bits, u128::MAX);
            }
        }
    }
    // Fields share bits: what changes in one of them is no constant of another.
    for place in &places {
        if let What::Changing(pattern) = place.what {
            let constant = if counts(place) { !pattern.varying(place.kind.max()) } else { 0 };
            put(&mut mask, place.offset, place.bits, constant);
            put(&mut value, place.offset, place.bits, pattern.first());
        }
    }
    let volatile = |place: &&Place<'_>| {
        let derived = matches!(place.what, What::Length(_) | What::Check { .. });
        derived || place.kind.transit == Transit::Volatile
    };
    for place in places.iter().filter(volatile) {
        put(&mut mask, place.offset, place.bits, 0);
    }
    let mut rule = Rule::new(&mask, &value);
    for place in places.iter().filter(|place| counts(place)) {
        let What::Changing(pattern) = place.what else { continue };
        let shared = |other: &Place<'_>| other.offset < place.end() && place.offset < other.end();
        if let Some((low, high)) = pattern.bounds(place.kind.max()) {
            if !places.iter().filter(volatile).any(shared) {
                rule.bound(place.offset, place.bits, low, high);
            }
        }
    }
    rule
}

/// Whether a field is the type of the first VLAN tag. Kernels and devices take that tag out of the frame, and who puts it
/// back may not know its type: net_af_packet writes 0x8100 for 0x88a8.
fn names_first_tag(place: &Place<'_>) -> bool {
    let What::Constant(number) = place.what else { return false };
    let is_tag = u16::try_from(number).is_ok_and(vlan::is_tag);
    (place.header, place.kind.auto) == (0, Auto::EtherType) && is_tag
}

/// Whether a field is a destination that hops of a list replace one by the other.
fn is_steered(spec: &FrameSpec, place: &Place<'_>) -> bool {
    let header = &spec.headers[place.header];
    let mut behind = spec.headers[place.header + 1..]
        .iter()
        .take_while(|header| header.kind.addresses.is_none());
    (header.kind, place.kind.name) == (&IPV6, "dst")
        && (header.received.is_some() || behind.any(|header| header.kind == &SEGMENT))
}

/// Puts the checksums that never change into the image. The others, and where each went.
fn settle(
    checks: Vec<Check>,
    image: &mut [u8],
    touched: &[usize],
) -> (Vec<Check>, Vec<Option<usize>>) {
    let mut changes: Vec<bool> = (0..checks.len()).map(|i| touched.contains(&i)).collect();
    let (mut left, mut places) = (Vec::new(), Vec::new());
    let mut added = vec![0; checks.len()];
    // The innermost come first, so that what covers a checksum comes after it.
    for (i, mut check) in checks.into_iter().enumerate() {
        check.base = checksum::fold(u64::from(check.base) + added[i]).into();
        if changes[i] || check.length.is_some() || check.payload {
            check.covered.iter().for_each(|outer| changes[*outer] = true);
            places.push(Some(left.len()));
            left.push(check);
            continue;
        }
        let value = check.value(check.base) as u16;
        let bytes = if check.at % 2 == 0 { value.to_be_bytes() } else { value.to_le_bytes() };
        image[check.at..check.at + 2].copy_from_slice(&bytes);
        check.covered.iter().for_each(|outer| added[*outer] += u64::from(value));
        places.push(None);
    }
    for check in &mut left {
        check.covered = check.covered.iter().filter_map(|outer| places[*outer]).collect();
    }
    (left, places)
}

fn column<T: Word>(
    pattern: &Pattern,
    max: u128,
    store: Store,
    covered: Box<[Covered]>,
) -> Column<T> {
    Column { source: Source::new(pattern, max), store, short: max <= 0xffff, covered }
}

/// All fields of a stack: those that nobody set first, the others in the order of their setting.
fn places<'a>(spec: &'a FrameSpec, starts: &[usize]) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for (i, (header, start)) in spec.headers.iter().zip(starts).enumerate() {
        let behind = &spec.headers[i + 1..];
        let there = |kind: &FieldKind| kind.end_bits() <= header.fixed_len() * 8;
        let mut place = |kind: &'static FieldKind, value: &'a FieldValue| {
            let (mut offset, mut bits) = (start * 8 + kind.offset_bits, kind.bits);
            let what = what(kind, value, header, *start, behind);
            if let What::Changing(pattern) = what {
                // Often only the low bits of a wide field change, which is quicker.
                let change = pattern.changing_bits(kind.max());
                let low = [32, 64].into_iter().find(|low| change <= *low && *low < bits);
                if let Some(low) = low.filter(|_| kind.end_bits() % 8 == 0) {
                    let what = What::Constant(pattern.first() >> low);
                    places.push(Place { header: i, kind, offset, bits: bits - low, what });
                    (offset, bits) = (offset + (bits - low) as usize, low);
                }
            }
            places.push(Place { header: i, kind, offset, bits, what });
        };
        for kind in header.kind.fields {
            if there(kind) && header.value(kind).is_none() {
                place(kind, &FieldValue::Auto);
            }
        }
        for (at, (kind, value)) in header.fields.iter().enumerate() {
            let again = header.fields[at + 1..].iter().any(|(other, _)| other.name == kind.name);
            if there(kind) && !again {
                place(kind, value);
            }
        }
    }
    places
}

fn what<'a>(
    kind: &FieldKind,
    value: &'a FieldValue,
    header: &Header,
    start: usize,
    behind: &[Header],
) -> What<'a> {
    match value {
        FieldValue::Pattern(Pattern::Value(value))
            if kind.default_is_auto && *value == kind.default => {}
        FieldValue::Pattern(pattern) if pattern.is_constant() => {
            return What::Constant(pattern.first() & kind.max());
        }
        FieldValue::Pattern(pattern) => return What::Changing(pattern),
        FieldValue::Checksum(Checksum::Custom(value)) => return What::Constant((*value).into()),
        FieldValue::Auto | FieldValue::Checksum(_) => {}
    }
    let bad = *value == FieldValue::Checksum(Checksum::Bad);
    let parts = behind.iter().take_while(|part| part.kind.is_part());
    let next = behind.get(parts.clone().count()).map(|next| next.kind);
    let numbers = next.map(|next| next.numbers);
    let number = match kind.auto {
        Auto::Default => None,
        Auto::EtherType => numbers.and_then(|n| n.ether_type).map(u128::from),
        Auto::IpProtocol => numbers.and_then(|n| n.ip_protocol).map(u128::from),
        Auto::PppProtocol => numbers.and_then(|n| n.ppp_protocol).map(u128::from),
        Auto::UdpPort => numbers.and_then(|n| n.udp_port).map(u128::from),
        Auto::BottomOfStack => Some((next != Some(header.kind)).into()),
        Auto::HeaderWords => Some((header.len() / 4) as u128),
        Auto::ExtensionWords => {
            let len = header.len() + parts.map(Header::len).sum::<usize>();
            Some((len / 8).saturating_sub(1) as u128)
        }
        Auto::Segments(less) => {
            let segments = parts.take_while(|part| part.kind == &SEGMENT).count();
            Some(segments.saturating_sub(less.into()) as u128)
        }
        Auto::PadLength => Some((header.len() - 2) as u128),
        Auto::Length(from) => return What::Length(start + from),
        Auto::Checksum(cover) => return What::Check { cover, bad },
    };
    What::Constant(number.unwrap_or(kind.default) & kind.max())
}

/// Fields that change must not share bits.
fn overlaps(spec: &FrameSpec, places: &[Place<'_>]) -> Result<(), FrameError> {
    let changing: Vec<&Place<'_>> = places.iter().filter(|place| !place.is_constant()).collect();
    for (i, first) in changing.iter().enumerate() {
        for second in &changing[i + 1..] {
            if first.offset < second.end() && second.offset < first.end() {
                return Err(FrameError::Overlap {
                    header: spec.headers[first.header].kind.name,
                    first: first.kind.name,
                    second: second.kind.name,
                });
            }
        }
    }
    Ok(())
}

/// The checksums with what they cover, the innermost first.
fn checks(
    spec: &FrameSpec,
    starts: &[usize],
    places: &[Place<'_>],
) -> Result<(Vec<Region>, Vec<Check>), FrameError> {
    let (mut regions, mut checks) = (Vec::<Region>::new(), Vec::<Check>::new());
    for place in places.iter().rev() {
        let What::Check { cover, bad } = place.what else { continue };
        let (header, start) = (&spec.headers[place.header], starts[place.header]);
        let end = if cover == Cover::Header { start + header.len() } else { usize::MAX };
        let mut region = Region { start, end, addresses: Vec::new(), received: 0, protocol: None };
        if cover == Cover::RestAndPseudoHeader {
            region.protocol = header.kind.numbers.ip_protocol;
            (region.addresses, region.received) = addresses(spec, starts, place.header)?;
        }
        checks.push(Check {
            at: place.offset / 8,
            base: 0,
            flip: u32::from(bad) << region.shift(),
            zero: if header.kind == &UDP { 0xffff } else { 0 },
            length: None,
            payload: false,
            covered: Box::default(),
        });
        regions.push(region);
    }
    for (i, check) in checks.iter_mut().enumerate() {
        let covers = |(j, region): (usize, &Region)| {
            (j != i && (region.start..region.end).contains(&check.at)).then_some(j)
        };
        check.covered = regions.iter().enumerate().filter_map(covers).collect();
    }
    Ok((regions, checks))
}

/// The addresses of the pseudo-header of header number `upper`, and what is to be added for bits of the destination that
/// are received otherwise than sent. With segments left the destination is the last segment (RFC 8200, section 8.1).
fn addresses(
    spec: &FrameSpec,
    starts: &[usize],
    upper: usize,
) -> Result<(Vec<Address>, u16), FrameError> {
    let before = &spec.headers[..upper];
    let nearest = before.iter().enumerate().rev().find_map(|(at, header)| {
        header.kind.addresses.map(|(from, len)| (at, starts[at] + from, len))
    });
    let Some((ip, start, len)) = nearest else { return Ok((Vec::new(), 0)) };
    let word = starts[ip];
    let segment = match before[ip].kind == &IPV6 {
        true => last_segment(&before[ip..], spec.headers[upper].kind)?.map(|at| ip + at),
        false => None,
    };
    let Some(segment) = segment else {
        return Ok((vec![Address { word, start, end: start + len }], received(&before[ip])));
    };
    let source = Address { word, start, end: start + len / 2 };
    let (start, end) = (starts[segment], starts[segment] + SEGMENT.len);
    let destination = Address { word: start, start, end };
    Ok((vec![source, destination], received(&before[segment])))
}

/// Where in these headers the last segment is that packets have before them.
fn last_segment(
    headers: &[Header],
    upper: &'static HeaderKind,
) -> Result<Option<usize>, FrameError> {
    let lists = headers
        .windows(2)
        .enumerate()
        .rev()
        .filter(|(_, pair)| pair[0].kind == &IPV6_EXTENSION_HEADER && pair[1].kind == &SEGMENT);
    for (at, pair) in lists {
        let left = pair[0].kind.field("segments_left").and_then(|field| pair[0].value(field));
        let Some(FieldValue::Pattern(pattern)) = left else { return Ok(Some(at + 1)) };
        match pattern.bounds(0xff) {
            // All packets are at their last hop already.
            Some((0, 0)) => {}
            Some((1.., _)) => return Ok(Some(at + 1)),
            Some((0, _)) | None => return Err(FrameError::SegmentsLeft { header: upper.name }),
        }
    }
    Ok(None)
}

/// What bits of an address that are received otherwise than sent add to a checksum.
fn received(header: &Header) -> u16 {
    let sum =
        |bits: u128| checksum::fold((0..8).map(|at| (bits >> (16 * at)) as u64 & 0xffff).sum());
    header.received.map_or(0, |(sent, received)| {
        checksum::fold(u64::from(sum(received)) + u64::from(!sum(sent)))
    })
}

/// What the bytes that never change add to a checksum, the addresses of its pseudo-header too.
fn image_sum(image: &[u8], region: &Region) -> u64 {
    let word = |even: bool, byte: u8| u64::from(byte) << if even { 8 } else { 0 };
    let bytes = image.iter().enumerate().take(region.end).skip(region.start);
    let sum: u64 = bytes.map(|(i, byte)| word(i % 2 == 0, *byte)).sum();
    let address = |address: &Address| -> u64 {
        let bytes = image.iter().enumerate().take(address.end).skip(address.start);
        bytes.map(|(i, byte)| word((i - address.word + region.start) % 2 == 0, *byte)).sum()
    };
    sum + region.addresses.iter().map(address).sum::<u64>()
}

/// Puts the low `bits` bits of a value at a bit offset.
fn put(image: &mut [u8], offset: usize, bits: u32, value: u128) {
    for i in 0..bits as usize {
        let at = offset + i;
        let bit = (value >> (bits as usize - 1 - i) & 1) as u8;
        let shift = 7 - at % 8;
        image[at / 8] = image[at / 8] & !(1 << shift) | bit << shift;
    }
}
