# SPDX-License-Identifier: Apache-2.0
"""Programs of several files: what they include, the overlay of rewritten copies, and compilers called on it."""
