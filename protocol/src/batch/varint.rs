//! The zigzag variable-length integers of records.

/// Reads a 32-bit integer from the bytes that `next` gives; `None` if it has more than five.
#[inline]
pub(super) fn read<E>(mut next: impl FnMut() -> Result<u8, E>) -> Result<Option<i32>, E> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(Some((value >> 1) as i32 ^ -((value & 1) as i32)));
        }
    }
    Ok(None)
}

/// Reads a 64-bit integer from the bytes that `next` gives; `None` if it has more than ten.
#[inline]
pub(super) fn read_long<E>(mut next: impl FnMut() -> Result<u8, E>) -> Result<Option<i64>, E> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(Some((value >> 1) as i64 ^ -((value & 1) as i64)));
        }
    }
    Ok(None)
}

/// Appends an integer; one of 32 bits is read back by [`read`], any by [`read_long`].
pub(super) fn put(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes [`put`] appends.
pub(super) fn size(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn bytes(list: &[u8]) -> impl FnMut() -> Result<u8, ()> {
        let mut list = list.iter().copied();
        move || list.next().ok_or(())
    }

    #[test]
    fn integers_read_back_in_the_size_foretold() {
        for value in [
            0,
            -1,
            1,
            63,
            64,
            -64,
            -65,
            8191,
            1 << 20,
            i32::MAX,
            i32::MIN,
        ] {
            let mut out = Vec::new();
            put(&mut out, i64::from(value));
            assert_eq!(out.len(), size(i64::from(value)));
            assert_eq!(read(bytes(&out)), Ok(Some(value)));
            assert_eq!(read_long(bytes(&out)), Ok(Some(i64::from(value))));
        }
        for value in [i64::MAX, i64::MIN, 1 << 40] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out.len(), size(value));
            assert_eq!(read_long(bytes(&out)), Ok(Some(value)));
        }
    }

    #[test]
    fn cut_and_endless_integers_are_told_apart() {
        assert_eq!(read(bytes(&[0x80])), Err(()));
        assert_eq!(read(bytes(&[0xff; 20])), Ok(None));
        assert_eq!(read_long(bytes(&[0xff; 9])), Err(()));
        assert_eq!(read_long(bytes(&[0xff; 20])), Ok(None));
    }
}
