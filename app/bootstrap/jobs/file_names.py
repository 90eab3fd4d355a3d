"""Names that the process of a job and its server have agreed on."""

FOLDER = "folder"
"""The key of the folder of a job, in the first line that its process writes."""

ANSWER = "answer.json"
"""The file in the folder of a job with its result, or with its problem."""
