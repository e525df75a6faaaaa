"""Phrases that several of the forms share in which people set something right: how they begin, how they name another way."""

LEAD = r"^\W*(?:(?:ok(?:ay)?|k|yes|yeah|yep|no+|nope|hm+|um+|uh+|so|well|also|and|but|then|actually|please|pls|sorry|right|great|good|thanks|thank you|cool|hey|oh|ah+|i think|i guess|i feel|imo|imho|for me|basically|generally|in general|in theory|ideally|honestly|just|like|one (?:last|more) (?:thing|modification|change)|note)\b[\s,.:;!-]*)*"
"""What leads up to a statement: `ok, so …`."""
CONTRAST = r"(?:\brather than\b|\binstead\b|\bin place of\b|\bin favou?r of\b|\band not\b|,\s*not\b|\bnot just\b|\bnot only\b|\bno longer\b|\bany ?more\b(?=\s*[,.;:!?)]|\s*$)|\bas (?:they|it) (?:were|was|is|are)\b|\blike (?:we|it|they|before)\b)"
"""What names one way against another: `rather than …`, `…, not …`."""
