"""Why a webhook cannot be made, or be asked for something."""

from app.errors import LimitReached, PointsError


class WebhookLimit(LimitReached):
    field = "url"
    says = "There are already {limit} webhooks, which is the limit. Delete one first."


class WebhookConflict(PointsError):
    """A webhook is not in the state that the call needs; the sentence says what can be done instead."""

    status = 409
    field = "webhook"


class WebhookDisabled(WebhookConflict):
    says = "The webhook is disabled, so nothing is sent to it. Enable it first."


class WebhookNotStuck(WebhookConflict):
    says = "The webhook is not stuck: no attempt to deliver its next event has failed."


class SecretsKeyMissing(PointsError):
    """There is no key to encrypt secrets with."""

    status = 503
    field = "service"
    says = "This service has no key to encrypt webhook secrets: its operator must set POINTS_SECRETS_KEY."
