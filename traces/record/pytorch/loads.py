"""The loads that traces/data and the other recordings were made from, by name.

Random weights from configurations, fixed seeds, no downloads. Needs torch, and transformers or
torchvision for the models of that name. Each load is a function without arguments that runs to its
end or raises torch.OutOfMemoryError.
"""

import gc
import random

import torch

DEVICE = "cuda"
MIB = 1 << 20
GIB = 1 << 30


def cap(size_bytes):
    """Lets the process have no more of the card than this."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(size_bytes / total)


def tensor_of(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8, device=DEVICE)


def log_uniform(rng, low, high):
    """A size whose logarithm is uniform: 2^low to 2^high bytes."""
    return int(2 ** rng.uniform(low, high))


# ---- models ----


def resnet50_train():
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for batch in (32, 32, 48, 24, 32, 16):
        images = torch.randn(batch, 3, 224, 224, device=DEVICE)
        labels = torch.randint(0, 1000, (batch,), device=DEVICE)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


def gpt2_train(layers, steps, seed, foreach=False):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=layers)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=foreach)
    rng = random.Random(seed)
    for _ in range(steps):
        batch, length = rng.choice([2, 4, 6, 8]), rng.randrange(64, 1024)
        tokens = torch.randint(0, 50257, (batch, length), device=DEVICE)
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def bert_infer(layers, requests, seed):
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(num_hidden_layers=layers)).to(DEVICE).half().eval()
    rng = random.Random(seed)
    with torch.inference_mode():
        for _ in range(requests):
            batch = rng.choice([1, 1, 2, 4, 8, 16, 32])
            length = min(512, max(8, int(rng.lognormvariate(4.6, 0.8))))
            tokens = torch.randint(0, 30000, (batch, length), device=DEVICE)
            model(input_ids=tokens).last_hidden_state[:, 0].cpu()


def video_pipeline_mixed():
    layers = [torch.nn.Conv2d(3 if i == 0 else 32, 32, 3, padding=1) for i in range(4)]
    model = torch.nn.Sequential(*layers).to(DEVICE).half().eval()
    rng = random.Random(5)
    ring = []
    sizes = [(720, 1280)] * 3 + [(1080, 1920)] * 2 + [(2160, 3840)]
    with torch.inference_mode():
        for _ in range(240):
            height, width = rng.choice(sizes)
            frame = torch.zeros(1, 3, height, width, device=DEVICE, dtype=torch.half)
            features = model(frame)
            ring.append(torch.nn.functional.interpolate(features, scale_factor=0.5))
            if len(ring) > rng.randrange(4, 12):
                ring.pop(0)


class UNetBlock(torch.nn.Module):
    def __init__(self, channels_in, channels):
        super().__init__()
        steps = []
        for source in (channels_in, channels):
            steps += [
                torch.nn.Conv2d(source, channels, 3, padding=1),
                torch.nn.GroupNorm(8, channels),
                torch.nn.SiLU(),
            ]
        self.steps = torch.nn.Sequential(*steps)

    def forward(self, x):
        return self.steps(x)


class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        down = [(4, 64), (64, 128), (128, 256), (256, 512)]
        up = [(512 + 256, 256), (256 + 128, 128), (128 + 64, 64)]
        self.down = torch.nn.ModuleList([UNetBlock(*pair) for pair in down])
        self.up = torch.nn.ModuleList([UNetBlock(*pair) for pair in up])
        self.out = torch.nn.Conv2d(64, 4, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else torch.nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for block, other in zip(self.up, reversed(kept[:-1])):
            larger = torch.nn.functional.interpolate(x, scale_factor=2)
            x = block(torch.cat([larger, other], 1))
        return self.out(x)


def unet_train_frames():
    model = UNet().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    rng = random.Random(7)
    for _ in range(12):
        side, batch = rng.choice([32, 64, 96, 128]), rng.choice([2, 4, 8])
        images = torch.randn(batch, 4, side, side, device=DEVICE)
        model(images).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


# ---- synthetic ----


def multi_stream():
    streams = [torch.cuda.Stream() for _ in range(4)]
    rng = random.Random(6)
    kept = []
    for _ in range(4000):
        with torch.cuda.stream(rng.choice(streams)):
            size = log_uniform(rng, 9, 24)
            x = tensor_of(size)
            y = x + 1 if size < MIB else x
            other = rng.choice(streams)
            if rng.random() < 0.3:
                x.record_stream(other)
            if rng.random() < 0.3:
                kept.append(y)
            if len(kept) > 60:
                kept.pop(rng.randrange(len(kept)))


def oom_fragmented():
    cap(3 * GIB)
    rng = random.Random(8)
    kept = {}
    try:
        for i in range(20000):
            if kept and rng.random() < 0.47:
                kept.pop(rng.choice(list(kept)))
            else:
                kept[i] = tensor_of(log_uniform(rng, 16, 26.5))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def churn(steps, low, high, seed, cap_bytes, p_free=0.47, streams=1, p_record=0.0, p_empty=0.0):
    """Random tensors taken and dropped; a third is dropped when memory runs out."""
    cap(cap_bytes)
    rng = random.Random(seed)
    queues = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(streams - 1)]
    kept = {}
    for i in range(steps):
        with torch.cuda.stream(rng.choice(queues) if streams > 1 else queues[0]):
            if kept and rng.random() < p_free:
                kept.pop(rng.choice(list(kept)))
            else:
                try:
                    kept[i] = tensor_of(log_uniform(rng, low, high))
                    if p_record and rng.random() < p_record:
                        other = rng.choice(queues)
                        kept[i].record_stream(other)
                        with torch.cuda.stream(other):
                            torch.cuda._sleep(400000)
                except torch.OutOfMemoryError:
                    for key in list(kept)[::3]:
                        kept.pop(key)
            if p_empty and rng.random() < p_empty:
                torch.cuda.empty_cache()


def slow_streams():
    """Long kernels: what other streams use stays pending across many allocations."""
    streams = [torch.cuda.Stream() for _ in range(3)]
    rng = random.Random(14)
    kept = []
    for i in range(1500):
        stream, other = rng.choice(streams), rng.choice(streams)
        with torch.cuda.stream(stream):
            x = tensor_of(log_uniform(rng, 9, 25))
            if rng.random() < 0.5:
                x.record_stream(other)
                if rng.random() < 0.2:
                    with torch.cuda.stream(other):
                        torch.cuda._sleep(2000000)
            if rng.random() < 0.3:
                kept.append(x)
            del x
            if len(kept) > 40:
                kept.pop(rng.randrange(len(kept)))
        if i % 200 == 199:
            torch.cuda.synchronize()


def warm_up(model, batches, width):
    """Runs the model once a batch size on a stream of its own, as graph capture wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for batch in batches:
            model(torch.randn(batch, width, device=DEVICE))
    torch.cuda.current_stream().wait_stream(stream)


def cuda_graphs():
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).to(DEVICE)
    batches = (8, 32, 64)
    warm_up(model, batches, 1024)
    graphs = []
    for batch in batches:
        x = torch.randn(batch, 1024, device=DEVICE)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        graphs.append((graph, x, y))
    rng = random.Random(15)
    for _ in range(200):
        graph, x, y = rng.choice(graphs)
        x.normal_()
        graph.replay()
        copy = y.clone()
        other = tensor_of(log_uniform(rng, 9, 24))
    graphs.pop(0)
    del copy, other
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.empty(1 << 24, device=DEVICE)


def graphs_pending():
    """Four graphs on one pool, with frees put off across a capture."""
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).to(DEVICE)
    other = torch.cuda.Stream()
    rng = random.Random(106)
    warm_up(model, (16, 64), 2048)
    pool = None
    graphs = []
    for batch in (16, 64, 16, 128):
        x = torch.randn(batch, 2048, device=DEVICE)
        delayed = tensor_of(40 * MIB)
        delayed.record_stream(other)
        with torch.cuda.stream(other):
            torch.cuda._sleep(20000000)
        del delayed
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            y = model(x)
            total = (y * 2).sum()
            passing = tensor_of(3 * MIB)
            passing.zero_()
            del passing
            kept = tensor_of(2 * MIB)
            kept.zero_()
        pool = pool or graph.pool()
        graphs.append((graph, x, y, total, kept))
        for _ in range(20):
            tensor_of(log_uniform(rng, 9, 25))
    for _ in range(60):
        rng.choice(graphs)[0].replay()
        tensor_of(log_uniform(rng, 9, 25))
    torch.cuda.synchronize()
    graphs.clear()
    del graph, x, y, total, kept
    gc.collect()
    torch.cuda.empty_cache()
    tensor_of(64 * MIB)


def zero_and_edges():
    """Every boundary of the size classes, and size 0."""
    ten = 10 * MIB
    first = [0, 1, 511, 512, 513, MIB - 511, MIB - 512, MIB, MIB + 1]
    first += [ten - 513, ten - 512, ten - 511, ten, ten + 1]
    first += [11 * MIB, 11 * MIB + 512, 11 * MIB - 512, 20 * MIB, 20 * MIB + 1, 0, 2 * MIB]
    kept = [tensor_of(size) for size in first]
    kept[::2] = [None] * len(kept[::2])
    kept += [tensor_of(size) for size in (0, 1, 9 * MIB, ten, 11 * MIB, 12 * MIB, 19 * MIB)]


# name: (load, PYTORCH_CUDA_ALLOC_CONF, with stack frames)
DEFAULT = {
    "resnet50_train": (resnet50_train, "", False),
    "gpt2_train_varlen": (lambda: gpt2_train(12, 10, 1), "", False),
    "bert_infer_varlen": (lambda: bert_infer(12, 150, 2), "", False),
    "video_pipeline_mixed": (video_pipeline_mixed, "", False),
    "multi_stream": (multi_stream, "", False),
    "unet_train_frames": (unet_train_frames, "", True),
    "oom_fragmented": (oom_fragmented, "", False),
}
SETTINGS = {
    "expandable_gpt2": (lambda: gpt2_train(6, 6, 11), "expandable_segments:True", False),
    "roundup4_bert": (lambda: bert_infer(6, 40, 12), "roundup_power2_divisions:4", False),
    "maxsplit64_churn": (lambda: churn(6000, 9, 26, 13, 3 * GIB), "max_split_size_mb:64", False),
    "gc06_churn": (
        lambda: churn(5000, 18, 27, 21, 4 * GIB),
        "garbage_collection_threshold:0.6",
        False,
    ),
    "slow_streams": (slow_streams, "", False),
    "cuda_graphs": (cuda_graphs, "", False),
    "churn_tight": (lambda: churn(8000, 9, 25, 22, GIB, 0.485), "", False),
    "expandable_tight": (
        lambda: churn(6000, 9, 27, 101, 2 * GIB, 0.475, 2, p_empty=0.004),
        "expandable_segments:True",
        False,
    ),
    "maxsplit_big": (
        lambda: churn(5000, 12, 28, 103, 3 * GIB, 0.475, 2, p_empty=0.001),
        "max_split_size_mb:32",
        False,
    ),
    "multi_release": (lambda: churn(6000, 9, 26, 105, GIB, 0.48, 3, p_record=0.08), "", False),
    "graphs_pending": (graphs_pending, "", False),
    "zero_and_edges": (zero_and_edges, "", False),
}
LOADS = {**DEFAULT, **SETTINGS}
