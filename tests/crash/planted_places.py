"""The names of the places where a pause is planted, each for the moment it stands in."""

WEB_BETWEEN_COMMIT_AND_SUBMIT = "web_between_commit_and_submit"
WEB_AFTER_COMMIT_BEFORE_ANSWER = "web_after_commit_before_answer"
WEB_AFTER_CLAIM_BEFORE_ANSWER = "web_after_claim_before_answer"

WORKER_AFTER_LOCK = "worker_after_lock"
WORKER_BEFORE_COMMIT = "worker_before_commit"
WORKER_AFTER_COMMIT = "worker_after_commit"
WORKER_BEFORE_ACKNOWLEDGEMENT = "worker_before_acknowledgement"

# What the environment of a worker may ask of the plants in it.
VISIBILITY_TIMEOUT_S = "CRASH_VISIBILITY_TIMEOUT_S"
DRAIN_LASTS_S = "CRASH_DRAIN_LASTS_S"

# Where such a worker notes the id of every task it begins, in the folder of the pauses.
DELIVERIES = "deliveries"
