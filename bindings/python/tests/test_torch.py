# SPDX-License-Identifier: Apache-2.0
#
# rooftile.torch against PyTorch on the CPU: values, torch.compile, fake tensors, FLOPs, and what it refuses.
import copy
import gc
import unittest

try:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import rooftile.torch as door
except ImportError as missing:
    raise unittest.SkipTest(f"no PyTorch: {missing}")

from rooftile import FLAGS, Context, Epi, op

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
ACTIVATIONS = {Epi.GELU: torch.nn.functional.gelu, Epi.SILU: torch.nn.functional.silu, Epi.RELU: torch.relu}


def module(k, n, dtype=torch.float32, bias=True):
    torch.manual_seed(k + n)
    return torch.nn.Linear(k, n, bias=bias, dtype=dtype)


@torch.no_grad()
def exact(linear, x, act=lambda y: y):
    bias = None if linear.bias is None else linear.bias.double()
    return act(torch.nn.functional.linear(x.double(), linear.weight.double(), bias))


class Values(unittest.TestCase):
    def agree(self, got, want, dtype):
        self.assertEqual(got.dtype, dtype)
        torch.testing.assert_close(got.double(), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])

    def test_rows_and_types(self):
        for dtype in TOLERANCE:
            for n, k in ((40, 72), (33, 129), (1, 8)):
                linear = module(k, n, dtype)
                layer = door.Linear.from_torch(linear, m_max=64)
                for m in (0, 1, 2, 7, 64, 65, 200):
                    x = torch.randn(m, k, dtype=dtype)
                    self.agree(layer(x), exact(linear, x), dtype)

    def test_leading_dimensions(self):
        linear = module(48, 24)
        layer = door.Linear.from_torch(linear)
        for lead in ((), (1,), (2, 3), (2, 1, 4, 5), (3, 0)):
            x = torch.randn(*lead, 48)
            self.assertEqual(layer(x).shape, (*lead, 24))
            self.agree(layer(x), exact(linear, x), torch.float32)

    def test_strides(self):
        linear = module(48, 24)
        layer = door.Linear.from_torch(linear)
        wide = torch.randn(6, 5, 100)
        for x in (wide[..., :48], wide[:, 1:3, 7:55], wide[:, :, ::2][..., :48], wide[::2, :, 50:98], torch.randn(48, 9).T,
                  torch.randn(1, 48).expand(7, 48), wide[..., :48].transpose(0, 1), torch.randn(1).expand(4, 48)):
            self.agree(layer(x), exact(linear, x), torch.float32)

    def test_activations_without_bias_and_another_y(self):
        for kind, act in ACTIVATIONS.items():
            linear = module(64, 32, torch.bfloat16, bias=kind != Epi.RELU)
            x = torch.randn(5, 64, dtype=torch.bfloat16)
            self.agree(door.Linear.from_torch(linear, tail=[op(kind)])(x), exact(linear, x, act), torch.bfloat16)
            self.agree(door.Linear.from_torch(linear, tail=[op(kind)], y=torch.float32)(x), exact(linear, x, act), torch.float32)

    def test_glu(self):
        linear = module(32, 48, bias=False)
        layer = door.Linear.from_torch(linear, tail=[op(Epi.SWIGLU)], flags=FLAGS["WEIGHT_GLU_HALVES"])
        x = torch.randn(3, 32)
        gate, up = exact(linear, x).chunk(2, -1)
        self.assertEqual(layer.out_features, 24)
        self.agree(layer(x), torch.nn.functional.silu(gate) * up, torch.float32)

    def test_weight_is_a_snapshot(self):
        linear, x = module(16, 8), torch.randn(2, 16)
        layer, want = door.Linear.from_torch(linear), exact(linear, x)
        with torch.no_grad():
            linear.weight.zero_()
            linear.bias.zero_()
        self.agree(layer(x), want, torch.float32)

    def test_in_a_model(self):
        model = torch.nn.Sequential(module(16, 32), torch.nn.ReLU(), module(32, 8)).eval()
        x = torch.randn(2, 5, 16)
        want = model(x).detach().double()
        for i in (0, 2):
            model[i] = door.Linear.from_torch(model[i])
        self.agree(model(x), want, torch.float32)
        twin = copy.deepcopy(model)
        del model
        gc.collect()
        self.agree(twin(x), want, torch.float32)


class Operation(unittest.TestCase):
    def setUp(self):
        self.linear = module(48, 24)
        self.layer = door.Linear.from_torch(self.linear, tail=[op(Epi.GELU)])

    def test_opcheck(self):
        for x in (torch.randn(3, 48), torch.randn(2, 3, 48), torch.randn(48, 5).T, torch.randn(0, 48)):
            torch.library.opcheck(door.linear, (x, self.layer.number))

    def test_compile(self):
        second = door.Linear.from_torch(module(24, 48))

        def step(x):
            return second(torch.relu(self.layer(x) + 1))

        for dynamic in (False, True):
            compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
            for m in (1, 5, 9):
                x = torch.randn(2, m, 48)
                self.assertTrue(torch.equal(compiled(x), step(x)))

    def test_fake_and_meta(self):
        with torch._subclasses.FakeTensorMode():
            self.assertEqual(self.layer(torch.empty(7, 2, 48)).shape, (7, 2, 24))
        self.assertEqual(self.layer(torch.empty(7, 48, device="meta")).shape, (7, 24))

    def test_flops(self):
        x = torch.randn(4, 5, 48)
        for layer, want in ((self.layer, 2 * 20 * 24 * 48), (self.linear, 2 * 20 * 24 * 48),
                            (door.Linear.from_torch(module(48, 24, bias=False), tail=[op(Epi.GEGLU)],
                                                    flags=FLAGS["WEIGHT_GLU_INTERLEAVED"]), 2 * 20 * 24 * 48)):
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                layer(x)
            self.assertEqual(counter.get_total_flops(), want)

    def test_modes(self):
        x = torch.randn(3, 48, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "x requires a gradient"):
            self.layer(x)
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                self.assertFalse(self.layer(x).requires_grad)

    def test_refusals(self):
        for kind, text, x in ((TypeError, "x is torch.float16, and the layer takes torch.float32", torch.zeros(2, 48).half()),
                              (ValueError, r"x has the shape \(2, 47\), and the layer needs \(..., 48\)", torch.zeros(2, 47)),
                              (ValueError, r"x has the shape \(\)", torch.zeros(()))):
            with self.assertRaisesRegex(kind, text):
                self.layer(x)
        with self.assertRaisesRegex(TypeError, "weight is torch.float64"):
            door.Linear(torch.zeros(2, 2, dtype=torch.float64))
        with self.assertRaisesRegex(ValueError, "an operation of tail reads an operand"):
            door.Linear(torch.zeros(2, 2), tail=[op(Epi.ADD, 1)])

    def test_a_layer_that_has_gone(self):
        number = door.Linear.from_torch(self.linear).number
        gc.collect()
        with self.assertRaisesRegex(RuntimeError, f"layer {number} is not in this process, or its module has gone"):
            door.linear(torch.zeros(1, 48), number)
        with Context("cpu", threads=1) as ctx:
            layer = door.Linear.from_torch(self.linear, context=ctx)
        with self.assertRaisesRegex(ValueError, "this Plan is closed"):
            layer(torch.zeros(1, 48))

    def test_description(self):
        self.assertEqual(repr(self.layer), "Linear(in_features=48, out_features=24, bias=True)")
        self.assertIn("f32", self.layer.explain(1))


if __name__ == "__main__":
    unittest.main()
