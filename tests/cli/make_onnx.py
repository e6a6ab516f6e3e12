# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX files with the package onnx, and prints what rooftile model should list of each: called by test_onnx_python.sh.

Each case is one way in which a graph multiplies by a constant. A line of the list is: file, row, count, n, k, stored type, layout,
epilogue, bytes of one W."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

K, N, TOKENS = 64, 48, 5
folder = Path(sys.argv[1])
rng = np.random.default_rng(1)


def array(shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def typed(name, values, kind, raw):
    """The same values as raw bytes or in the fields of their type."""
    return helper.make_tensor(name, kind, values.shape, values.tobytes() if raw else values.ravel(), raw=raw)


def expect(file, row, stored, layout, epilogue, size, n=N, k=K, count=1):
    print(file, row, count, n, k, stored, layout, epilogue, size, sep="\t")


def save(name, nodes, initializers, opset=21, x=(1, TOKENS, K), **options):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="rooftile tests")
    onnx.save(model, folder / f"{name}.onnx", **options)


def node(op, inputs, output="y", name="", domain="", **attributes):
    return helper.make_node(op, inputs, [output], name=name, domain=domain, **attributes)


def from_array(values, name):
    return numpy_helper.from_array(values, name)


def orientations():
    right, left = from_array(array((K, N)), "a.weight"), from_array(array((N, K)), "a.weight")
    save("right", [node("MatMul", ["x", "a.weight"])], [right])
    expect("right", "a.weight", "f32", "nn", "none", 4 * K * N)
    save("left", [node("MatMul", ["a.weight", "x"])], [left], x=(K, TOKENS))
    expect("left", "a.weight", "f32", "tt", "none", 4 * K * N)
    for trans, weight, layout in ((0, right, "nn"), (1, left, "nt")):
        for opset in (7, 13, 21):
            name = f"gemm{trans}_{opset}"
            save(name, [node("Gemm", ["x", "a.weight", "a.bias"], transB=trans)], [weight, from_array(array(N), "a.bias")],
                 opset, x=(TOKENS, K))
            expect(name, "a.weight", "f32", layout, "bias", 4 * K * N)
    save("gemm_turned_x", [node("Gemm", ["x", "a.weight"], transA=1, transB=1)], [left], x=(K, TOKENS))
    expect("gemm_turned_x", "a.weight", "f32", "tt", "none", 4 * K * N)
    save("gemm_added", [node("Gemm", ["x", "a.weight", "x"], transB=1)], [from_array(array((K, K)), "a.weight")], x=(TOKENS, K))
    expect("gemm_added", "a.weight", "f32", "nt", "add", 4 * K * K, n=K)
    save("handed_on", [node("Cast", ["a.weight"], "h", to=TensorProto.FLOAT), node("Transpose", ["h"], "t", perm=[1, 0]),
                       node("MatMul", ["x", "t"])], [from_array(array((N, K), np.float16), "a.weight")])
    expect("handed_on", "a.weight", "f16", "nt", "none", 2 * K * N)
    save("constant", [node("Constant", [], "a.weight", value=right), node("MatMul", ["x", "a.weight"])], [])
    expect("constant", "a.weight", "f32", "nn", "none", 4 * K * N)
    save("fused", [node("FusedMatMul", ["x", "a.weight"], domain="com.microsoft", transB=1)], [left])
    expect("fused", "a.weight", "f32", "nt", "none", 4 * K * N)


def storage():
    import ml_dtypes
    kinds = {"f32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16),
             "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16), "f64": (TensorProto.DOUBLE, np.float64)}
    for stored, (kind, dtype) in kinds.items():
        for raw in (False, True):
            name = f"{stored}_{'raw' if raw else 'typed'}"
            values = array((K, N)).astype(dtype)
            save(name, [node("MatMul", ["x", "a.weight"])], [typed("a.weight", values, kind, raw)])
            expect(name, "a.weight", f"{stored}", "nn", "none", values.nbytes)
    save("external", [node("MatMul", ["x", "a.weight"]), node("MatMul", ["x", "b.weight"], "z")],
         [from_array(array((K, N)), "a.weight"), from_array(array((K, N)), "b.weight")], save_as_external_data=True,
         all_tensors_to_one_file=True, location="external.bin", size_threshold=0)
    expect("external", "a.weight", "f32", "nn", "none", 4 * K * N)
    expect("external", "b.weight", "f32", "nn", "none", 4 * K * N)


def blocks():
    nodes, initializers = [], []
    for layer in range(3):
        nodes += [node("MatMul", ["x", f"onnx::MatMul_{layer}"], f"m{layer}", f"/model/layers.{layer}/up/MatMul"),
                  node("Add", [f"layers.{layer}.bias", f"m{layer}"], f"a{layer}")]
        initializers += [from_array(array((K, N)), f"onnx::MatMul_{layer}"), from_array(array(N), f"layers.{layer}.bias")]
    save("layers", nodes, initializers)
    expect("layers", "/model/layers.*/up/MatMul", "f32", "nn", "bias", 4 * K * N, count=3)
    save("stack", [node("MatMul", ["x", "a.weight"])], [from_array(array((4, K, N)), "a.weight")])
    expect("stack", "a.weight", "f32", "nn", "none", 4 * K * N, count=4)


def branches():
    weight = from_array(array((K, N)), "a.weight")
    graphs = [helper.make_graph([node("MatMul", ["x", "a.weight"], f"b{i}")], f"branch{i}", [],
                                [helper.make_tensor_value_info(f"b{i}", TensorProto.FLOAT, None)]) for i in range(2)]
    save("branches", [node("If", ["c"], then_branch=graphs[0], else_branch=graphs[1])],
         [weight, from_array(np.array(True), "c")])
    expect("branches", "a.weight", "f32", "nn", "none", 4 * K * N)


def quantised():
    codes = rng.integers(-127, 128, (K, N)).astype(np.int8)
    scale, zero = from_array(np.abs(array(N)), "s"), from_array(np.zeros(N, np.int8), "z")
    save("qdq", [node("DequantizeLinear", ["a.weight", "s", "z"], "d", axis=1), node("MatMul", ["x", "d"])],
         [from_array(codes, "a.weight"), scale, zero])
    expect("qdq", "a.weight", "onnx int8", "nt", "none", K * N + 4 * N + N)
    one = [from_array(np.float32(0.1), "s"), from_array(np.uint8(120), "z")]
    save("qdq_one", [node("DequantizeLinear", ["a.weight", "s", "z"], "d"), node("MatMul", ["x", "d"])],
         [from_array(codes.view(np.uint8), "a.weight"), *one])
    expect("qdq_one", "a.weight", "onnx uint8", "nt", "none", K * N + 4 + 1)
    save("qdq_blocks", [node("DequantizeLinear", ["a.weight", "s"], "d", axis=0, block_size=32), node("MatMul", ["x", "d"])],
         [helper.make_tensor("a.weight", TensorProto.INT4, (K, N), rng.integers(-8, 8, K * N)),
          from_array(np.abs(array((K // 32, N), np.float16)), "s")])
    expect("qdq_blocks", "a.weight", "onnx int4 g32", "nt", "none", K * N // 2 + 2 * (K // 32) * N)
    save("dynamic", [node("DynamicQuantizeLinear", ["x"], "q"), node("MatMulInteger", ["q", "a.weight", "", "z"])],
         [from_array(codes, "a.weight"), from_array(np.int8(0), "z")])
    expect("dynamic", "a.weight", "i8", "nn", "none", K * N)
    save("qlinear", [node("QLinearMatMul", ["x", "xs", "xz", "a.weight", "s", "z", "ys", "yz"])],
         [from_array(codes, "a.weight"), scale, zero, from_array(np.float32(1), "xs"), from_array(np.uint8(0), "xz"),
          from_array(np.float32(1), "ys"), from_array(np.uint8(0), "yz")])
    expect("qlinear", "a.weight", "onnx int8", "nt", "none", K * N + 4 * N + N)
    packed = from_array(rng.integers(0, 256, (N, K // 32, 16)).astype(np.uint8), "a.weight")
    for name, zeros, scheme in (("nbits", [], "nbits int4 g32"), ("nbits_zero", [3], "nbits uint4 g32")):
        extra = [from_array(rng.integers(0, 256, N).astype(np.uint8), "z")] if zeros else []
        save(name, [node("MatMulNBits", ["x", "a.weight", "s"] + ["z"] * len(zeros), domain="com.microsoft", K=K, N=N, bits=4,
                         block_size=32)], [packed, from_array(np.abs(array(N * K // 32)), "s"), *extra])
        expect(name, "a.weight", scheme, "nt", "none", K * N // 2 + 4 * N * K // 32 + len(zeros) * N)


for case in (orientations, storage, blocks, branches, quantised):
    case()
