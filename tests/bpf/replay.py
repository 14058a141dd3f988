"""The core of BBR twice: compiled by gcc for this process, and by clang for the kernel's BPF machine.

Both take the same :class:`Call` and keep their memory in the same layout, so that after every call the bytes
can be compared. The kernel runs the BPF form through bpf(2), BPF_PROG_RUN, on a program of type "syscall".
"""

import ctypes
from pathlib import Path

UNKNOWN = 0xFFFFFFFF
INIT, ACK, RECOVERY, RTO, RESTART, SPURIOUS_LOSS = range(6)
PROFILES = V2ALPHA, DRAFT01, V3, V1, V1_CAP3 = range(5)
STATES = ("Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT")


class Ack(ctypes.Structure):
    """``struct fab_ack``; :class:`UserCore` checks size and last offset against the compiler's."""

    _fields_ = (
        ("now_us", ctypes.c_uint64),
        ("delivered", ctypes.c_uint32),
        ("lost", ctypes.c_uint32),
        ("in_flight", ctypes.c_uint32),
        ("prior_in_flight", ctypes.c_uint32),
        ("cwnd", ctypes.c_uint32),
        ("mss", ctypes.c_uint32),
        ("prior_delivered", ctypes.c_uint32),
        ("sample_delivered", ctypes.c_uint32),
        ("interval_us", ctypes.c_uint32),
        ("rtt_us", ctypes.c_uint32),
        ("newly_acked", ctypes.c_uint32),
        ("app_limited", ctypes.c_bool),
        ("ack_delayed", ctypes.c_bool),
        ("cwnd_limited", ctypes.c_bool),
        ("in_recovery", ctypes.c_bool),
        ("sacks", ctypes.c_bool),
    )


class Call(ctypes.Structure):
    """``struct fab_replay_call``."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("profile", ctypes.c_uint32),
        ("seed", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("ack", Ack),
    )


class UserCore:
    """Compiled by gcc; ``library`` is replay_user.c as a shared library."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        assert ctypes.sizeof(Call) == self._constant("size_of_call")
        assert Ack.sacks.offset == self._constant("offset_of_last_of_ack")
        self.size_of_memory = self._constant("size_of_memory")
        self._memory = ctypes.create_string_buffer(self.size_of_memory)
        self._offset_of_state = self._constant("offset_of_state")
        self._offset_of_cwnd = self._constant("offset_of_cwnd")
        self._offset_of_pacing_rate = self._constant("offset_of_pacing_rate")

    def _constant(self, name: str) -> int:
        return ctypes.c_size_t.in_dll(self._library, name).value

    def __call__(self, call: Call) -> bytes:
        """The memory after ``call``."""
        self._library.replay(self._memory, ctypes.byref(call))
        return self._memory.raw

    @property
    def state(self) -> str:
        return STATES[self._memory.raw[self._offset_of_state]]

    @property
    def cwnd(self) -> int:
        return ctypes.c_uint32.from_buffer(self._memory, self._offset_of_cwnd).value

    @property
    def pacing_rate(self) -> int:
        """Bytes per second."""
        return ctypes.c_uint64.from_buffer(self._memory, self._offset_of_pacing_rate).value


class _RunOptions(ctypes.Structure):
    """``struct bpf_test_run_opts`` of libbpf."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_void_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


class BpfCore:
    """Run by the kernel; ``compiled`` is replay.bpf.c as a BPF object. A context manager: frees both."""

    def __init__(self, compiled: Path, *, size_of_memory: int) -> None:
        self._libbpf = ctypes.CDLL("libbpf.so.1")
        for name in (
            "bpf_object__open_file",
            "bpf_object__find_program_by_name",
            "bpf_object__find_map_by_name",
        ):
            getattr(self._libbpf, name).restype = ctypes.c_void_p
        self._compiled = str(compiled).encode()
        self._memory = ctypes.create_string_buffer(size_of_memory)
        self._key = ctypes.c_uint32(0)
        self._options = _RunOptions(sz=ctypes.sizeof(_RunOptions))

    def __enter__(self):
        lib = self._libbpf
        self._object = ctypes.c_void_p(lib.bpf_object__open_file(self._compiled, None))
        assert self._object, f"libbpf cannot open {self._compiled!r}"
        assert lib.bpf_object__load(self._object) == 0, "the kernel refuses the core in BPF: see above"
        program = ctypes.c_void_p(lib.bpf_object__find_program_by_name(self._object, b"replay"))
        memory = ctypes.c_void_p(lib.bpf_object__find_map_by_name(self._object, b"memory"))
        self._program, self._map = lib.bpf_program__fd(program), lib.bpf_map__fd(memory)
        return self

    def __exit__(self, *_: object) -> None:
        self._libbpf.bpf_object__close(self._object)

    def __call__(self, call: Call) -> bytes:
        """The memory after ``call``."""
        options = self._options
        options.ctx_in = ctypes.addressof(call)
        options.ctx_size_in = ctypes.sizeof(call)
        assert self._libbpf.bpf_prog_test_run_opts(self._program, ctypes.byref(options)) == 0
        assert options.retval == 0
        found = self._libbpf.bpf_map_lookup_elem(self._map, ctypes.byref(self._key), self._memory)
        assert found == 0
        return self._memory.raw
