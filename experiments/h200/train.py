"""One model on one allocator, in turns: rounds.py runs several of these at once and says when.

    train.py MODEL ALLOCATOR     MODEL: gpt2_train resnet50_train bert_infer llm_generate
                                 ALLOCATOR: native, expandable, or a vramlab backend such as tlsf

Says READY after the warm-up; answers each number of steps on standard input with TOOK and the seconds, and
the end of input with END and result, memory needed, peak live, spills and waits for streams.

Weights are random and made from a configuration: nothing is downloaded. Batches and lengths vary
by a fixed seed, the same for every allocator, and deterministic algorithms are asked for, so that
results can be compared."""

import os
import random
import sys
import time

model_name, allocator = sys.argv[1], sys.argv[2]
if allocator == "expandable":
    os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402 (the allocator's settings are read when it is imported)

native = allocator in ("native", "expandable")
if not native:
    import vramlab_torch

    vramlab_torch.use(allocator, arena=os.environ.get("VRAMLAB_ARENA", "cuda:18GiB"))

torch.manual_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.utils.deterministic.fill_uninitialized_memory = False
DEVICE = "cuda"


def gpt2_train():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=12)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    draw = random.Random(1)

    def step():
        batch, length = draw.choice([2, 4, 6, 8]), draw.randrange(64, 1024)
        tokens = torch.randint(0, 50257, (batch, length), device=DEVICE)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step, 6


def resnet50_train():
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    draw = random.Random(5)

    def step():
        batch = draw.choice([16, 24, 32, 48])
        images = torch.randn(batch, 3, 224, 224, device=DEVICE)
        labels = torch.randint(0, 1000, (batch,), device=DEVICE)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step, 6


def bert_infer():
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig()).to(DEVICE).half().eval()
    draw = random.Random(2)

    def step():
        batch = draw.choice([1, 1, 2, 4, 8, 16, 32])
        length = min(512, max(8, int(draw.lognormvariate(4.6, 0.8))))
        with torch.inference_mode():
            tokens = torch.randint(0, 30000, (batch, length), device=DEVICE)
            return model(input_ids=tokens).last_hidden_state[:, 0].float().mean()

    return step, 50


def llm_generate():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12,
                         num_attention_heads=16, num_key_value_heads=4, vocab_size=32000)
    model = LlamaForCausalLM(config).to(DEVICE).to(torch.bfloat16).eval()
    draw = random.Random(3)
    caches = []

    def step():
        batch, length = draw.choice([1, 2, 4, 8]), draw.randrange(32, 1500)
        with torch.inference_mode():
            tokens = torch.randint(0, 32000, (batch, length), device=DEVICE)
            answer = model(input_ids=tokens, use_cache=True)
            caches.append(answer.past_key_values)
            if len(caches) > 4:
                caches.pop(draw.randrange(len(caches)))
            for _ in range(draw.randrange(6, 24)):
                token = answer.logits[:, -1:].argmax(-1)
                answer = model(input_ids=token, past_key_values=answer.past_key_values,
                               use_cache=True)
            return answer.logits.float().mean()

    return step, 3


def work(step, steps):
    """The seconds of so many steps, with nothing in flight before and after, and the last result."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        result = step()
    torch.cuda.synchronize()
    return time.perf_counter() - began, result


step, warm_up = {f.__name__: f for f in
                 (gpt2_train, resnet50_train, bert_infer, llm_generate)}[model_name]()
_, result = work(step, warm_up)
print("READY", flush=True)
for line in sys.stdin:
    seconds, result = work(step, int(line))
    print(f"TOOK {seconds:.6f}", flush=True)

if native:
    stats = torch.cuda.memory_stats()
    needed, live = stats["reserved_bytes.all.peak"], stats["requested_bytes.all.peak"]
    spilled = waits = 0
else:
    stats = vramlab_torch.stats()
    needed = stats["peak_extent_bytes"] + stats["peak_spilled_bytes"]
    live, spilled, waits = stats["peak_live_bytes"], stats["spilled"], stats["stream_waits"]
print(f"END {float(result):.9g},{needed},{live},{spilled},{waits}", flush=True)
