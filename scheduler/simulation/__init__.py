"""The farm in thought: the same `plan`, on simulated hosts, driven by events and a trace of calls. No clock, no chance.

`simulate(world, policy, trace, until)` plays the trace from where the world stands and returns what was measured.
"""

from scheduler.simulation.farm import simulate as simulate
from scheduler.simulation.measures import Measures as Measures
from scheduler.simulation.trace import Call as Call
from scheduler.simulation.trace import Growth as Growth
from scheduler.simulation.trace import Machine as Machine
from scheduler.simulation.trace import Trace as Trace
