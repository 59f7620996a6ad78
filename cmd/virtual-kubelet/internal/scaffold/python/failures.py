# SPDX-License-Identifier: Apache-2.0
"""The errors of a service, besides OSError: with an OSError the service cannot be asked now."""


class NotFound(Exception):
    """There is no such group or container."""


class Invalid(Exception):
    """The request can never succeed."""
