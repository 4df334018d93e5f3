//! What a frame of a game looks like: floats and ids in, heads out. Owned here; lent to the library for one call.

use crate::failure::{borrowed_text, c_text, count, numbers};
use crate::{Error, Result};
use exphil_sys as sys;
use std::convert::TryFrom;
use std::ffi::CString;

/// An id of an observation: an integer in `0..entries`, looked up in a learned table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdSpec {
    /// 1..31 characters of `[a-z0-9_.]`.
    pub name: String,
    /// 1..65536.
    pub entries: i32,
    /// Width of the learned row, 1..256; 0 is 8.
    pub width: i32,
}

numbers! {
    /// What the value of a head means.
    HeadKind {
        /// Bits `0..count`, each on or off.
        #[default]
        Bernoulli = EXPHIL_BERNOULLI,
        /// One class in `0..count`.
        Categorical = EXPHIL_CATEGORICAL,
    }
}

/// A head of an action; its value is one `i32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadSpec {
    /// 1..31 characters of `[a-z0-9_.]`.
    pub name: String,
    /// Bits or classes.
    pub kind: HeadKind,
    /// Bits 1..31, classes 2..1024.
    pub count: i32,
    /// The value of "do nothing".
    pub neutral: i32,
}

impl HeadSpec {
    /// `count` independent bits, all off when neutral.
    pub fn bernoulli(name: &str, count: i32) -> HeadSpec {
        HeadSpec { name: name.to_string(), kind: HeadKind::Bernoulli, count, neutral: 0 }
    }

    /// One of `count` classes, neutral is class 0.
    pub fn categorical(name: &str, count: i32) -> HeadSpec {
        HeadSpec { name: name.to_string(), kind: HeadKind::Categorical, count, neutral: 0 }
    }

    /// The same with another neutral value.
    pub fn neutral(mut self, value: i32) -> HeadSpec {
        self.neutral = value;
        self
    }
}

/// Rows and actions of a game. Datasets, models and sessions with different specs refuse each other.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Spec {
    /// Name of the observation layout.
    pub layout: String,
    /// Name of the action codec.
    pub codec: String,
    /// F, 0..4096.
    pub float_count: usize,
    /// K ids.
    pub ids: Vec<IdSpec>,
    /// A heads.
    pub heads: Vec<HeadSpec>,
    /// Of every field's meaning; 0: made from names and sizes.
    pub layout_hash: u64,
}

impl Spec {
    /// An empty spec with the names of its layout and codec.
    pub fn new(layout: &str, codec: &str) -> Spec {
        Spec { layout: layout.to_string(), codec: codec.to_string(), ..Spec::default() }
    }

    /// The same with this many floats.
    pub fn floats(mut self, count: usize) -> Spec {
        self.float_count = count;
        self
    }

    /// The same with one more id; `width` 0 is the default.
    pub fn id(mut self, name: &str, entries: i32, width: i32) -> Spec {
        self.ids.push(IdSpec { name: name.to_string(), entries, width });
        self
    }

    /// The same with one more head.
    pub fn head(mut self, head: HeadSpec) -> Spec {
        self.heads.push(head);
        self
    }

    /// Hash over everything in the spec: equal if and only if rows and actions mean the same. 0 for an invalid spec.
    pub fn hash(&self) -> u64 {
        self.lend().map_or(0, |lent| unsafe { sys::exphil_spec_hash(&lent.raw) })
    }

    /// Logits of all heads together.
    pub fn logit_count(&self) -> usize {
        self.heads.iter().map(|head| usize::try_from(head.count).unwrap_or(0)).sum()
    }

    pub(crate) fn lend(&self) -> Result<Lent> {
        let layout = c_text("spec.layout", &self.layout)?;
        let codec = c_text("spec.codec", &self.codec)?;
        let (mut names, mut ids, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        for id in &self.ids {
            let name = c_text("id name", &id.name)?;
            ids.push(sys::exphil_id_spec { name: name.as_ptr(), entries: id.entries, width: id.width });
            names.push(name);
        }
        for head in &self.heads {
            let name = c_text("head name", &head.name)?;
            let (kind, count, neutral) = (head.kind as i32, head.count, head.neutral);
            heads.push(sys::exphil_head_spec { name: name.as_ptr(), kind, count, neutral, reserved: 0 });
            names.push(name);
        }
        let mut raw = sys::init::<sys::exphil_spec>();
        raw.layout = layout.as_ptr();
        raw.codec = codec.as_ptr();
        raw.float_count = count(self.float_count);
        raw.id_count = count(ids.len());
        raw.ids = ids.as_ptr();
        raw.head_count = count(heads.len());
        raw.heads = heads.as_ptr();
        raw.layout_hash = self.layout_hash;
        names.extend([layout, codec]);
        Ok(Lent { raw, _names: names, _ids: ids, _heads: heads })
    }

    /// # Safety
    /// The library filled `raw`, and what it points to still lives.
    pub(crate) unsafe fn of(raw: &sys::exphil_spec) -> Result<Spec> {
        let mut spec = Spec::default();
        unsafe {
            spec.layout = borrowed_text(raw.layout);
            spec.codec = borrowed_text(raw.codec);
            for id in slice(raw.ids, size(raw.id_count)?) {
                let (entries, width) = (id.entries, id.width);
                spec.ids.push(IdSpec { name: borrowed_text(id.name), entries, width });
            }
            for head in slice(raw.heads, size(raw.head_count)?) {
                let kind = HeadKind::from_number(head.kind)?;
                let name = borrowed_text(head.name);
                spec.heads.push(HeadSpec { name, kind, count: head.count, neutral: head.neutral });
            }
        }
        spec.float_count = size(raw.float_count)?;
        spec.layout_hash = raw.layout_hash;
        Ok(spec)
    }
}

/// A spec as the library reads it, with all that it points to.
pub(crate) struct Lent {
    pub(crate) raw: sys::exphil_spec,
    _names: Vec<CString>,
    _ids: Vec<sys::exphil_id_spec>,
    _heads: Vec<sys::exphil_head_spec>,
}

/// A pointer to an optional spec, NULL for none.
pub(crate) fn pointer(lent: &Option<Lent>) -> *const sys::exphil_spec {
    lent.as_ref().map_or(std::ptr::null(), |lent| &lent.raw)
}

/// A count that the library gave.
pub(crate) fn size(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("count: {} is negative", value)))
}

/// An array of the library; NULL stands for none.
///
/// # Safety
/// `pointer` is NULL, or `length` elements live there for `'a`.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, length: usize) -> &'a [T] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

/// Numbers of one row, as lengths of slices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    pub(crate) floats: usize,
    pub(crate) ids: usize,
    pub(crate) heads: usize,
}
