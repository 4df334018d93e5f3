//! Melee: frames and controllers as plain records, and the one encoder that replays, live games and simulators pass.

use crate::failure::{borrowed_text, c_text, call, count, expect_length, text};
use crate::shapes::{size, Row};
use crate::{Result, Spec};
use exphil_sys as sys;
use std::ffi::CString;
use std::mem::size_of;
use std::ptr;

/// Bits of [`Character::known`].
pub mod known {
    /// `state_age`.
    pub const AGE: u32 = exphil_sys::EXPHIL_MELEE_HAS_AGE;
    /// `flags`, `misc`, `airborne`, `ground`, `jumps`, `l_cancel`.
    pub const FLAGS: u32 = exphil_sys::EXPHIL_MELEE_HAS_FLAGS;
    /// `hurtbox`.
    pub const HURTBOX: u32 = exphil_sys::EXPHIL_MELEE_HAS_HURTBOX;
    /// The five speeds.
    pub const SPEED: u32 = exphil_sys::EXPHIL_MELEE_HAS_SPEED;
    /// `hitlag`.
    pub const HITLAG: u32 = exphil_sys::EXPHIL_MELEE_HAS_HITLAG;
    /// All of them: what a live host sets.
    pub const ALL: u32 = exphil_sys::EXPHIL_MELEE_HAS_ALL;
}

/// Bits of [`Pad::buttons`].
#[allow(missing_docs)]
pub mod button {
    pub const D_LEFT: u32 = exphil_sys::EXPHIL_PAD_D_LEFT;
    pub const D_RIGHT: u32 = exphil_sys::EXPHIL_PAD_D_RIGHT;
    pub const D_DOWN: u32 = exphil_sys::EXPHIL_PAD_D_DOWN;
    pub const D_UP: u32 = exphil_sys::EXPHIL_PAD_D_UP;
    pub const Z: u32 = exphil_sys::EXPHIL_PAD_Z;
    pub const R: u32 = exphil_sys::EXPHIL_PAD_R;
    pub const L: u32 = exphil_sys::EXPHIL_PAD_L;
    pub const A: u32 = exphil_sys::EXPHIL_PAD_A;
    pub const B: u32 = exphil_sys::EXPHIL_PAD_B;
    pub const X: u32 = exphil_sys::EXPHIL_PAD_X;
    pub const Y: u32 = exphil_sys::EXPHIL_PAD_Y;
    pub const START: u32 = exphil_sys::EXPHIL_PAD_START;
}

/// A record of the header under its own name here: the same fields at the same places, which a test compares.
macro_rules! record {
    ($(#[$note:meta])* $name:ident of $raw:ident $check:ident {
        $($(#[$field_note:meta])* $visible:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(C)]
        pub struct $name { $($(#[$field_note])* $visible $field: $type),* }

        const _: () = assert!(size_of::<$name>() == size_of::<sys::$raw>());
        const _: () = assert!(std::mem::align_of::<$name>() == std::mem::align_of::<sys::$raw>());

        #[cfg(test)]
        #[test]
        fn $check() {
            let own = std::mem::MaybeUninit::<$name>::uninit();
            let raw = std::mem::MaybeUninit::<sys::$raw>::uninit();
            let (own, raw) = (own.as_ptr(), raw.as_ptr());
            $(unsafe {
                let (here, there) = (ptr::addr_of!((*own).$field), ptr::addr_of!((*raw).$field));
                assert_eq!(here as usize - own as usize, there as usize - raw as usize, stringify!($field));
                assert_eq!(size_of::<$type>(), size_behind(there), stringify!($field));
            })*
        }
    };
}

#[cfg(test)]
fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

record! {
    /// State of one character at the end of a frame, in the units of the replay's post-frame event. The default is absent,
    /// and has all fields known: set `present`.
    Character of exphil_melee_character characters_are_those_of_the_header {
        /// 0: absent, all else is ignored.
        pub present: i32,
        /// Bits of [`known`]: a live host sets [`known::ALL`].
        pub known: u32,
        /// Place.
        pub x: f32,
        /// Place.
        pub y: f32,
        /// -1 left, 1 right.
        pub facing: f32,
        /// Damage.
        pub percent: f32,
        /// Of the shield.
        pub shield: f32,
        /// Frames in this action state.
        pub state_age: f32,
        /// Hitstun left while `flags[3] & 2`.
        pub misc: f32,
        /// Own speed in the air.
        pub speed_air_x: f32,
        /// Own speed.
        pub speed_y: f32,
        /// Speed of knockback.
        pub speed_attack_x: f32,
        /// Speed of knockback.
        pub speed_attack_y: f32,
        /// Own speed on the ground.
        pub speed_ground_x: f32,
        /// Frames of hitlag left.
        pub hitlag: f32,
        /// The game's own number.
        pub action_state: u16,
        /// Last ground stood on.
        pub ground: u16,
        /// Internal id: Fox is 1.
        pub character: u8,
        /// Left.
        pub stocks: u8,
        /// That hit.
        pub last_attack: u8,
        /// Hits in a row.
        pub combo: u8,
        /// Port index, 6 nobody.
        pub last_hit_by: u8,
        /// 1 in the air.
        pub airborne: u8,
        /// Left.
        pub jumps: u8,
        /// 0 none, 1 hit, 2 missed.
        pub l_cancel: u8,
        /// 0 vulnerable, 1 invulnerable, 2 intangible.
        pub hurtbox: u8,
        /// State bit flags 1..5.
        pub flags: [u8; 5],
        #[doc(hidden)]
        pub reserved: [u8; 2],
    }
}

record! {
    /// An item on the stage. The default is nobody's.
    Item of exphil_melee_item items_are_those_of_the_header {
        /// -1 left, 1 right.
        pub facing: f32,
        /// Speed.
        pub speed_x: f32,
        /// Speed.
        pub speed_y: f32,
        /// Place.
        pub x: f32,
        /// Place.
        pub y: f32,
        /// Frames left.
        pub timer: f32,
        /// Follow one item by this.
        pub spawn_id: u32,
        /// The game's own number.
        pub type_: u16,
        /// Taken.
        pub damage: u16,
        /// The game's own number.
        pub state: u8,
        /// Missile kind, turnip face, shot launched, charge.
        pub misc: [u8; 4],
        /// Port index 0..3, -1 none.
        pub owner: i8,
        #[doc(hidden)]
        pub reserved: [u8; 2],
    }
}

record! {
    /// What is known at the end of one frame. The default has nobody in it, and is otherwise what a game begins with.
    Frame of exphil_melee_frame frames_are_those_of_the_header {
        struct_size: usize,
        /// -123 is the first of a game, the clock starts at 0.
        pub frame: i32,
        /// External id.
        pub stage: i32,
        /// 1..4.
        pub own_port: i32,
        /// 1..4; 0: the first other port that is present.
        pub opponent_port: i32,
        /// By port - 1.
        pub player: [Character; 4],
        /// Nana.
        pub follower: [Character; 4],
        /// Fountain of Dreams; 20 before the first event.
        pub platform_left: f32,
        /// Fountain of Dreams; 28 before the first event.
        pub platform_right: f32,
        /// Dream Land: 0 none, 1 left, 2 right.
        pub wind: i32,
        /// Pokemon Stadium, 0 before the first event.
        pub stadium_kind: i32,
        /// Pokemon Stadium, 0 before the first event.
        pub stadium_event: i32,
        /// 0..15 of `item`.
        pub item_count: i32,
        /// The first `item_count` count.
        pub item: [Item; sys::EXPHIL_MELEE_ITEMS_MAX as usize],
    }
}

record! {
    /// The controller of one player. Sticks -1..1 as the game processes them, trigger 0..1.
    Pad of exphil_pad pads_are_those_of_the_header {
        /// Bits of [`button`].
        pub buttons: u32,
        /// Main stick.
        pub main_x: f32,
        /// Main stick.
        pub main_y: f32,
        /// C stick.
        pub c_x: f32,
        /// C stick.
        pub c_y: f32,
        /// One value for both.
        pub trigger: f32,
    }
}

/// Zero, but for the fields where that would say something else than a replay's first frame does.
macro_rules! zero_is_default {
    ($($name:ident { $($field:ident: $value:expr),* })*) => {
        $(impl Default for $name {
            fn default() -> $name {
                // Numbers only: all zero bytes are a value.
                let zero: $name = unsafe { std::mem::zeroed() };
                $name { $($field: $value,)* ..zero }
            }
        })*
    };
}

zero_is_default! {
    Character { known: known::ALL }
    Item { owner: -1 }
    Frame {
        struct_size: size_of::<Frame>(),
        platform_left: 20.0,
        platform_right: 28.0,
        player: [Character::default(); 4],
        follower: [Character::default(); 4],
        item: [Item::default(); sys::EXPHIL_MELEE_ITEMS_MAX as usize]
    }
    Pad {}
}

impl Frame {
    /// A frame with nobody in it yet: its number, the stage's external id, the port that the policy plays.
    pub fn new(frame: i32, stage: i32, own_port: i32) -> Frame {
        let mut new = Frame::default();
        (new.frame, new.stage, new.own_port) = (frame, stage, own_port);
        new
    }

    /// A frame of this crate's size for the library to fill.
    pub(crate) fn as_raw(&mut self) -> *mut sys::exphil_melee_frame {
        (self as *mut Frame).cast()
    }
}

/// A preset of the library: `layout` `"melee2"` (none), `"exphil288"`, `"slippi"` or `"slippi-nana"`, `codec` `"exphil81"` (none),
/// `"exphil81-floor"`, `"slippi"` or `"slippi-fine"`.
pub fn spec(layout: Option<&str>, codec: Option<&str>) -> Result<Spec> {
    let names = Names::new(layout, codec)?;
    let mut raw = sys::init();
    call(|error| unsafe { sys::exphil_melee_spec(names.layout(), names.codec(), &mut raw, error) })?;
    // "its pointers are static"
    unsafe { Spec::of(&raw) }
}

pub(crate) struct Names {
    layout: Option<CString>,
    codec: Option<CString>,
}

impl Names {
    pub(crate) fn new(layout: Option<&str>, codec: Option<&str>) -> Result<Names> {
        let layout = layout.map(|name| c_text("layout", name)).transpose()?;
        let codec = codec.map(|name| c_text("codec", name)).transpose()?;
        Ok(Names { layout, codec })
    }

    pub(crate) fn layout(&self) -> *const std::os::raw::c_char {
        self.layout.as_ref().map_or(ptr::null(), |name| name.as_ptr())
    }

    pub(crate) fn codec(&self) -> *const std::os::raw::c_char {
        self.codec.as_ref().map_or(ptr::null(), |name| name.as_ptr())
    }
}

/// One column of a layout: which number stands where and how it was scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// `"own.percent"`.
    pub name: String,
    /// `"post 0x16 f32"`.
    pub source: String,
    /// First float, or the index of the id.
    pub offset: usize,
    /// Floats it covers; 1 for an id.
    pub count: usize,
    /// value = clamp(source * scale, low, high); 0: flag or one-hot.
    pub scale: f64,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// An id, not a float.
    pub is_id: bool,
}

/// The columns of a layout.
pub fn fields(layout: Option<&str>) -> Result<Vec<Field>> {
    spec(layout, None)?;
    let names = Names::new(layout, None)?;
    let found = size(unsafe { sys::exphil_melee_field_count(names.layout()) })?;
    (0..found)
        .map(|index| {
            let mut raw = sys::init::<sys::exphil_melee_field>();
            call(|error| unsafe { sys::exphil_melee_field_get(names.layout(), count(index), &mut raw, error) })?;
            Ok(Field {
                name: text(&raw.name),
                source: text(&raw.source),
                offset: size(raw.offset)?,
                count: size(raw.count)?,
                scale: raw.scale,
                low: raw.low,
                high: raw.high,
                is_id: raw.is_id != 0,
            })
        })
        .collect()
}

/// Name of an external character id: 2 is `"fox"`.
pub fn character_name(external: i32) -> Option<String> {
    let name = unsafe { borrowed_text(sys::exphil_melee_character_name(external)) };
    Some(name).filter(|name| !name.is_empty())
}

/// Name of an external stage id: 31 is `"battlefield"`.
pub fn stage_name(external: i32) -> Option<String> {
    let name = unsafe { borrowed_text(sys::exphil_melee_stage_name(external)) };
    Some(name).filter(|name| !name.is_empty())
}

/// What a frame is worth; zero means the library's default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardConfig {
    /// 0 is 1; negative: none.
    pub stock: f64,
    /// Of a percent; 0 is 0.01; negative: none.
    pub damage: f64,
    /// Of Nana's; 0 is 0.5; negative: none.
    pub follower: f64,
    /// 0: none.
    pub ledge: f64,
    /// Of a second; 0: none.
    pub stalling: f64,
    /// 0 is 20.
    pub stalling_distance: f64,
    /// Of a unit; 0: none.
    pub approach: f64,
}

/// What a frame is worth to a player, by what the player and the opponent went through in it; `exphil_melee_reward` in the
/// header has the formula. `before` and `now` are two frames as one player sees them; 0 where they do not follow each other.
/// Seen by the other player the reward is the same with its sign changed.
pub fn reward(config: &RewardConfig, before: &Frame, now: &Frame) -> Result<f32> {
    let mut raw = sys::init::<sys::exphil_melee_reward_config>();
    raw.stock = config.stock;
    raw.damage = config.damage;
    raw.follower = config.follower;
    raw.ledge = config.ledge;
    raw.stalling = config.stalling;
    raw.stalling_distance = config.stalling_distance;
    raw.approach = config.approach;
    let (before, now): (*const Frame, *const Frame) = (before, now);
    let mut reward = 0.0;
    call(|error| unsafe { sys::exphil_melee_reward(&raw, before.cast(), now.cast(), &mut reward, error) })?;
    Ok(reward)
}

/// Frames to rows, controllers to actions and back.
pub struct Encoder {
    names: Names,
    row: Row,
}

impl Encoder {
    /// For a layout and a codec, as [`spec`] takes them.
    pub fn new(layout: Option<&str>, codec: Option<&str>) -> Result<Encoder> {
        let spec = spec(layout, codec)?;
        let row = Row { floats: spec.float_count, ids: spec.ids.len(), heads: spec.heads.len() };
        Ok(Encoder { names: Names::new(layout, codec)?, row })
    }

    /// One frame as floats `[F]` and ids `[K]`.
    pub fn frame(&self, frame: &Frame, floats: &mut [f32], ids: &mut [i32]) -> Result<()> {
        expect_length("floats", floats.len(), self.row.floats)?;
        expect_length("ids", ids.len(), self.row.ids)?;
        let raw: *const Frame = frame;
        let (floats, ids) = (floats.as_mut_ptr(), ids.as_mut_ptr());
        call(|error| unsafe { sys::exphil_melee_encode(self.names.layout(), raw.cast(), floats, ids, error) })?;
        Ok(())
    }

    /// A controller as head values `[A]`: the nearest that the codec can say.
    pub fn pad(&self, pad: &Pad, action: &mut [i32]) -> Result<()> {
        expect_length("action", action.len(), self.row.heads)?;
        let raw: *const Pad = pad;
        let action = action.as_mut_ptr();
        call(|error| unsafe { sys::exphil_melee_pad_encode(self.names.codec(), raw.cast(), action, error) })?;
        Ok(())
    }

    /// Head values `[A]` as a controller.
    pub fn decode(&self, action: &[i32]) -> Result<Pad> {
        expect_length("action", action.len(), self.row.heads)?;
        let mut pad = Pad::default();
        let raw: *mut Pad = &mut pad;
        let action = action.as_ptr();
        call(|error| unsafe { sys::exphil_melee_pad_decode(self.names.codec(), action, raw.cast(), error) })?;
        Ok(pad)
    }
}
