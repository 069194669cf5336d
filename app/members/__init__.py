"""Members: the people of an organization who use the console, their sessions and their actions."""
