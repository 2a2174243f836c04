# SPDX-License-Identifier: Apache-2.0
"""Judge a binary without a GPU: ELF and metadata, instructions, records, findings, report."""
