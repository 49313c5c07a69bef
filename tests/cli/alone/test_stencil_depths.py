"""`hostless bench stencil --latency-us`: how deep halos are. By itself, because what else keeps the processors busy delays messages, too."""

from test_bench_stencil import BRIEF
from test_bench import Bench


class Depths(Bench):
    def depths_by_latency(self):
        depths = []
        for latency in (20, 1000, 20000):
            report = self.json_of("bench", "stencil", "--problem", "jacobi2d", *BRIEF, "--size", "128x128", "--ranks", 2, "--variants", "copy,blocked",
                                  "--latency-us", latency)
            self.assertEqual((report["latency_us"], report["bits"]), (latency, "equal"))
            copy, blocked = report["variants"]
            self.assertGreaterEqual(copy["best_us"], latency)  # an exchange each step
            depths.append(blocked["depth"])
        return depths

    def test_depth_grows_with_latency(self):
        for _ in range(10):  # what starts beside this test is not forbidden to, and adds to the short latencies, too
            least, middle, most = self.depths_by_latency()
            if least <= middle <= most and least < most:
                break
        self.assertTrue(least <= middle <= most and least < most, (least, middle, most))
