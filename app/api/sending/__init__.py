"""One send from its request to its committed batch.

accepting    the sends that wait to be accepted are accepted together, by whichever of them has the turn
drains       at most one message an organization is on its way to the workers
waiting      a request waits for its batch's row, woken by a hint or by a look every 250 ms
wait_slots   how many requests may wait at once, so that threads are left for everything else
send_path    these four in order
"""
