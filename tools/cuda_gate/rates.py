"""What the processors can do. One table; its sources:
  bandwidth   H100: 3.0 TB/s, what a copy reaches of 3.35; H200: 4.3 of 4.8, measured on such a card
  clock       1.755 GHz, that of the H100 SXM under load; 1.98 was seen
  products    NVIDIA's data sheet of the H100 and H200 SXM, dense: bf16 and f16 989.4 TFLOP/s, tf32 494.7, f32 66.9
  units       of a multiprocessor and clock, CUDA C++ Programming Guide, "Arithmetic Instructions", compute capability 9.0: 16 of
              ex2, rcp, ...; 64 of f64. Four schedulers, each of which gives one warp an instruction a clock
  launch      2.7 us from one kernel of a graph to the next. Launches overlap (cuda/launch.cuh), which saves the ramps of a
              kernel; how much is not known without a card, so that the figure stays
  meeting     0.25 us, a barrier of a cluster's blocks; published figures are 190 to 250 ns
  link        50 GB/s, PCIe 5 as it is reached; only what the stream of an update or step itself copies
"""
MULTIPROCESSORS = 132
CLOCK = 1.755e9
SCHEDULERS = 4
LAUNCH = 2.7e-6
MEETING = 0.25e-6
LINK = 50e9
BANDWIDTH = {"H100": 3.0e12, "H200": 4.3e12}
PEAK = {"half": 989.4e12, "tf32": 494.7e12, "f32": 66.9e12, "f64": 33.5e12, "mufu": 16 * MULTIPROCESSORS * CLOCK}
OF_BANDWIDTH, OF_PEAK = 0.9, 0.7  # what is expected of them

# Of a multiprocessor, sm_90.
REGISTERS, SHARED, THREADS, BLOCKS = 65536, 228 * 1024, 2048, 32
SHARED_OF_A_BLOCK = 1024  # what the system takes


def residents(registers, shared, threads):
    """Blocks that a multiprocessor holds at a time."""
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // 256) * 256
    return max(1, min(BLOCKS, THREADS // (warps * 32), REGISTERS // (of_a_warp * warps), SHARED // (shared + SHARED_OF_A_BLOCK)))
