# SPDX-License-Identifier: Apache-2.0
"""Capturing: a session inside the process, or NVIDIA's `run-iket` around a command; out comes a trace file.

    capture(...)   in_process -> session (ctypes) -> runtime's library
    profile(...)   around_command -> run_iket -> processes -> relay, once per pass -> the command
    run(...)       workload -> either of them

`failures` holds every way in which nothing comes out.
"""
