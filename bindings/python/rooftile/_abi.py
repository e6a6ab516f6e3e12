# SPDX-License-Identifier: Apache-2.0
#
# _abi.py - rooftile.h as ctypes declares it: enums, structs and prototypes, and nothing else. tests/test_abi.py holds every name,
# field, offset and value here against the header, through a C compiler.
import ctypes as c
import enum

i32, u32, i64, u64 = c.c_int32, c.c_uint32, c.c_int64, c.c_uint64
ptr, size, text, real, single, word = c.c_void_p, c.c_size_t, c.c_char_p, c.c_double, c.c_float, c.c_int


class Status(enum.IntEnum):
    OK, E_ARG, E_UNSUPPORTED, E_NOMEM, E_LAYOUT, E_DEVICE, E_JIT, E_IO, E_COMM = range(9)


# Element types, and GGUF's blocks as 256 + their number in a file.
Type = enum.IntEnum("Type", {
    "F32": 1, "F16": 2, "BF16": 3, "E4M3": 4, "E5M2": 5, "I8": 6, "U8": 7, "I4": 8, "U4": 9, "E2M1": 10, "E8M0": 11, "NF4": 12,
    "I32": 13, "BOOL": 14, "U16": 15, "U32": 16, "U64": 17, "C64": 18, "E2M3": 19, "E3M2": 20, "E4M3FNUZ": 21, "E5M2FNUZ": 22,
    "FP4": 23, "GGUF_Q4_0": 258})


class Compute(enum.IntEnum):
    AUTO, F32, TF32, _16, I8, FP8, FP8_FAST = range(7)


class Order(enum.IntEnum):
    K_CONTIGUOUS, MN_CONTIGUOUS = range(2)


class Epi(enum.IntEnum):
    (SCALE, BIAS, SILU, GELU, MUL, ADD, RELU, GELU_TANH, CLAMP, SWIGLU, GEGLU, GEGLU_TANH, ROW_SCALE, COL_SCALE, MASK, DROPOUT,
     QUANTIZE, QUANTIZE_ROWS) = range(1, 19)


FLAGS = {  # RFT_...
    "CTX_HUGE_PAGES": 1, "CTX_STRICT": 2, "WEIGHT_VIEW": 1, "WEIGHT_GLU_HALVES": 2, "WEIGHT_GLU_INTERLEAVED": 4,
    "WEIGHT_GLOBAL_TIMES": 8, "WEIGHT_GLOBAL_OVER": 16, "WEIGHT_G_IDX": 32, "W_DYNAMIC": 1, "BATCH_INVARIANT": 2, "X_SCALED": 4,
    "ALPHA": 8, "X_STATIC": 16}


class Error(c.Structure):
    c_name = "rft_error"
    _fields_ = [("status", word), ("native", i32), ("message", c.c_char * 240)]


class EpiOp(c.Structure):
    c_name = "rft_epi_op"
    _fields_ = [("kind", word), ("type", word), ("operand", u32), ("alpha", single), ("beta", single)]


class Operand(c.Structure):
    c_name = "rft_operand"
    _fields_ = [("ptr", ptr), ("ld", i64), ("batch_stride", i64)]


class Sized(c.Structure):
    """A struct that begins with its size, so that library and program may be of different versions."""

    def __init__(self, **values):
        super().__init__(struct_size=c.sizeof(self), **values)


class CtxOptions(Sized):
    c_name = "rft_ctx_options"
    _fields_ = [("struct_size", u32), ("threads", u32), ("sm_limit", u32), ("flags", u32), ("parallel_for", ptr), ("user", ptr),
                ("cache_dir", text), ("profile", text), ("cuda_context", ptr), ("alloc", ptr), ("release", ptr), ("log", ptr),
                ("log_level", word), ("max_isa", text)]


class WeightDesc(Sized):
    c_name = "rft_weight_desc"
    _fields_ = [("struct_size", u32), ("elem", word), ("n", i64), ("k", i64), ("ld", i64), ("batch", i64), ("batch_stride", i64),
                ("order", word), ("scale", word), ("zero", word), ("group_n", i64), ("group_k", i64), ("flags", u32)]


class WeightSrc(Sized):
    c_name = "rft_weight_src"
    _fields_ = [("struct_size", u32), ("q", ptr), ("scale", ptr), ("zero", ptr), ("global_scale", ptr), ("g_idx", ptr)]


class LinearDesc(Sized):
    c_name = "rft_linear_desc"
    _fields_ = [("struct_size", u32), ("x", word), ("y", word), ("w", WeightDesc), ("x_order", word), ("m_min", i64),
                ("m_max", i64), ("batch", i64), ("n_group", i64), ("compute", word), ("x_group_k", i64),
                ("epi", c.POINTER(EpiOp)), ("n_epi", u32), ("flags", u32), ("alpha", single)]


class PlanInfo(Sized):
    c_name = "rft_plan_info"
    _fields_ = [("struct_size", u32), ("kernel", text), ("weight_layout", u64), ("workspace", size), ("workspace_align", size),
                ("flops", real), ("bytes", real), ("bound_seconds", real), ("error_c", real), ("error_eta", real),
                ("bound", text), ("threads", i32), ("error_x", real), ("group_x", i64), ("minimum_apart", i32)]


class LinearArgs(Sized):
    c_name = "rft_linear_args"
    _fields_ = [("struct_size", u32), ("n_operand", u32), ("m", i64), ("ldx", i64), ("ldy", i64), ("x_batch_stride", i64),
                ("y_batch_stride", i64), ("x", ptr), ("x_scale", ptr), ("weight", ptr), ("w", ptr), ("ldw", i64),
                ("w_batch_stride", i64), ("y", ptr), ("operand", c.POINTER(Operand)), ("m_device", ptr), ("group_offset", ptr),
                ("row_index", ptr), ("workspace", ptr), ("workspace_bytes", size), ("stream", ptr)]


class QuantizeArgs(Sized):
    c_name = "rft_quantize_args"
    _fields_ = [("struct_size", u32), ("from_", word), ("to", word), ("m", i64), ("k", i64), ("ldx", i64), ("ldq", i64),
                ("group_k", i64), ("x", ptr), ("q", ptr), ("scale", ptr), ("static_scale", ptr), ("stream", ptr)]


STRUCTS = (Error, EpiOp, Operand, CtxOptions, WeightDesc, WeightSrc, LinearDesc, PlanInfo, LinearArgs, QuantizeArgs)

# Result and arguments; a function that may fail has rft_status and ends in an rft_error *, which call() in _library.py adds.
_to = c.POINTER
PROTOTYPES = {
    "rft_version": (word, []),
    "rft_status_name": (text, [word]),
    "rft_type_bytes": (size, [word, i64]),
    "rft_ctx_create": (word, [text, _to(CtxOptions), _to(ptr), _to(Error)]),
    "rft_ctx_free": (None, [ptr]),
    "rft_memory_alloc": (word, [ptr, size, _to(ptr), _to(Error)]),
    "rft_memory_free": (None, [ptr, ptr, size]),
    "rft_weight_bytes": (word, [ptr, _to(WeightDesc), _to(size), _to(Error)]),
    "rft_weight_pack": (word, [ptr, _to(WeightDesc), _to(WeightSrc), ptr, ptr, _to(ptr), _to(Error)]),
    "rft_weight_unpack": (word, [ptr, _to(single), i64, _to(Error)]),
    "rft_weight_free": (None, [ptr]),
    "rft_plan_create": (word, [ptr, _to(LinearDesc), _to(ptr), _to(Error)]),
    "rft_plan_free": (None, [ptr]),
    "rft_plan_get_info": (word, [ptr, i64, _to(PlanInfo)]),
    "rft_plan_explain": (size, [ptr, i64, ptr, size]),
    "rft_linear_run": (word, [ptr, _to(LinearArgs), _to(Error)]),
    "rft_quantize": (word, [ptr, _to(QuantizeArgs), _to(Error)]),
}
