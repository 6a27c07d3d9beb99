"""What a backend that asked by MQTT is told of faults of the broker and of replicas."""

import asyncio
import random

from session_runtime.client.attempts import Attempts
from session_runtime.client.mqtt_line import NotTakenError
from session_runtime.client.mqtt_pending import Fault
from session_runtime.client.mqtt_request import Request
from session_runtime.client.trials import DEATHS
from session_runtime.errors import PermanentError, RequestError


def not_taken(error: NotTakenError, attempts: Attempts) -> RequestError | PermanentError:
    """The error of a request that the broker refuses; it may have taken an earlier attempt."""
    return attempts.told_by(_refused(error, attempts))


def _refused(error: NotTakenError, attempts: Attempts) -> RequestError | PermanentError:
    if error.too_large:
        return RequestError(f"the request is too large: {error}", code="request.too_large")
    ran = (
        "may have run, and was not published again"
        if attempts.may_have_run
        else "was not published"
    )
    return PermanentError(f"the request {ran}: {error}", code="mqtt.not_taken")


def deadly(request: Request) -> PermanentError:
    """The error of a request over which too many connections broke; the broker may have passed it on."""
    return PermanentError(
        f"the request may have run: {DEATHS} connections broke while the broker was given its"
        f" {len(request.body)} bytes; see its log, and how large a message it takes",
        code="mqtt.not_taken",
    )


async def wait_or_raise(fault: Fault, attempts: Attempts) -> None:
    """Wait until what is busy may be asked again; raise anything else, and whether it may have run."""
    if fault.retry_after_s is not None:
        await asyncio.sleep(fault.retry_after_s * (0.5 + random.random()))
        return
    if fault.code.partition(".")[0] in ("request", "auth", "confirmation"):
        raise attempts.told_by(RequestError(fault.told, code=fault.code))
    raise attempts.told_by(PermanentError(fault.told, code=fault.code))
