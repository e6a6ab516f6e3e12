# SPDX-License-Identifier: Apache-2.0
#
# rooftile.torch against PyTorch on a GPU: on the current stream, on another, in a CUDA graph, compiled, by many threads, with the
# same bits in each. Skips without PyTorch or a GPU.
import concurrent.futures
import gc
import unittest

try:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import rooftile.torch as door
except ImportError as missing:
    raise unittest.SkipTest(f"no PyTorch: {missing}")
if not torch.cuda.is_available():
    raise unittest.SkipTest(f"PyTorch {torch.__version__} finds no GPU")

from rooftile import Epi, op

ROWS = (1, 3, 16, 200, 1024, 3000)  # the last is more than m_max
N, K = 1024, 2048


class Gpu(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)

    def layers(self, dtype=torch.bfloat16, tail=(Epi.GELU,)):
        linear = torch.nn.Linear(K, N, dtype=dtype, device="cuda")
        return linear, door.Linear.from_torch(linear, tail=[op(kind) for kind in tail])

    def exact(self, linear, x, act=torch.nn.functional.gelu):
        return act(torch.nn.functional.linear(x.double(), linear.weight.double(), linear.bias.double()))

    def agree(self, got, want):
        tolerance = {torch.float32: 3e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[got.dtype]
        torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)

    def test_types_and_rows(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            linear, layer = self.layers(dtype)
            for m in ROWS:
                x = torch.randn(m, K, dtype=dtype, device="cuda")
                self.agree(layer(x), self.exact(linear, x))

    def test_shapes_and_strides(self):
        linear, layer = self.layers(tail=())
        wide = torch.randn(3, 5, 2 * K + 1, dtype=torch.bfloat16, device="cuda")
        for x in (wide[..., :K], wide[..., 1:K + 1], wide[..., ::2][..., :K], wide[:, :2, :K].transpose(0, 1), wide[:0, :, :K],
                  wide[0, 0, :K], wide[:1, :1, :K].expand(2, 4, K)):
            self.agree(layer(x), self.exact(linear, x, lambda y: y))

    def test_side_stream_and_between_torch(self):
        linear, layer = self.layers()
        side = torch.cuda.Stream()
        for m in ROWS:
            x = torch.randn(m, K, dtype=torch.bfloat16, device="cuda")
            here = layer(x * 2) * 3
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                there = layer(x * 2) * 3
            torch.cuda.current_stream().wait_stream(side)
            self.assertTrue(torch.equal(here, there))
            self.agree(here, 3 * self.exact(linear, x * 2))

    def test_graph(self):
        _, layer = self.layers()
        for m in ROWS:
            x, still = (torch.randn(m, K, dtype=torch.bfloat16, device="cuda") for _ in range(2))
            want = layer(x + 1) - 1
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = layer(still + 1) - 1
            still.copy_(x)
            for _ in range(3):
                graph.replay()
                layer(x)  # beside the graph: other memory
            self.assertTrue(torch.equal(out, want))

    def test_compiled(self):
        _, layer = self.layers()
        x = torch.randn(2, 7, K, dtype=torch.bfloat16, device="cuda")
        compiled = torch.compile(lambda x: layer(x) + 1, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(x), layer(x) + 1))

    def test_opcheck(self):
        _, layer = self.layers()
        torch.library.opcheck(door.linear, (torch.randn(5, K, dtype=torch.bfloat16, device="cuda"), layer.number))

    def test_flops(self):
        _, layer = self.layers()
        with FlopCounterMode(display=False) as counter:
            layer(torch.randn(2, 8, K, dtype=torch.bfloat16, device="cuda"))
        self.assertEqual(counter.get_total_flops(), 2 * 16 * N * K)

    def test_threads_with_streams(self):
        _, layer = self.layers()
        x = torch.randn(64, K, dtype=torch.bfloat16, device="cuda")
        want = layer(x)
        torch.cuda.synchronize()

        def turns(_):
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                results = [layer(x) for _ in range(50)]
                torch.cuda.current_stream().synchronize()
            return all(torch.equal(y, want) for y in results)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertEqual(list(pool.map(turns, range(4))), [True] * 4)

    def test_a_layer_may_go_while_it_runs(self):
        linear, layer = self.layers()
        x = torch.randn(3000, K, dtype=torch.bfloat16, device="cuda")
        results = [layer(x) for _ in range(20)]
        del layer
        gc.collect()
        for y in results[-2:]:
            self.agree(y, self.exact(linear, x))

    def test_refusals(self):
        _, layer = self.layers()
        with self.assertRaisesRegex(ValueError, "x lies on cpu, and the layer on cuda:0"):
            layer(torch.zeros(1, K, dtype=torch.bfloat16))


if __name__ == "__main__":
    unittest.main()
