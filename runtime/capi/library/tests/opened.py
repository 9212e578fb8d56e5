"""Opens the library while Python runs (by ctypes), and executes Python in a light thread."""
import ctypes
import os
import sys
from ctypes import c_char_p, c_size_t, c_uint32, c_uint64, c_void_p

BODY = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Cpu(ctypes.Structure):
    _fields_ = [("host", c_uint32), ("policy", c_uint32), ("timeslice_ns", c_uint64),
                ("first", BODY), ("argument", c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("beside", c_void_p), ("beside_count", c_size_t),
                ("threads", c_size_t), ("stack_bytes", c_size_t), ("first_asks", c_void_p),
                ("best_effort", c_uint32), ("without_terms", c_uint32), ("spread", c_void_p),
                ("schedulers", c_void_p), ("scheduler_count", c_size_t),
                ("promotions", c_uint32), ("policies", c_void_p), ("policy_count", c_size_t),
                ("lock_stacks", c_uint32), ("reserved", c_uint32), ("strict", c_uint32),
                ("scheduling_ns", c_uint64), ("tree_file", c_char_p)]


library = ctypes.CDLL(sys.argv[1])
library.punctual_sleep.argtypes = [c_uint64]
kept = []


def now():
    instant = c_uint64()
    assert library.punctual_now(ctypes.byref(instant)) == 0
    return instant.value


@BODY
def first(_):
    # It allocates and waits, as Python does all the time.
    last = now()
    for round in range(50):
        kept.append([str(round)] * 1000)
        if library.punctual_sleep(1_000_000) != 0:
            return None
        last, before = now(), last
        if last < before + 1_000_000:
            return None
    return 7


FIXED_PRIORITY = 1
cpu = Cpu(min(os.sched_getaffinity(0)), FIXED_PRIORITY, 0, first, None)
for _ in range(3):
    options = Options(ctypes.sizeof(Options), threads=1, stack_bytes=1 << 20,
                      best_effort=1, without_terms=1)
    result = c_void_p()
    status = library.punctual_run(ctypes.byref(cpu), ctypes.byref(options), ctypes.byref(result))
    why = ctypes.create_string_buffer(1000)
    library.punctual_why(0, why, c_size_t(len(why)), None)
    assert (status, result.value) == (0, 7), (status, result.value, why.value)
assert len(kept) == 150 and all(len(words) == 1000 for words in kept)
print("three runs in Python")
