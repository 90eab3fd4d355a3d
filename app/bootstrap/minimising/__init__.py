"""Making a history small: its parts (`sources`), one candidate judged (`judging`), the search over
all of them (`searching`).
"""
