"""The log of actions: who did what, and when. Its pages are in `app/pages/action_pages.py`."""
