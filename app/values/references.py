"""References: the caller's own id of an item."""

import re

# 1 to 128 visible characters: no blanks, no control characters, and none that are invisible or change the direction of
# the text. The expression is valid in JSON Schema too.
REFERENCE = re.compile(r"^[^\s\u0000-\u0020\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]{1,128}$")
REFERENCE_LENGTH_MAX = 128
