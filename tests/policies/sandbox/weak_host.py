"""A host on a system whose kernel refuses to confine: made by a filter that the host puts on itself first."""

FORBID = """
import ctypes, struct

def forbid(*calls):
    "Refuse system calls to this process and all it starts, as some hosted systems do."
    libc = ctypes.CDLL(None, use_errno=True)
    jumps = b"".join(struct.pack("=HBBI", 0x15, len(calls) - k, 0, call) for k, call in enumerate(calls))
    code = struct.pack("=HBBI", 0x20, 0, 0, 0) + jumps + struct.pack("=HBBIHBBI", 6, 0, 0, 0x7FFF0000, 6, 0, 0, 0x00050001)
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0) == 0
"""
"""Source of ``forbid``, after which the process and all it starts are refused the system calls of these numbers."""

WEAKEN = FORBID + "forbid(157, 317, 444, 445, 446)\n"
"""Takes prctl, seccomp and Landlock away, by their numbers on x86-64."""
