# SPDX-License-Identifier: Apache-2.0
"""The commands.  Only these modules print and choose exit codes; everything they do, the library does."""
