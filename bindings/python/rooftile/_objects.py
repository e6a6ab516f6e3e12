# SPDX-License-Identifier: Apache-2.0
#
# _objects.py - context, weight and plan with a lifetime: each closes what hangs on it, by close(), `with` or the garbage collector.
# Arguments are checked here where the library sees addresses only: types, shapes, strides, devices, read-only outputs.
import ctypes as c
import operator
import threading
import weakref

from . import _abi
from ._library import call, library
from ._tensor import need_device, need_type, rows, tensor

_E, _F = _abi.Epi, _abi.FLAGS
_GLU = (_E.SWIGLU, _E.GEGLU, _E.GEGLU_TANH)
_VECTORS, _MATRICES = (_E.BIAS, _E.COL_SCALE, _E.ROW_SCALE), (_E.MUL, _E.ADD)
_PLAIN = (_E.SCALE, _E.SILU, _E.GELU, _E.RELU, _E.GELU_TANH, _E.CLAMP) + _GLU


_MOST = 2**63 - 1


def _whole(value, what, least=0, most=_MOST):
    """ctypes would take a number modulo its width."""
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{what} is {number}, and {least} to {most} is allowed")
    return number


class _Object:
    """A handle of the library, freed once: children first."""

    def __init__(self, parents, free):
        self.handle, self._free, self._children, self._parents = c.c_void_p(), free, weakref.WeakSet(), parents
        for parent in parents:
            parent._children.add(self)

    def close(self):
        for child in sorted(self._children, key=lambda o: isinstance(o, _Memory)):  # what lies in memory goes before it
            child.close()
        if self.handle:
            self._free(self.handle)
            self.handle = c.c_void_p()

    def need_open(self):
        if not self.handle:
            raise ValueError(f"this {type(self).__name__} is closed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "_children"):
            self.close()


class _Memory(_Object):
    """Memory of the context's device, aligned to 256 bytes."""

    def __init__(self, context, count):
        super().__init__((context,), lambda p: library().rft_memory_free(context.handle, p, count))
        self.bytes = count
        call("rft_memory_alloc", context.handle, count, c.byref(self.handle))


class Context(_Object):
    """One device: "cpu" or "cuda:N". threads 0: as the library decides."""

    def __init__(self, device="cpu", threads=0, max_isa=None, profile=None, strict=False):
        super().__init__((), library().rft_ctx_free)
        if not isinstance(device, str) or "\0" in device:
            raise ValueError(f'device is {device!r}; it is "cpu" or "cuda:N"')
        options = _abi.CtxOptions(threads=_whole(threads, "threads", most=2**32 - 1), max_isa=max_isa and max_isa.encode(), profile=profile and profile.encode(),
                                  flags=_F["CTX_STRICT"] if strict else 0)
        call("rft_ctx_create", device.encode(), c.byref(options), c.byref(self.handle))
        self.device = "cuda:0" if device == "cuda" else device

    def weight(self, w, **description):
        return Weight(self, w, **description)

    def plan(self, weight, m_max, **description):
        return Plan(self, weight, m_max, **description)


def _dense(t, what, count):
    extent = 1
    for length, stride in zip(reversed(t.shape), reversed(t.strides)):
        if length > 1 and stride != extent:
            raise ValueError(f"{what} has strides {t.strides} for the shape {t.shape}; it must be dense")
        extent *= length
    if extent != count:
        raise ValueError(f"{what} has {extent} elements, and {count} are needed")


def _same_width(scale, scale_type):
    """scale_type says what the elements are, not how many bytes there are."""
    width, need = (library().rft_type_bytes(type, 1) for type in (scale.type, scale_type or scale.type))
    if width != need:
        raise TypeError(f"scale is {scale.type.name.lower()} of {width} bytes, and scale_type is one of {need}")


def _groups(extent, group):
    return 1 if group == 0 else -(-extent // group)


class Weight(_Object):
    """W packed for a context. Floats: an array [n][k]. Low-bit: type=, shape=(n, k) and W's bytes as uint8 or int8, with scale=
    (and zero=, global_scale=, g_idx=) where the type has scales apart; group_n and group_k are what one scale covers, 0 all."""

    def __init__(self, context, w, type=None, shape=None, scale=None, scale_type=None, zero=None, global_scale=None, g_idx=None,
                 group_n=1, group_k=0, flags=0, view=False, stream=None):
        context.need_open()
        self.context, self._kept, self._storage = context, [], None
        super().__init__((context,), library().rft_weight_free)
        q = self._part(w, "w", stream)
        if type is None:
            if len(q.shape) != 2:
                raise ValueError(f"w has the shape {q.shape}, and (n, k) is needed")
            self.desc = _abi.WeightDesc(elem=q.type, n=q.shape[0], k=q.shape[1], ld=rows(q, "w", q.shape[1]))
        else:
            self._describe_codes(q, type, shape)
        group_n, group_k = _whole(group_n, "group_n"), _whole(group_k, "group_k")
        parts = {"scale": scale, "zero": zero, "global_scale": global_scale, "g_idx": g_idx}
        source = _abi.WeightSrc(q=q.address, **self._parts(parts, scale_type, group_n, group_k, stream))
        self.desc.flags |= flags | (_F["WEIGHT_VIEW"] if view else 0)
        self.n, self.k = self.desc.n, self.desc.k
        self._pack(source, stream)
        if not view:
            self._kept.clear()

    def _part(self, array, what, stream):
        t = tensor(array, what, stream)
        need_device(t, what, self.context.device)
        self._kept.append(t)
        return t

    def _describe_codes(self, q, type, shape):
        if shape is None:
            raise ValueError("shape=(n, k) is needed beside type, as the bytes of w do not tell it")
        n, k = shape
        n, k = _whole(n, "n of shape"), _whole(k, "k of shape")
        need = n * library().rft_type_bytes(type, k)
        if q.type not in (_abi.Type.U8, _abi.Type.I8):
            raise TypeError(f"w is {q.type.name.lower()}; stored codes are given as uint8 or int8")
        _dense(q, "w", need)
        self.desc = _abi.WeightDesc(elem=type, n=n, k=k)

    def _parts(self, parts, scale_type, group_n, group_k, stream):
        d, addresses = self.desc, {}
        counts = {"scale": _groups(d.n, group_n) * _groups(d.k, group_k), "global_scale": 1, "g_idx": d.k}
        counts["zero"] = counts["scale"]
        for name, array in parts.items():
            if array is None:
                continue
            t = self._part(array, name, stream)
            _dense(t, name, counts[name])
            addresses[name] = t.address
            if name == "scale":
                _same_width(t, scale_type)
                d.scale, d.group_n, d.group_k = scale_type or t.type, group_n, group_k
            elif name == "zero":
                d.zero = t.type
            elif name == "g_idx":
                need_type(t, name, _abi.Type.I32)
                d.flags |= _F["WEIGHT_G_IDX"]
            else:
                need_type(t, name, _abi.Type.F32)
        return addresses

    def _pack(self, source, stream):
        count = c.c_size_t()
        call("rft_weight_bytes", self.context.handle, c.byref(self.desc), c.byref(count))
        self.bytes = count.value
        self._storage = _Memory(self.context, self.bytes)
        call("rft_weight_pack", self.context.handle, c.byref(self.desc), c.byref(source), self._storage.handle, stream,
             c.byref(self.handle))

    def close(self):
        super().close()
        if self._storage:
            self._storage.close()

    def unpack(self, out):
        """Writes W as f32 into out[n][k]."""
        self.need_open()
        t = tensor(out, "out")
        need_type(t, "out", _abi.Type.F32)
        _need_writable(t, "out")
        ld = rows(t, "out", self.k)
        _need_rows(t, "out", self.n)
        call("rft_weight_unpack", self.handle, c.cast(t.address, c.POINTER(c.c_float)), ld)
        return out


def _need_writable(t, what):
    if not t.writable:
        raise ValueError(f"{what} is read-only")


def _need_rows(t, what, m):
    if t.shape[0] != m:
        raise ValueError(f"{what} has {t.shape[0]} rows, and {m} are needed")


def op(kind, type=0, alpha=0.0, beta=0.0):
    """One operation behind the product, such as op(Epi.BIAS, Type.F32); type is that of its operand."""
    if kind in _VECTORS + _MATRICES and not type:
        raise ValueError(f"{_E(kind).name} reads an operand, so its type is needed")
    if kind not in _VECTORS + _MATRICES + _PLAIN:
        raise NotImplementedError(f"this package does not hand over the operand of {_E(kind).name}")
    return _abi.EpiOp(kind, type, 0, alpha, beta)


class Plan(_Object):
    """y = epilogue(x W^T) for up to m_max rows. x and y: their types; epilogue: a list of op()."""

    def __init__(self, context, weight, m_max, x=_abi.Type.F32, y=_abi.Type.F32, epilogue=(), compute=_abi.Compute.AUTO, m_min=1,
                 batch_invariant=False):
        context.need_open()
        weight.need_open()
        m_min, m_max = _whole(m_min, "m_min"), _whole(m_max, "m_max")
        self._running, self._closing, self._idle = 0, False, threading.Condition()
        self._spare, self._of_stream = [], {}  # workspaces: of a CPU those not in use, of a GPU one a stream
        super().__init__((context, weight), library().rft_plan_free)
        self.context, self.weight, self.x, self.y, self.m_min, self.m_max = context, weight, x, y, m_min, m_max
        ops = (_abi.EpiOp * len(epilogue))(*epilogue)
        self._operands, self.columns = [], weight.n
        for o in ops:
            if o.kind in _GLU:
                self.columns //= 2
            if o.kind in _VECTORS + _MATRICES:
                o.operand = len(self._operands)
                self._operands.append((o.kind, o.type, self.columns))
        desc = _abi.LinearDesc(x=x, y=y, w=weight.desc, m_min=m_min, m_max=m_max, epi=ops, n_epi=len(ops), compute=compute,
                               flags=_F["BATCH_INVARIANT"] if batch_invariant else 0)
        call("rft_plan_create", context.handle, c.byref(desc), c.byref(self.handle))
        self._workspace_bytes = self.info(m_max).workspace

    def close(self):
        """Waits for the calls of run; on a GPU also close after what they enqueued, and the graphs that hold it."""
        with self._idle:
            self._closing = True  # no run begins any more
            self._idle.wait_for(lambda: self._running == 0)
            super().close()
        for memory in self._spare + list(self._of_stream.values()):
            memory.close()

    def need_open(self):
        if self._closing:
            raise ValueError("this Plan is closed")
        super().need_open()

    def info(self, m):
        self.need_open()
        info = _abi.PlanInfo()
        if library().rft_plan_get_info(self.handle, _whole(m, "m"), c.byref(info)) != _abi.Status.OK:
            raise ValueError(f"m is {m}, and the plan serves {self.m_min} to {self.m_max}")
        return info

    def explain(self, m):
        """Why each kernel was taken or refused at this m."""
        self.need_open()
        m = _whole(m, "m")
        length = library().rft_plan_explain(self.handle, m, None, 0)
        text = c.create_string_buffer(length + 1)
        library().rft_plan_explain(self.handle, m, text, length + 1)
        return text.value.decode()

    def run(self, x, y, operands=(), stream=None):
        """Writes y and returns it; on a GPU it enqueues on stream (a number, or a stream of PyTorch or CuPy) and returns."""
        with self._idle:
            self.need_open()
            self._running += 1
        try:
            return self._run_checked(x, y, operands, stream)
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def _run_checked(self, x, y, operands, stream):
        stream = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
        xt, yt = tensor(x, "x", stream), tensor(y, "y", stream)
        for t, what, type in ((xt, "x", self.x), (yt, "y", self.y)):
            need_type(t, what, type)
            need_device(t, what, self.context.device)
        _need_writable(yt, "y")
        args = _abi.LinearArgs(ldx=rows(xt, "x", self.weight.k), ldy=rows(yt, "y", self.columns), m=xt.shape[0], x=xt.address,
                               y=yt.address, weight=self.weight.handle, stream=stream)
        _need_rows(yt, "y", args.m)
        kept = self._set_operands(args, operands, stream)
        self._run(args, stream)
        del kept
        return y

    def _set_operands(self, args, operands, stream):
        if len(operands) != len(self._operands):
            raise ValueError(f"{len(operands)} operands are given, and the epilogue reads {len(self._operands)}")
        kept, array = [], (_abi.Operand * max(len(operands), 1))()
        for i, (given, (kind, type, columns)) in enumerate(zip(operands, self._operands)):
            what, t = f"operand {i} ({_E(kind).name})", tensor(given, f"operand {i}", stream)
            need_type(t, what, type)
            need_device(t, what, self.context.device)
            if kind in _MATRICES:
                array[i].ld = rows(t, what, columns)
                _need_rows(t, what, args.m)
            else:
                _dense(t, what, args.m if kind == _E.ROW_SCALE else columns)
            array[i].ptr = t.address
            kept.append(t)
        args.operand, args.n_operand = array, len(operands)
        return kept, array

    def _run(self, args, stream):
        """With a workspace that no other call in flight has: on the CPU one that is not in use, on a GPU that of the stream."""
        if self._workspace_bytes == 0:
            return call("rft_linear_run", self.handle, c.byref(args))
        on_cpu = self.context.device == "cpu"
        try:
            memory = self._spare.pop() if on_cpu else self._of_stream[stream]
        except LookupError:
            memory = _Memory(self.context, self._workspace_bytes)
            if not on_cpu:
                memory = self._of_stream.setdefault(stream, memory)
        args.workspace, args.workspace_bytes = memory.handle, memory.bytes
        try:
            call("rft_linear_run", self.handle, c.byref(args))
        finally:
            if on_cpu:
                self._spare.append(memory)


class Linear:
    """A layer y = x W^T + bias with its weight packed; one call a batch of rows, from 1 to m_max."""

    def __init__(self, context, w, bias=None, m_max=2048, y=None, tail=(), **description):
        self.weight = context.weight(w, **description)
        x = self.weight.desc.elem if self.weight.desc.elem in (_abi.Type.F16, _abi.Type.BF16) else _abi.Type.F32
        self.bias = () if bias is None else (tensor(bias, "bias"),)
        ops = [op(_E.BIAS, b.type) for b in self.bias] + list(tail)
        self.plan = context.plan(self.weight, m_max, x=x, y=x if y is None else y, epilogue=ops)

    @classmethod
    def from_torch(cls, module, context, **options):
        """The layer of a torch.nn.Linear, whose weight is packed and whose bias is used where it lies."""
        bias = None if module.bias is None else module.bias.detach()
        return cls(context, module.weight.detach(), bias, **options)

    def __call__(self, x, y, operands=(), stream=None):
        return self.plan.run(x, y, self.bias + tuple(operands), stream)

    def close(self):
        self.weight.close()
