# SPDX-License-Identifier: Apache-2.0
#
# Holds requests, one JSON object a line with service, operation and params, to the descriptions of the services in botocore, by its own
# validator. It prints the version of botocore, then a line for each request: nothing, or what is wrong.
import base64
import json
import sys

import botocore
import botocore.session
from botocore.validate import ParamValidator

models = {}


def model(service):
    if service not in models:
        models[service] = botocore.session.get_session().get_service_model(service)
    return models[service]


def native(shape, value):
    """Bytes are base64 on the wire, and bytes for the validator."""
    if shape.type_name == "blob" and isinstance(value, str):
        return base64.b64decode(value)
    if shape.type_name == "structure" and isinstance(value, dict):
        return {k: native(shape.members[k], v) if k in shape.members else v for k, v in value.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [native(shape.member, v) for v in value]
    return value


print(botocore.__version__)
for line in sys.stdin:
    request = json.loads(line)
    shape = model(request["service"]).operation_model(request["operation"]).input_shape
    report = ParamValidator().validate(native(shape, request["params"]), shape)
    wrong = set(request["params"]) - set(shape.members)  # the validator passes over what it does not know at the top
    text = report.generate_report() if report.has_errors() else ""
    if wrong:
        text += " unknown: " + ", ".join(sorted(wrong))
    print(json.dumps(text))
