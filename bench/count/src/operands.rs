//! The memory that an instruction touches, by its bytes and the registers that it finds.
//!
//! As far as compiled code without vector extensions goes: an instruction that is not known here is
//! `None`, never one that touches nothing. Sizes tell whether an access crosses a line.

/// Bytes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// Most instructions have none or one; a call through memory has two.
pub(crate) type Accesses = [Option<Access>; 2];

const NONE: Accesses = [None; 2];

/// The longest instruction.
pub(crate) const LONGEST: usize = 15;

// Registers as instructions name them.
const STACK: u8 = 4;
const FRAME: u8 = 5;
const SOURCE: u8 = 6;
const DESTINATION: u8 = 7;

/// The bytes before an operation code.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    is_short: bool,
    repeats: u8,
    rex: u8,
}

impl Prefixes {
    /// The size of a whole operand.
    fn word(self) -> u64 {
        match (self.rex & 8 != 0, self.is_short) {
            (true, _) => 8,
            (_, true) => 2,
            _ => 4,
        }
    }

    /// Bytes of a number in the instruction, of a whole operand.
    fn immediate(self) -> u64 {
        self.word().min(4)
    }

    /// The size of a vector, or of one number in it.
    fn vector(self) -> u64 {
        match self.repeats {
            0xf3 => 4,
            0xf2 => 8,
            _ => 16,
        }
    }
}

/// An instruction that is being read, and the registers that it finds.
struct Reader<'a, R> {
    code: &'a [u8],
    /// The address of the code.
    at: u64,
    read: usize,
    prefixes: Prefixes,
    register: R,
}

/// The memory that the instruction at this address, of these bytes or fewer, is about to touch;
/// `None`: it is unknown. `register` is asked by the number that instructions have for it.
pub(crate) fn accesses(code: &[u8], at: u64, register: impl Fn(u8) -> u64) -> Option<Accesses> {
    let mut reader = Reader {
        code,
        at,
        read: 0,
        prefixes: Prefixes::default(),
        register,
    };
    loop {
        match reader.byte()? {
            0x66 => reader.prefixes.is_short = true,
            repeats @ (0xf2 | 0xf3) => reader.prefixes.repeats = repeats,
            // Another segment: thread-locals. Where it begins is not known, nor needed.
            0x2e | 0x3e | 0x64 | 0x65 | 0xf0 => {}
            rex @ 0x40..=0x4f => reader.prefixes.rex = rex,
            0x0f => {
                let code = reader.byte()?;
                return reader.two_bytes(code);
            }
            code => return reader.one_byte(code),
        }
    }
}

impl<R: Fn(u8) -> u64> Reader<'_, R> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.code.get(self.read)?;
        self.read += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.code.get(self.read..)?.first_chunk()?;
        self.read += 4;
        Some(i64::from(i32::from_le_bytes(*bytes)).cast_unsigned())
    }

    /// An operation code of one byte.
    fn one_byte(&mut self, code: u8) -> Option<Accesses> {
        let (word, immediate) = (self.prefixes.word(), self.prefixes.immediate());
        match code {
            0x00..=0x3f => match code & 7 {
                0 | 2 => self.operand(1, 0),
                1 | 3 => self.operand(word, 0),
                4 | 5 => Some(NONE),
                _ => None,
            },
            0x50..=0x57 | 0x68 | 0x6a | 0x9c | 0xe8 => self.push(),
            0x58..=0x5f | 0x9d | 0xc2 | 0xc3 => self.word_at(STACK),
            0xc9 => self.word_at(FRAME),
            0x63 => self.operand(4, 0),
            0x69 | 0x81 | 0xc7 => self.operand(word, immediate),
            0x6b | 0x83 | 0xc1 => self.operand(word, 1),
            0x80 | 0xc0 | 0xc6 => self.operand(1, 1),
            0x84 | 0x86 | 0x88 | 0x8a | 0xd0 | 0xd2 | 0xfe => self.operand(1, 0),
            0x85 | 0x87 | 0x89 | 0x8b | 0xd1 | 0xd3 => self.operand(word, 0),
            0xf6 => {
                let tests = self.field()? < 2;
                self.operand(1, u64::from(tests))
            }
            0xf7 => {
                let tests = self.field()? < 2;
                self.operand(word, if tests { immediate } else { 0 })
            }
            0xff => self.of_ff(word),
            0xa4..=0xa7 | 0xaa..=0xaf => Some(self.string(code, word)),
            // Jumps, numbers into registers, an address that is computed, traps.
            0x70..=0x7f | 0x8d | 0x90..=0x99 | 0xa8 | 0xa9 | 0xb0..=0xbf => Some(NONE),
            0xcc | 0xe3 | 0xe9 | 0xeb => Some(NONE),
            _ => None,
        }
    }

    /// Counts, calls and jumps through memory, and pushes from there.
    fn of_ff(&mut self, word: u64) -> Option<Accesses> {
        let field = self.field()?;
        let bytes = if field < 2 { word } else { 8 };
        let [operand, _] = self.operand(bytes, 0)?;
        let [stack, _] = match field {
            2 | 6 => self.push()?,
            _ => NONE,
        };
        Some([operand, stack])
    }

    /// An operation code behind 0x0f.
    fn two_bytes(&mut self, code: u8) -> Option<Accesses> {
        let (word, vector) = (self.prefixes.word(), self.prefixes.vector());
        let scalar = if self.prefixes.is_short { 8 } else { 4 };
        match code {
            0x05 | 0x0b | 0x1e | 0x1f | 0x31 | 0x80..=0x8f | 0xa2 | 0xc8..=0xcf => Some(NONE),
            0x10 | 0x11 | 0x51 | 0x58..=0x5a | 0x5c..=0x5f => self.operand(vector, 0),
            0x12 | 0x13 | 0x16 | 0x17 | 0xd6 => self.operand(8, 0),
            0x14 | 0x15 | 0x28 | 0x29 | 0x2b | 0x54..=0x57 | 0x5b => self.operand(16, 0),
            0x2a | 0x2c | 0x2d | 0x6e => self.operand(word, 0),
            0x2e | 0x2f => self.operand(scalar, 0),
            0x40..=0x4f => self.operand(word, 0),
            0x60..=0x6d | 0x6f | 0x74..=0x76 | 0x7f => self.operand(16, 0),
            0x70 | 0xc6 => self.operand(16, 1),
            // Shifts of registers.
            0x71..=0x73 | 0x50 | 0xc5 | 0xd7 => Some(NONE),
            0x7e if self.prefixes.repeats == 0xf3 => self.operand(8, 0),
            0x7e => self.operand(word, 0),
            0x90..=0x9f | 0xb0 | 0xb6 | 0xbe | 0xc0 => self.operand(1, 0),
            0xb7 | 0xbf => self.operand(2, 0),
            0xa3 | 0xa5 | 0xab | 0xad | 0xaf | 0xb1 | 0xb3 | 0xb8 => self.operand(word, 0),
            0xbb..=0xbd | 0xc1 => self.operand(word, 0),
            0xa4 | 0xac | 0xba => self.operand(word, 1),
            0xc2 => self.operand(vector, 1),
            0xc4 => self.operand(2, 1),
            0xc7 => self.operand(2 * word.max(4), 0),
            0xd1..=0xd5 | 0xd8..=0xfe => self.operand(16, 0),
            _ => None,
        }
    }

    /// A push, a call: the word below the stack.
    fn push(&self) -> Option<Accesses> {
        let at = (self.register)(STACK).wrapping_sub(8);
        Some([Some(Access { at, bytes: 8 }), None])
    }

    fn word_at(&self, register: u8) -> Option<Accesses> {
        let at = (self.register)(register);
        Some([Some(Access { at, bytes: 8 }), None])
    }

    /// One repetition: each is a step.
    fn string(&self, code: u8, word: u64) -> Accesses {
        let bytes = if code & 1 == 0 { 1 } else { word };
        let access = |register| {
            let at = (self.register)(register);
            Some(Access { at, bytes })
        };
        match code {
            0xa4..=0xa7 => [access(SOURCE), access(DESTINATION)],
            0xac | 0xad => [access(SOURCE), None],
            _ => [access(DESTINATION), None],
        }
    }

    /// The middle field of the byte that comes next.
    fn field(&self) -> Option<u8> {
        Some(self.code.get(self.read)? >> 3 & 7)
    }

    /// The operand that the next byte describes, of this size, if it is in memory. A number of so
    /// many bytes follows it.
    fn operand(&mut self, bytes: u64, immediate: u64) -> Option<Accesses> {
        let form = self.byte()?;
        let (mode, low) = (form >> 6, form & 7);
        if mode == 3 {
            return Some(NONE);
        }
        let rex = self.prefixes.rex;
        let high = |bit: u8| (rex >> bit & 1) << 3;
        let mut at = 0_u64;
        let mut base = Some(low | high(0));
        if low == 4 {
            let scaled = self.byte()?;
            let index = scaled >> 3 & 7 | high(1);
            if index != STACK {
                at = (self.register)(index) << (scaled >> 6);
            }
            base = Some(scaled & 7 | high(0)).filter(|_| scaled & 7 != FRAME || mode != 0);
        } else if low == FRAME && mode == 0 {
            // From the end of the instruction.
            let distance = self.number()?;
            let end = self.at + self.read as u64 + immediate;
            let at = end.wrapping_add(distance);
            return Some([Some(Access { at, bytes }), None]);
        }
        at = match base {
            Some(base) => at.wrapping_add((self.register)(base)),
            None => at.wrapping_add(self.number()?),
        };
        at = match mode {
            1 => at.wrapping_add(i64::from(self.byte()?.cast_signed()).cast_unsigned()),
            2 => at.wrapping_add(self.number()?),
            _ => at,
        };
        Some([Some(Access { at, bytes }), None])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Register n has n thousands.
    fn of(code: &[u8]) -> Option<Accesses> {
        accesses(code, 1 << 20, |register| u64::from(register) * 1_000)
    }

    fn one(at: u64, bytes: u64) -> Option<Accesses> {
        Some([Some(Access { at, bytes }), None])
    }

    #[test]
    fn addresses_are_those_that_the_processor_computes() {
        // mov (%rax),%rcx; mov 8(%rbx),%ecx; mov -8(%r11),%cl; mov 0x100(%rbp),%cx
        assert_eq!(of(&[0x48, 0x8b, 0x08]), one(0, 8));
        assert_eq!(of(&[0x8b, 0x4b, 0x08]), one(3_008, 4));
        assert_eq!(of(&[0x41, 0x8a, 0x4b, 0xf8]), one(10_992, 1));
        assert_eq!(of(&[0x66, 0x8b, 0x8d, 0, 1, 0, 0]), one(5_256, 2));
        // mov 4(%rdx,%rcx,8),%eax; mov (,%rcx,4)+0x10,%eax; mov 8(%rsp),%rax; mov (%r12),%rax
        assert_eq!(of(&[0x8b, 0x44, 0xca, 0x04]), one(10_004, 4));
        assert_eq!(of(&[0x8b, 0x04, 0x8d, 0x10, 0, 0, 0]), one(4_016, 4));
        assert_eq!(of(&[0x48, 0x8b, 0x44, 0x24, 0x08]), one(4_008, 8));
        assert_eq!(of(&[0x49, 0x8b, 0x04, 0x24]), one(12_000, 8));
        // mov (%rdx,%r12,1),%eax: an index, unlike the stack's register
        assert_eq!(of(&[0x42, 0x8b, 0x04, 0x22]), one(14_000, 4));
        // cmpb $1,0x10(%rip); movq $1,0x10(%rip)
        assert_eq!(of(&[0x80, 0x3d, 0x10, 0, 0, 0, 1]), one((1 << 20) + 23, 1));
        let stored = of(&[0x48, 0xc7, 0x05, 0x10, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(stored, one((1 << 20) + 27, 8));
    }

    #[test]
    fn vectors_stacks_and_strings_have_their_sizes() {
        // movups (%rax),%xmm0; movss; movsd; movq %xmm0,(%rbx); movzbl (%rbx),%eax
        assert_eq!(of(&[0x0f, 0x10, 0x00]), one(0, 16));
        assert_eq!(of(&[0xf3, 0x0f, 0x10, 0x00]), one(0, 4));
        assert_eq!(of(&[0xf2, 0x0f, 0x10, 0x00]), one(0, 8));
        assert_eq!(of(&[0x66, 0x0f, 0xd6, 0x03]), one(3_000, 8));
        assert_eq!(of(&[0x0f, 0xb6, 0x03]), one(3_000, 1));
        // push; pop; call; ret; rep movsq; call *(%rbx)
        assert_eq!(of(&[0x55]), one(3_992, 8));
        assert_eq!(of(&[0x41, 0x5f]), one(4_000, 8));
        assert_eq!(of(&[0xe8, 0, 0, 0, 0]), one(3_992, 8));
        assert_eq!(of(&[0xc3]), one(4_000, 8));
        let word = |at| Some(Access { at, bytes: 8 });
        let both = Some([word(6_000), word(7_000)]);
        assert_eq!(of(&[0xf3, 0x48, 0xa5]), both);
        assert_eq!(of(&[0xff, 0x13]), Some([word(3_000), word(3_992)]));
    }

    #[test]
    fn what_touches_nothing_is_told_from_what_is_unknown() {
        // lea; jne; test %rax,%rax; a long nop; mov $1,%eax
        for code in [
            &[0x48, 0x8d, 0x03][..],
            &[0x75, 0x03],
            &[0x48, 0x85, 0xc0],
            &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
            &[0xb8, 1, 0, 0, 0],
        ] {
            assert_eq!(of(code), Some(NONE), "{code:x?}");
        }
        // fldl (%rax); a vector extension; half an instruction
        for code in [&[0xdd, 0x00][..], &[0xc5, 0xf8, 0x28, 0x00], &[0x48]] {
            assert_eq!(of(code), None, "{code:x?}");
        }
    }
}
