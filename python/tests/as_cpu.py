"""A plugin of pytest: JAX's tests take the platform on which they run for a CPU.

Many of them ask on what they run, and skip themselves on platforms that they do not know.
"""

import sys

# Each file of JAX's tests reads JAX's options from there. To import JAX's test utilities and set the option
# would have them remember a standard output that pytest has not captured yet.
sys.argv.append("--jax_test_dut=cpu")
