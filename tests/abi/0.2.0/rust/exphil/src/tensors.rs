//! The weights of a model as numbers, copied out and in.

use crate::failure::{c_text, call, count, expect_length, numbers, text};
use crate::shapes::size;
use crate::{Error, Model, Result, Status};
use exphil_sys as sys;
use std::convert::TryFrom;

numbers! {
    /// Types of numbers.
    Type {
        /// 32 bits.
        #[default]
        F32 = EXPHIL_TYPE_F32,
        /// 64 bits.
        F64 = EXPHIL_TYPE_F64,
        /// bfloat16.
        Bf16 = EXPHIL_TYPE_BF16,
        /// Integers of 8 bits with one scale per row.
        I8 = EXPHIL_TYPE_I8,
        /// IEEE half.
        F16 = EXPHIL_TYPE_F16,
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number that tensors are copied as.
pub trait Element: Copy + Default + sealed::Sealed {
    /// The library's name of it.
    const TYPE: Type;
}

impl Element for f32 {
    const TYPE: Type = Type::F32;
}

impl Element for f64 {
    const TYPE: Type = Type::F64;
}

/// One tensor of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// `"blocks.0.in_proj.weight"`.
    pub name: String,
    /// Row-major.
    pub shape: Vec<usize>,
    /// Of its numbers.
    pub kind: Type,
    /// Of all of it.
    pub size_bytes: u64,
}

impl TensorInfo {
    fn of(raw: &sys::exphil_tensor_info) -> Result<TensorInfo> {
        let rank = usize::try_from(raw.rank).unwrap_or(0).min(raw.dim.len());
        Ok(TensorInfo {
            name: text(&raw.name),
            shape: raw.dim[..rank].iter().map(|&dim| size(dim)).collect::<Result<_>>()?,
            kind: Type::from_number(raw.type_)?,
            size_bytes: raw.size_bytes,
        })
    }
}

impl Model {
    /// The tensor at a place in the order of the file.
    pub fn tensor_info(&self, index: usize) -> Result<TensorInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_model_tensor_info(self.as_raw(), count(index), &mut raw, error) })?;
        TensorInfo::of(&raw)
    }

    /// All tensors in the order of the file.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        (0..self.info()?.tensor_count).map(|index| self.tensor_info(index)).collect()
    }

    /// Copies a tensor out.
    pub fn tensor<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        let (length, name) = self.find_tensor::<T>(name)?;
        let mut data = vec![T::default(); length];
        let bytes = length * std::mem::size_of::<T>();
        call(|error| unsafe {
            sys::exphil_model_tensor_get(self.as_raw(), name.as_ptr(), data.as_mut_ptr().cast(), bytes, error)
        })?;
        Ok(data)
    }

    /// Copies a tensor in; needs a model that nothing else uses yet.
    pub fn set_tensor<T: Element>(&mut self, name: &str, data: &[T]) -> Result<()> {
        let (length, c_name) = self.find_tensor::<T>(name)?;
        expect_length(name, data.len(), length)?;
        self.alone()?;
        let bytes = std::mem::size_of_val(data);
        call(|error| unsafe {
            sys::exphil_model_tensor_set(self.as_raw(), c_name.as_ptr(), data.as_ptr().cast(), bytes, error)
        })?;
        Ok(())
    }

    /// Elements of a tensor that has this type.
    fn find_tensor<T: Element>(&self, name: &str) -> Result<(usize, std::ffi::CString)> {
        let c_name = c_text("tensor", name)?;
        for info in self.tensors()? {
            if info.name != name {
                continue;
            }
            if info.kind != T::TYPE {
                let message = format!("{}: holds {:?}, was asked for as {:?}", name, info.kind, T::TYPE);
                return Err(Error::new(Status::Mismatch, message));
            }
            return Ok((info.size_bytes as usize / std::mem::size_of::<T>(), c_name));
        }
        Err(Error::invalid(format!("tensor: there is no {}", name)))
    }
}
