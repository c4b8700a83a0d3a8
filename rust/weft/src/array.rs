//! array.rs: element types, and looks at arrays where they lie.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use weft_sys as sys;

/// A dtype of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum DType {
    Bool = sys::WEFT_BOOL,
    U8 = sys::WEFT_U8,
    I32 = sys::WEFT_I32,
    I64 = sys::WEFT_I64,
    U32 = sys::WEFT_U32,
    U64 = sys::WEFT_U64,
    F16 = sys::WEFT_F16,
    Bf16 = sys::WEFT_BF16,
    F32 = sys::WEFT_F32,
    F64 = sys::WEFT_F64,
    C64 = sys::WEFT_C64,
    C128 = sys::WEFT_C128,
}

impl DType {
    pub(crate) fn of(raw: sys::WeftDType) -> Option<DType> {
        use DType::*;
        [Bool, U8, I32, I64, U32, U64, F16, Bf16, F32, F64, C64, C128].into_iter().find(|d| *d as u32 == raw)
    }
}

/// An element of f16: the bits of an IEEE half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// An element of bf16: the upper half of the bits of an `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// An element of c64 (`Complex<f32>`) or c128 (`Complex<f64>`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust that lies in memory as elements of a dtype do.
///
/// # Safety
/// It is implemented here alone.
pub unsafe trait Element: Copy + fmt::Debug + Send + Sync + 'static + sealed::Sealed {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty: $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $type {}
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
elements! {
    bool: Bool, u8: U8, i32: I32, i64: I64, u32: U32, u64: U64, F16: F16, Bf16: Bf16, f32: F32, f64: F64,
    Complex<f32>: C64, Complex<f64>: C128,
}

/// A look at the elements of an array, which borrows its value. That of a number is one element of rank 0.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    data: NonNull<T>, // element (0, …, 0); of a number not looked at
    number: Option<T>,
    rank: usize,
    shape: [i64; sys::WEFT_MAX_RANK],
    strides: [i64; sys::WEFT_MAX_RANK], // in elements
    size: usize,
    value: PhantomData<&'a T>,
}

impl<'a, T: Element> View<'a, T> {
    /// The dtype of `look` is T's, and what it points to stays as it is for 'a.
    pub(crate) unsafe fn new(look: &sys::WeftArray) -> View<'a, T> {
        let (rank, size) = (look.rank as usize, look.size as usize);
        // A number lies in the value itself, and another look at it writes there: it is copied.
        let number = (rank == 0 && size == 1).then(|| look.data.cast::<T>().read());
        let data = NonNull::new(look.data.cast_mut().cast()).unwrap_or(NonNull::dangling());
        View { data, number, rank, shape: look.shape, strides: look.strides, size, value: PhantomData }
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.rank]
    }

    /// Elements between neighbours of an axis: below 0 where it is reversed, 0 where it repeats one.
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.rank]
    }

    /// How many elements there are.
    pub fn size(&self) -> usize {
        self.size
    }

    fn is_dense(&self) -> bool {
        let mut step = 1;
        for d in (0..self.rank).rev() {
            if self.shape[d] > 1 && self.strides[d] != step {
                return false;
            }
            step *= self.shape[d];
        }
        true
    }

    /// The elements in row-major order, where they lie so; else `None`, and `iter` or `to_vec` serve.
    pub fn as_slice(&self) -> Option<&[T]> {
        if let Some(number) = &self.number {
            return Some(std::slice::from_ref(number));
        }
        if self.size == 0 {
            return Some(&[]);
        }
        // SAFETY: they lie behind each other, and stay as they are while the view is there.
        self.is_dense().then(|| unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.size) })
    }

    /// The element at an index for each axis; `None` where there is none.
    pub fn get(&self, index: &[usize]) -> Option<T> {
        if index.len() != self.rank || index.iter().zip(self.shape()).any(|(&i, &n)| i as u64 >= n as u64) {
            return None;
        }
        let at = index.iter().zip(self.strides()).map(|(&i, &s)| i as i64 * s).sum::<i64>();
        // SAFETY: the index is within the shape.
        Some(self.number.unwrap_or_else(|| unsafe { self.data.as_ptr().offset(at as isize).read() }))
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> Iter<'a, T> {
        Iter { view: *self, at: [0; sys::WEFT_MAX_RANK], offset: 0, left: self.size }
    }

    /// A copy of the elements in row-major order.
    pub fn to_vec(&self) -> Vec<T> {
        self.as_slice().map_or_else(|| self.iter().collect(), <[T]>::to_vec)
    }
}

impl<T: Element> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("shape", &self.shape()).field("elements", &self.to_vec()).finish()
    }
}

/// Walks over a [`View`] in row-major order.
pub struct Iter<'a, T> {
    view: View<'a, T>,
    at: [i64; sys::WEFT_MAX_RANK],
    offset: i64,
    left: usize,
}

impl<T: Element> Iterator for Iter<'_, T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let view = &self.view;
        // SAFETY: as long as elements are left, the offset is that of one.
        let item = view.number.unwrap_or_else(|| unsafe { view.data.as_ptr().offset(self.offset as isize).read() });
        for d in (0..view.rank).rev() {
            self.offset += view.strides[d];
            self.at[d] += 1;
            if self.at[d] < view.shape[d] {
                break;
            }
            self.offset -= view.strides[d] * view.shape[d];
            self.at[d] = 0;
        }
        Some(item)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Element> ExactSizeIterator for Iter<'_, T> {}
