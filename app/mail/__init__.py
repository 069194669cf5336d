"""Mail to members: what is due to whom, what it says, and the SMTP server that takes it."""
