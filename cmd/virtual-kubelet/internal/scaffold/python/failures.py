# SPDX-License-Identifier: Apache-2.0
"""What a service says apart from an OSError, by which the service cannot be asked now."""


class NotFound(Exception):
    """There is no such group or container."""


class Invalid(Exception):
    """What was asked for cannot be."""
