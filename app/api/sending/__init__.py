"""One send from its request to its committed batch.

accepting    accepts the waiting sends together, in one statement
waiting      a request waits for its batch's row, until a hint or a poll (every 250 ms) finds it final
wait_slots   limits how many requests wait at once, so that threads stay free for other requests
send_path    accepts, asks for a drain (app/messaging/requests.py), waits
"""
