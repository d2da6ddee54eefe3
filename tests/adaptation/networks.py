"""Networks of racks as files for labs, changes to them, and what of a change a job should say."""

import dataclasses
import re

PAYLOAD_SHARE = 0.956  # of a shaped rate, for TCP
UDP_WIRE_SHARE = 1490 / 1448  # what a flow of UDP takes of a link, with its headers
MBIT_BYTES = 125_000


@dataclasses.dataclass
class Network:
    """Racks below the first one, hosts in racks; rates in Mbit/s. By host or rack: (out of it, into it)."""

    uplinks: dict  # by rack, but for the first
    hosts: dict  # by host: its rack
    nics: dict  # by host

    def racks(self):
        return ["rack0", *self.uplinks]

    def bystander(self, rack):
        """A host of that rack that runs no worker, for flows in the background."""
        return f"other{rack.removeprefix('rack')}"

    def copy(self):
        return Network(dict(self.uplinks), dict(self.hosts), dict(self.nics))

    def toml(self, flows=()):
        lines = ["[lab]", 'name = "adapt"', "[[switch]]", 'name = "rack0"']
        for rack, (out, into) in self.uplinks.items():
            lines += ["[[switch]]", f'name = "{rack}"', 'parent = "rack0"',
                      f'uplink = "{out:g}mbit"', f'uplink_in = "{into:g}mbit"']
        for host, rack in self.hosts.items():
            out, into = self.nics[host]
            lines += ["[[host]]", f'name = "{host}"', f'switch = "{rack}"',
                      f'nic = "{out:g}mbit"', f'nic_in = "{into:g}mbit"']
        for rack in self.racks():
            lines += ["[[host]]", f'name = "{self.bystander(rack)}"', f'switch = "{rack}"',
                      'nic = "1gbit"', "bystander = true"]
        for source, target, rate in flows:
            lines += ["[[flow]]", f'from = "{source}"', f'to = "{target}"', "udp = true",
                      f'rate = "{rate:g}mbit"', "seconds = 3600"]
        return "\n".join(lines) + "\n"

    def describe(self):
        racks = [f"{rack} ({', '.join(f'{self.nics[h][0]:g}' for h, r in self.hosts.items() if r == rack)})"
                 for rack in self.racks()]
        uplinks = [f"{rack} {out:g}" for rack, (out, _) in self.uplinks.items()]
        return f"{' '.join(racks)}, uplinks {' '.join(uplinks) or 'none'}"


def two_racks():
    """labs/two-racks.toml, with bystanders."""
    hosts = {f"h{i}": "rack0" if i < 4 else "rack1" for i in range(8)}
    return Network({"rack1": (200, 200)}, hosts, {host: (200, 200) for host in hosts})


@dataclasses.dataclass
class Case:
    """A network and one change to it."""

    name: str
    network: Network
    words: list  # of `syncopate lab`, that make the change
    after: Network  # what TCP finds then
    flows: tuple = ()  # of UDP, that the change is
    knows: bool = True  # whether a job may know of the change from its start, by a topology
    suspects: tuple = ()  # what may be named: "uplink", or hosts whose NIC it is


def uplink_case(name, network, rack, rate):
    after = network.copy()
    after.uplinks[rack] = (rate, rate)
    return Case(name, network, ["link", rack, "rack0", "rate", f"{rate:g}mbit"], after, suspects=("uplink",))


def nic_case(name, network, host, rate):
    after = network.copy()
    after.nics[host] = (rate, rate)
    return Case(name, network, ["link", host, network.hosts[host], "rate", f"{rate:g}mbit"], after,
                suspects=(host,))


def udp_case(name, network, rack, rate):
    """A flow that comes into a rack; it takes its rate from the uplink's way down."""
    source, target = network.bystander("rack0"), network.bystander(rack)
    after = network.copy()
    out, into = network.uplinks[rack]
    after.uplinks[rack] = (out, into - rate * UDP_WIRE_SHARE)
    return Case(name, network, ["flow", "add", source, target, "--udp", "--rate", f"{rate:g}mbit"], after,
                flows=((source, target, rate),), suspects=("uplink",))


def tcp_case(name, network, rack):
    return Case(name, network, ["flow", "add", network.bystander("rack0"), network.bystander(rack)],
                network.copy(), knows=False, suspects=("uplink",))


def slow_case(name, network, host, factor):
    return Case(name, network, ["slow", host, f"{factor:g}x"], network.copy(), knows=False)


def fixed_cases():
    lab = two_racks()
    return [Case("unchanged", lab, [], lab), uplink_case("uplink", lab, "rack1", 50), nic_case("nic", lab, "h5", 100),
            udp_case("udp", lab, "rack1", 100), tcp_case("tcp", lab, "rack1"), slow_case("slow", lab, "h3", 10)]


def random_case(random, name):
    """Two or three racks with unequal links, and a change to one of these."""
    racks = random.choice([2, 2, 3])
    hosts, nics = {}, {}
    for rack in range(racks):
        for _ in range(random.randint(2, 4 if racks == 2 else 2)):
            host = f"h{len(hosts)}"
            hosts[host] = f"rack{rack}"
            nics[host] = (random.choice([100, 150, 200, 200, 200, 300]),) * 2
    uplinks = {f"rack{rack}": (random.choice([100, 150, 200, 300]),) * 2 for rack in range(1, racks)}
    network = Network(uplinks, hosts, nics)
    rack, host = random.choice(sorted(uplinks)), random.choice(sorted(hosts))
    kind = random.choice(["uplink", "nic", "udp", "tcp", "slow"])
    factor = random.choice([0.25, 0.5, 0.7, 2])
    if kind == "uplink":
        return uplink_case(name, network, rack, uplinks[rack][0] * factor)
    if kind == "nic":
        return nic_case(name, network, host, nics[host][0] * factor)
    if kind == "udp":
        return udp_case(name, network, rack, round(uplinks[rack][1] * random.choice([0.3, 0.5, 0.7])))
    if kind == "tcp":
        return tcp_case(name, network, rack)
    return slow_case(name, network, host, random.choice([5, 10, 20]))


CHANGE_IN_WORDS = re.compile(r"([\w.>-]+): (?:about )?([\d.]+) ([kMG]?)B/s -> ([\d.]+) ([kMG]?)B/s")
SCALE = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}


def named_changes(texts):
    """What a job says of its network: (what, bytes/s before, after), in order, each text once."""
    named = []
    for text in dict.fromkeys(texts):
        for what, before, before_scale, after, after_scale in CHANGE_IN_WORDS.findall(text):
            named.append((what, float(before) * SCALE[before_scale], float(after) * SCALE[after_scale]))
    return list(dict.fromkeys(named))


def owner_of(what, hosts):
    """The host whose NIC that is, or "uplink"."""
    parts = re.split(r"[.>]", what)
    return next((part for part in parts if part in hosts), "uplink")


def wrong_names(case, named):
    return [what for what, *_ in named if owner_of(what, case.network.hosts) not in case.suspects]


def true_rates(case, what):
    """Bytes/s of payload after the change that may be meant by a name."""
    owner = owner_of(what, case.network.hosts)
    if owner != "uplink":
        return sorted(rate * MBIT_BYTES * PAYLOAD_SHARE for rate in set(case.after.nics[owner]))
    rates = {rate for both in case.after.uplinks.values() for rate in both}
    return sorted(rate * MBIT_BYTES * PAYLOAD_SHARE for rate in rates)
