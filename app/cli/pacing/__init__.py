"""Commands about histories as they go on in time: played again, watched over."""
