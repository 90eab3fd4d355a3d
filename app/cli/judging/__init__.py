"""Commands that check objects by rules (`linting`) and histories by incidents (`incidents`)."""
