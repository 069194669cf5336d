"""The statement: what moved an organization's balance on each day, from days that are counted once."""
