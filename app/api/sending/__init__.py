"""One send from its request to its committed batch.

accepting    accepts the waiting sends together, in one statement
drains       asks for drains: at most one message an organization is on its way to the workers
waiting      lets a request wait for its batch's row, until a hint or a poll (every 250 ms) finds it final
wait_slots   limits how many requests wait at once, so that threads stay free for other requests
threads      runs what works beside the requests: it listens for hints, and polls
send_path    accepts, asks for a drain, waits
"""
