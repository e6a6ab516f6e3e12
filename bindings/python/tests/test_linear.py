# SPDX-License-Identifier: Apache-2.0
#
# Products through the package against numpy, and what it says of arrays that do not fit. Needs librooftile (RFT_LIBRARY).
import concurrent.futures
import threading
import types
import unittest

import rooftile as rt
from rooftile import Epi, Type, op

try:
    import numpy as np
except ImportError:
    raise unittest.SkipTest("no numpy")


class Foreign:
    """An array that is known by DLPack alone, as PyTorch's and CuPy's are."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()

    def detach(self):
        return self


def random(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


class Products(unittest.TestCase):
    def setUp(self):
        self.ctx = rt.Context("cpu", threads=2)
        self.addCleanup(self.ctx.close)

    def close(self, got, want, tolerance=1e-4):
        np.testing.assert_allclose(np.asarray(got, np.float32), want, rtol=tolerance, atol=tolerance)

    def test_f32_with_epilogue_and_strides(self):
        w, bias, residual = random(40, 72), random(40), random(9, 40)
        plan = self.ctx.plan(self.ctx.weight(w), 9, epilogue=[op(Epi.BIAS, Type.F32), op(Epi.RELU), op(Epi.ADD, Type.F32, beta=2)])
        wide_x, wide_y = random(9, 100), np.full((9, 64), 7, np.float32)
        for m in (1, 9):
            plan.run(wide_x[:m, :72], wide_y[:m, :40], [bias, residual[:m]])
            self.close(wide_y[:m, :40], np.maximum(wide_x[:m, :72] @ w.T + bias, 0) + 2 * residual[:m])
        self.assertTrue((wide_y[:, 40:] == 7).all())

    def test_no_rows(self):
        empty = self.ctx.plan(self.ctx.weight(random(16, 32)), 4, m_min=0).run(random(0, 32), np.empty((0, 16), np.float32))
        self.assertEqual(empty.shape, (0, 16))
        self.assertEqual(self.ctx.weight(np.empty((0, 4), np.float32)).n, 0)

    def test_dlpack(self):
        w, x, y = random(16, 32), random(3, 32), np.zeros((3, 16), np.float32)
        self.ctx.plan(self.ctx.weight(Foreign(w)), 3).run(Foreign(x), Foreign(y))
        self.close(y, x @ w.T)

    def test_half_types(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes")
        for dtype, type in ((np.float16, Type.F16), (ml_dtypes.bfloat16, Type.BF16)):
            w, x, y = random(24, 64).astype(dtype), random(5, 64).astype(dtype), np.empty((5, 24), dtype)
            self.ctx.plan(self.ctx.weight(w), 5, x=type, y=type).run(x, y)
            self.close(y, x.astype(np.float32) @ w.astype(np.float32).T, 2e-2)

    def test_int8_a_row_and_int4_in_groups(self):
        codes = np.random.default_rng(1).integers(-127, 128, (20, 64), np.int8)
        scale = random(20) + 2
        x, y = random(4, 64), np.empty((4, 20), np.float32)
        self.ctx.plan(self.ctx.weight(codes, type=Type.I8, shape=(20, 64), scale=scale), 4).run(x, y)
        self.close(y, x @ (codes * scale[:, None]).T, 1e-3)
        nibbles = np.random.default_rng(2).integers(-8, 8, (20, 64), np.int8)
        packed = ((nibbles[:, ::2] & 15) | (nibbles[:, 1::2] << 4)).astype(np.uint8)
        groups = random(20, 2) + 2
        weight = self.ctx.weight(packed, type=Type.I4, shape=(20, 64), scale=groups, group_k=32)
        self.ctx.plan(weight, 4).run(x, y)
        dense = nibbles * np.repeat(groups, 32, axis=1)
        self.close(y, x @ dense.T, 1e-3)
        self.close(weight.unpack(np.empty((20, 64), np.float32)), dense)

    def test_gguf_block(self):
        w = np.zeros((2, 34), np.uint8)  # q8_0: a scale in f16, 32 codes
        w[:, :2] = np.frombuffer(np.float16(0.5).tobytes(), np.uint8)
        w[:, 2:] = np.arange(32)
        x, y = random(1, 32), np.empty((1, 2), np.float32)
        self.ctx.plan(self.ctx.weight(w, type=264, shape=(2, 32)), 1).run(x, y)
        self.close(y, x @ (0.5 * np.tile(np.arange(32), (2, 1))).T)

    def test_batches(self):
        w, x, wide = random(3, 24, 32), random(3, 5, 40)[:, :, :32], np.full((3, 5, 30), 7, np.float32)
        bias, rows, residual = random(3, 24), random(5), random(3, 5, 24)
        tail = [op(Epi.BIAS, Type.F32), op(Epi.ROW_SCALE, Type.F32), op(Epi.ADD, Type.F32, beta=1)]
        weight = self.ctx.weight(w)
        plan = self.ctx.plan(weight, 5, epilogue=tail)
        product = np.einsum("bmk,bnk->bmn", x, w)
        plan.run(x, wide[:, :, :24], [bias, rows, residual])
        self.close(wide[:, :, :24], (product + bias[:, None]) * rows[:, None] + residual)
        self.assertTrue((wide[:, :, 24:] == 7).all())
        y = plan.run(x, np.empty((3, 5, 24), np.float32), [bias[0], np.tile(rows, (3, 1)), residual[0]])  # 2 of them for all
        self.close(y, (product + bias[0]) * rows[:, None] + residual[0])
        self.close(weight.unpack(np.empty((72, 32), np.float32)), w.reshape(72, 32), 0)

    def test_one_weight_for_all_batches(self):
        w, x = random(24, 32), random(4, 3, 32)
        for weight, batch in ((w, 4), (w[None], 4)):
            plan = self.ctx.plan(self.ctx.weight(weight), 3, batch=batch)
            self.close(plan.run(x, np.empty((4, 3, 24), np.float32)), x @ w.T)
        interleaved = np.empty((3, 4, 24), np.float32).transpose(1, 0, 2)
        self.close(plan.run(x, interleaved), x @ w.T)

    def test_batches_of_int8(self):
        codes, scale = np.random.default_rng(1).integers(-127, 128, (2, 20, 64), np.int8), random(2, 20) + 2
        weight, x = self.ctx.weight(codes, type=Type.I8, shape=(2, 20, 64), scale=scale), random(2, 4, 64)
        y = self.ctx.plan(weight, 4).run(x, np.empty((2, 4, 20), np.float32))
        self.close(y, np.einsum("bmk,bnk->bmn", x, codes * scale[..., None]), 1e-3)

    def test_x_in_8_bits(self):
        x, w = random(5, 64), random(24, 64)
        weight = self.ctx.weight(w)
        for group_k, groups in ((0, 1), (32, 2)):
            codes, scale = np.empty((5, 64), np.int8), np.empty((5, groups), np.float32)
            self.ctx.quantize(x, codes, scale, group_k)
            back = codes * np.repeat(scale, 64 // groups, axis=1)
            self.assertLess(np.abs(back - x).max(), 1 / 200)
            y = self.ctx.plan(weight, 5, x=Type.I8, x_group_k=group_k).run(codes, np.empty((5, 24), np.float32), x_scale=scale)
            self.close(y, back @ w.T)
        step = np.array([1 / 127], np.float32)
        self.ctx.quantize(x, codes, static_scale=step)
        y = self.ctx.plan(weight, 5, x=Type.I8, x_static=True).run(codes, np.empty((5, 24), np.float32), x_scale=step)
        self.close(y, codes * step @ w.T)

    def test_y_in_8_bits(self):
        x, w, y = random(5, 64), random(40, 64), np.empty((5, 40), np.int8)
        weight, want, step = self.ctx.weight(w), x @ w.T, np.array([0.2], np.float32)
        self.ctx.plan(weight, 5, y=Type.I8, epilogue=[op(Epi.QUANTIZE)]).run(x, y, [step])
        self.assertLess(np.abs(y * step - want).max(), 0.51 * step[0])
        for alpha, groups in ((0, 1), (32, 2)):
            scale = np.empty((5, groups), np.float32)
            self.ctx.plan(weight, 5, y=Type.I8, epilogue=[op(Epi.QUANTIZE_ROWS, alpha=alpha)]).run(x, y, [scale])
            self.assertTrue((np.abs(y * np.repeat(scale, alpha or 40, axis=1)[:, :40] - want) < 0.51 * scale.max()).all())

    def test_from_torch_takes_weight_and_bias(self):
        w, bias, x, y = random(16, 32), random(16), random(3, 32), np.empty((3, 16), np.float32)
        module = types.SimpleNamespace(weight=Foreign(w), bias=Foreign(bias))
        self.close(rt.Linear.from_torch(module, self.ctx)(x, y), x @ w.T + bias)

    def test_threads_share_a_plan(self):
        w, x = random(64, 256), random(32, 256)
        plan, results = self.ctx.plan(self.ctx.weight(w), 32), [np.empty((32, 64), np.float32) for _ in range(4)]
        threads = [threading.Thread(target=plan.run, args=(x, y)) for y in results]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for y in results:
            self.close(y, x @ w.T)


    def test_close_waits_for_runs(self):
        ctx = rt.Context("cpu", threads=1)
        plan, x = ctx.plan(ctx.weight(random(512, 512)), 64), random(64, 512)
        begun = threading.Barrier(4)

        def run_until_closed():
            y = np.empty((64, 512), np.float32)
            plan.run(x, y)
            begun.wait()
            with self.assertRaisesRegex(ValueError, "is closed"):
                while True:
                    plan.run(x, y)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            runs = [pool.submit(run_until_closed) for _ in range(3)]
            begun.wait()
            ctx.close()
            for run in runs:
                run.result(timeout=60)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.ctx = rt.Context("cpu", threads=1)
        self.addCleanup(self.ctx.close)
        self.weight = self.ctx.weight(random(16, 32))
        self.plan = self.ctx.plan(self.weight, 4)
        self.x, self.y = random(4, 32), np.zeros((4, 16), np.float32)

    def refuses(self, kind, text, x=None, y=None, operands=()):
        with self.assertRaisesRegex(kind, text):
            self.plan.run(self.x if x is None else x, self.y if y is None else y, operands)

    def test_arrays(self):
        read_only = self.y.copy()
        read_only.flags.writeable = False
        self.refuses(ValueError, "y is read-only", y=read_only)
        self.refuses(TypeError, "x is f16, and the plan takes f32", x=self.x.astype(np.float16))
        self.refuses(TypeError, "x is of float64", x=self.x.astype(np.float64))
        self.refuses(TypeError, "x is of >f4", x=self.x.astype(">f4"))
        self.refuses(TypeError, "x is list", x=[1.0])
        self.refuses(TypeError, "code 2, 64 bits", x=Foreign(self.x.astype(np.float64)))
        self.refuses(ValueError, r"x has the shape \(4, 31\)", x=self.x[:, :31])
        self.refuses(ValueError, r"x has strides \(1, 4\)", x=np.asfortranarray(self.x))
        self.refuses(ValueError, "overlap or run backwards", x=self.x[::-1])
        self.refuses(ValueError, "y has 3 rows, and 4 are needed", y=self.y[:3])
        self.refuses(ValueError, "1 operands are given, and the epilogue reads 0", operands=[self.y])

    def test_batches_and_scales(self):
        w, x, y = random(2, 16, 32), random(2, 4, 32), np.zeros((2, 4, 16), np.float32)
        plan = self.ctx.plan(self.ctx.weight(w), 4)
        for text, other in ((r"x has the shape \(4, 32\), and \(2, m, 32\)", x[0]), ("x has strides .* batches overlap", x[::-1]),
                            ("x has strides .* batches overlap", np.broadcast_to(x[0], x.shape))):
            with self.assertRaisesRegex(ValueError, text):
                plan.run(other, y)
        with self.assertRaisesRegex(ValueError, "x_scale is given, and x is not in 8 bits"):
            plan.run(x, y, x_scale=random(2, 4))
        with self.assertRaisesRegex(ValueError, r"w has the shape \(0, 4, 4\), and \(n, k\) or"):
            self.ctx.weight(np.empty((0, 4, 4), np.float32))
        codes, scaled = np.zeros((4, 32), np.int8), self.ctx.plan(self.weight, 4, x=Type.I8)
        with self.assertRaisesRegex(ValueError, "x_scale is missing: x is in 8 bits"):
            scaled.run(codes, self.y)
        with self.assertRaisesRegex(ValueError, "x_scale has 3 elements, and 4 are needed"):
            scaled.run(codes, self.y, x_scale=random(3))
        with self.assertRaisesRegex(ValueError, "workspace has 1 elements"):
            self.plan.run(self.x, self.y, workspace=np.empty(self.plan.workspace_bytes + 1, np.uint8)[:1])

    def test_the_librarys_own_words(self):
        with self.assertRaisesRegex(rt.ArgumentError, "m") as caught:
            self.plan.run(random(5, 32), np.zeros((5, 16), np.float32))
        self.assertEqual(caught.exception.status, rt.Status.E_ARG)
        with self.assertRaises(rt.RooftileError):
            rt.Context("nonsense")

    def test_weights(self):
        codes = np.zeros((16, 32), np.int8)
        for kind, text, options in ((ValueError, "shape=", {}), (ValueError, "512 elements, and 544", {"shape": (17, 32)}),
                                    (ValueError, "scale has 3", {"shape": (16, 32), "scale": random(3)}),
                                    (TypeError, "g_idx is f32", {"shape": (16, 32), "g_idx": random(32)})):
            with self.assertRaisesRegex(kind, text):
                self.ctx.weight(codes, type=Type.I8, **options)
        with self.assertRaisesRegex(TypeError, "scale is u8 of 1 bytes, and scale_type is one of 4"):
            self.ctx.weight(codes, type=Type.I8, shape=(16, 32), scale=np.ones(16, np.uint8), scale_type=Type.F32)

    def test_numbers(self):
        for text, call in (("m_max is 18446744073709551620", lambda: self.ctx.plan(self.weight, 2**64 + 4)),
                           ("m is -1, and 0 to", lambda: self.plan.info(-1)),
                           ("m is 5, and the plan serves 1 to 4", lambda: self.plan.info(5)),
                           ("k of shape is", lambda: self.ctx.weight(np.zeros(64, np.int8), type=Type.I8, shape=(1, 2**64 + 64))),
                           ("threads is", lambda: rt.Context("cpu", threads=2**40)), ("device is", lambda: rt.Context(5))):
            with self.assertRaisesRegex(ValueError, text):
                call()

    def test_close(self):
        self.weight.close()
        self.refuses(ValueError, "this Plan is closed")
        with self.assertRaisesRegex(ValueError, "this Weight is closed"):
            self.ctx.plan(self.weight, 1)
        self.ctx.close()
        self.ctx.close()
        with self.assertRaisesRegex(ValueError, "this Context is closed"):
            self.ctx.weight(random(2, 2))

    def test_operations(self):
        with self.assertRaisesRegex(ValueError, "BIAS reads an operand"):
            op(Epi.BIAS)
        with self.assertRaisesRegex(NotImplementedError, "MASK"):
            op(Epi.MASK)

    def test_a_gpu_that_is_not_here(self):
        try:
            rt.Context("cuda:0").close()
        except rt.DeviceError as why:
            self.assertTrue(str(why))
        else:
            self.skipTest("there is a GPU here")


if __name__ == "__main__":
    unittest.main()
