# SPDX-License-Identifier: Apache-2.0
#
# _objects.py - context, weight and plan with a lifetime: each closes what hangs on it, by close(), `with` or garbage collection.
# Arguments are checked here where the library sees addresses only: types, shapes, strides, devices, read-only outputs.
import ctypes as c
import operator
import threading
import weakref

from . import _abi
from ._library import call, library
from ._tensor import matrices, need_device, need_type, rows, tensor

_E, _F = _abi.Epi, _abi.FLAGS
_GLU = (_E.SWIGLU, _E.GEGLU, _E.GEGLU_TANH)
_VECTORS, _MATRICES = (_E.BIAS, _E.COL_SCALE, _E.ROW_SCALE), (_E.MUL, _E.ADD)
_8_BITS = (_abi.Type.I8, _abi.Type.E4M3)
_QUANTIZE = (_E.QUANTIZE, _E.QUANTIZE_ROWS)  # whose operand is f32, without a word
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
        options = _abi.CtxOptions(threads=_whole(threads, "threads", most=2**32 - 1), max_isa=max_isa and max_isa.encode(),
                                  profile=profile and profile.encode(), flags=_F["CTX_STRICT"] if strict else 0)
        call("rft_ctx_create", device.encode(), c.byref(options), c.byref(self.handle))
        self.device = "cuda:0" if device == "cuda" else device

    def weight(self, w, **description):
        return Weight(self, w, **description)

    def plan(self, weight, m_max, **description):
        return Plan(self, weight, m_max, **description)

    def quantize(self, x, q, scale=None, group_k=0, static_scale=None, stream=None):
        """Writes x[m][k] in 8 bits to q, and to scale[m][groups of k] what its codes count; or rounds by static_scale, of all."""
        self.need_open()
        arrays = {"x": x, "q": q, "scale": scale, "static_scale": static_scale}
        given = {name: tensor(array, name, stream) for name, array in arrays.items() if array is not None}
        xt, qt = given["x"], given["q"]
        m, k = (xt.shape + (0, 0))[:2]
        counts = {"scale": m * _groups(k, group_k), "static_scale": 1}
        for name, t in given.items():
            need_device(t, name, self.device)
            if name in counts:
                need_type(t, name, _abi.Type.F32)
                _dense(t, name, counts[name])
            if name in ("q", "scale"):
                _need_writable(t, name)
        addresses = {name: t.address for name, t in given.items()}
        args = _abi.QuantizeArgs(from_=xt.type, to=qt.type, m=m, k=k, ldx=rows(xt, "x", k), ldq=rows(qt, "q", k),
                                 group_k=_whole(group_k, "group_k"), stream=_number(stream), **addresses)
        _need_rows(qt, "q", m)
        call("rft_quantize", self.handle, c.byref(args))
        return q


def _number(stream):
    """Of a stream of PyTorch or CuPy, or itself."""
    return getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))


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
    (and zero=, global_scale=, g_idx=) where the type has scales apart; group_n and group_k are what one scale covers, 0 all.
    Batches: [batch][n][k], or shape=(batch, n, k)."""

    def __init__(self, context, w, type=None, shape=None, scale=None, scale_type=None, zero=None, global_scale=None, g_idx=None,
                 group_n=1, group_k=0, flags=0, view=False, stream=None):
        context.need_open()
        self.context, self._kept, self._storage = context, [], None
        super().__init__((context,), library().rft_weight_free)
        q = self._part(w, "w", stream)
        if type is None:
            batch, n, k = _batch_n_k(q.shape, "w")
            ld, batch_stride = matrices(q, "w", k, batch)
            self.desc = _abi.WeightDesc(elem=q.type, n=n, k=k, batch=batch, ld=ld, batch_stride=batch_stride)
        else:
            self._describe_codes(q, type, shape)
        group_n, group_k = _whole(group_n, "group_n"), _whole(group_k, "group_k")
        parts = {"scale": scale, "zero": zero, "global_scale": global_scale, "g_idx": g_idx}
        source = _abi.WeightSrc(q=q.address, **self._parts(parts, scale_type, group_n, group_k, stream))
        self.desc.flags |= flags | (_F["WEIGHT_VIEW"] if view else 0)
        self.batch, self.n, self.k = self.desc.batch, self.desc.n, self.desc.k
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
        batch, n, k = (_whole(extent, f"{name} of shape") for extent, name in zip(_batch_n_k(shape, "w"), ("batch", "n", "k")))
        need = batch * n * library().rft_type_bytes(type, k)
        if q.type not in (_abi.Type.U8, _abi.Type.I8):
            raise TypeError(f"w is {q.type.name.lower()}; stored codes are given as uint8 or int8")
        _dense(q, "w", need)
        self.desc = _abi.WeightDesc(elem=type, n=n, k=k, batch=batch)

    def _parts(self, parts, scale_type, group_n, group_k, stream):
        d, addresses = self.desc, {}
        counts = {"scale": _groups(d.n, group_n) * _groups(d.k, group_k), "global_scale": 1, "g_idx": d.k}
        counts["zero"] = counts["scale"]
        for name, array in parts.items():
            if array is None:
                continue
            t = self._part(array, name, stream)
            _dense(t, name, d.batch * counts[name])
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
        """Writes W as f32 into out[n][k], batch behind batch into out[batch * n][k]."""
        self.need_open()
        t = tensor(out, "out")
        need_type(t, "out", _abi.Type.F32)
        _need_writable(t, "out")
        ld = rows(t, "out", self.k)
        _need_rows(t, "out", self.batch * self.n)
        call("rft_weight_unpack", self.handle, c.cast(t.address, c.POINTER(c.c_float)), ld)
        return out


def _need_writable(t, what):
    if not t.writable:
        raise ValueError(f"{what} is read-only")


def _need_rows(t, what, m):
    if t.shape[-2] != m:
        raise ValueError(f"{what} has {t.shape[-2]} rows, and {m} are needed")


def _batch_n_k(shape, what):
    if len(shape) not in (2, 3) or shape[0] == 0 and len(shape) == 3:
        raise ValueError(f"{what} has the shape {tuple(shape)}, and (n, k) or (batch, n, k) is needed")
    return (1, *shape)[-3:]


def op(kind, type=0, alpha=0.0, beta=0.0):
    """One operation behind the product, such as op(Epi.BIAS, Type.F32); type is that of its operand."""
    if kind in _VECTORS + _MATRICES and not type:
        raise ValueError(f"{_E(kind).name} reads an operand, so its type is needed")
    if kind not in _VECTORS + _MATRICES + _PLAIN + _QUANTIZE:
        raise NotImplementedError(f"this package does not hand over the operand of {_E(kind).name}")
    return _abi.EpiOp(kind, type, 0, alpha, beta)


class Plan(_Object):
    """y = epilogue(x W^T) for up to m_max rows. x and y: their types; epilogue: a list of op(). batch: of x and y, by default the
    weight's; a weight of one serves any. x in 8 bits has a scale a row, or one for x_group_k of its k, or with x_static one. Floats
    that compute I8 rounds are so by one scale a row where x_group_k is weight.k or more."""

    def __init__(self, context, weight, m_max, x=_abi.Type.F32, y=_abi.Type.F32, epilogue=(), compute=_abi.Compute.AUTO, m_min=1,
                 batch_invariant=False, batch=None, x_group_k=0, x_static=False):
        context.need_open()
        weight.need_open()
        m_min, m_max = _whole(m_min, "m_min"), _whole(m_max, "m_max")
        self._running, self._closing, self._idle = 0, False, threading.Condition()
        self._spare, self._of_stream = [], {}  # workspaces: of a CPU those not in use, of a GPU one a stream
        super().__init__((context, weight), library().rft_plan_free)
        self.context, self.weight, self.x, self.y, self.m_min, self.m_max = context, weight, x, y, m_min, m_max
        self.batch = weight.batch if batch is None else _whole(batch, "batch", least=1)
        self.x_group_k = _whole(x_group_k, "x_group_k")
        self.x_scales = None if x not in _8_BITS else 0 if x_static else _groups(weight.k, x_group_k)  # of a row; 0: of all one
        flags = {"BATCH_INVARIANT": batch_invariant, "X_SCALED": x in _8_BITS, "X_STATIC": x_static}
        ops = self._number_operands(epilogue)
        desc = _abi.LinearDesc(x=x, y=y, w=weight.desc, m_min=m_min, m_max=m_max, epi=ops, n_epi=len(ops), compute=compute,
                               batch=self.batch, x_group_k=self.x_group_k, flags=sum(_F[f] for f, on in flags.items() if on))
        call("rft_plan_create", context.handle, c.byref(desc), c.byref(self.handle))
        self.workspace_bytes = self.info(m_max).workspace

    def _number_operands(self, epilogue):
        ops = (_abi.EpiOp * len(epilogue))(*epilogue)
        self.operands, self.columns = [], self.weight.n
        for o in ops:
            if o.kind in _GLU:
                self.columns //= 2
            if o.kind in _VECTORS + _MATRICES + _QUANTIZE:
                o.operand = len(self.operands)
                group = _whole(int(o.alpha), "alpha of QUANTIZE_ROWS") if o.kind == _E.QUANTIZE_ROWS else 1
                self.operands.append((o.kind, o.type or _abi.Type.F32, _groups(self.columns, group)))
        return ops

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

    def run(self, x, y, operands=(), stream=None, workspace=None, x_scale=None):
        """Writes y and returns it; on a GPU it enqueues on stream (a number, or a stream of PyTorch or CuPy) and returns.
        workspace: workspace_bytes of uint8 that no other call in flight has, in place of the plan's own. x_scale: of x in 8 bits."""
        with self._idle:
            self.need_open()
            self._running += 1
        try:
            return self._run_checked(x, y, operands, _number(stream), workspace, x_scale)
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def _run_checked(self, x, y, operands, stream, workspace, x_scale):
        xt, yt = self._operand(x, "x", self.x, stream), self._operand(y, "y", self.y, stream)
        _need_writable(yt, "y")
        (ldx, step_x), (ldy, step_y) = matrices(xt, "x", self.weight.k, self.batch), matrices(yt, "y", self.columns, self.batch)
        args = _abi.LinearArgs(m=xt.shape[-2], ldx=ldx, ldy=ldy, x_batch_stride=step_x, y_batch_stride=step_y, x=xt.address,
                               y=yt.address, weight=self.weight.handle, stream=stream)
        _need_rows(yt, "y", args.m)
        kept = self._set_x_scale(args, x_scale, stream), self._set_operands(args, operands, stream)
        if workspace is None:
            self._run(args, stream)
        else:
            self._run_in(args, workspace, stream)
        del kept
        return y

    def _operand(self, array, what, type, stream):
        t = tensor(array, what, stream)
        need_type(t, what, type)
        need_device(t, what, self.context.device)
        return t

    def _set_x_scale(self, args, x_scale, stream):
        if (x_scale is None) != (self.x_scales is None):
            raise ValueError("x_scale is missing: x is in 8 bits" if x_scale is None else "x_scale is given, and x is not in 8 bits")
        if x_scale is None:
            return None
        t = self._operand(x_scale, "x_scale", _abi.Type.F32, stream)
        _dense(t, "x_scale", self.batch * args.m * self.x_scales if self.x_scales else 1)
        args.x_scale = t.address
        return t

    def _set_operands(self, args, operands, stream):
        if len(operands) != len(self.operands):
            raise ValueError(f"{len(operands)} operands are given, and the epilogue reads {len(self.operands)}")
        kept, array = [], (_abi.Operand * max(len(operands), 1))()
        for i, (given, (kind, type, columns)) in enumerate(zip(operands, self.operands)):
            what = f"operand {i} ({_E(kind).name})"
            t = self._operand(given, what, type, stream)
            array[i] = _abi.Operand(t.address, *self._spread(t, what, kind, columns, args.m))
            kept.append(t)
        args.operand, args.n_operand = array, len(operands)
        return kept, array

    def _spread(self, t, what, kind, columns, m):
        """ld and batch stride of an operand, which has the dimension of batches or serves all of them."""
        written = kind == _E.QUANTIZE_ROWS
        if written:
            _need_writable(t, what)
        if written or kind in _MATRICES:
            shared = len(t.shape) == 2 and not written
            strides = matrices(t, what, columns, 1 if shared else self.batch)
            _need_rows(t, what, m)
            return strides
        count = {_E.ROW_SCALE: m, _E.QUANTIZE: 1}.get(kind, columns)
        own = self.batch > 1 and len(t.shape) == 2
        _dense(t, what, self.batch * count if own else count)
        return 0, count if own else 0

    def _run_in(self, args, workspace, stream):
        t = self._operand(workspace, "workspace", _abi.Type.U8, stream)
        _dense(t, "workspace", self.workspace_bytes)
        args.workspace, args.workspace_bytes = t.address, self.workspace_bytes
        call("rft_linear_run", self.handle, c.byref(args))

    def _run(self, args, stream):
        """With a workspace that no other call in flight has: on the CPU one that is not in use, on a GPU that of the stream."""
        if self.workspace_bytes == 0:
            return call("rft_linear_run", self.handle, c.byref(args))
        on_cpu = self.context.device == "cpu"
        try:
            memory = self._spare.pop() if on_cpu else self._of_stream[stream]
        except LookupError:
            memory = _Memory(self.context, self.workspace_bytes)
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

    def __call__(self, x, y, operands=(), **options):
        return self.plan.run(x, y, self.bias + tuple(operands), **options)

    def close(self):
        self.weight.close()
