"""The web process: the Flask application that joins the API and the console, and gunicorn, which serves it."""
