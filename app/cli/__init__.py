"""The command line: commands, their help and output.

Does not belong here: logic. Heavy imports happen inside the commands.
"""
