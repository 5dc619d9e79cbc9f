"""The filter of system calls, under which all code of a session runs, in every isolating back end.

Code that computes has no use for the calls that are refused here, and faults of the kernel of the machine were found in
many of them. They answer "not permitted", as they do to who has no rights. A filter can't be taken off: see seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
KILL, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32
_OTHER_ABI = 0x40000000  # first number of the calls of x32
_NEWER = 450  # first of the calls that nobody has looked at, on all machines: C libraries expect kernels without them
_NAMESPACES = 0x7E020000  # flags of clone(2) that make a namespace
_FAMILIES = (1, 2, 10)  # of sockets: this machine's, IPv4, IPv6
_NETLINK = 16  # the family that also lists addresses, by its protocol 0; others configure the kernel

# By machine: audit architecture, the calls that are refused, and those that are looked at.
_CALLS = {
    "x86_64": (
        0xC000003E,
        {
            # Other processes
            "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438,
            "process_madvise": 440, "move_pages": 279, "migrate_pages": 256,
            # Namespaces, mounts and files by handle
            "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
            "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
            "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304, "fanotify_init": 300,
            # Parts of the kernel that programs are loaded into, or that have had many faults
            "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
            "io_uring_register": 427, "add_key": 248, "request_key": 249, "keyctl": 250, "memfd_secret": 447,
            "lookup_dcookie": 212, "personality": 135,
            # The machine itself
            "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
            "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "quotactl_fd": 443,
            "nfsservctl": 180, "syslog": 103, "vhangup": 153, "settimeofday": 164, "clock_settime": 227,
            "adjtimex": 159, "clock_adjtime": 305, "sethostname": 170, "setdomainname": 171, "iopl": 172,
            "ioperm": 173, "modify_ldt": 154, "uselib": 134, "create_module": 174, "get_kernel_syms": 177,
            "query_module": 178, "_sysctl": 156,
        },
        {"clone": 56, "clone3": 435, "socket": 41},
    ),
    "aarch64": (
        0xC00000B7,
        {
            "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "pidfd_getfd": 438,
            "process_madvise": 440, "move_pages": 239, "migrate_pages": 238,
            "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
            "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
            "mount_setattr": 442, "name_to_handle_at": 264, "open_by_handle_at": 265, "fanotify_init": 262,
            "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425, "io_uring_enter": 426,
            "io_uring_register": 427, "add_key": 217, "request_key": 218, "keyctl": 219, "memfd_secret": 447,
            "lookup_dcookie": 18, "personality": 92,
            "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
            "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "quotactl_fd": 443,
            "nfsservctl": 42, "syslog": 116, "vhangup": 58, "settimeofday": 170, "clock_settime": 112,
            "adjtimex": 171, "clock_adjtime": 266, "sethostname": 161, "setdomainname": 162,
        },
        {"clone": 220, "clone3": 435, "socket": 198},
    ),
}  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def refuse_calls() -> None:
    """Put this process and all that it will start under the filter.

    Raises `OSError` if there is no filter for this machine, or its kernel does not take it.
    """
    install(filter_program(platform.machine()))


def install(program: bytes) -> None:
    """Put this process and all that it will start under a filter.

    Raises `OSError` if the kernel of the machine does not take it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    head = _Program(len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, ctypes.byref(head), 0, 0):
        raise OSError(ctypes.get_errno(), f"no filter of system calls: {os.strerror(ctypes.get_errno())}")


def filter_program(machine: str) -> bytes:
    """The filter of a machine: a program of the Berkeley packet filter over (number, machine, address, arguments).

    Raises `OSError` if there is none for this machine.
    """
    if machine not in _CALLS:
        raise OSError(_ENOSYS, f"there is no filter of system calls for {machine}; only for {', '.join(_CALLS)}")
    architecture, refused, examined = _CALLS[machine]
    not_permitted = step(RETURN, ERRNO | EPERM)
    steps = [
        *(step(LOAD, _ARCHITECTURE), step(JUMP_EQUAL, architecture, 1, 0), step(RETURN, KILL)),
        *(step(LOAD, _NUMBER), step(JUMP_AT_LEAST, _OTHER_ABI, 0, 1), not_permitted),
        *(step(JUMP_AT_LEAST, _NEWER, 0, 1), step(RETURN, ERRNO | _ENOSYS)),
    ]
    for number in refused.values():
        steps += [step(JUMP_EQUAL, number, 0, 1), not_permitted]
    # The C library falls back to clone, whose flags can be read here; those of clone3 lie in memory.
    steps += [step(JUMP_EQUAL, examined["clone3"], 0, 1), step(RETURN, ERRNO | _ENOSYS)]
    of_clone = [step(LOAD, _FIRST_ARGUMENT), step(JUMP_SET, _NAMESPACES, 0, 1), not_permitted]
    of_socket = [
        step(LOAD, _FIRST_ARGUMENT),
        *(step(JUMP_EQUAL, family, len(_FAMILIES) - place + 3, 0) for place, family in enumerate(_FAMILIES)),
        *(step(JUMP_EQUAL, _NETLINK, 0, 2), step(LOAD, _THIRD_ARGUMENT), step(JUMP_EQUAL, 0, 1, 0)),
        step(RETURN, ERRNO | _EAFNOSUPPORT),
    ]
    allow = step(RETURN, ALLOW)
    for call, looked_at in (("clone", of_clone), ("socket", of_socket)):
        steps += [step(JUMP_EQUAL, examined[call], 0, len(looked_at) + 1), *looked_at, allow]
    return b"".join([*steps, allow])


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One step of a filter; a jump leaves out `if_true` or `if_false` of the next steps."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
