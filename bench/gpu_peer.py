"""PyTorch's times for bench/gpu: a line "NAME EAGER COMPILED COPY" (seconds, bytes a second) for each name given."""
import sys
import time

import torch

n = 1 << 26
x = (torch.arange(n, device="cuda") % 1000).to(torch.float32) / 1000


def least(f, *arguments):
    f(*arguments)
    torch.cuda.synchronize()
    best = 1e9
    for _ in range(10):
        begin = time.perf_counter()
        f(*arguments)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


cases = {
    "scaled": (lambda x: x * 1.5 + 2, x),
    "chain": (lambda x, y, z: torch.exp(x * y) * z + x, x, x.clone(), x.clone()),
    "gelu": (gelu, x),
    "sum": (torch.sum, x),
    "sum-columns": (lambda x: torch.sum(x, 0), x.view(8192, 8192)),
    "permute": (lambda x: x.permute(2, 0, 1) + 0, x.view(128, 512, 1024)),
    "transpose-stack": (lambda x, y: x.transpose(1, 2) * 2 + y, x.view(1024, 256, 256), x.view(1024, 256, 256)),
    "gather": (lambda x, i: x[i], x, torch.arange(n // 4, device="cuda") * 40503 % n),
    "gather-rows": (lambda x, i: x[i], x.view(-1, 64), torch.arange(n // 64, device="cuda") * 40503 % (n // 64)),
    "argmax": (torch.argmax, x),
    "argmax-rows": (lambda x: torch.argmax(x, 1), x.view(16384, 4096)),
    "argmax-columns": (lambda x: torch.argmax(x, 0), x.view(8192, 8192)),
    "any": (lambda x: torch.any(x > 2), x),
    "sum-integers": (torch.sum, torch.arange(n // 2, device="cuda")),
    "max-rows": (lambda x: torch.amax(x, 1), torch.arange(n, device="cuda", dtype=torch.int32).view(16384, 4096)),
    "deviation": (lambda x: torch.std(x, unbiased=False), x),
    "softmax-long": (lambda x: torch.softmax(x, 1), x.view(1024, 65536)),
    "cumsum-columns": (lambda x: torch.cumsum(x, 0), x.view(8192, 8192)),
    "softmax": (lambda x: torch.softmax(x, 1), x.view(16384, 4096)),
    "layer-norm": (lambda x: torch.nn.functional.layer_norm(x, (4096,)), x.view(16384, 4096)),
    "cumsum": (lambda x: torch.cumsum(x, 1), x.view(16384, 4096)),
    "cumsum-flat": (lambda x: torch.cumsum(x, 0), x),
    "transpose": (lambda x: x.T.contiguous(), x.view(8192, 8192)),
    "matmul": (lambda x: x @ x, x[: 1 << 24].view(4096, 4096)),
    "matmul-f64": (lambda x: x @ x, x[: 1 << 24].view(4096, 4096).double()),
    "small": (lambda x: x * 1.5 + 2, x[:1000].clone()),
}
y = torch.empty_like(x)
copy = 8 * n / least(y.copy_, x)
print("torch", torch.__version__)
print(f"copy {copy * 1e-9:.0f} GB/s (read and written)")
for name in sys.argv[1:]:
    f, *arguments = cases[name]
    eager = least(f, *arguments)
    try:
        compiled = least(torch.compile(f), *arguments)
    except Exception:
        compiled = 0
    print(name, eager, compiled, copy, flush=True)
