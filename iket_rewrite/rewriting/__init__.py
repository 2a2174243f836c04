# SPDX-License-Identifier: Apache-2.0
"""From annotated text to instrumented text: tokens, scan, annotations, plan, metadata, templates, edits."""
