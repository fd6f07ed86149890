"""Simulated cards and an OpenAI-speaking engine shaped like vLLM 0.32, for machines without an accelerator.

Everything it shows is simulated and says so (`system_fingerprint`, `/sim/info`, the `x-sim-replica` header).
A folder (`GONGKA_SIM_DIR`) stands for one host: `cards.json` its cards, `alloc/` what each process holds on them,
`faults.json` what is broken at the moment. Engines are real processes; the folder is all they share.
"""
