#!/usr/bin/python3
"""The twin of `syncopate-train` on PyTorch's DistributedDataParallel over Gloo, for `syncopate bench train`.

One rank: same models, data, batches, initial parameters, optimizer and learning rate, so that the
losses are the same and only the synchronization differs. It takes the options of syncopate-train as
JSON, from the same variable of the environment, and leaves the same metrics.jsonl and summary.json.

    ddp_twin.py train --data-file FILE --store FILE --interface NAME
                                      rank SYNCOPATE_RANK of SYNCOPATE_SIZE, SYNCOPATE_TRAIN_OPTIONS
    ddp_twin.py parameters MODEL C,H,W CLASSES                names and sizes, in forward order
    ddp_twin.py samples SAMPLES SEED ITERATIONS BATCH,BATCH,..  each line what a worker takes
    ddp_twin.py check                                         whether all it needs is installed

What is measured, in each iteration of each rank:

    iteration   from its begin to the begin of the next
    exposed     from the moment the backward pass has computed its last gradient until backward()
                returns: DDP waits there for its buckets and copies them back
    compute     loading, forward, backward without that, and the optimizer's step
"""

import datetime
import json
import math
import mmap
import os
import statistics
import struct
import sys
import time

import numpy

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
TIMEOUT_SECONDS = 120  # of every wait for other ranks


# ---- random numbers and samples, as src/base/random.h and src/train/data/sampler.cc have them


def mix_bits(z):
    """SplitMix64's output for each state, of Python's or numpy's whole numbers."""
    if isinstance(z, int):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def first_number(seed):
    return mix_bits((seed + GOLDEN) & MASK)


def mix_seed(seed, number):
    return first_number(first_number(seed) ^ first_number(~number & MASK))


def epoch_order(samples, seed, epoch):
    """One random order of all samples; `samples` is at most 2^32."""
    start = mix_seed(seed, epoch)
    left = numpy.arange(samples, 1, -1, dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        steps = numpy.arange(1, len(left) + 1, dtype=numpy.uint64) * numpy.uint64(GOLDEN)
        numbers = mix_bits(steps + numpy.uint64(start))
        # The upper half of the product of 64 bits by 32.
        half = numpy.uint64(32)
        low = ((numbers & numpy.uint64(0xFFFFFFFF)) * left) >> half
        picks = ((numbers >> half) * left + low) >> half
    order = list(range(samples))
    for place, pick in zip(range(samples - 1, 0, -1), picks.tolist()):
        order[place], order[pick] = order[pick], order[place]
    return numpy.array(order, dtype=numpy.int64)


class Sampler:
    def __init__(self, samples, seed):
        self.samples, self.seed = samples, seed
        self.epoch, self.offset = 0, 0
        self.order = epoch_order(samples, seed, 0)

    def next(self, batches, rank):
        together = sum(batches)
        if self.offset > self.samples - together:
            self.epoch, self.offset = self.epoch + 1, 0
            self.order = epoch_order(self.samples, self.seed, self.epoch)
        begin = self.offset + sum(batches[:rank])
        self.offset += together
        return self.order[begin : begin + batches[rank]]


# ---- data: src/train/data/dataset_file.h, src/train/batch.cc


class Dataset:
    def __init__(self, path):
        with open(path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if memory[:8] != b"SYNCDATA":
            raise SystemExit(f"{path} is not a file of data")
        version, info_bytes = struct.unpack_from("<II", memory, 8)
        if version != 1:
            raise SystemExit(f"{path} has version {version}; this program reads version 1")
        at = self._read_info(memory, 16)
        if at != 16 + info_bytes:
            raise SystemExit(f"{path} is damaged in its description")
        train, test = struct.unpack_from("<qq", memory, at)
        at += 32  # with the digest, which our own side checks
        elements = math.prod(self.shape)
        self.splits = []
        for samples in (train, test):
            inputs = numpy.frombuffer(memory, numpy.uint8, samples * elements, at)
            at += samples * elements
            labels = numpy.frombuffer(memory, numpy.uint8, samples * self.labels_per_sample, at)
            at += samples * self.labels_per_sample
            self.splits.append((inputs.reshape(samples, *self.shape), labels))
        if at != len(memory):
            raise SystemExit(f"{path} has another length than it says")
        levels = numpy.arange(256, dtype=numpy.float32) / numpy.float32(255)
        self.tables = [(levels - m) / d for m, d in zip(self.mean, self.deviation)]

    def _read_info(self, memory, at):
        def take(form):
            nonlocal at
            values = struct.unpack_from("<" + form, memory, at)
            at += struct.calcsize("<" + form)
            return values

        at += 4 + struct.unpack_from("<I", memory, at)[0]  # its name
        self.shape = take("%dq" % take("I")[0])
        (self.labels_per_sample,) = take("q")
        (self.classes,) = take("I")
        (channels,) = take("I")
        self.mean = numpy.array(take("%df" % channels), numpy.float32)
        self.deviation = numpy.array(take("%df" % channels), numpy.float32)
        return at + 4 + struct.unpack_from("<I", memory, at)[0]  # the alphabet

    def batch(self, split, samples):
        import torch

        images, labels = self.splits[split]
        picked = images[samples]
        out = numpy.empty(picked.shape, numpy.float32)
        for channel, table in enumerate(self.tables):
            out[:, channel] = table[picked[:, channel]]
        return torch.from_numpy(out), torch.from_numpy(labels[samples].astype(numpy.int64))


# ---- models: src/train/image_models.cc, the same layers made in the same order from the same seed


def make_model(name, shape, classes, seed):
    import torch
    from torch import nn
    from torch.nn import functional

    def conv3x3(before, after, stride):
        conv = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
        return conv

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense1 = nn.Linear(math.prod(shape), 256)
            self.dense2 = nn.Linear(256, 128)
            self.dense3 = nn.Linear(128, classes)

        def forward(self, x):
            x = functional.relu(self.dense1(x.flatten(1)))
            return self.dense3(functional.relu(self.dense2(x)))

    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            height, width = (((side - 4) // 2 - 4) // 2 for side in shape[1:])
            self.conv1 = nn.Conv2d(shape[0], 20, 5)
            self.conv2 = nn.Conv2d(20, 50, 5)
            self.dense1 = nn.Linear(50 * height * width, 500)
            self.dense2 = nn.Linear(500, classes)

        def forward(self, x):
            x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
            x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
            return self.dense2(functional.relu(self.dense1(x.flatten(1))))

    class ResNet(nn.Module):
        def __init__(self, blocks_per_stage):
            super().__init__()
            self.conv, self.norm = conv3x3(shape[0], 16, 1), nn.BatchNorm2d(16)
            self.blocks = []  # their layers' names and stride
            channels = 16
            for stage in (1, 2, 3):
                for block in range(1, blocks_per_stage + 1):
                    stride = 2 if stage > 1 and block == 1 else 1
                    prefix = f"stage{stage}-block{block}-"
                    for part, before in (("1", channels), ("2", channels * stride)):
                        step = stride if part == "1" else 1
                        self.add_module(prefix + "conv" + part, conv3x3(before, channels * stride, step))
                        self.add_module(prefix + "norm" + part, nn.BatchNorm2d(channels * stride))
                    self.blocks.append((prefix, stride))
                    channels *= stride
            self.dense = nn.Linear(channels, classes)

        def forward(self, x):
            x = functional.relu(self.norm(self.conv(x)))
            for prefix, stride in self.blocks:
                layer = lambda name: self._modules[prefix + name]
                y = functional.relu(layer("norm1")(layer("conv1")(x)))
                y = layer("norm2")(layer("conv2")(y))
                if stride == 2:
                    more = x.size(1) // 2
                    x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more, more))
                x = functional.relu(y + x)
            return self.dense(x.mean((2, 3)))

    torch.manual_seed(seed)
    makers = {"mlp": Mlp, "cnn": Cnn, "resnet20": lambda: ResNet(3), "resnet32": lambda: ResNet(5)}
    if name not in makers:
        raise SystemExit(f"the twin has no model {name}; it has {', '.join(makers)}")
    return makers[name]()


# ---- training


def check_options(options):
    """What the twin does not do must not be asked for."""
    usual = {
        "batches": [], "accumulate": 1, "augment": False, "dropout": 0, "warmup": 0, "clip_norm": 0,
        "strategy": "bsp", "evaluate_every": 0, "checkpoint_every": 0, "resume": False,
        "rate_shape": "constant",
    }
    for name, value in usual.items():
        if options.get(name, value) != value:
            raise SystemExit(f"the twin knows only {name} = {value}")


def make_optimizer(options, parameters):
    import torch

    rate, decay = options.get("learning_rate", 0.1), options.get("weight_decay", 0)
    if options.get("optimizer", "sgd") == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=options.get("momentum", 0.9),
                               nesterov=options.get("nesterov", False), weight_decay=decay)
    return torch.optim.Adam(parameters, lr=rate, weight_decay=decay, eps=options.get("epsilon", 1e-8),
                            betas=(options.get("beta1", 0.9), options.get("beta2", 0.999)))


class LastGradient:
    """When the backward pass computed its last gradient: those of the first layers come last."""

    def __init__(self, parameters):
        self.at = 0.0
        for parameter in parameters[:3]:
            parameter.register_hook(self._note)

    def _note(self, gradient):
        self.at = time.monotonic()


def train(options, data_file, store, interface):
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch
    import torch.distributed as dist
    from torch.nn import functional
    from torch.nn.parallel import DistributedDataParallel

    check_options(options)
    began = time.monotonic()
    rank, size = int(os.environ["SYNCOPATE_RANK"]), int(os.environ["SYNCOPATE_SIZE"])
    torch.set_num_threads(max(1, options.get("threads", 1)))
    meeting = dist.FileStore(os.path.abspath(store), size)
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=TIMEOUT_SECONDS))
    data = Dataset(data_file)
    model = make_model(options["model"], data.shape, data.classes, options.get("seed", 1))
    parameters = list(model.parameters())
    last_gradient = LastGradient(parameters)
    # The statistics of batch norm stay each worker's own, as on our side.
    parallel = DistributedDataParallel(model, broadcast_buffers=False)
    optimizer = make_optimizer(options, parameters)
    sampler = Sampler(len(data.splits[0][0]), options.get("seed", 1))
    together = options["batch"]
    batches = [together // size + (1 if r < together % size else 0) for r in range(size)]
    # DDP takes the plain mean over workers; with batches that differ ours weighs them.
    weight = batches[rank] * size / together
    iterations, report_every = options["iterations"], options.get("report_every", 10)
    folder = options.get("run_folder", "")
    metrics = open(os.path.join(folder, "metrics.jsonl"), "w") if rank == 0 and folder else None

    times = []  # begin, compute, exposed, in seconds
    for iteration in range(1, iterations + 1):
        begin = time.monotonic()
        inputs, labels = data.batch(0, sampler.next(batches, rank))
        loss = functional.cross_entropy(parallel(inputs), labels)
        optimizer.zero_grad(set_to_none=True)
        (loss if weight == 1 else loss * weight).backward()
        end_of_backward = time.monotonic()
        exposed = max(0.0, end_of_backward - last_gradient.at)
        value = loss.item()
        optimizer.step()
        times.append((begin, time.monotonic() - begin - exposed, exposed))
        if iteration % report_every != 0 and iteration != iterations:
            continue
        sums = torch.tensor([value * batches[rank]], dtype=torch.float64)
        dist.all_reduce(sums)
        if metrics:
            line = {"kind": "train", "iteration": iteration, "seconds": time.monotonic() - began,
                    "loss": sums.item() / together}
            metrics.write(json.dumps(line) + "\n")
            metrics.flush()
    times.append((time.monotonic(), 0.0, 0.0))

    own = [[(after[0] - now[0]) * 1e3, now[1] * 1e3, now[2] * 1e3] for now, after in zip(times, times[1:])]
    gathered = [None] * size
    dist.all_gather_object(gathered, own)
    if rank == 0:
        iteration_ms, compute_ms, exposed_ms = zip(*(row for rows in gathered for row in rows))
        bytes_each = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        summary = {
            "strategy": "ddp", "schedule": "bucket", "workers": size, "iterations": iterations,
            "seconds": time.monotonic() - began, "reached": None, "accuracy": None, "loss": None,
            "iteration_ms_p50": statistics.median(iteration_ms),
            "compute_ms_p50": statistics.median(compute_ms),
            "exposed_comm_ms_p50": statistics.median(exposed_ms), "waiting_ms_p50": None,
            "bytes_sent": bytes_each * iterations * size,
        }
        text = json.dumps(summary)
        if folder:
            with open(os.path.join(folder, "summary.json"), "w") as file:
                file.write(text + "\n")
        print(text, flush=True)
    # A rank that closes its connections while others still read can leave Gloo waiting for ever, so
    # all leave together, and without a barrier of Gloo's.
    deadline = time.monotonic() + TIMEOUT_SECONDS
    meeting.add("left", 1)
    while meeting.add("left", 0) < size and time.monotonic() < deadline:
        time.sleep(0.01)
    sys.stdout.flush()
    os._exit(0)


def option(words, name):
    if name not in words or words.index(name) + 1 == len(words):
        raise SystemExit(f"ddp_twin.py: {name} is missing")
    return words[words.index(name) + 1]


def main(words):
    if not words or words[0] not in ("train", "parameters", "samples", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    if words[0] == "train":
        options = os.environ.get("SYNCOPATE_TRAIN_OPTIONS")
        if options is None:
            raise SystemExit("ddp_twin.py: SYNCOPATE_TRAIN_OPTIONS is missing")
        train(json.loads(options), option(words, "--data-file"), option(words, "--store"),
              option(words, "--interface"))
    elif words[0] == "parameters":
        shape = tuple(int(extent) for extent in words[2].split(","))
        for name, parameter in make_model(words[1], shape, int(words[3]), 1).named_parameters():
            print(name, parameter.numel())
    elif words[0] == "samples":
        samples, seed, iterations = (int(word) for word in words[1:4])
        batches = [int(batch) for batch in words[4].split(",")]
        samplers = [Sampler(samples, seed) for _ in batches]
        for _ in range(iterations):
            for rank, sampler in enumerate(samplers):
                print(*sampler.next(batches, rank))
    else:
        try:
            import torch.distributed
        except ImportError as error:
            print(f"{error}; install python3-torch", file=sys.stderr)
            return 1
        if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
            print("this PyTorch has no Gloo; install Debian's python3-torch", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
