"""What the words of our own mean, in a line each, for the pages on which a person meets them."""

MEANINGS = {
    "balance": "the points that your organization can issue now.",
    "batch": "one list that a member sent, or one call of a program, with all its recipients.",
    "transaction": "one recipient of a batch, with the points for it.",
    "debited": "taken from the balance.",
    "credited": "given to the account of the recipient.",
    "held": "debited for an address without an account, and credited when somebody registers with it.",
    "unpaid": "not debited, because the balance was too low for this recipient.",
    "reversed": "taken back by your organization, all of it.",
    "returned": "gone back to the balance, because nobody registered in time.",
    "reversal": "points taken back, with the reason. The batch stays listed as it was issued.",
    "refill": "points added to the balance by the operator of the service.",
    "scheduled": "waiting for the time at which it is to be issued; nothing is debited before.",
    "queued": "accepted, and issued in a moment.",
    "issued": "done: the recipients are debited in their order, as far as the balance pays them.",
    "refused": "not issued: the organization was disabled or suspended. Nobody was debited.",
    "cancelled": "called off before it was issued. Nobody was debited.",
    "done": "the points are back in the balance.",
    "reference": "your own number for a recipient of a batch, such as an order number.",
    "label": "a text that is kept on every transaction, such as the name of a campaign.",
    "sandbox": "for trying: it has a balance of its own, and nobody gets real points.",
    "event": "the record of one change, such as a batch that was issued. Events are numbered from 1.",
    "position": "the number of the last event that the webhook has passed; it goes on with the next.",
    "replay": "send events again that the webhook has passed, in the same order.",
    "secret": "proves to your program that an event comes from this service.",  # nosec B105  # A sentence for people.
}
