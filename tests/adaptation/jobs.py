"""Labs, and jobs of `syncopate train` that are watched while they run."""

import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

POLL_SECONDS = 0.02
COMMAND_SECONDS = 60
STOP_SECONDS = 30
LAB_PREFIX = "adapt-"
TAIL_BYTES = 2000


class Failed(Exception):
    """A command or a job did not do what it was started for."""


def run(words, **options):
    """Runs a command to its end and returns what it prints."""
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=options.pop("timeout", COMMAND_SECONDS), **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr[-TAIL_BYTES:]}")
    return done.stdout


def remove_leftovers(syncopate):
    """Takes down the labs of scripts like this one that were killed."""
    for lab in json.loads(run([syncopate, "lab", "list", "--json"])):
        owner = lab["lab"].removeprefix(LAB_PREFIX).split("-")[0]
        if lab["lab"].startswith(LAB_PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            run([syncopate, "lab", "down", lab["lab"]])


class Lab:
    """A lab that is up inside a `with`."""

    made = 0

    def __init__(self, syncopate, file):
        Lab.made += 1
        self.name = f"{LAB_PREFIX}{os.getpid()}-{Lab.made}"
        self.syncopate = syncopate
        self.file = file

    def __enter__(self):
        run([self.syncopate, "lab", "up", self.file, "--name", self.name])
        return self

    def __exit__(self, *_):
        run([self.syncopate, "lab", "down", self.name])

    def change(self, words):
        run([self.syncopate, "lab", *words, "--lab", self.name, "--as", "change"])

    def undo(self):
        run([self.syncopate, "lab", "undo", "change", "--lab", self.name])


def copy_cache(source, target):
    """A cache folder of its own that shares the data sets, which are large, with another one."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir() if source.is_dir() else []:
        if path.is_dir():
            shutil.copytree(path, target / path.name, dirs_exist_ok=True)
        elif path.suffix == ".data":
            (target / path.name).symlink_to(path.resolve())
        else:
            shutil.copy2(path, target / path.name)


def data_cache():
    """The folder with data sets that `syncopate train` fills."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("SYNCOPATE_CACHE") or pathlib.Path(base) / "syncopate")


class Job:
    """A job with a line of metrics for every iteration, which are read as they come."""

    def __init__(self, syncopate, place, options, environment, folder):
        self.run = pathlib.Path(folder)
        shutil.rmtree(self.run, ignore_errors=True)
        self.ms = {}  # by iteration: its time, without what is outside of iterations
        self.seconds = {}  # by iteration: when it ended, since the run began
        self.events = []  # (iteration, text)
        self.begun = time.monotonic()
        self._read = 0
        self._errors = tempfile.TemporaryFile("w+")
        words = [syncopate, "train", *place, *options, "--report-every", 1, "--iterations", 1_000_000,
                 "--run", self.run, "--overwrite", "--quiet", "--json"]
        self._process = subprocess.Popen([str(word) for word in words], env=dict(os.environ, **environment),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=self._errors, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def iteration(self):
        """The last one that has ended."""
        return max(self.ms, default=0)

    def errors(self):
        self._errors.flush()
        self._errors.seek(0)
        return self._errors.read()

    def said(self):
        """All that it has said so far, in events and on standard error."""
        return [text for _, text in self.events] + self.errors().splitlines()

    def poll(self):
        """Reads what is new; raises if the job has ended."""
        ended = self._process.poll()
        path = self.run / "metrics.jsonl"
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self._read += whole
            for line in text[:whole].splitlines():
                self._take(json.loads(line))
        if ended is not None:
            raise Failed(f"the job ended with exit code {ended}: {self.errors()[-TAIL_BYTES:]}")

    def _take(self, line):
        if line["kind"] == "train":
            self.ms[line["iteration"]] = line["iteration_ms"]
            self.seconds[line["iteration"]] = line["seconds"]
        elif line["kind"] == "event":
            self.events.append((line["iteration"], line["text"]))

    def wait(self, condition, seconds):
        """Until condition() holds, and whether it does; at most so long."""
        until = time.monotonic() + seconds
        self.poll()
        while not condition() and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
            self.poll()
        return condition()

    def wait_for(self, iteration, seconds):
        return self.wait(lambda: self.iteration >= iteration, seconds)

    def median_ms(self, first, last):
        """Of these iterations, as many of them as there were; None if there were none."""
        times = [self.ms[i] for i in range(first, last + 1) if i in self.ms]
        return statistics.median(times) if times else None

    def whole_ms(self, first, last):
        """The mean of these iterations by the clock, with all that happened between them."""
        there = [i for i in range(first - 1, last + 1) if i in self.seconds]
        if len(there) < 2:
            return None
        return 1e3 * (self.seconds[there[-1]] - self.seconds[there[0]]) / (there[-1] - there[0])

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(timeout=STOP_SECONDS)
        try:
            self.poll()
        except Failed:
            pass  # it was to end


def end_by_signals():
    """Lets SIGTERM and SIGHUP unwind this script, so that no lab is left."""

    def leave(number, _):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
