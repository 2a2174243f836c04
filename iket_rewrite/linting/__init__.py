# SPDX-License-Identifier: Apache-2.0
"""Doubtful annotations found in source: a syntax tree, paths through each function, and rules with stable ids."""
