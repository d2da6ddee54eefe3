#!/usr/bin/env python3
"""Checks the cases of tests/adapt_changes without a lab: networks_test.py SYNCOPATE"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import networks

SYNCOPATE = sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/src/syncopate"


def topology_of(text):
    """What `syncopate lab topology` makes of the file of a lab."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "lab.toml"
        file.write_text(text)
        done = subprocess.run([SYNCOPATE, "lab", "topology", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{done.stderr}\n{text}")
    return json.loads(done.stdout)


class NetworksTest(unittest.TestCase):
    def test_files_are_labs(self):
        for case in networks.fixed_cases() + [networks.random_case(random.Random(seed), f"random-{seed}")
                                              for seed in range(20)]:
            with self.subTest(case=case.name):
                devices = [node["id"] for node in topology_of(case.network.toml())["nodes"] if node["kind"] == "device"]
                self.assertEqual(devices, list(case.network.hosts))
                topology_of(case.after.toml())
                topology_of(case.network.toml(case.flows))

    def test_a_seed_makes_the_same_change_again(self):
        twice = [networks.random_case(random.Random(7), "random-7") for _ in range(2)]
        self.assertEqual(twice[0], twice[1])
        self.assertNotEqual(twice[0].words, networks.random_case(random.Random(8), "random-8").words)

    def test_a_job_that_is_told_finds_the_changed_rate(self):
        case = networks.uplink_case("uplink", networks.two_racks(), "rack1", 50)
        rates = {capacity["id"]: capacity["bandwidth"] for capacity in topology_of(case.after.toml())["capacities"]}
        for way in ("rack1>rack0", "rack0>rack1"):
            self.assertAlmostEqual(rates[way], networks.true_rates(case, way)[0], delta=1)

    def test_what_a_job_says_is_found(self):
        said = ["network version 2: slower since iteration 40: rack1>rack0: about 23.9 MB/s -> 5.98 MB/s, seen on "
                "traffic 7->0; h5.in: about 1.25 GB/s -> 331.9 MB/s (or h4.in)", "planned search: 2 transfers"]
        self.assertEqual(networks.named_changes(said), [("rack1>rack0", 23.9e6, 5.98e6), ("h5.in", 1.25e9, 331.9e6)])

    def test_names_of_what_did_not_change_are_wrong(self):
        lab = networks.two_racks()
        uplink = networks.uplink_case("uplink", lab, "rack1", 50)
        nic = networks.nic_case("nic", lab, "h5", 100)
        slow = networks.slow_case("slow", lab, "h3", 10)
        for name, wrong in (("rack0>rack1", [nic, slow]), ("h5.in", [uplink, slow]), ("h5.up", [uplink, slow]),
                            ("h4.down", [uplink, nic, slow])):
            for case in (uplink, nic, slow):
                with self.subTest(name=name, case=case.name):
                    self.assertEqual(networks.wrong_names(case, [(name, 1, 2)]), [name] if case in wrong else [])


if __name__ == "__main__":
    unittest.main()
