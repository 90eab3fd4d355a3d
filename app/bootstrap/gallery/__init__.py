"""The gallery of incidents: its files (`exhibits`), their clusters (`playing`), where they show
(`scanning`).
"""
