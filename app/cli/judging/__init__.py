"""Commands that judge: objects by rules (`linting`), histories by incidents (`exhibiting`)."""
