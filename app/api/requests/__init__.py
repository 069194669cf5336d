"""Reading requests: headers, queries and bodies, with every validation error in one answer."""
