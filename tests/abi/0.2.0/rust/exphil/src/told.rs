//! What a policy is told beside the frame: conditions, and which of several delays holds.

use crate::failure::{borrowed_text, c_text, count};
use crate::Result;
use exphil_sys as sys;
use std::ffi::CString;
use std::ptr;

/// A small enumerated input that is no part of the frame, as player or rank: `1..=values`, or 0 where it is not known.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Condition {
    /// 1..31 characters of `[a-z0-9_.]`.
    pub name: String,
    /// 1..65535.
    pub values: i32,
    /// Of a row of its learned table, 1..256; 0 is 8.
    pub width: i32,
    /// Share of episodes that training shows with 0, drawn anew every epoch.
    pub mask: f64,
}

/// Conditions lent to the library for one call.
pub(crate) struct Lent {
    raw: Vec<sys::exphil_condition_spec>,
    _names: Vec<CString>,
}

impl Lent {
    pub(crate) fn new(conditions: &[Condition]) -> Result<Lent> {
        let (mut raw, mut names) = (Vec::new(), Vec::new());
        for condition in conditions {
            let name = c_text("condition name", &condition.name)?;
            let (values, width, mask) = (condition.values, condition.width, condition.mask);
            raw.push(sys::exphil_condition_spec { name: name.as_ptr(), values, width, mask });
            names.push(name);
        }
        Ok(Lent { raw, _names: names })
    }

    pub(crate) fn pointer(&self) -> *const sys::exphil_condition_spec {
        if self.raw.is_empty() {
            ptr::null()
        } else {
            self.raw.as_ptr()
        }
    }

    pub(crate) fn count(&self) -> i64 {
        count(self.raw.len())
    }
}

/// # Safety
/// The library filled `raw`, and what it points to lives.
pub(crate) unsafe fn conditions_of(raw: &sys::exphil_sampling) -> Vec<Condition> {
    (0..raw.condition_count)
        .map(|i| {
            let one = unsafe { &*raw.conditions.offset(i as isize) };
            let name = unsafe { borrowed_text(one.name) };
            Condition { name, values: one.values, width: one.width, mask: one.mask }
        })
        .collect()
}

/// # Safety
/// As for [`conditions_of`].
pub(crate) unsafe fn delays_of(raw: &sys::exphil_sampling) -> Vec<i32> {
    (0..raw.delay_count).map(|i| unsafe { *raw.delays.offset(i as isize) }).collect()
}

pub(crate) fn numbers(values: &[i32]) -> *const i32 {
    if values.is_empty() {
        ptr::null()
    } else {
        values.as_ptr()
    }
}
